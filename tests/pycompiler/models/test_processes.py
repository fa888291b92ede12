"""Each model has a process: what limits, crashes and interrupts come to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import unfinished_work

from pycompiler.models import processes
from pycompiler.models.__main__ import main
from pycompiler.models.catalogue import Entry
from pycompiler.models.measure import measure
from pycompiler.models.names import find
from pycompiler.models.processes import Settings, run_all
from pycompiler.models.row import DIED, MEMORY, MODES, RAISED, TIME, Row

#: Work, seconds, gigabytes; code, part of the reason.
CASES = (
    ("slow", 1.0, None, TIME, "longer than 1 s"),
    ("large", 60.0, 0.2, MEMORY, "more than 0.2 GB"),
    ("dies", 60.0, None, DIED, "signal 9: no output"),
    ("leaves", 60.0, None, DIED, "code 7: the last words"),
    ("returns", 60.0, None, DIED, "code 0: no output"),
)


@pytest.fixture(autouse=True)
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the processes without the libraries, which take seconds to load."""
    monkeypatch.setattr(processes, "_PRELOADED", [])


@pytest.mark.parametrize(("name", "seconds", "gigabytes", "code", "reason"), CASES)
def test_every_end_is_a_row(
    name: str, seconds: float, gigabytes: float | None, code: str, reason: str
) -> None:
    seen: list[Row] = []
    settings = Settings(seconds=seconds, gigabytes=gigabytes)
    run_all([(Entry("x", name), 3, ["mixed"])], settings, seen.append, unfinished_work.work)
    (row,) = seen
    assert (row.key, row.code, row.matched) == ((f"x:{name}", 3, "mixed"), code, False)
    assert reason in row.reason
    assert row.exit_code == 1


def test_a_failure_is_not_the_end() -> None:
    """Each mode gets its row, whichever fails, and so does each model."""
    seen: list[Row] = []
    entries = [Entry("x", name) for name in ("leaves", "second", "dies")]
    settings = Settings(seconds=10.0, jobs=2)
    run_all([(entry, 1, MODES) for entry in entries], settings, seen.append, unfinished_work.work)
    assert {(row.name, row.mode, row.code) for row in seen} == {
        *((f"x:{name}", mode, DIED) for name in ("leaves", "dies") for mode in MODES),
        ("x:second", "float", ""),
        ("x:second", "mixed", DIED),
    }
    assert len(seen) == 2 * len(entries)


def test_an_interrupt_ends_every_process(tmp_path: Path) -> None:
    """A process and its own child are ended when the row of another model is interrupted."""
    pids = tmp_path / "pids"

    def interrupt(row: Row) -> None:
        raise KeyboardInterrupt

    tasks = [(Entry("x", "family", settings={"file": str(pids)}), 1, ["float"])]
    tasks.append((Entry("x", "waits", settings={"file": str(pids)}), 1, ["float"]))
    with pytest.raises(KeyboardInterrupt):
        run_all(tasks, Settings(jobs=2), interrupt, unfinished_work.work)
    ends = time.monotonic() + 10
    family = [int(word) for word in pids.read_text().split()]
    assert len(family) == 2
    for pid in family:
        while _runs(pid):
            assert time.monotonic() < ends
            time.sleep(0.05)


WAITS = """
from pycompiler.models import processes
from pycompiler.models.catalogue import Entry
processes._PRELOADED = ["slow_library"]
processes.run_all([(Entry("x", "slow"), 1, ["mixed"])], processes.Settings(), print, print)
"""


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_ends_the_process_that_loads_libraries(tmp_path: Path) -> None:
    """It would hold the streams of the command, and say that the files of the model are gone."""
    library = "import time\nopen('loading', 'w').close()\ntime.sleep(60)\n"
    (tmp_path / "slow_library.py").write_text(library)
    path = os.pathsep.join((str(tmp_path), *sys.path))
    with subprocess.Popen(
        [sys.executable, "-c", WAITS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        give_up = time.monotonic() + 60
        while not (tmp_path / "loading").exists():
            assert time.monotonic() < give_up
            time.sleep(0.02)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert time.monotonic() - start < 30
    assert said.splitlines()[-1] == "KeyboardInterrupt"


def _runs(pid: int) -> bool:
    """Whether a process runs; one that ended may wait for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


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
    (row,) = measure(find(f"far_models:{name}"), ["float"], 1, "emu2", tmp_path / "out")
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
    (row,) = measure(find(name), ["float"], 1, "emu2", tmp_path / "out")
    assert row.code == "P0007"
    assert f"there is no model `{name}`" in row.reason
    assert row.exit_code == 2


def test_a_library_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    (row,) = measure(find("timm:mixer_s16_224"), ["float"], 1, "emu2", tmp_path / "out")
    assert row.code == "P0008"


@pytest.mark.long
def test_a_model_in_a_process_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    out = tmp_path / "rows.json"
    assert main(["own:nbody", "--mode", "both", "--json", str(out), "--time-limit", "300"]) == 0
    single, mixed = (Row.read(data) for data in json.loads(out.read_text()))
    assert (single.mode, mixed.mode) == MODES
    assert single.matched
    assert mixed.matched
    assert 0 < single.error < 1e-5
    assert single.megabytes > 0
    printed = capsys.readouterr()
    assert "own:nbody batch 1 mixed: matched" in printed.err
    assert "matched" in printed.out
