"""The compile cache: a hit gives the same folder; a change that matters gives a miss."""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import model_of

from pycompiler.build import build
from pycompiler.cache import CompileCache, cache_key
from pycompiler.errors import HostFallbackWarning, PycompilerError
from pycompiler.machine import load_target
from pycompiler.mlsdk import CacheOptions, Context, MNDevice
from pycompiler.options import parse_options
from pycompiler.report.report import Report
from pycompiler.runtime.device import Board, find_device
from pycompiler.runtime.executable import Function

X = np.arange(12, dtype=np.float32).reshape(3, 4)
FILES = ("model.onnx", "model.vsm", "model.app", "l3ir.txt")
OFF = {"app": "off", "codegen": "off", "onnx": "off", "gpfn2obj": "off"}


class Compiles:
    """Compiles models with one cache; every compile has its own board and folder."""

    def __init__(self, folder: Path):
        self.folder, self.cache = folder, folder / "deep" / "cache"
        self.report: dict[str, Any] = {}
        self.out = folder

    def __call__(
        self,
        model: onnx.ModelProto,
        device: str = "emu2:mini",
        options: Any = None,
        **flags: bool,
    ) -> Function:
        self.out = self.folder / f"out{len(list(self.folder.glob('out*')))}"
        found = find_device(device)
        board = None if found.machine is None else Board(found.target)
        cache = CacheOptions(self.cache, **flags).cache
        function = build(lambda: model, device, board, options, self.out, cache=cache)
        self.report = json.loads((self.out / "report.json").read_text())
        return function

    @property
    def state(self) -> str:
        assert self.report["cache"]["app"] == self.report["cache"]["codegen"]
        return str(self.report["cache"]["app"])

    def entries(self) -> list[Path]:
        return sorted(self.cache.iterdir())


@pytest.fixture
def compiles(tmp_path: Path) -> Compiles:
    return Compiles(tmp_path)


def times(factor: float, out: str = "out") -> onnx.ModelProto:
    constants = {"k": np.float32(factor).reshape(())}
    return model_of([("Mul", ["x", "k"], out)], {"x": X.shape}, [out], constants)


def run(function: Function) -> list[np.ndarray]:
    return [output.values() for output in function.run({"x": X}).values()]


DOUBLE = times(2)
SINE = model_of([("Sin", ["x"], "s"), ("Add", ["s", "x"], "out")], {"x": X.shape}, ["out"])


def test_a_hit_gives_the_same_folder_and_function(compiles: Compiles) -> None:
    first = compiles(DOUBLE)
    assert compiles.state == "miss"
    before, report = compiles.out, compiles.report
    second = compiles(DOUBLE, options={"num_threads": 2})
    assert compiles.state == "hit"
    assert [file.suffix for file in compiles.entries()] == [".zip"]
    for file in FILES:
        assert (compiles.out / file).read_bytes() == (before / file).read_bytes()
    facts = ("steps", "cycles", "bound", "cycle_shares", "dram_words", "host_fallback", "nodes",
             "operators", "status")  # fmt: skip
    assert {f: compiles.report[f] for f in facts} == {f: report[f] for f in facts}
    assert report["steps"] > 0
    assert report["bound"]["factor"] > 1
    assert compiles.report["options"] == {"num_threads": 2}
    assert [row["pass"] for row in compiles.report["passes"]] == [
        "export",
        "pfvm",
        "cache",
    ]
    for compiled in (first, second):
        assert np.array_equal(run(compiled), [X * 2])


def test_what_matters_makes_a_miss(compiles: Compiles, tmp_path: Path) -> None:
    compiles(DOUBLE)
    for options in ({"strict": True}, {"float_dtype": "mixed"}, {"scheduler": "always_from_dram"}):
        compiles(DOUBLE, options=options)
        assert compiles.state == "miss"
    compiles(DOUBLE, device="emu2")
    assert compiles.state == "miss"
    compiles(times(3))
    assert compiles.state == "miss"
    compiles(times(2, out="other"))
    assert compiles.state == "miss"
    compiles(DOUBLE, options={"float_dtype": "float", "strict": False})
    assert compiles.state == "hit"
    assert len(compiles.entries()) == 7


def test_the_machines_content_is_part_of_the_key(tmp_path: Path) -> None:
    base, derived = tmp_path / "base", tmp_path / "derived"
    base.mkdir()
    derived.mkdir()
    model = model_of([("Relu", ["x"], "y")], {"x": (4,)}, ["y"])
    keys = []
    for count in (4, 8, 4):
        head = '[machine]\nname = "m"\ndoc = "A test."\n'
        (base / "topology.toml").write_text(f'extends = "mini"\n{head}[counts]\nmab = {count}\n')
        (derived / "topology.toml").write_text(f'extends = "base"\n{head}')
        load_target.cache_clear()
        keys += [cache_key(model, load_target(str(p)), parse_options({})) for p in (base, derived)]
    assert keys[:2] == keys[4:]
    assert len(set(keys)) == 4


def test_the_key_ignores_what_no_pass_reads() -> None:
    target, options = load_target("mini"), parse_options({})
    model = model_of([("Relu", ["x"], "y")], {"x": (4,)}, ["y"])
    other = onnx.ModelProto()
    other.CopyFrom(model)
    other.producer_name, other.doc_string = "somebody", "text"
    other.graph.node[0].metadata_props.add(key="namespace", value="a")
    assert cache_key(other, target, options) == cache_key(model, target, options)
    stack = 'File "/home/me/model.py", line 3, in forward'
    other.graph.node[0].metadata_props.add(key="pkg.torch.onnx.stack_trace", value=stack)
    assert cache_key(other, target, options) != cache_key(model, target, options)


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "another key", "folder"])
def test_damaged_entries_are_made_anew(compiles: Compiles, damage: str) -> None:
    compiles(DOUBLE)
    (entry,) = compiles.entries()
    data = bytearray(entry.read_bytes())
    if damage == "empty":
        data.clear()
    elif damage == "cut":
        del data[len(data) // 2 :]
    elif damage == "flipped":
        data[100] ^= 0x10  # in the app, the first part of the file
    elif damage == "another key":
        compiles(times(5))
        (other,) = set(compiles.entries()) - {entry}
        data = bytearray(other.read_bytes())
    entry.write_bytes(data)
    if damage == "folder":
        entry.unlink()
        entry.mkdir()
    compiled = compiles(DOUBLE)
    assert compiles.state == "miss"
    assert any(f"`{entry}` is damaged" in note for note in compiles.report["notes"])
    assert np.array_equal(run(compiled), [X * 2])
    compiles(DOUBLE)
    assert compiles.state == ("miss" if damage == "folder" else "hit")


def test_a_hit_warns_of_the_host_too(compiles: Compiles) -> None:
    for state in ("miss", "hit"):
        with pytest.warns(HostFallbackWarning, match="1 of 2 operators") as caught:
            compiles(SINE)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert compiles.state == state
        assert [row["op"] for row in compiles.report["host_fallback"]] == ["Sin"]


@pytest.mark.parametrize("flag", ["enable_app_cache", "enable_codegen_cache"])
def test_flags_switch_it_off(compiles: Compiles, flag: str) -> None:
    for _ in range(2):
        compiles(DOUBLE, **{flag: False})
        assert compiles.report["cache"] == OFF
    assert not compiles.cache.exists()
    for flag in ("enable_onnx_cache", "enable_gpfn2obj_cache"):  # these flags change nothing
        compiles(DOUBLE, **{flag: False})
    assert compiles.state == "hit"


def test_the_host_needs_no_cache(compiles: Compiles) -> None:
    compiles(DOUBLE, device="pfvm:cpu")
    assert compiles.report["cache"] == OFF
    assert not compiles.cache.exists()


def test_a_folder_that_cannot_be_written_is_a_note(compiles: Compiles) -> None:
    compiles.cache = compiles.folder / "file"
    compiles.cache.write_text("mine")
    compiled = compiles(DOUBLE)
    assert compiles.state == "miss"
    assert any("cannot be written" in note for note in compiles.report["notes"])
    assert compiles.cache.read_text() == "mine"
    assert np.array_equal(run(compiled), [X * 2])


def test_a_failed_compile_stores_nothing(compiles: Compiles) -> None:
    with pytest.raises(PycompilerError):
        compiles(SINE, options={"strict": True})
    assert not compiles.cache.exists()


@pytest.mark.parametrize("wrong", [{"dir": 3}, {"dir": "d", "enable_app_cache": "yes"}])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PycompilerError) as caught:
        CacheOptions(**wrong)
    assert caught.value.code == "P0704"


def test_contexts_share_a_cache(tmp_path: Path) -> None:
    def double(d: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"out": d["x"] * 2.0}

    sample = {"x": torch.from_numpy(X)}
    for state in ("miss", "hit"):
        context, out = Context(MNDevice("emu2:mini")), tmp_path / state
        cache = CacheOptions(tmp_path / "cache")
        compiled = context.compile(double, sample, out, cache_options=cache)
        assert json.loads((out / "report.json").read_text())["cache"]["app"] == state
        assert torch.equal(compiled(sample)["out"].cpu(), sample["x"] * 2)
    for file in FILES:
        assert (tmp_path / "hit" / file).read_bytes() == (tmp_path / "miss" / file).read_bytes()


SCRIPT = """
import json, sys, onnx
from pathlib import Path
from pycompiler.build import build
from pycompiler.cache import CompileCache
from pycompiler.runtime.device import Board, find_device
out, board = Path(sys.argv[1]), Board(find_device("emu2:mini").target)
model = onnx.load("model.onnx")
build(lambda: model, "emu2:mini", board, None, out, cache=CompileCache(Path("cache")))
print(json.loads((out / "report.json").read_text())["cache"]["app"])
"""


def test_processes_share_a_cache(tmp_path: Path) -> None:
    onnx.save(DOUBLE, tmp_path / "model.onnx")

    def start(number: int) -> str:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, f"out{number}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        assert set(threads.map(start, range(2))) <= {"hit", "miss"}
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert start(2) == "hit"


def test_storing_at_the_same_time_leaves_one_whole_entry(compiles: Compiles) -> None:
    compiles(DOUBLE)
    (entry,) = compiles.entries()
    key, cache = entry.stem, CompileCache(compiles.cache)

    def again(_: int) -> bool:
        report = Report("emu2:mini", {})
        found = cache.load(key, report)
        assert found is not None
        cache.store(key, found, report)
        return report.data["notes"] == []

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert all(threads.map(again, range(40)))
    assert compiles.entries() == [entry]


def test_the_folder_has_a_limit_and_the_used_stay(compiles: Compiles) -> None:
    compiles(DOUBLE)
    (entry,) = compiles.entries()
    report = Report("emu2:mini", {})
    found = CompileCache(compiles.cache).load(entry.stem, report)
    assert found is not None
    size = entry.stat().st_size
    small = CompileCache(compiles.cache, most=3 * size + size // 2)
    keys = [f"{number:064x}" for number in range(6)]
    for age, key in enumerate(keys[:3]):
        small.store(key, found, report)
        os.utime(compiles.cache / f"{key}.zip", (age, age))
    # The oldest went when the third came. The next in line is used, so another one goes.
    os.utime(entry, (0, 0))
    assert small.load(entry.stem, report) is not None
    small.store(keys[3], found, report)
    assert {path.stem for path in compiles.entries()} == {entry.stem, keys[2], keys[3]}
    CompileCache(compiles.cache, most=1).store(keys[4], found, report)
    assert compiles.entries() == []
    assert report.data["notes"] == []
