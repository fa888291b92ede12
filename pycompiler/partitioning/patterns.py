"""Patterns: small trees of operators that stay together, and where a model has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from math import isclose, prod

import onnx
from onnx import helper, numpy_helper

from ..errors import error
from .source import Source, Unit

#: Operators whose two operands may change places.
_COMMUTATIVE = frozenset({"Add", "Mul"})
_NUMBERS = frozenset({"float", "double", "float16", "bfloat16", "int32", "int64"})
_SINGLE = 1e-6  # attributes are rounded to singles
_TOLERANCE = 1e-3  # constants of a pattern are written with few digits in models


class Part:
    """A part of a pattern: an operator, any value, a constant, or a choice of parts."""


@dataclass(frozen=True, eq=False)
class Any(Part):
    """Any value. The same object stands for the same value in every place."""


@dataclass(frozen=True, eq=False)
class Constant(Part):
    """A constant; with ``number``, one that is that number alone."""

    number: float | None = None


@dataclass(frozen=True, eq=False)
class Choice(Part):
    """One of several parts; the first that fits is taken."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class Op(Part):
    """A node of an operator. Without ``inputs``, its operands may be anything.

    ``attributes`` must have these values where they are named. Fewer inputs than a node has are a
    match if the others are constants.
    """

    name: str
    inputs: tuple[Part, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)


def op(name: str, *inputs: Part, **attributes: object) -> Op:
    """Return an operator of a pattern; see :class:`Op`."""
    return Op(name, inputs, attributes)


def either(*parts: Part) -> Choice:
    """Return a choice of parts."""
    return Choice(parts)


def maybe(name: str, inner: Part) -> Choice:
    """Return an operator of one operand that may be missing."""
    return either(op(name, inner), inner)


Check = Callable[[Unit], bool]


@dataclass(frozen=True, eq=False)
class Pattern:
    """A named tree of operators; ``root`` makes its only result.

    ``check`` may refuse what was found.
    """

    name: str
    root: Part
    check: Check | None = None


def pattern(name: str, check: Check | None = None) -> Callable[[Callable[[], Part]], Pattern]:
    """Make a pattern of a function that returns its tree.

    P0802 if the function returns no operator, or ``name`` is not a name of ONNX.
    """

    def made(function: Callable[[], Part]) -> Pattern:
        root = function()
        if not _has_operators(root):
            raise error("P0802", name=name, reason="its function must return op(...)")
        return Pattern(name, root, check)

    if not name.replace("_", "").isalnum():
        raise error("P0802", name=name, reason="its name must be letters, digits and _")
    return made


def _has_operators(part: object) -> bool:
    if isinstance(part, Choice):
        return bool(part.parts) and all(map(_has_operators, part.parts))
    return isinstance(part, Op)


def composites(source: Source, patterns: Sequence[Pattern]) -> Iterator[Unit]:
    """Yield what the patterns find, the first patterns first. No node is in two units.

    A value inside of a unit is read only there, so nothing outside lies between its nodes.
    """
    taken: set[int] = set()
    for own in patterns:
        for number in reversed(range(len(source.nodes))):
            for found in _matches(own.root, number, source):
                nodes = tuple(sorted(found))
                unit = Unit(own.name, nodes, source)
                if taken.isdisjoint(nodes) and len(nodes) > 1 and _closed(nodes, number, source):
                    if own.check is not None and not own.check(unit):
                        continue
                    taken.update(nodes)
                    yield unit
                    break


def _closed(nodes: Sequence[int], root: int, source: Source) -> bool:
    inside, given = set(nodes), set(source.outputs)
    for number in inside - {root}:
        for name in source.nodes[number].output:
            if name in given or set(source.readers.get(name, ())) - inside:
                return False
    return True


#: The nodes that a match has taken, and the values that stand for :class:`Any`.
_Bound = tuple[frozenset[int], Mapping[Part, str]]


def _matches(root: Part, number: int, source: Source) -> Iterator[frozenset[int]]:
    for nodes, _ in _fits(root, source.nodes[number].output[0], (frozenset(), {}), source):
        yield nodes


def _fits(part: Part, value: str, bound: _Bound, source: Source) -> Iterator[_Bound]:
    """Yield the ways in which ``part`` is what makes ``value``."""
    nodes, names = bound
    if isinstance(part, Constant):
        if _is_constant(part, value, source):
            yield bound
        return
    if names.get(part, value) != value:
        return
    names = {**names, part: value}
    if isinstance(part, Any):
        yield nodes, names
    elif isinstance(part, Choice):
        for choice in part.parts:
            yield from _fits(choice, value, (nodes, names), source)
    elif isinstance(part, Op) and value in source.maker:
        number = source.maker[value]
        node = source.nodes[number]
        known = node.op_type == part.name and node.domain in ("", "ai.onnx")
        if known and value == node.output[0] and _same_attributes(part, node, source):
            for inputs in _orders(part, node, source):
                yield from _all_fit(part.inputs, inputs, (nodes | {number}, names), source)


def _all_fit(
    parts: Sequence[Part], values: Sequence[str], bound: _Bound, source: Source
) -> Iterator[_Bound]:
    if not parts:
        yield bound
        return
    for found in _fits(parts[0], values[0], bound, source):
        yield from _all_fit(parts[1:], values[1:], found, source)


def _orders(part: Op, node: onnx.NodeProto, source: Source) -> Iterator[tuple[str, ...]]:
    values, count = tuple(node.input), len(part.inputs)
    if not count:
        yield values
    elif len(values) >= count and all(n in source.constants or not n for n in values[count:]):
        swapped = part.name in _COMMUTATIVE and len(values) == count == 2
        yield from permutations(values) if swapped else (values,)


def _is_constant(part: Constant, value: str, source: Source) -> bool:
    tensor = source.constants.get(value)
    if tensor is None:
        return False
    if part.number is None:
        return True
    if prod(tensor.dims) != 1 or source.types[value].elem not in _NUMBERS:
        return False
    number = float(numpy_helper.to_array(tensor).reshape(()))
    return isclose(number, part.number, rel_tol=_TOLERANCE)


def _same_attributes(part: Op, node: onnx.NodeProto, source: Source) -> bool:
    """Whether a node has the attributes of a part; those it leaves out have ONNX's defaults."""
    if not part.attributes:
        return True
    opset = next(one.version for one in source.model.opset_import if one.domain in ("", "ai.onnx"))
    known = onnx.defs.get_schema(node.op_type, opset).attributes
    found = {name: own.default_value for name, own in known.items() if own.default_value.type}
    found |= {own.name: own for own in node.attribute}
    return all(
        name in found and _same(helper.get_attribute_value(found[name]), wanted)
        for name, wanted in part.attributes.items()
    )


def _same(have: object, wanted: object) -> bool:
    """Whether an attribute is what a pattern says; ONNX has floats of 32 bits, and bytes."""
    if isinstance(have, bytes):
        return have.decode(errors="replace") == wanted
    if isinstance(have, list | tuple) and isinstance(wanted, list | tuple):
        return len(have) == len(wanted) and all(map(_same, have, wanted))
    if isinstance(have, float) and isinstance(wanted, int | float):
        return isclose(have, wanted, rel_tol=_SINGLE)
    return have == wanted
