"""What a version promises stays: names, commands, and files that it wrote (docs/stability.md).

Every folder below ``tests/data/compatibility`` was frozen by the version of its name. What it holds
is read by the version of today, or a code says why not where ``GONE`` allows that.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from compatibility import FOLDER, ROOT, freeze

import emu2
from pycompiler.app.reader import read_app
from pycompiler.app.verify import verify_app
from pycompiler.build import build
from pycompiler.cache import CompileCache
from pycompiler.machine import load_target
from pycompiler.report.report import Report
from pycompiler.runtime.app_file import load_app
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction
from pycompiler.version import __version__

VERSIONS = sorted(path.name for path in FOLDER.iterdir())
#: What a later version took away, after a release in which it was deprecated: kind, name, version.
GONE: frozenset[tuple[str, str, str]] = frozenset()

#: What users import; all other modules are private.
DOORS = ("boards", "graph", "mlsdk", "partitioning", "plugins", "runtime.app_file", "torch_backend")


@pytest.fixture(params=VERSIONS)
def frozen(request: pytest.FixtureRequest) -> Path:
    """The folder of a version."""
    return FOLDER / str(request.param)


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the version of today would freeze."""
    folder = tmp_path_factory.mktemp("today") / __version__
    freeze(folder)
    return folder


def test_the_version_of_today_is_frozen() -> None:
    assert __version__ in VERSIONS, "python tests/pycompiler/compatibility.py"


def test_the_packages_have_one_version() -> None:
    files = ("Cargo.toml", "editors/vscode/package.json")
    for text in ((ROOT / name).read_text() for name in files):
        (version,) = re.findall(r'^\W*version\W+([\d.]+)"', text, re.MULTILINE)
        assert version == __version__


def test_pages_and_examples_import_what_is_public() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.*")]
    texts = [path.read_text() for path in pages if path.suffix in (".md", ".py", ".ipynb")]
    by_hand = [text for text in texts if not text.startswith("<!-- Generated")]
    found = {
        name
        for text in by_hand
        for name in re.findall(r"(?:from|import) pycompiler\.([\w.]+)", text)
    }
    assert {
        name for name in found if not f"{name}.".startswith(tuple(f"{d}." for d in DOORS))
    } == set()
    shown = (ROOT / "docs/stability.md").read_text()
    assert [door for door in DOORS if f"`pycompiler.{door}`" not in shown] == []


def test_names_stay(frozen: Path, today: Path) -> None:
    old: dict[str, Any] = json.loads((frozen / "surface.json").read_text())
    new: dict[str, Any] = json.loads((today / "surface.json").read_text())
    for kind, names in old.items():
        gone = {name for known, name, _ in GONE if known == kind}
        assert set(names) - set(new[kind]) - gone == set(), kind
        if isinstance(names, dict):
            for name, inner in names.items():
                if name not in gone and inner is not None:
                    there = new[kind][name]
                    assert set(inner) - set(there) - gone == set(), f"{kind} {name}"
                    if kind == "python":
                        kept = [known for known in there if known in inner]
                        assert kept == [known for known in inner if known in there], name


def test_the_machine_runs_its_program(frozen: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(frozen / "machine.zip") as kept:
        kept.extractall(tmp_path)
    text = (frozen / "program.vsm").read_text()
    for name in ("mini", str(tmp_path / "mini")):
        spec, dump = emu2.Spec.load(name), io.StringIO()
        emu2.Machine(spec).run(emu2.assemble(text, spec), dump=dump)
        assert dump.getvalue() == (frozen / "program.txt").read_text()


def test_a_saved_state_loads_on_its_machine(frozen: Path, tmp_path: Path) -> None:
    """A state belongs to one description; that of another one is refused by name."""
    with zipfile.ZipFile(frozen / "machine.zip") as kept:
        kept.extractall(tmp_path)
    machine = emu2.Machine(emu2.Spec.load(str(tmp_path / "mini")))
    path = str(tmp_path / "program.state")
    if ("files", "program.state", frozen.name) in GONE:
        with pytest.raises(emu2.Emu2Error, match="F0009"):
            machine.load_state(path)
        return
    machine.load_state(path)
    (word,) = machine.read("lm0", addr=0, count=1, group=0, l2b=0, l1b=0, mab=0, pe=0)
    assert word == 0x4040000040400000


def test_an_app_runs(frozen: Path) -> None:
    data = (frozen / "model.app").read_bytes()
    verify_app(read_app(data, frozen.name), load_target("mini"), frozen.name)
    arrays = np.load(frozen / "arrays.npz")
    (made,) = load_app(frozen / "model.app").run({"x": arrays["x"]}).values()
    assert made.values().tobytes() == arrays["y"].tobytes()


def test_an_entry_of_the_cache_is_read(frozen: Path) -> None:
    """Its key holds the version, so no other version finds it; but its form stays."""
    (entry,) = (frozen / "cache").glob("*.zip")
    report = Report("mini", {})
    found = CompileCache(entry.parent).load(entry.stem, report)
    assert found is not None, report.data["notes"]
    arrays = np.load(frozen / "arrays.npz")
    function = DeviceFunction(found.app, Board(load_target("mini")))
    assert function.run({"x": arrays["x"]})["y"].values().tobytes() == arrays["y"].tobytes()


@pytest.mark.parametrize("name", ["overrides", "layout_spec", "gemm_layout_spec"])
def test_what_is_forced_on_a_model_is_followed(name: str, frozen: Path, tmp_path: Path) -> None:
    path = frozen / f"{name}.json"
    content = json.loads(path.read_text())
    options: dict[str, Any] = {name: content if name == "overrides" else str(path)}
    entries = content.values() if name == "overrides" else content
    forced = [(key, text) for entry in entries for key, text in entry.items()]
    # The dump shows the right operand as it is, a file gives it turned round.
    wanted = [text for key, text in forced if "((" in str(text) and key != "BT"]
    arrays = np.load(frozen / "arrays.npz")
    board = Board(load_target("mini"))

    def model() -> onnx.ModelProto:
        return onnx.load(frozen / "model.onnx")

    function = build(model, "emu2:mini", board, options, tmp_path / "out")
    made = function.run({"x": arrays["x"]})["y"].values()
    assert np.abs(made - arrays["y"]).max() < 1e-5
    dump = (tmp_path / "out" / "layout.layout.txt").read_text()
    assert [text for text in wanted if f"/{text}}}" not in dump] == []
