"""A debugger that is attached to another process: its socket, its kernels.

The process offers the functions of `emu2.Debugger` for the kernel that is stopped, as lines of
JSON. `pause` has no answer: the move that it ends has one.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import emu2
from emu2.debug.session import Session, Stop, bad_command


class Connection:
    """The socket of a process. One request is answered at a time."""

    def __init__(self, path: str) -> None:
        """Connect. EmulatorError F0001 if no process listens there."""
        self._socket = socket.socket(socket.AF_UNIX)
        self._lock = threading.Lock()
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise emu2.EmulatorError(
                code="F0001",
                message=f"{path}: {error.strerror}",
                help="start the program with EMU2_DEBUG=SOCKET, as the same user",
            ) from error
        self._reader = self._socket.makefile("rb")

    def ask(self, name: str, **arguments: Any) -> Any:
        """Send a request and return its answer. EOFError if the process has ended."""
        with self._lock:
            self._send({"do": name, **arguments})
            try:
                line = self._reader.readline()
            except OSError as error:
                raise EOFError from error
        if not line.endswith(b"\n"):
            raise EOFError
        said = json.loads(line)
        if "error" in said:
            raise emu2.EmulatorError(**said["error"])
        return said["ok"]

    def pause(self) -> None:
        """Ask the move that is at work to stop."""
        self._send({"do": "pause"})

    def _send(self, request: dict[str, Any]) -> None:
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise EOFError from error

    def close(self) -> None:
        """Let go of the process. It runs on."""
        try:
            self.ask("detach")
        except (EOFError, emu2.EmulatorError):
            pass
        finally:
            self._reader.close()
            self._socket.close()


class RemoteRun:
    """The kernel of another process that is stopped, with the methods of `emu2.Debugger`."""

    def __init__(self, path: str) -> None:
        """Attach to the process that listens at ``path``."""
        self._connection = Connection(path)
        found = self._ask("hello")
        self.process: int = found["process"]
        self.spec = emu2.Spec.load(found["spec"] or "mncore2")
        self.levels = emu2.Debugger(emu2.assemble("nop\n", self.spec)).levels
        self.kernel: int | None = None
        self.source = ""
        self._state: dict[str, Any] = {}

    def _ask(self, name: str, **arguments: Any) -> Any:
        try:
            return self._connection.ask(name, **arguments)
        except EOFError:
            message = "the process that was attached to has ended"
            raise emu2.EmulatorError(code="D0005", message=message, help="start it again") from None

    def _known(self, name: str) -> Any:
        if not self._state:
            self._state = self._ask("state")
        return self._state[name]

    def _moved(self, request: str, **arguments: Any) -> Stop:
        self._state = {}
        try:
            stop: Stop = self._connection.ask(request, **arguments)
        except EOFError:
            self.kernel = None
            ended = {"position": 0, "line": 0, "dump": [], "error": None, "breakpoints": []}
            return {"reason": "exit", "text": "the process has ended", **ended}
        if stop["kernel"] is not None and stop["kernel"] != self.kernel:
            self.source = self._ask("source")
        self.kernel = stop["kernel"]
        return stop

    def close(self) -> None:
        """Detach."""
        self._connection.close()

    def pause(self) -> None:
        """Make the call that runs in another thread stop soon."""
        try:
            self._connection.pause()
        except EOFError:
            return

    @property
    def name(self) -> str:
        """The file of the kernel."""
        return str(self._known("name"))

    @property
    def position(self) -> int:
        """Number of statements that have run."""
        return int(self._known("position"))

    @property
    def statements(self) -> int:
        """Number of statements of the kernel."""
        return int(self._known("statements"))

    @property
    def line(self) -> int:
        """Line of the statement that comes next."""
        return int(self._known("line"))

    @property
    def steps(self) -> int:
        """Steps that have run."""
        return int(self._known("steps"))

    @property
    def cycles(self) -> int:
        """Cycles that have passed."""
        return int(self._known("cycles"))

    @property
    def history(self) -> tuple[int, int]:
        """Number of images of the run, and their bytes."""
        images, size = self._known("history")
        return images, size

    @property
    def breakpoints(self) -> list[dict[str, Any]]:
        """The breakpoints."""
        return cast("list[dict[str, Any]]", self._ask("breakpoints"))

    def add(self, text: str, file: str | None = None) -> dict[str, Any]:
        """Add a breakpoint; one at a line may name the file that the line belongs to."""
        return cast("dict[str, Any]", self._ask("add", text=text, file=file))

    def remove(self, number: int) -> None:
        """Remove a breakpoint."""
        self._ask("remove", id=number)

    def step(self, unit: str = "line", *, back: bool = False, count: int = 1) -> Stop:
        """Step; at the end of a kernel to the start of the next one."""
        stop: Stop = {}
        for _ in range(max(count, 1)):
            stop = self._moved("step", unit=unit, back=back)
            if stop["reason"] != "step":
                break
        return stop

    def run(self, *, back: bool = False, limit: int | None = None) -> Stop:
        """Run to the next breakpoint, in this kernel or in a later one."""
        return self._moved("run", back=back, limit=limit)

    def go(self, position: int) -> Stop:
        """Go to a position."""
        return self._moved("go", position=position)

    def line_of(self, position: int) -> int:
        """Return the line of the statement that comes next at a position."""
        return int(self._ask("line_of", position=position))

    def at_line(self, line: int) -> int:
        """Return the position before the first statement at or after a line."""
        return int(self._ask("at_line", line=line))

    def at_cycle(self, cycle: int) -> int:
        """Return the position before which so many cycles have passed."""
        return int(self._ask("at_cycle", cycle=cycle))

    def at_tag(self, tag: int) -> int:
        """Return the position before the next statement that names a tag."""
        return int(self._ask("at_tag", tag=tag))

    def first_write(self, place: str, first: int, last: int) -> int | None:
        """Return the first statement of a range that may write a place."""
        found = self._ask("first_write", place=place, first=first, last=last)
        return None if found is None else int(found)

    def evaluate(self, place: str, *, most: int = 64) -> list[dict[str, Any]]:
        """Return the words of a place."""
        return cast("list[dict[str, Any]]", self._ask("evaluate", place=place, most=most))

    def holds(self, condition: str) -> bool:
        """Return whether a condition holds now."""
        return bool(self._ask("holds", condition=condition))

    def read(
        self, memory: str, *, addr: int = 0, count: int = 1, **units: int | None
    ) -> NDArray[np.uint64]:
        """Read long words, of all units one after the other."""
        chosen = [units.get(level) for level, _ in self.levels]
        found = self._ask("read", memory=memory, addr=addr, count=count, units=chosen)
        return np.array(found, np.uint64)

    def write(
        self, memory: str, words: NDArray[np.uint64], *, addr: int = 0, **units: int | None
    ) -> None:
        """Write long words."""
        chosen, values = [units.get(level) for level, _ in self.levels], words.tolist()
        place = {"memory": memory, "addr": addr, "count": len(values), "units": chosen}
        self._ask("write", words=values, **place)

    def differences(self, first: int, second: int, *, most: int = 256) -> dict[str, Any]:
        """Return the words that differ between two positions."""
        found = self._ask("differences", first=first, second=second, most=most)
        return cast("dict[str, Any]", found)

    def parting(self, other: object, *, most: int = 256) -> dict[str, Any] | None:
        """Refuse: two processes have no common start."""
        raise bad_command(
            "a kernel of another process", "debug the kernel's file with `emu2 debug`"
        )


class RemoteSession(Session):
    """The kernels of another process."""

    def __init__(self, path: str) -> None:
        """Attach to the process that listens at ``path``."""
        self._remote = RemoteRun(path)
        self.run = cast("emu2.Debugger", self._remote)
        self.watches: list[str] = []
        self._notes, self._named = [], None
        self._kernel: int | None = None
        self._read("")

    def _read(self, text: str) -> None:
        self._set_text(text)
        self._kernel = self._remote.kernel

    @property
    def stopped(self) -> bool:
        """Whether a kernel is stopped."""
        return self._remote.kernel is not None

    @property
    def path(self) -> str:
        """The file of the kernel that is stopped."""
        return self._remote.name if self.stopped else "(no kernel)"

    @property
    def lines(self) -> Sequence[str]:
        """The lines of the kernel that is stopped."""
        if self._kernel != self._remote.kernel:
            self._read(self._remote.source)
        return self._lines

    def origin_of(self, line: int) -> tuple[str, int] | None:
        """Return the file and line of the source that a line of the kernel comes from."""
        return super().origin_of(line) if self.lines else None

    def add_at(self, source: str, text: str, line: int) -> dict[str, Any]:
        """Add a breakpoint at a line of a source, also of a kernel that is not there yet."""
        return self._remote.add(f"line {line}{text}", source)

    def close(self) -> None:
        """Detach."""
        self._remote.close()
