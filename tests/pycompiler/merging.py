"""Nodes merged to one program, and what its text names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pycompiler.code.lines import Fragment
from pycompiler.emit.program import Code, Kind, Program
from pycompiler.machine import Target


def merge(
    nodes: Sequence[tuple[str, str, Fragment]],
    addresses: Mapping[str, int],
    target: Target,
    kinds: Sequence[Kind],
) -> Code | None:
    """Return the nodes merged; None if lines that belong together cannot be kept together."""
    program = Program(addresses, target, merged=True)
    for (name, comment, fragment), kind in zip(nodes, kinds, strict=True):
        program.add(name, comment, fragment, kind)
    code = program.finish()
    return code if code.merged else None


def addresses_in(text: str, letter: str) -> list[int]:
    """Return the addresses of operands in the memory ``letter``, in their order."""
    return [int(found) for found in re.findall(rf"\$l*{letter}(\d+)", text)]
