"""The time line of a program as trace events. Expected numbers are computed by hand."""

from __future__ import annotations

import io
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import emu2

# DRAM to L2BM: 256 cycles of latency and 640 words at 16 a cycle; PDM to all L2BMs: 8 a cycle.
PROGRAM = """\
linc $lr0 $ls0
mvp/n640i01 $d0@0 $lc0@0.0
mvb/n640i02 $p0@0 $lc640

nop/2
# The first MV holds L2BM 0.0 until cycle 44, so the second runs from 44 to 44 + 256 + 80.
linc $lr0 $ls0; wait i01
nop; wait i01
nop; wait i02
nop; wait i03
"""
Event = dict[str, Any]


def events(text: str, spec: str = "mncore2") -> list[Event]:
    """Return the trace events of a program."""
    sink = io.StringIO()
    emu2.assemble(text, emu2.Spec.load(spec), filename="p.vsm").trace(sink)
    found: list[Event] = json.loads(sink.getvalue())["traceEvents"]
    return found


def tracks(found: list[Event]) -> dict[str, list[tuple[str, int, int, int]]]:
    """Return slices and instants (name, start, duration, line) by `process/track`."""
    names = {}
    for event in found:
        if event["name"] == "process_name":
            names[event["pid"], None] = event["args"]["name"]
        if event["name"] == "thread_name":
            names[event["pid"], event["tid"]] = event["args"]["name"]
    tracks: dict[str, list[tuple[str, int, int, int]]] = {}
    for event in found:
        if event["ph"] != "M":
            track = f"{names[event['pid'], None]}/{names[event['pid'], event['tid']]}"
            slice_ = (event["name"], event["ts"], event.get("dur", 0), event["args"]["line"])
            tracks.setdefault(track, []).append(slice_)
    return tracks


def test_tracks() -> None:
    first, second = "mvp/n640i01 $d0@0 $lc0@0.0", "mvb/n640i02 $p0@0 $lc640"
    found = tracks(events(PROGRAM))
    held = {
        f"memories held by MVs/l2bm{g}.{q}": [(second, 44, 80, 3)]
        for g in range(4)
        for q in range(2)
    }
    held["memories held by MVs/l2bm0.0"].insert(0, (first, 4, 40, 2))
    assert found == {
        "PE/steps": [
            ("linc $lr0 $ls0", 0, 4, 1),
            ("nop/2", 4, 8, 5),
            ("linc $lr0 $ls0; wait i01", 300, 4, 7),
            ("nop; wait i01", 304, 4, 8),
            ("nop; wait i02", 380, 4, 9),
            ("nop; wait i03", 384, 4, 10),
        ],
        "PE/waits": [
            ("wait i01", 12, 288, 7),
            ("wait i01", 304, 0, 8),
            ("wait i02", 308, 72, 9),
            ("wait i03", 384, 0, 10),
        ],
        "MV/MV 0": [(first, 4, 296, 2)],
        "MV/MV 1": [(second, 44, 336, 3)],
        "memories held by MVs/dram0": [(first, 4, 40, 2)],
        "memories held by MVs/pdm0": [(second, 44, 80, 3)],
        **held,
    }


def test_an_mv_says_what_it_waited_for() -> None:
    wanted = {
        "line": 3,
        "tag": "02",
        "long words": 640,
        "issued": 4,
        "queued": 40,
        "holds memories for": 80,
    }
    assert [e["args"] for e in events(PROGRAM) if e["args"].get("tag") == "02"] == [wanted]
    hosts = [(e["name"], e["args"]["host"]) for e in events(PROGRAM) if "host" in e["args"]]
    assert hosts == [("wait i01", False)] * 2 + [("wait i02", False), ("wait i03", True)]


def test_slices_of_a_track_do_not_overlap() -> None:
    """Perfetto shows slices of one track that overlap as if one called the other."""
    lines = [f"mvp/n{64 * (1 + n % 5)}i{1 + n:02x} $d0@{n % 4} $lc0@{n % 3}.0\n" for n in range(40)]
    found = tracks(events("nop/3\n".join(lines) + "nop; wait i01\n" + "nop; wait i28\n"))
    assert sum(len(slices) for name, slices in found.items() if name.startswith("MV/")) == 40
    for name, slices in found.items():
        ordered = sorted((start, start + length) for _, start, length, _ in slices)
        for (_, end), (start, _) in itertools.pairwise(ordered):
            assert end <= start, name


def test_the_trace_ends_where_the_report_says() -> None:
    program = emu2.assemble(PROGRAM, emu2.Spec.load("mncore2"))
    report = program.report()
    found = tracks(events(PROGRAM))
    assert report["cycles"] == max(start + length for _, start, length, _ in found["PE/steps"])
    assert report["stall_cycles"] == sum(length for _, _, length, _ in found["PE/waits"])


def test_it_is_written_in_pieces() -> None:
    class Sink:
        pieces: list[str]

        def __init__(self) -> None:
            self.pieces = []

        def write(self, text: str) -> None:
            self.pieces.append(text)

    sink = Sink()
    emu2.assemble("linc $lr0 $ls0\n" * 10_000, emu2.Spec.load("mini")).trace(sink)
    assert max(map(len, sink.pieces)) < 1 << 17
    slices = [e for e in json.loads("".join(sink.pieces))["traceEvents"] if e["ph"] == "X"]
    assert [e["args"]["line"] for e in slices] == list(range(1, 10_001))


def test_the_command_writes_it(tmp_path: Path) -> None:
    source, out = tmp_path / "p.vsm", tmp_path / "trace.json"
    source.write_text(PROGRAM)
    command = [sys.executable, "-m", "emu2.cli", "run", str(source), "--trace", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    written = json.loads(out.read_text())
    assert written["traceEvents"] == events(PROGRAM)
    clock = {"clock_mhz": 750, "machine": "mncore2", "unit": "1 us is 1 cycle"}
    assert written["otherData"] == {**clock, "program": str(source)}


def test_a_dash_is_the_standard_output(tmp_path: Path) -> None:
    """It once made a file of that name."""
    (tmp_path / "p.vsm").write_text(PROGRAM)
    for arguments in (("run", "p.vsm", "--trace", "-"), ("profile", "p.vsm", "--json", "-")):
        command = [sys.executable, "-m", "emu2.cli", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert isinstance(json.loads(done.stdout), dict)
    assert [path.name for path in tmp_path.iterdir()] == ["p.vsm"]
