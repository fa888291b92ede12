"""Each model has a process: what limits, crashes and interrupts come to."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from pycompiler.models import processes
from pycompiler.models.__main__ import main
from pycompiler.models.catalogue import Entry
from pycompiler.models.measure import measure
from pycompiler.models.names import find
from pycompiler.models.processes import Settings, run_all
from pycompiler.models.row import DIED, MEMORY, RAISED, TIME, Row

#: Programs in place of the real one, which takes seconds to load.
PROGRAMS = {
    "slow": "import time; time.sleep(60)",
    "large": "import time; kept = bytearray(1 << 28); time.sleep(60)",
    "dies": "import os; os.kill(os.getpid(), 9)",
    "leaves": "import os; print('the last words', flush=True); os._exit(7)",
    "writes": "import pathlib, sys; pathlib.Path(sys.argv[1], 'row.json').write_text('[]')",
    "child": "import os, time\nif os.fork(): print(os.getpid(), flush=True)\ntime.sleep(60)",
}

#: Program, seconds, gigabytes; code, part of the reason.
CASES = (
    ("slow", 1.0, None, TIME, "longer than 1 s"),
    ("large", 60.0, 0.2, MEMORY, "more than 0.2 GB"),
    ("dies", 60.0, None, DIED, "signal 9: no output"),
    ("leaves", 60.0, None, DIED, "code 7: the last words"),
    ("writes", 60.0, None, DIED, "code 0"),
)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a program of the table in place of the model of its name."""

    def command(entry: Entry, mode: str, settings: Settings, folder: Path) -> list[str]:
        return [sys.executable, "-c", PROGRAMS[entry.model], str(folder)]

    monkeypatch.setattr(processes, "worker_command", command)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(("name", "seconds", "gigabytes", "code", "reason"), CASES)
def test_every_end_is_a_row(
    name: str, seconds: float, gigabytes: float | None, code: str, reason: str
) -> None:
    seen: list[Row] = []
    settings = Settings(seconds=seconds, gigabytes=gigabytes)
    (row,) = run_all([(Entry("x", name), "mixed")], settings, seen.append)
    assert seen == [row]
    assert (row.name, row.mode, row.code, row.matched) == (f"x:{name}", "mixed", code, False)
    assert reason in row.reason
    assert row.exit_code == 1


@pytest.mark.usefixtures("programs")
def test_a_failure_is_not_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows.json"
    names = ["x:leaves", "x:slow", "x:dies"]
    options = ["--json", str(out), "--jobs", "2", "--time-limit", "2", "--mode", "both"]
    assert main([*names, *options]) == 1
    rows = [Row.read(data) for data in json.loads(out.read_text())]
    assert {(row.name, row.mode, row.code) for row in rows} == {
        (name, mode, TIME if name == "x:slow" else DIED)
        for name in names
        for mode in ("float", "mixed")
    }
    printed = capsys.readouterr()
    assert "x:slow mixed: time: it took longer than 2 s" in printed.out
    assert "Traceback" not in printed.err


@pytest.mark.usefixtures("programs")
def test_an_interrupt_ends_every_process() -> None:
    """A process of the second model and its own child are ended with the first one's row."""
    ended: list[int] = []
    start = processes.subprocess.Popen

    def interrupt(row: Row) -> None:
        raise KeyboardInterrupt

    def started(*arguments: object, **more: object) -> object:
        process = start(*arguments, **more)  # type: ignore[call-overload]
        ended.append(process.pid)
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes.subprocess, "Popen", started)
        tasks = [(Entry("x", name), "float") for name in ("child", "leaves")]
        with pytest.raises(KeyboardInterrupt):
            run_all(tasks, Settings(jobs=2), interrupt)
    assert len(ended) == 2
    ends = time.monotonic() + 10
    for group in ended:
        while _alive(group):
            assert time.monotonic() < ends
            time.sleep(0.05)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the group's number belongs to somebody else by now
        return False
    return True


MODELS = '''
"""Models that do not come far."""
import torch

def raises():
    raise ValueError("no\\nsuch thing")

def nothing():
    return None

def branches():
    return (lambda x: x + 1 if bool(x.sum() > 0) else x), torch.ones(3)
'''

#: Function, code, part of the reason.
OWN = (
    ("raises", RAISED, "ValueError: no such thing"),
    ("nothing", RAISED, "TypeError"),
    ("absent", "P0007", "no function `absent`"),
    ("branches", "P0101", "cannot capture"),
)


@pytest.mark.parametrize(("name", "code", "reason"), OWN)
def test_models_that_fail(
    name: str, code: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far_models.py").write_text(MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    row = measure(find(f"far_models:{name}"), "float", 1, "emu2", tmp_path / "out")
    assert (row.name, row.code) == (f"far_models:{name}", code), row
    assert reason in row.reason
    assert "\n" not in row.reason


@pytest.mark.parametrize(
    "name",
    ["torchvision:resnet", "timm:resnet", "transformers:Resnet", "no_such_module:f", "json:f"],
)
def test_models_that_no_library_has(name: str, tmp_path: Path) -> None:
    library = name.partition(":")[0]
    if library in ("torchvision", "timm", "transformers"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    row = measure(find(name), "float", 1, "emu2", tmp_path / "out")
    assert row.code == "P0007"
    assert f"there is no model `{name}`" in row.reason
    assert row.exit_code == 2


def test_a_library_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    row = measure(find("timm:mixer_s16_224"), "float", 1, "emu2", tmp_path / "out")
    assert row.code == "P0008"


def test_a_model_in_a_process_of_its_own(tmp_path: Path) -> None:
    out = tmp_path / "rows.json"
    assert main(["own:mlp", "--json", str(out), "--time-limit", "300"]) == 0
    (row,) = (Row.read(data) for data in json.loads(out.read_text()))
    assert row.matched
    assert 0 < row.error < 1e-5
    assert row.megabytes > 0
