"""The values of a machine that a sweep may change, and the machines that come of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import emu2

from ..cost.moves import chip_dram_rate
from ..errors import error
from ..machine import Target, load_target

#: The longest list of machines that a sweep makes.
MOST_POINTS = 4096

#: A value of a description: section, name of the entry (empty for a plain section), key.
ValueKey = tuple[str, str, str]


@dataclass(frozen=True)
class Value:
    """A value with a short name: what it is, where it stands, and its number on a machine.

    ``per_group`` says that the number is that of all groups together and that the description has
    the one of a group.
    """

    doc: str
    places: tuple[ValueKey, ...]
    now: Callable[[Target], int]
    per_group: bool = False


def _count(level: str, doc: str) -> Value:
    return Value(doc, (("counts", "", level),), lambda target: target.counts[level])


def _words(doc: str, *memories: str) -> Value:
    places = tuple(("memory", name, "words") for name in memories)
    return Value(doc, places, lambda target: target.words(memories[0]))


VALUES: Mapping[str, Value] = {
    "groups": _count("group", "groups of the chip"),
    "l2bs": _count("l2b", "L2Bs of a group"),
    "l1bs": _count("l1b", "L1Bs of an L2B"),
    "mabs": _count("mab", "MABs of an L1B"),
    "lm_words": _words("long words of LM0, and of LM1", "lm0", "lm1"),
    "grf_words": _words("long words of GRF0, and of GRF1", "grf0", "grf1"),
    "l1bm_words": _words("long words of an L1BM", "l1bm"),
    "l2bm_words": _words("long words of an L2BM", "l2bm"),
    "dram_words": Value(
        "long words that all DRAMs together read or write in a cycle",
        (("timing", "", "mv_throughput"),),
        chip_dram_rate,
        per_group=True,
    ),
}

#: Another value, by its place in the description.
_PLACE = re.compile(r"(\w+)\.(\w+)(?:\.(\w+))?\Z")
_NUMBER = re.compile(r"(\d+)(?:\.(\d+))?(x?)\Z")


@dataclass(frozen=True)
class Axis:
    """A value that a sweep changes, and the numbers that it takes."""

    name: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Point:
    """A machine of a sweep: what it changes, and its description, which extends the base."""

    numbers: Mapping[str, int]
    text: str


def parse_axis(setting: str, base: Target) -> Axis:
    """Read ``NAME=NUMBER,NUMBER,...``; a number with ``x`` is a multiple of the base's. P0708."""
    name, found, numbers = setting.partition("=")
    if not found or not numbers:
        raise _refused(setting, "write it as NAME=NUMBER,NUMBER,...")
    if name not in VALUES and not _PLACE.match(name):
        raise _refused(name, "there is no value of this name")
    read = tuple(dict.fromkeys(_number(name, text.strip(), base) for text in numbers.split(",")))
    return Axis(name, read)


def _refused(setting: str, reason: str) -> Exception:
    return error("P0708", setting=setting, reason=reason, names=", ".join(VALUES))


def _number(name: str, text: str, base: Target) -> int:
    match = _NUMBER.match(text)
    if match is None:
        raise _refused(f"{name}={text}", "it is no number")
    number = Fraction(text.removesuffix("x"))
    if match.group(3):
        if name not in VALUES:
            raise _refused(f"{name}={text}", "multiples are for values with a short name")
        number *= VALUES[name].now(base)
    if number.denominator != 1 or not 0 < number < 1 << 63:
        raise _refused(f"{name}={text}", f"{number} is no whole number above 0")
    return int(number)


def points(base: Target, axes: Sequence[Axis]) -> list[Point]:
    """Return the machines of the grid, the last axis fastest. P0708."""
    names = [axis.name for axis in axes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise _refused(twice, "it is given twice")
    combined: list[dict[str, int]] = [{}]
    for axis in axes:
        if len(combined) * len(axis.numbers) > MOST_POINTS:
            raise _refused(axis.name, f"the grid would have more than {MOST_POINTS} machines")
        combined = [{**one, axis.name: number} for one in combined for number in axis.numbers]
    return [Point(numbers, description(base, numbers)) for numbers in combined]


def description(base: Target, numbers: Mapping[str, int]) -> str:
    """Return the text of a machine that differs from ``base`` in some values. P0708."""
    source = base.source if _built_in(base.source) else str(Path(base.source).absolute())
    shown = " ".join(f"{name}={number}" for name, number in numbers.items())
    plain: dict[str, dict[str, int | str]] = {
        "machine": {"name": "sweep", "doc": f"{base.name} with {shown or 'nothing changed'}."}
    }
    entries: dict[tuple[str, str], dict[str, int]] = {}
    for name, number in numbers.items():
        for section, entry, key in _places(name):
            value = number
            if name in VALUES and VALUES[name].per_group:
                groups = numbers.get("groups", base.groups)
                if number % groups:
                    raise _refused(f"{name}={number}", f"{groups} groups cannot share it equally")
                value = number // groups
            if entry:
                entries.setdefault((section, entry), {})[key] = value
            else:
                plain.setdefault(section, {})[key] = value
    lines = [f"extends = {json.dumps(source)}"]
    for section, facts in plain.items():
        lines += ["", f"[{section}]", *(f"{k} = {json.dumps(v)}" for k, v in facts.items())]
    for (section, entry), own in entries.items():
        lines += ["", f"[[{section}]]", f"name = {json.dumps(entry)}"]
        lines += [f"{k} = {json.dumps(v)}" for k, v in own.items()]
    return "\n".join(lines) + "\n"


def _built_in(source: str) -> bool:
    return source in (*emu2.built_in_specs(), *emu2.what_if_specs()) or not Path(source).exists()


def _places(name: str) -> Sequence[ValueKey]:
    if name in VALUES:
        return VALUES[name].places
    match = _PLACE.match(name)
    assert match is not None
    section, first, second = match.groups()
    return ((section, "", first),) if second is None else ((section, first, second),)


def load_point(text: str, folder: Path) -> Target:
    """Load the machine with a description; its file lies in ``folder``. P0606."""
    path = folder / "sweep.toml"
    path.write_text(text, encoding="utf-8")
    return load_target(str(path))
