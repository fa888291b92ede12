"""The recipes of CONTRIBUTING.md work: each one is applied to a copy of the sources and used.

The first line of a block tells where to put the rest: ``new file NAME``, ``in NAME, at the end`` or
``in NAME, after: LINE``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
BLOCK = re.compile(r"^```(?:python|toml)\n# ([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^### ([^\n]*)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
RECIPES = {name: BLOCK.findall(text) for name, text in SECTION.findall(TEXT)}

USES = {
    "An ALU operation": """
import emu2
spec = emu2.Spec.load("mncore2")
machine = emu2.Machine(spec)
text = "d set $lm0 1 0000000000000041\\nisucc $lm0 $lr0\\nd get $lr0n0c0b0m0p0 1\\n"
(line,) = machine.run(emu2.assemble(text, spec)).dump
assert "v:0x100000042" in line, line
assert "without a flag" in spec.page("succ")
""",
    "An operator": """
import numpy as np
from compiling import compiled, model_of, run
from pycompiler.pfvm.session import HostSession
given = {"x": np.random.default_rng(1).standard_normal((2, 3, 4, 5)).astype(np.float32)}
model = model_of([("ThresholdedRelu", ["x"], "y")], {"x": (2, 3, 4, 5)}, ["y"])
result, report = compiled(model)
assert report["host_fallback"] == [], report["host_fallback"]
wanted = HostSession(model, "model").run(given)
np.testing.assert_array_equal(run(result, given)["y"], wanted["y"])
""",
    "A rewrite": """
import numpy as np
from compiling import compiled, model_of, run
model = model_of([("Neg", ["x"], "n"), ("Abs", ["n"], "y")], {"x": (8, 9)}, ["y"])
given = {"x": np.random.default_rng(1).standard_normal((8, 9)).astype(np.float32)}
result, report = compiled(model)
assert [row["rewrites"] for row in report["passes"] if "rewrites" in row] == [{"unseen_signs": 1}]
assert "Neg" not in {node.op for node in result.graph.nodes}
assert np.array_equal(run(result, given)["y"], np.abs(given["x"]))
plain, _ = compiled(model, skip_rewrites="unseen_signs")
assert "Neg" in {node.op for node in plain.graph.nodes}
""",
    "An option": """
from click.testing import CliRunner
from compiling import model_of
from pycompiler import cli, document_options
from pycompiler.cache import cache_key
from pycompiler.errors import PycompilerError
from pycompiler.machine import load_target
from pycompiler.options import parse_options
model = model_of([("Relu", ["x"], "y")], {"x": (4,)}, ["y"])
keys = {cache_key(model, load_target("mini"), parse_options({"spread": n})) for n in (1, 2, 3)}
assert len(keys) == 3
try:
    parse_options({"spread": 0})
except PycompilerError as problem:
    assert problem.code == "P0702"
else:
    raise AssertionError("0 is taken")
assert "spread" in CliRunner().invoke(cli.commands, ["compile", "--help"]).output
assert "| `spread` |" in document_options.page()
""",
    "A schedule": """
import numpy as np
from compiling import compiled, model_of, run
model = model_of([("MatMul", ["x", "w"], "y")], {"x": (9, 20), "w": (20, 13)}, ["y"])
rng = np.random.default_rng(1)
given = {name: rng.integers(-8, 9, shape).astype(np.float32)
         for name, shape in (("x", (9, 20)), ("w", (20, 13)))}
for plan in ("Resident", "Everywhere"):
    result, _ = compiled(model, overrides={"y": {"plan": '{"%s": {}}' % plan}})
    (product,) = (node for node in result.graph.nodes if node.op == "MatMul")
    assert type(product.plan).__name__ == plan
    assert np.array_equal(run(result, given)["y"], given["x"] @ given["w"])
layout = result.graph.values[product.outputs[0]].layout
assert {sub.level.value for axis in layout.axes for sub in axis} <= {"Addr", "PE", "W"}, layout
""",
    "A machine": """
import emu2
spec = emu2.Spec.load("half")
assert (spec.counts["l1b"], spec.counts["mab"]) == (4, 8)
program = emu2.assemble("l1bmd $lb0 $lm0v\\nd get $lm510n0c0b3m7p3 1\\n", spec)
assert len(emu2.Machine(spec).run(program).dump) == 1
""",
}


def test_every_recipe_is_used() -> None:
    assert set(USES) == set(RECIPES)
    assert all(RECIPES.values())


@pytest.mark.parametrize("recipe", USES)
def test_recipe(recipe: str, tmp_path: Path) -> None:
    for name in ("pycompiler", "isa_specs"):
        ignored = shutil.ignore_patterns(
            "__pycache__", "choosing", "packing", "placing", "switches"
        )
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    (tmp_path / "emu2").symlink_to(ROOT / "emu2")
    for place, text in RECIPES[recipe]:
        put(tmp_path, place, text)
    machines = os.pathsep.join(str(tmp_path / name) for name in ("machines", "isa_specs"))
    path = os.pathsep.join((str(tmp_path), str(ROOT / "tests" / "pycompiler")))
    done = subprocess.run(
        [sys.executable, "-c", USES[recipe]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "EMU2_SPEC_PATH": machines},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def put(root: Path, place: str, text: str) -> None:
    """Put ``text`` at the place that ``place`` names."""
    new = re.fullmatch(r"new file (\S+)", place)
    if new:
        path = root / new[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return
    told = re.fullmatch(r"in (\S+), (?:at the end|after: (.*))", place)
    assert told is not None, place
    path, line = root / told[1], told[2]
    before = path.read_text()
    if line is None:
        path.write_text(f"{before}\n\n{text}")
        return
    assert before.count(line) == 1, f"{told[1]} has {before.count(line)} times: {line}"
    head, _, tail = before.partition(line)
    path.write_text(f"{head}{line}\n{text.rstrip()}{tail}")


@pytest.mark.parametrize("recipe", RECIPES)
def test_files_of_a_recipe_exist(recipe: str) -> None:
    """The tables name files that exist; a name in capitals is a placeholder."""
    (section,) = (text for name, text in SECTION.findall(TEXT) if name == recipe)
    named = [
        name
        for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        for name in row.split("`")[1::2]
    ]
    assert named
    for name in named:
        known = name.split("NAME")[0] if "NAME" in name else name
        found = list(ROOT.glob(known)) if "*" in known else [ROOT / known]
        assert found, name
        assert all(path.exists() for path in found), name
