"""The places of a model's values on the machine: memory, long word, lane and unit of an element."""

from __future__ import annotations

import re
from math import prod

import numpy as np

import emu2
from emu2.debug.session import Watched
from emu2.errors import EmulatorError

from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNValue
from ..graph.layout import Level
from ..machine import Target
from ..runtime.graph_values import GraphValues, in_later_slice, on_device
from .moments import Moments

_NAMED = re.compile(r"value\s+(\S+?)\s*(?:\[([\d:,\s]*)\])?\Z")
_ELEMENTS = 64  # of a tensor, that are listed
_WIDTH = 110  # characters of a line
_FORMATS = {MNDtype.HALF: "h", MNDtype.FLOAT: "f", MNDtype.FLOAT32: "f", MNDtype.DOUBLE: "d"}
_INTEGERS = {64: "l", 32: "i", 16: "s"}


class Values:
    """Finds ``value NAME [3, 7]``: an element of a value of the graph, where it lies."""

    def __init__(
        self, graph: MNGraph, target: Target, letters: dict[str, str], moments: Moments
    ) -> None:
        """Remember the graph with its addresses. ``letters`` name the levels of units."""
        self._graph, self._target, self._letters = graph, target, letters
        self._all, self._moments = GraphValues(graph, target), moments
        #: The run that stands at the moment of which the values are asked.
        self.run: emu2.Debugger | None = None

    def __call__(self, expression: str) -> list[str] | Watched | None:
        """Return the place of an element, or a tensor; None if the expression has another form.

        Raises EmulatorError D0001 for a value or an element that does not exist, or has no place,
        and D0007 for a value that is not there yet, or no more.
        """
        found = _NAMED.fullmatch(expression.strip())
        if found is None:
            return None
        name = found[1]
        value = self._graph.values.get(name)
        if value is None:
            known = ", ".join(sorted(self._graph.values))
            raise _refused(f"the model has no value `{name}`; there are {known}")
        parts = (found[2] or "").replace(",", " ").split()
        if found[2] is None or any(":" in part for part in parts):
            return self._tensor(value, parts)
        index = tuple(int(number) for number in parts)
        inside = len(index) == len(value.shape) and all(
            0 <= number < size for number, size in zip(index, value.shape, strict=True)
        )
        if not inside:
            raise _refused(f"`{name}` has the shape {value.shape}, which has no element {index}")
        self._check_there(value)
        return [self.place(value, index)]

    def place(self, value: MNValue, index: tuple[int, ...]) -> str:
        """Return where an element lies once it is computed. D0001 if that is in a later slice."""
        return (self._dram if value.location is Location.DRAM else self._lm)(value, index)

    def _tensor(self, value: MNValue, parts: list[str]) -> Watched:
        """Return a tensor, or a part of it such as ``[3, :]`` or ``[0:2, 4:]``."""
        if in_later_slice(value):
            raise _refused(f"parts of `{value.name}` lie in a later time slice")
        shape = f"`{value.name}` has the shape {value.shape}"
        if len(parts) > len(value.shape):
            raise _refused(f"{shape}, which has no part [{', '.join(parts)}]")
        index: list[int | slice] = []
        for part, size in zip(parts, value.shape, strict=False):
            ends = part.split(":")
            if len(ends) > 2:
                raise _refused(f"`{part}` has a step, and parts have none")
            if len(ends) == 2:
                index.append(slice(*(int(end) if end else None for end in ends)))
            elif int(part) < size:
                index.append(int(part))
            else:
                raise _refused(f"{shape}, so {part} is outside")
        array = self._all.read(value.name, self._check_there(value).read)
        numbers = np.arange(array.size).reshape(value.shape)[tuple(index)]
        shown = array[tuple(index)]
        words = [
            {
                "unit": value.name,
                "addr": ", ".join(map(str, np.unravel_index(int(number), value.shape))),
                "text": str(element),
            }
            for number, element in zip(numbers.flat[:_ELEMENTS], shown.flat, strict=False)
        ]
        text = np.array2string(shown, threshold=_ELEMENTS, max_line_width=_WIDTH)
        return Watched(f"{value.type.elem}{list(shown.shape)}\n{text}", words, whole=True)

    def _check_there(self, value: MNValue) -> emu2.Debugger:
        """Return the run if the words of ``value`` hold it now."""
        if not on_device(value) or self.run is None:
            raise _refused(f"`{value.name}` is not on the device")
        if reason := self._moments.missing(value, self.run):
            remedy = "go to another line; a place such as lm0[3] shows any word"
            raise EmulatorError(code="D0007", message=f"`{value.name}`: {reason}", help=remedy)
        return self.run

    def _unit(self, l2b: int, below: tuple[int, ...]) -> str:
        numbers = (*divmod(l2b, self._target.l2bs_per_group), *below)
        return "".join(
            f"{letter}{number}"
            for letter, number in zip(self._letters.values(), numbers, strict=False)
        )

    def _lm(self, value: MNValue, index: tuple[int, ...]) -> str:
        assert value.layout is not None
        assert value.addr is not None
        arrays = [np.array(number) for number in index]
        at = {level: int(place) for level, place in value.layout.coordinates(*arrays).items()}
        if at.get(Level.TIME, 0):
            raise _refused(f"the element {index} of `{value.name}` lies in a later time slice")
        unit = self._unit(
            at.get(Level.L2B, 0), (at.get(Level.L1B, 0), at.get(Level.MAB, 0), at.get(Level.PE, 0))
        )
        addr = value.addr + at.get(Level.ADDR, 0)
        memory = value.location.value.lower()
        return f"{memory}[{addr}].{_lane(value.dtype, at.get(Level.W, 0))} of {unit}"

    def _dram(self, value: MNValue, index: tuple[int, ...]) -> str:
        assert value.layout is not None
        assert value.addr is not None
        image = self._all.image(value)
        element = int(np.ravel_multi_index(index, value.shape)) if prod(value.shape) > 1 else 0
        group, word, part = image.place(element)
        (letter, *_) = self._letters.values()
        return f"dram[{value.addr + word}].{_lane(value.dtype, part)} of {letter}{group}"


def _lane(dtype: MNDtype, part: int) -> str:
    letter = _FORMATS.get(dtype) or _INTEGERS.get(dtype.bits)
    if letter is None:
        raise _refused(f"elements of {dtype.value} have no format of the debugger")
    return f"{letter}[{part}]"


def _refused(message: str) -> EmulatorError:
    remedy = "write a value of the model, such as value x.lm0, value x.lm0 [3, 7] or [3, :]"
    return EmulatorError(code="D0001", message=message, help=remedy)
