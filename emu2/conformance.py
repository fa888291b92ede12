"""Runs programs on this emulator and on another one, and finds the first difference."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import emu2
from emu2._core import read_source
from emu2.source_text import lines

Status = Literal[
    "equal",
    "differs",
    "both refuse",
    "only emu2 refuses",
    "only the other refuses",
    "no answer of the other",
    "not assembled",
]
_SUFFIXES = (".vsm", ".asm")
_LINE = re.compile(r"\s*DEBUG-(\w+)\((\w+),\s*(\d+)\):\s*(.*)")
_PATIENCE = 1.0  # seconds until the output of commands that were ended is given up
_HOST = re.compile(r"\s*(\S[^:]*):\s*([0-9A-Fa-f]{16})\s*\Z")


@dataclass(frozen=True)
class Word:
    """What one dump line shows: ``bits`` are its hexadecimal numbers, or its text without any."""

    memory: str
    unit: str
    address: int
    text: str
    bits: tuple[int | str, ...]

    @property
    def place(self) -> str:
        """Memory, unit and address, as dump lines name them."""
        return f"{self.memory} {self.unit} address {self.address}" if self.unit else self.memory


@dataclass(frozen=True)
class Result:
    """What became of a program. ``ours`` and ``other`` are values, or why it was refused."""

    program: str
    status: Status
    words: int = 0
    memory: str = ""
    unit: str = ""
    address: int | None = None
    ours: str = ""
    other: str = ""

    @property
    def good(self) -> bool:
        """Whether the emulators agree."""
        return self.status in ("equal", "both refuse")

    def json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)


class RefusedError(Exception):
    """An emulator does not run a program; the text says why."""


class NoAnswerError(Exception):
    """A command of the user neither does its work nor refuses it; the text says why."""


def programs(folder: Path) -> list[Path]:
    """Return the sources and the assembled texts below a folder, in the order of their paths.

    A program itself may stand in place of the folder.
    """
    if folder.is_file() and folder.suffix in _SUFFIXES:
        return [folder]
    found = (path for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    return sorted(found)


class Conformance:
    """Runs programs on both emulators.

    ``other`` takes the flags of the vendor's emulator: ``-i`` for the assembled text, ``-d`` for
    the file of dump lines, ``--load-memory-file`` for memories. ``assembler`` takes a source and
    ``-o``; without it emu2 assembles. A command is not run by a shell.
    """

    def __init__(
        self, spec: emu2.Spec, other: str, assembler: str | None = None, seconds: float = 60.0
    ) -> None:
        """Take the machine, the commands, and the time that each of their runs may take.

        Raises EmulatorError F0001 for a command that does not exist.
        """
        self._spec, self._seconds = spec, seconds
        self._other = _words(other)
        self._assembler = None if assembler is None else _words(assembler)

    def compare(self, path: Path, name: str) -> Result:
        """Run one program on both; a file `NAME.json` beside it loads memories first."""
        memories = path.with_suffix(".json")
        load = memories if memories.is_file() else None
        with tempfile.TemporaryDirectory(prefix="emu2-conformance-") as folder:
            try:
                text = self._assembled(path, Path(folder))
            except RefusedError as refused:
                return self._not_assembled(path, name, str(refused))
            except NoAnswerError as missing:
                return Result(name, "no answer of the other", other=str(missing))
            ours = _attempt(lambda: self._run_ours(text, path, load))
            try:
                other = _attempt(lambda: self._run_other(text, Path(folder), load))
            except NoAnswerError as missing:
                return Result(name, "no answer of the other", ours=_told(ours), other=str(missing))
        if isinstance(ours, str) or isinstance(other, str):
            return _refused(name, ours, other)
        return _first_difference(name, ours, other)

    def _assembled(self, path: Path, folder: Path) -> bytes:
        """Return the assembled text of a program: both emulators run the same one."""
        if path.suffix == ".asm":
            return read_source(path)
        if self._assembler is not None:
            out = folder / "assembled.asm"
            self._command([*self._assembler, str(path.absolute()), "-o", str(out)], folder)
            return _written(out)
        return self._assembled_here(path)

    def _assembled_here(self, path: Path) -> bytes:
        try:
            source = read_source(path)
            program = emu2.assemble(source, self._spec, filename=str(path), policy="run")
            text = io.StringIO()
            emu2.write_asm(program, text, form="mixed")
        except emu2.Emu2Error as error:
            raise RefusedError(_line(str(error))) from error
        return text.getvalue().encode()

    def _not_assembled(self, path: Path, name: str, why: str) -> Result:
        """Return the result of a program that the assembler refuses."""
        if self._assembler is None:
            # The other emulator takes assembled text only, so nobody knows what it would do.
            return Result(name, "not assembled", ours=why, other="not asked")
        try:
            self._assembled_here(path)
        except RefusedError as refused:
            return Result(name, "both refuse", ours=str(refused), other=why)
        return Result(name, "only the other refuses", ours="assembles", other=why)

    def _run_ours(self, text: bytes, path: Path, load: Path | None) -> list[Word]:
        dump = io.StringIO()
        try:
            program = emu2.read_asm(text, self._spec, filename=str(path))
            machine = emu2.Machine(self._spec)
            emu2.MemoryFiles(self._spec, load=load).load(machine)
            report = machine.run(program, dump=dump)
        except emu2.Emu2Error as error:
            raise RefusedError(_line(str(error))) from error
        return [*shown(dump.getvalue()), *read(report.host)]

    def _run_other(self, text: bytes, folder: Path, load: Path | None) -> list[Word]:
        program, dump = folder / "program.asm", folder / "dump.txt"
        program.write_bytes(text)
        more = [] if load is None else ["--load-memory-file", str(load.absolute())]
        command = [*self._other, "-i", str(program), "-d", str(dump), *more]
        out = self._command(command, folder)
        return [*shown(_written(dump).decode(errors="replace")), *read(lines(out))]

    def _command(self, command: Sequence[str], folder: Path) -> str:
        """Run a command of the user and return its stdout. It is ended with all its children."""
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as missing:
            raise NoAnswerError(f"{command[0]}: {missing.strerror}") from missing
        try:
            out, err = process.communicate(timeout=self._seconds)
        except subprocess.TimeoutExpired as late:
            raise NoAnswerError(f"{command[0]} takes more than {self._seconds:g} s") from late
        finally:
            if process.returncode is None:
                _end(process)
        if process.returncode < 0:
            raise NoAnswerError(f"{command[0]} was ended by signal {-process.returncode}")
        if process.returncode:
            last = err.decode(errors="replace").strip().split("\n")[-1]
            raise RefusedError(f"exit code {process.returncode}: {last}")
        return out.decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and its children, which are in a session of their own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=_PATIENCE)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _words(command: str) -> list[str]:
    """Split a command. Files get whole paths, because it runs in a folder of its own."""
    first, *rest = shlex.split(command) or [""]
    found = shutil.which(first)
    if found is None:
        remedy = "give the path of a program, or one that is on the PATH"
        raise emu2.EmulatorError(code="F0001", message=f"no command `{first}`", help=remedy)
    return [str(Path(found).absolute()), *(_whole(word) for word in rest)]


def _whole(word: str) -> str:
    return str(Path(word).absolute()) if Path(word).exists() else word


def shown(text: str) -> Iterator[Word]:
    """Yield the words of dump lines. What stands behind `#` is a comment."""
    for line in lines(text):
        found = _LINE.match(line)
        if found is not None:
            value = found[4].split("#")[0].strip()
            bits = tuple(int(one, 16) for one in re.findall(r"0x([0-9A-Fa-f]+)", value))
            yield Word(found[1], found[2], int(found[3]), value, bits or (value,))


def read(printed: Sequence[str]) -> Iterator[Word]:
    """Yield the words that `e` lines have read to stdout."""
    for number, line in enumerate(printed):
        found = _HOST.match(line)
        if found is not None:
            yield Word(f"stdout {found[1]}", "", number, found[2], (int(found[2], 16),))


def _attempt(run: Any) -> list[Word] | str:
    try:
        found: list[Word] = run()
    except RefusedError as refused:
        return str(refused)
    return found


def _told(outcome: list[Word] | str) -> str:
    return outcome if isinstance(outcome, str) else f"runs, {len(outcome)} words"


def _refused(name: str, ours: list[Word] | str, other: list[Word] | str) -> Result:
    texts = [_told(ours), _told(other)]
    status: Status = "both refuse"
    if not isinstance(other, str):
        status = "only emu2 refuses"
    elif not isinstance(ours, str):
        status = "only the other refuses"
    return Result(name, status, ours=texts[0], other=texts[1])


def _first_difference(name: str, ours: list[Word], other: list[Word]) -> Result:
    for number, (one, two) in enumerate(zip_longest(ours, other)):
        if one is not None and two is not None and one.place == two.place and one.bits == two.bits:
            continue
        place = one or two
        assert place is not None
        texts = ["nothing" if word is None else word.text for word in (one, two)]
        if one is not None and two is not None and one.place != two.place:
            texts = [f"{word.text} of {word.place}" for word in (one, two)]
        return Result(name, "differs", number, place.memory, place.unit, place.address, *texts)
    return Result(name, "equal", len(ours))


def _written(path: Path) -> bytes:
    try:
        return read_source(path)
    except emu2.Emu2Error as error:
        raise NoAnswerError(f"it has not written {path.name}") from error


def _line(text: str) -> str:
    return text.strip().split("\n")[0]
