"""Addresses that the user gives instead of the planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from ..errors import PycompilerError, error
from ..graph.graph import Location
from ..machine import WORDS_PER_LONG, Target
from .best_fit import Block, Chains

Given = Mapping[tuple[str, Location], int]
Blocks = Mapping[Location, Sequence[Block]]


def with_given(blocks: Blocks, given: Given, target: Target) -> dict[Location, list[Block]]:
    """Return ``blocks`` with the addresses that ``given`` has for values and locations.

    P0306 if an address is impossible.
    """
    left = dict(given)
    out: dict[Location, list[Block]] = {}
    for location, placed in blocks.items():
        at: dict[str, int] = {}
        for chain in Chains(placed).all:
            for block in chain:
                key = block.value or block.name, location
                if key not in given:
                    continue
                left.pop(key, None)
                address = _long_words(key, given[key], block, target)
                if at.setdefault(chain[0].name, address) != address:
                    raise _refused(block.name, "a node overwrites one value by the other in place")
        out[location] = [
            replace(block, at=at.get(block.name)) if block.on is None else block for block in placed
        ]
        _check_apart([block for block in out[location] if block.at is not None])
    for name, location in left:
        raise _refused(name, f"no node has it in {location.value}")
    return out


def _long_words(key: tuple[str, Location], number: int, block: Block, target: Target) -> int:
    name, location = key
    unit = 1 if location is Location.DRAM else WORDS_PER_LONG
    address, capacity = number // unit, target.words(location.memory)
    if number % (unit * target.cycles):
        raise _refused(name, f"{number} is no multiple of {unit * target.cycles}")
    if address + block.words > capacity:
        reason = f"{block.words} long words at {number} pass the end of {location.memory}"
        raise _refused(name, reason)
    return address


def _check_apart(blocks: Sequence[Block]) -> None:
    for one, other in combinations(blocks, 2):
        low, high = one.at or 0, other.at or 0
        if one.meets(other) and low < high + other.words and high < low + one.words:
            raise _refused(one.value or one.name, f"`{other.name}` is there at the same time")


def _refused(name: str, reason: str) -> PycompilerError:
    return error("P0306", value=name, reason=reason)
