"""A debugger that attaches to a process which runs a host program in C."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import dap_client
import pytest
from sdk_root import TREE, build, done, folder_of, root, run

import emu2
from emu2.debug.remote import RemoteRun

Started = tuple[subprocess.Popen[str], Path]


def start(folder: Path, name: str, **variables: str) -> Started:
    """Start a program whose first kernel waits for a debugger, and return it with its socket."""
    path = folder / "socket"
    program = build(folder_of(folder / name), name, "libraries")
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{root()}/lib/emu-lib",
        "EMU2_DEBUG": str(path),
        "EMU2_DEBUG_STOP": "1",
        **variables,
    }
    process = subprocess.Popen(
        [program], cwd=program.parent, env=environment, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while not path.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process, path


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Started]:
    """The program that launches `keep`, and `twice` three times."""
    process, path = start(tmp_path, "state")
    yield process, path
    process.kill()
    process.wait()


def passed(process: subprocess.Popen[str]) -> None:
    """Check that the program ends well."""
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "PASS\n")


def test_an_editor_attaches(state: Started) -> None:
    """Breakpoints of a source that is still to come, memories by name, time travel, a detach."""
    process, path = state
    adapter, client = dap_client.start()
    client.ask("initialize", adapterID="emu2", linesStartAt1=True)
    client.ask("attach", socket=str(path))
    lines = [{"line": 2, "condition": "lm0[0] of n0c0b0m3p0 == 144"}, {"line": 8}]
    source = {"path": "/somewhere/twice.vsm"}
    said = client.ask("setBreakpoints", source=source, breakpoints=lines)["breakpoints"]
    assert [one["verified"] for one in said] == [True, True]
    client.ask("configurationDone")
    assert client.event("stopped")["reason"] == "entry"
    frames = client.ask("stackTrace", threadId=1)["stackFrames"]
    assert [frame["line"] for frame in frames] == [2, 1]
    assert frames[0]["source"]["sourceReference"] == 1
    assert frames[1]["source"]["name"] == "keep.vsm"
    assert "mvp/n64i01" in client.ask("source", sourceReference=1)["content"]
    stop = client.moves("continue")
    assert (stop["reason"], stop["hitBreakpointIds"]) == ("breakpoint", [said[0]["id"]])
    assert client.line() == 3
    value = client.ask("evaluate", expression="lm0[0] of n0c0b0m2p3", context="watch")
    assert int(value["result"], 0) == 121
    assert int(client.ask("evaluate", expression="lm1[0] of n0c0b0m2p3")["result"], 0) == 0
    assert client.moves("next")["reason"] == "step"
    assert int(client.ask("evaluate", expression="lm1[0] of n0c0b0m2p3")["result"], 0) == 242
    assert client.moves("stepBack")["reason"] == "step"
    assert int(client.ask("evaluate", expression="lm1[0] of n0c0b0m2p3")["result"], 0) == 0
    stop = client.moves("continue")
    assert stop["hitBreakpointIds"] == [said[1]["id"]]
    names = [one["name"] for one in client.ask("scopes", frameId=1)["scopes"]]
    assert names[0] == "Run"
    assert client.ask("readMemory", memoryReference="lm1@n0c0b0m2p3", count=8)["data"]
    client.ask("disconnect")
    assert adapter.wait(20) == 0
    passed(process)


def test_a_process_runs_on_without_its_debugger(state: Started) -> None:
    """A debugger that goes away lets the kernel run; another one may attach."""
    process, path = state
    first = RemoteRun(str(path))
    assert first.step()["reason"] == "start"
    first._connection._reader.close()
    first._connection._socket.close()
    passed(process)


def test_moves_over_the_ends_of_kernels(state: Started) -> None:
    process, path = state
    remote = RemoteRun(str(path))
    seen = []
    for _ in range(4):
        stop = remote.step()
        assert (stop["reason"], stop["position"]) == ("start", 0)
        seen.append((remote.kernel, Path(remote.name).name))
        assert remote.go(remote.statements)["reason"] == "end"
    assert seen == [(1, "keep"), (2, "twice"), (3, "twice"), (4, "twice")]
    assert remote.run(back=True)["reason"] == "start"
    with pytest.raises(emu2.EmulatorError, match="D0002"):
        remote.go(1 << 20)
    with pytest.raises(emu2.EmulatorError, match="D0001"):
        remote.evaluate("nothing[3]")
    assert remote.run()["reason"] == "exit"
    with pytest.raises(emu2.EmulatorError, match="D0005"):
        remote.evaluate("lm0[0]")
    passed(process)


@pytest.mark.parametrize("name", ["tags", "two_devices", "threads", "shared_tag", "pools"])
def test_programs_under_a_debugger(name: str, tmp_path: Path) -> None:
    """Tags, queues and several devices behave as without a debugger."""
    process, path = start(tmp_path, name)
    remote = RemoteRun(str(path))
    while (stop := remote.run())["reason"] != "exit":
        assert stop["reason"] == "error"
    passed(process)


def test_a_write_reaches_the_program(state: Started) -> None:
    """The program sees what the debugger has written, so it fails."""
    process, path = state
    remote = RemoteRun(str(path))
    remote.step()
    remote.go(remote.statements)
    place = "lm0[0] of n0c0b0m0p1"
    before = remote.evaluate(place)[0]["word"]
    units = {"group": 0, "l2b": 0, "l1b": 0, "mab": 0, "pe": 1}
    remote.write("lm0", remote.read("lm0", **units) + 1, **units)
    assert remote.evaluate(place)[0]["word"] == before + 1
    assert remote.holds(f"{place} == {before + 1}")
    remote.close()
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, "FAIL" in out) == (1, True)


def test_only_the_same_user(state: Started) -> None:
    process, path = state
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    if os.geteuid() == 0:
        script = f"""
import os, socket
os.seteuid(65534)
other = socket.socket(socket.AF_UNIX)
try:
    other.connect({str(path)!r})
    print("answer", other.recv(1))
except PermissionError:
    print("denied")
"""
        command = (sys.executable, "-c", script)
        for folder in path.parents:
            if folder == Path(tempfile.gettempdir()):
                break
            folder.chmod(0o755)
        assert done(*command) == "denied\n"
        # The socket itself looks at who connects, too.
        path.chmod(0o666)
        assert done(*command) == "answer b''\n"
    RemoteRun(str(path)).close()
    passed(process)


WRONG = [
    b"nonsense",
    b"[]",
    b"{}",
    b'{"do": 3}',
    b'{"do": "fly"}',
    b'{"do": "step"}',
    b'{"do": "step", "unit": "mile"}',
    b'{"do": "go", "position": -1}',
    b'{"do": "go", "position": 1e30}',
    b'{"do": "evaluate", "place": 7, "most": 1}',
    b'{"do": "evaluate", "place": "lm0[0:9999999]", "most": 1}',
    b'{"do": "read", "memory": "dram", "addr": 0, "count": 99999999999, "units": []}',
    b'{"do": "read", "memory": "lm0", "addr": 0, "count": 2048, "units": null}',
    b'{"do": "write", "memory": "lm0", "addr": 0, "count": 1, "units": [0], "words": ["x"]}',
    b'{"do": "add", "text": "line x"}',
    b'{"do": "remove", "id": 5}',
    b'{"do": "differences", "first": 0, "second": 99, "most": 1}',
    b'{"do": "at_line", "line": 4000000000}',
    b"[" * 100_000,
]


def test_wrong_requests(state: Started) -> None:
    """Each gets an error, and the session goes on; a line without an end ends the session."""
    process, path = state
    with socket.socket(socket.AF_UNIX) as raw, raw.makefile("rb") as reader:
        raw.connect(str(path))
        raw.sendall(b'{"do": "step", "unit": "line"}\n')
        assert json.loads(reader.readline())["ok"]["reason"] == "start"
        for request in WRONG:
            raw.sendall(request + b"\n")
            said = json.loads(reader.readline())
            assert set(said["error"]) == {"code", "message", "help"}, request
        raw.sendall(b'{"do": "state"}\n')
        assert json.loads(reader.readline())["ok"]["position"] == 0
        raw.sendall(b"x" * (1 << 20))
    passed(process)


def test_commands(state: Started) -> None:
    """`emu2 debug --attach` reads the same commands."""
    process, path = state
    script = "break when lm1[0] of n0c0b0m0p1 == 2\nrun\nwhere\nprint lm0[0] of n0c0b0m0p1\nquit\n"
    command = [sys.executable, "-m", "emu2.cli", "debug", "--attach", str(path)]
    done_ = subprocess.run(
        command, input=script, capture_output=True, text=True, check=False, cwd=TREE
    )
    assert done_.returncode == 0, done_.stderr
    assert done_.stdout.splitlines()[-2:] == [
        "4: nop/4    [twice.vsm:3]",
        "n0c0b0m0p1[0] = 0x0000000000000001",
    ]
    passed(process)
    result = run(*command)
    assert (result.returncode, "error[F0001]" in result.stderr) == (1, True)
    assert run(*command[:-2]).returncode == 2


def test_trace_under_the_debugger(tmp_path: Path) -> None:
    program = build(folder_of(tmp_path), "state", "libraries")
    command = [sys.executable, "-m", "emu2.cli", "trace", "--debug", str(program)]
    environment = {
        **os.environ,
        "PYTHONPATH": str(TREE),
        "LD_LIBRARY_PATH": f"{root()}/lib/emu-lib",
    }
    ran = subprocess.run(
        command,
        input="step\nline\nback\n",
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[:3] == [
        "start",
        "2: mvp/n64i01 $p0@0 $lc0@0.0    [keep.vsm:1]",
        "3: nop; wait i01    [keep.vsm:2]",
    ]
    assert "1 devices, 4 launches" in ran.stderr


def test_off_by_default(tmp_path: Path) -> None:
    """Without the variable nothing listens; a socket that cannot be made is a message."""
    program = build(folder_of(tmp_path), "copy", "libraries")
    env = {"LD_LIBRARY_PATH": f"{root()}/lib/emu-lib"}
    before = {path.name for path in tmp_path.iterdir()}
    assert done(program, cwd=tmp_path, env=env) == "PASS\n"
    assert {path.name for path in tmp_path.iterdir()} == before
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "no" / "socket", tmp_path / "file"):
        result = run(program, cwd=tmp_path, env={**env, "EMU2_DEBUG": str(path)})
        assert (result.returncode, "no debugger can attach" in result.stderr) == (0, True)
    assert (tmp_path / "file").read_text() == "mine"
    # The socket of a process that has ended is replaced.
    stale = {**env, "EMU2_DEBUG": str(tmp_path / "stale")}
    for _ in range(2):
        assert run(program, cwd=tmp_path, env=stale).stderr == ""
