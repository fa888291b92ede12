"""Programs (`*.vsm`) as tests.

Comments say what a program must do:

    # spec: mini                                  the machine, instead of the ini option
    # expect: $lm0n0c0b0m0p0 = 000000000000000A   long words from this place on, in hex
    # expect: f $lr0n0c0b0m0p0 = 1.5 2 within 1e-6
    # error: A0702                                the assembler refuses the program with this code
    # sanitize:                                   a sanitized run finds nothing

A place is written as in `d get`. A unit that is left out stands for all of them: each must hold the
values. With a format (`d`, `f`, `h`) the values are numbers, one for each lane of a long word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import emu2

_LANES = {"": 1, "d": 1, "f": 2, "h": 4}
_DIGITS = 16
_EXPECT = re.compile(
    r"(?:(?P<format>[dfh])\s+)?(?P<place>\$\S+)\s*=\s*(?P<values>.*?)"
    r"(?:\s+within\s+(?P<within>\S+))?\s*\Z"
)
_DIRECTIVE = re.compile(r"^#\s*(spec|expect|error|sanitize):\s*(.*?)\s*$")
_LINE = re.compile(r"DEBUG-(?P<memory>\w+)\((?P<unit>\w+),(?P<address>\d+)\):(?P<value>.*?) #d get")
_UNTYPED = re.compile(r"v:0x(?P<word>[0-9A-F]+)\)")
_TYPED = re.compile(r"\((?P<numbers>.*)\) \((?P<hex>.*)\)")


class ProgramError(Exception):
    """A directive of a program is malformed."""


@dataclass(frozen=True)
class Expectation:
    """What must lie at a place.

    Attributes:
        line: line of the directive.
        place: the location as `d get` takes it.
        format: `d`, `f` or `h`; empty for long words in hex.
        values: the texts of the values.
        within: the largest difference of numbers.
    """

    line: int
    place: str
    format: str
    values: tuple[str, ...]
    within: float

    @property
    def words(self) -> int:
        """Number of long words."""
        return len(self.values) // _LANES[self.format]


@dataclass(frozen=True)
class Mismatch:
    """A value that differs.

    Attributes:
        expectation: what was expected.
        memory: name of the memory in dump lines.
        unit: such as `n0c0b0m0p0`.
        address: address in the unit of the memory.
        lane: number of the lane, from 0.
        expected: the text of the value.
        got: the value as the dump shows it.
        hex: the bits that were found.
    """

    expectation: Expectation
    memory: str
    unit: str
    address: str
    lane: int
    expected: str
    got: str
    hex: str


def directives(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and argument of each directive."""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _DIRECTIVE.match(line):
            yield number, found[1], found[2]


def expectation(line: int, argument: str) -> Expectation:
    """Read the argument of `# expect:`."""
    found = _EXPECT.match(argument)
    if found is None:
        raise ProgramError(
            f"line {line}: write `# expect: [d|f|h] <place> = <values> [within <x>]`"
        )
    kind, values = found["format"] or "", tuple(found["values"].split())
    if not values or len(values) % _LANES[kind]:
        raise ProgramError(f"line {line}: {len(values)} values; a long word has {_LANES[kind]}")
    if found["within"] and not kind:
        raise ProgramError(f"line {line}: `within` needs a format")
    try:
        within = float(found["within"] or 0)
        for value in values:
            float(value) if kind else int(value, 16)
    except ValueError as error:
        raise ProgramError(f"line {line}: {error}") from None
    if not kind and any(len(value) != _DIGITS for value in values):
        raise ProgramError(f"line {line}: a long word has {_DIGITS} hex digits")
    return Expectation(line, found["place"], kind, values, within)


def mismatches(machine: emu2.Machine, wanted: Expectation) -> list[Mismatch]:
    """Return the values of a machine that differ from an expectation."""
    source = f"d get{wanted.format} {wanted.place} {wanted.words}\n"
    program = emu2.assemble(source, machine.spec, filename=f"the place of line {wanted.line}")
    lanes = _LANES[wanted.format]
    found = []
    for number, line in enumerate(machine.run(program).dump):
        shown = _LINE.match(line)
        if shown is None:
            raise ProgramError(f"line {wanted.line}: {wanted.place} cannot be compared")
        first = number % wanted.words * lanes
        for lane, (got, bits) in enumerate(_values(wanted.format, shown["value"])):
            expected = wanted.values[first + lane]
            if not _agree(wanted, expected, got):
                where = (shown["memory"], shown["unit"], shown["address"], lane)
                found.append(Mismatch(wanted, *where, expected, got, bits))
    return found


def _values(kind: str, shown: str) -> list[tuple[str, str]]:
    """Return number and bits of each lane of a dump line."""
    if not kind:
        word = _UNTYPED.search(shown)
        bits = "" if word is None else word["word"].zfill(_DIGITS)
        return [(bits, bits)]
    typed = _TYPED.match(shown)
    if typed is None:
        return []
    return list(zip(typed["numbers"].split(", "), typed["hex"].split(", "), strict=True))


def _agree(wanted: Expectation, expected: str, got: str) -> bool:
    if not wanted.format:
        return int(expected, 16) == int(got or "0", 16)
    number, other = float(expected), float(got)
    return number == other or math.isclose(number, other, rel_tol=0, abs_tol=wanted.within)


class ValuesDifferError(Exception):
    """A program did not do what its comments say."""

    def __init__(self, wrong: Iterable[Mismatch]) -> None:
        """Keep the differing values."""
        self.wrong = list(wrong)
        count = len(self.wrong)
        super().__init__(f"{count} {'value differs' if count == 1 else 'values differ'}")

    def table(self) -> str:
        """Return the differing values as a table: unit, address, format."""
        most = 20
        lines = []
        last = None
        for one in self.wrong[:most]:
            if one.expectation is not last:
                last = one.expectation
                kind = last.format or "long words"
                lines.append(f"line {last.line}: {last.place} ({kind})")
            lane = f" lane {one.lane}" if _LANES[one.expectation.format] > 1 else ""
            bits = f" (0x{one.hex.removeprefix('0x')})" if one.expectation.format else ""
            lines.append(f"  {one.memory} {one.unit} address {one.address}{lane}")
            lines.append(f"    - {one.expected}")
            lines.append(f"    + {one.got}{bits}")
        if len(self.wrong) > most:
            lines.append(f"... and {len(self.wrong) - most} more")
        return "\n".join(lines)


class ProgramFile(pytest.File):
    """A program that is collected as one test."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the test of the program."""
        yield ProgramItem.from_parent(self, name=self.path.stem)


class ProgramItem(pytest.Item):
    """Runs a program and compares the memories with its comments."""

    def runtest(self) -> None:
        """Run the program."""
        data = self.path.read_bytes()
        text = data.decode(errors="replace")
        found = list(directives(text))
        names = {name for _, name, _ in found}
        specs = [argument for _, name, argument in found if name == "spec"]
        spec = emu2.Spec.load(specs[0] if specs else str(self.config.getini("emu2_spec")))
        errors = [argument for _, name, argument in found if name == "error"]
        if errors:
            self._must_fail(data, spec, errors)
            return
        wanted = [expectation(line, argument) for line, name, argument in found if name == "expect"]
        if not wanted and "sanitize" not in names:
            help = "add a line `# expect: <place> = <values>`"
            raise ProgramError(f"the program states nothing: {help}")
        program = emu2.assemble(data, spec, filename=str(self.path))
        machine = emu2.Machine(spec)
        report = machine.run(program, sanitize="sanitize" in names)
        if report.findings:
            raise ProgramError(report.render_findings())
        wrong = [one for each in wanted for one in mismatches(machine, each)]
        if wrong:
            raise ValuesDifferError(wrong)

    def _must_fail(self, data: bytes, spec: emu2.Spec, codes: list[str]) -> None:
        try:
            emu2.assemble(data, spec, filename=str(self.path), policy="check")
        except emu2.AssembleError as error:
            got = sorted({one["code"] for one in error.diagnostics if one["severity"] == "error"})
            if got != sorted(set(codes)):
                text = f"expected {', '.join(sorted(set(codes)))}, got {', '.join(got)}"
                raise ProgramError(text) from error
            return
        raise ProgramError(f"expected {', '.join(codes)}, but the program assembles")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the differing values, or the diagnostic."""
        error = excinfo.value
        if isinstance(error, ValuesDifferError):
            return f"{self.path}: {error}\n{error.table()}"
        if isinstance(error, ProgramError | emu2.Emu2Error):
            return f"{self.path}: {error}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Name the test."""
        return self.path, 0, f"program {self.name}"
