"""Programs (`*.vsm`) as tests.

Comments say what a program must do:

    # spec: mini                                  the machine, instead of the ini option
    # expect: $lm0n0c0b0m0p0 = 000000000000000A   long words from this place on, in hex
    # expect: f $lr0n0c0b0m0p0 = 1.5 2 within 1e-6
    # error: A0702                                the assembler refuses the program with this code
    # sanitize:                                   a sanitized run finds nothing

A place is written as in `d get`. A unit that is left out stands for all of them: each must hold the
values. With a format (`d`, `f`, `h`) the values are numbers, one for each lane of a long word.

A comment may stand behind code too. One that nearly is a directive is an error: a test must not
pass because nobody has read what it expects.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import pytest

import emu2
from emu2.errors import PortableError
from emu2.fidelity import Fidelity, fidelity
from emu2.source_text import comment, lines

#: The property of a test that holds the counts of its program by evidence.
FIDELITY = "emu2_fidelity"
_LANES = {"": 1, "d": 1, "f": 2, "h": 4}
_DIGITS = 16
_EXPECT = re.compile(
    r"(?:(?P<format>[dfh])\s+)?(?P<place>\$\S+)\s*=\s*(?P<values>.*?)"
    r"(?:\s+within\s+(?P<within>\S+))?\s*\Z"
)
_DIRECTIVE = re.compile(r"[#!]\s*(spec|expect|error|sanitize):\s*(.*?)\s*\Z")
_NAMES = ("spec", "expect", "error", "sanitize")
_NEAR = re.compile(r"\W*(?P<name>[\w-]+)\s*(?:[:\uFF1A;]|(?:=|[dfh]?\s*\$\S+\s*=))")
_SIMILAR = 0.75
_WORD = re.compile(r"[0-9A-Fa-f]+")
_CODE = re.compile(r"[A-Z]\d{4}")
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
    """Yield line, name and argument of each directive. ProgramError for what nearly is one."""
    for number, line in enumerate(lines(text), start=1):
        text_of = comment(line)
        if text_of is None:
            continue
        if found := _DIRECTIVE.match(text_of):
            yield number, found[1], found[2]
        elif (near := _NEAR.match(text_of)) and (
            meant := get_close_matches(near["name"].lower(), _NAMES, 1, _SIMILAR)
        ):
            raise ProgramError(
                f"line {number}: `{near[0].strip()}` is no directive; write `# {meant[0]}:`, "
                "or another comment"
            )


@dataclass(frozen=True)
class _Wanted:
    """What the directives of a program ask for."""

    spec: str | None
    expectations: list[Expectation]
    errors: list[str]
    sanitize: bool


def _wanted(text: str) -> _Wanted:
    """Read the directives of a program. ProgramError for those that make no sense together."""
    found = list(directives(text))
    by_name = {name: [(line, text) for line, own, text in found if own == name] for name in _NAMES}
    specs, errors, sanitize = by_name["spec"], by_name["error"], by_name["sanitize"]
    for line, argument in sanitize:
        if argument:
            raise ProgramError(f"line {line}: `# sanitize:` takes nothing, not `{argument}`")
    for line, argument in errors:
        if not _CODE.fullmatch(argument):
            raise ProgramError(f"line {line}: `{argument}` is no code, such as A0702")
    if len(specs) > 1 or any(not argument for _, argument in specs):
        raise ProgramError(f"line {specs[-1][0]}: write one `# spec:` with one name")
    expectations = [expectation(line, argument) for line, argument in by_name["expect"]]
    if errors and (expectations or sanitize):
        raise ProgramError(f"line {errors[0][0]}: a program that is refused does nothing else")
    if not (errors or expectations or sanitize):
        help = "add a line `# expect: <place> = <values>`"
        raise ProgramError(f"the program states nothing: {help}")
    spec = specs[0][1] if specs else None
    return _Wanted(spec, expectations, [argument for _, argument in errors], bool(sanitize))


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
        within = _number(found["within"] or "0")
        numbers = [_number(value) for value in values] if kind else []
    except ValueError as error:
        raise ProgramError(f"line {line}: {error}") from None
    if not 0 <= within < math.inf or any(map(math.isnan, numbers)):
        raise ProgramError(f"line {line}: values are numbers, `within` is one from 0 on")
    if not kind and not all(len(one) == _DIGITS and _WORD.fullmatch(one) for one in values):
        raise ProgramError(f"line {line}: a long word has {_DIGITS} hex digits")
    return Expectation(line, found["place"], kind, values, within)


def _number(text: str) -> float:
    if "_" in text:  # Python would skip it
        raise ValueError(f"could not convert string to float: {text!r}")
    return float(text)


def mismatches(machine: emu2.Machine, wanted: Expectation) -> list[Mismatch]:
    """Return the values of a machine that differ from an expectation."""
    source = f"d get{wanted.format} {wanted.place} {wanted.words}\n"
    program = emu2.assemble(source, machine.spec, filename=f"the place of line {wanted.line}")
    lanes = _LANES[wanted.format]
    found = []
    dump = machine.run(program).dump
    if not dump or len(dump) % wanted.words:
        raise ProgramError(f"line {wanted.line}: {wanted.place} cannot be compared")
    for number, line in enumerate(dump):
        shown = _LINE.match(line)
        values = [] if shown is None else _values(wanted.format, shown["value"])
        if shown is None or len(values) != lanes:
            raise ProgramError(f"line {wanted.line}: {wanted.place} cannot be compared")
        first = number % wanted.words * lanes
        for lane, (got, bits) in enumerate(values):
            expected = wanted.values[first + lane]
            if not _agree(wanted, expected, got):
                where = (shown["memory"], shown["unit"], shown["address"], lane)
                found.append(Mismatch(wanted, *where, expected, got, bits))
    return found


def _values(kind: str, shown: str) -> list[tuple[str, str]]:
    """Return number and bits of each lane of a dump line."""
    if not kind:
        word = _UNTYPED.search(shown)
        bits = [] if word is None else [word["word"].zfill(_DIGITS)]
        return [(own, own) for own in bits]
    typed = _TYPED.match(shown)
    if typed is None:
        return []
    return list(zip(typed["numbers"].split(", "), typed["hex"].split(", "), strict=True))


def _agree(wanted: Expectation, expected: str, got: str) -> bool:
    if not wanted.format:
        return int(expected, 16) == int(got, 16)
    number, other = float(expected), float(got)
    return number == other or math.isclose(number, other, rel_tol=0, abs_tol=wanted.within)


class ValuesDifferError(PortableError):
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


def fidelity_rows(properties: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a row for each evidence: the instructions of all programs, and their share."""
    programs = [found for one in properties if (found := one.get(FIDELITY)) is not None]
    counts: Counter[str] = Counter()
    for found in programs:
        counts.update(found)
    yield f"{len(programs)} programs"
    yield from Fidelity(counts, Counter()).rows()


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
        wanted = _wanted(data.decode(errors="replace"))
        spec = emu2.Spec.load(wanted.spec or str(self.config.getini("emu2_spec")))
        if wanted.errors:
            self._must_fail(data, spec, wanted.errors)
            return
        program = emu2.assemble(data, spec, filename=str(self.path))
        if self.config.getoption("emu2_fidelity"):
            self.user_properties.append((FIDELITY, fidelity(program).counted()))
        machine = emu2.Machine(spec)
        report = machine.run(program, sanitize=wanted.sanitize)
        if report.findings:
            raise ProgramError(report.render_findings())
        wrong = [one for each in wanted.expectations for one in mismatches(machine, each)]
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
