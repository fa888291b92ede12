"""Ctrl-C stops long calls soon and leaves a defined state. A forked child can run."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import emu2

PATIENCE = 60.0
"""Seconds after which a process counts as hanging."""

SOON = 0.2 if "PYTEST_XDIST_WORKER" not in os.environ else 2.0
"""Seconds within which Ctrl-C is honoured; processes that share their cores have more."""

LINE = "fvfma $lm0v $ln0v $lr0v $ls0v\\n"
BEGIN = f"""
import time
import emu2
spec = emu2.Spec.load("mncore2")
text = "{LINE}" * 20_000
program = emu2.assemble(text, spec)
again = lambda: emu2.assemble("nop", spec)
class Sink:
    def write(self, text): pass
def code(call):
    try:
        call()
    except emu2.EmulatorError as error:
        return error.code
"""

MACHINE = """
machine = emu2.Machine(spec)
def work():
    while True: machine.run(program{sink})
def after():
    refused = code(lambda: machine.run(again()))
    machine.reset()
    machine.run(again())
    print(refused in ("R0004", None))
"""

DEVICE = """
device = emu2.Device(spec)
kernel = device.load_kernel(program)
def work():
    while True: device.exec(kernel{sink})
def after():
    device.reset()
    device.exec(device.load_kernel(again()))
    print(True)
"""

TEXT = f"""
long = "{LINE}" * 1_000_000
assembled = long.replace("fvfma", "s fvfma")
def work():
    while True: {{call}}
def after(): print(True)
"""

END = """
print("ready", flush=True)
try:
    work()
except KeyboardInterrupt:
    print(time.monotonic())
    after()
"""

WORKS = {
    "run": MACHINE.format(sink=""),
    "run with a sink": MACHINE.format(sink=", dump=Sink()"),
    "exec": DEVICE.format(sink=""),
    "exec with a sink": DEVICE.format(sink=", dump=Sink()"),
    "assemble": TEXT.format(call="emu2.assemble(long, spec)"),
    "read_asm": TEXT.format(call="emu2.read_asm(assembled, spec)"),
    "load_kernel": TEXT.format(call="emu2.Device(spec).load_kernel(long)"),
}


def interrupted(command: Sequence[str], wait: float) -> tuple[float, int, str, str]:
    """Send SIGINT after the first line, or after `wait` seconds without one.

    Returns the time of the signal, and the status and output of the process.
    """
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        if select.select([process.stdout], [], [], wait)[0]:
            process.stdout.readline()
            time.sleep(0.3)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return start, process.returncode, out, err


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("work", WORKS)
def test_python_calls_are_interrupted(work: str) -> None:
    code = BEGIN + WORKS[work] + END
    start, status, out, err = interrupted([sys.executable, "-c", code], PATIENCE)
    assert (status, err) == (0, "")
    raised, usable = out.split()
    assert usable == "True"
    assert float(raised) - start < SOON


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("command", ["run", "check"])
def test_commands_are_interrupted(command: str, tmp_path: Path) -> None:
    path = tmp_path / "long.vsm"
    path.write_text("dvmulu $lm0v $ln0v $lr0v\n" * 3_000_000)
    # A signal before the imports are done ends Python itself.
    code = "from emu2.cli import main; print('ready', flush=True); main()"
    arguments = [sys.executable, "-c", code, command, str(path)]
    start, status, out, err = interrupted(arguments, PATIENCE)
    assert (status, out, err.split()) == (130, "", ["interrupted"])
    assert time.monotonic() - start < SOON + 0.3  # includes the end of the process


def test_a_forked_child_can_run() -> None:
    code = """
import os
machine = emu2.Machine(spec)
machine.run(program)
child = os.fork()
if child == 0:
    machine.run(program)
    emu2.Machine(spec).run(program)
    grandchild = os.fork()
    if grandchild == 0:
        machine.run(program)
        os._exit(5)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) + 2)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    environment = {**os.environ, "RAYON_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "ignore", "-c", BEGIN + code]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")


def test_a_sink_that_fails_stops_a_long_run() -> None:
    class Full:
        def write(self, text: str) -> None:
            raise OSError("full")

    spec = emu2.Spec.load("mini")
    machine = emu2.Machine(spec)
    program = emu2.assemble("d get $lm0 1\nnop\n" * 5000, spec)
    with pytest.raises(OSError, match="full"):
        machine.run(program, dump=Full())
    with pytest.raises(emu2.EmulatorError, match="R0004"):
        machine.run(program)


def test_a_sink_is_called_in_the_thread_of_the_run() -> None:
    import threading

    seen = []

    class Sink:
        def write(self, text: str) -> None:
            seen.append((threading.get_ident(), text))

    spec = emu2.Spec.load("mini")
    program = emu2.assemble("d get $lm0n0c0b0m0p0 1\n" * 5000, spec)
    report = emu2.Machine(spec).run(program, dump=Sink())
    assert report.dump == []
    assert {thread for thread, _ in seen} == {threading.get_ident()}
    text = "".join(piece for _, piece in seen)
    assert text.splitlines() == emu2.Machine(spec).run(program).dump
