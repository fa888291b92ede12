"""`python -m pycompiler.mlsdk check`: which calls of a script are unknown, and where."""

from __future__ import annotations

import ast
import random
import sys
from pathlib import Path

import pytest
from compiling import LONG, SCRIPTS
from public_names import NAMES

from pycompiler.mlsdk.__main__ import main
from pycompiler.mlsdk.check import Checker

START = """
from mlsdk import Context, MNDevice
context = Context(MNDevice("emu2"))
f = context.compile(g, {}, "out")
"""

#: A script with one fault in its last line: the script, the code, and words of the diagnostic.
FAULTY = {
    "a module": ("import mlsdk.storag", "P0709", "`mlsdk.storag` is unknown", "`mlsdk.storage`?"),
    "a name": ("from mlsdk import Contxt", "P0709", "`mlsdk.Contxt` is", "`Context`?"),
    "of a module": ("import mlsdk as m\nm.trace_scop(1)", "P0709", "`mlsdk.trace_scop`", "scope`?"),
    "of a submodule": (
        "from mlsdk import storage\nstorage.pth",
        "P0709",
        "`storage.pth`",
        "`path`?",
    ),
    "a method": (START + "context.synchronise()", "P0709", "`Context.synchronise` is unknown", ""),
    "an attribute": (START + "context.registr.register(1, 2)", "P0709", "`registry`?"),
    "of an attribute": (START + "context.registry.registr(1, 2)", "P0709", "`register`?"),
    "of a result": (START + "f({})['y'].cpus()", "P0709", "`TensorProxy.cpus`", "`cpu`?"),
    "of a spec": (START + "f.input_specs['x'].is_memcopyable(3)", "P0709", "`is_memcopyable_to`?"),
    "in place": (START + "f({})['y'].add_(1)", "P0709", "`TensorProxy.add_` is unknown"),
    "a keyword": (START + "context.compile(g, {}, 'o', optoins={})", "P0709", "`options`?"),
    "too few": (START + "context.compile(g, {})", "P0709", "missing a required argument"),
    "too many": (START + "context.synchronize(1)", "P0709", "too many positional", "takes ()"),
    "passed on": (START + "context.compile_automap(g, (), {}, 'o', quite=1)", "P0709", "`quiet`?"),
    "a device": ("from mlsdk import MNDevice\nMNDevice('tpu')", "P0601", "`tpu`"),
    "an option": (START + "context.compile(g, {}, 'o', options={'tun': 'all'})", "P0701", "`tun`"),
    "a value": (START + "context.compile(g, {}, 'o', options={'tune': 'on'})", "P0702", "'on'"),
    "a GPU": ("from mlsdk import MNDevice as D\nD('pfvm:cuda')", "P0703", "`pfvm:cuda`"),
    "a variable": ("import os\nos.environ['CODEGEN_SA_STEP'] = '9'", "P0710", "CODEGEN_SA_STEPS"),
    "refused": (
        "from mlsdk.experimental.llm import kv_cache as kv\nkv.kv_cache_to_plamo(c)",
        "P0703",
        "`kv_cache_to_plamo` is not supported",
    ),
    "through a function": (
        "import mlsdk\ndef make():\n    return mlsdk.Context(mlsdk.MNDevice('emu2'))\n"
        "def use(given, *, again=None):\n    pass; again.invalidat()\n"
        "use(1, again=make())",
        "P0709",
        "`Context.invalidat`",
    ),
    "through self": (
        "from mlsdk import Context\nclass A:\n    def __init__(self, context: 'Context | None'):\n"
        "        self.context, self.other = context, 1\n"
        "    def go(self): self.context.invalidat()",
        "P0709",
        "`Context.invalidat`",
    ),
    "all names": ("from mlsdk import *\nMNDevice(nam='x')", "P0709", "`name`?"),
}

#: Scripts without a fault, or with nothing that the text says for certain.
FINE = {
    "another module": "import mlsdk_tools\nfrom mlsdkx import y\ny.z()",
    "another binding": START + "if x:\n    context = other()\ncontext.synchronise()",
    "a parameter": START + "def h(context):\n    context.synchronise()",
    "a loop": START + "for f in others:\n    f.callled()",
    "a class's name": START
    + "class A:\n    context = 1\n    def h(self):\n        context.compile",
    "torch's methods": START + "y = f({})['y']\ny.chunk(2), y.argmax(-1), y + 1, y[0], y.device",
    "spread arguments": START + "context.compile(*args)\ncontext.compile(g, **settings)",
    "an object's attributes": START
    + "context.device.name, context.registry.optimizers, f.codegen_dir",
    "objects that nobody can call": START + "f({})(1), context(2), f.input_specs['x']()",
    "a path of options": START
    + "context.compile(g, {}, 'o', options={'option_json': 'mine.json'})",
    "a variable": "import os\nos.environ['CODEGEN_OP_DEF'] = os.environ['MY_CODEGEN_X'] = '1'",
    "an optimizer": "import mlsdk\no = mlsdk.MNCoreSGD(p, 0.1, 0.9, 0.0)\no.param_groups[0]['lr']",
}


def check(script: str) -> Checker:
    return Checker(ast.parse(script), "script.py")


@pytest.mark.parametrize("case", FAULTY)
def test_a_fault(case: str) -> None:
    script, code, *words = FAULTY[case]
    (problem,) = check(script).findings
    assert problem.code == code
    assert problem.place is not None
    fault = max(n for n, line in enumerate(script.splitlines(), 1) if case_line(case, line))
    assert (problem.place.file, problem.place.line) == ("script.py", fault)
    for word in words:
        assert word in problem.render()


def case_line(case: str, line: str) -> bool:
    """Whether the fault may be in this line: the last one, or the only one with the name."""
    return "invalidat" in line if case.startswith("through") else bool(line)


@pytest.mark.parametrize("case", FINE)
def test_no_fault(case: str) -> None:
    assert [problem.render() for problem in check(FINE[case]).findings] == []


#: What the text of our scripts does not tell: `TEXT.name` in these places.
UNTOLD = {"result.total", "result.parts[1]", "function({'x': torch.ones(4, 4)})['out']"}
UNTOLD |= {"sample_with(*compiled)", "stage", "value"}
UNTOLD |= {"outputs['logits']", "outputs[f'{name}_out']"}


def test_misspelt_names() -> None:
    """A finding for each, in its line; the names that scripts share with torch are left out."""
    shared = {"shape", "__call__", "storage", "step", "zero_grad", "state_dict", "load_state_dict"}
    shared |= {"generate"}
    public = {name.split(".")[-1] for module in NAMES.values() for name in module}
    names = public - shared - {"item"}
    trees = {path: ast.parse(path.read_text()) for path in sorted(SCRIPTS.glob("*.py"))}
    places = [
        (path, node)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.alias) and node.name in names)
        or (isinstance(node, ast.Attribute) and node.attr in names)
    ]
    texts = [ast.unparse(getattr(node, "value", node)) for _, node in places]
    told = [place for place, text in zip(places, texts, strict=True) if text not in UNTOLD]
    assert len(told) > 0.9 * len(places) > 100
    seed = random.randrange(10**6)
    print(f"{seed=}")
    for path, node in told if LONG else random.Random(seed).sample(told, 15):
        field = "name" if isinstance(node, ast.alias) else "attr"
        name = getattr(node, field)
        setattr(node, field, f"{name}x")
        found = Checker(trees[path], str(path)).findings
        setattr(node, field, name)
        assert any(f"{name}x" in own.message for own in found), f"{path}: {ast.unparse(node)}"


#: Values of MLSDK of every kind.
VALUES = ("mlsdk", "mlsdk.Context", "mlsdk.storage", "mlsdk.TensorLike", "mlsdk.trace_scope")
VALUES += ("context", "context.registry", "context.compile", "f", "f({})", "f({})['y']")
VALUES += ("f.input_specs['x']", "mlsdk.MNCoreSGD([])", "mlsdk.set_tensor_name(1, 2)")


def test_any_script_can_be_read() -> None:
    """Drawn names of real files stand for things of MLSDK; whatever happens to them is judged."""
    files = sorted((Path(__file__).parents[3] / "pycompiler").rglob("*.py"))
    seed = random.randrange(10**6)
    print(f"{seed=}")
    draw, judged = random.Random(seed), 0
    for path in draw.sample(files, 150 if LONG else 8):
        tree = ast.parse(path.read_text())
        names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
        chosen = draw.sample(names, min(12, len(names)))
        start = "".join(f"{name} = {draw.choice(VALUES)}\n" for name in chosen)
        tree.body[:0] = ast.parse(f"import mlsdk\n{START}{start}").body
        judged += Checker(tree, str(path)).calls
    assert judged > 0


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The script does not run: it would end with an error."""
    (tmp_path / "bad.py").write_text("import mlsdk\nraise SystemExit(9)\nmlsdk.MNDevic('emu2')\n")
    (tmp_path / "wrong.py").write_text("def (:\n")
    monkeypatch.chdir(tmp_path)
    ours = sorted(map(str, SCRIPTS.glob("*.py")))

    def said(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mlsdk", "check", *arguments])
        return (main(), *capfd.readouterr())

    code, out, err = said(*ours)
    assert (code, err, out.count(", 0 findings\n")) == (0, "", len(ours))
    code, out, err = said("bad.py")
    assert (code, out) == (1, "bad.py: 0 calls of MLSDK, 1 findings\n")
    assert err.startswith(
        "error[P0709]: `mlsdk.MNDevic` is unknown\n  --> bad.py:3:1\n  help: did "
    )
    code, _, err = said("wrong.py")
    assert (code, err.count("error[P0005]"), err.count("  --> wrong.py:1:")) == (1, 1, 1)
    assert said("missing.py")[0] == 1
    assert said()[0] == 2
