"""The roles of the axes of a product's operands, and the precisions of products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

from ...graph.dtypes import MNDtype
from ...graph.graph import Attribute, MNGraph, MNNode
from ...machine import WORDS_PER_LONG, Target
from ...pfvm.windows import GROUPED, WEIGHT_GRADIENT

#: The attribute that names the precision of a product.
PRECISION = "precision"
#: The attribute of a product in slices along its terms, while layouts are planned: the number of
#: terms in the last slice, which is shorter.
SHORTER = "shorter"


#: The precisions of products of singles by their names in options, and the letters of their
#: mnemonics.
PRECISIONS = {"single": "f", "pseudo_single": "g", "half": "h"}
#: The precision of products of doubles; their dtype decides it.
DOUBLE = "double"
_LETTERS = {**PRECISIONS, DOUBLE: "d"}


@dataclass(frozen=True)
class Precision:
    """The facts of the MAU of one machine in one precision, taken from the spec.

    ``letter`` begins the mnemonics. ``words`` is the number of words of one PE in one vector, and
    ``element`` the number of words of one number. A product takes an instruction for each of
    ``suffixes``, which end the mnemonics.
    ``convert`` is the instruction that makes block float of them. ``result`` is the number of long
    words of a PE's result. ``rows`` is the number of rows of the matrix register, which are the
    singles of a result over all PEs. ``block`` is the number of elements of the contracted axis in
    one vector.
    """

    letter: str
    words: int
    convert: str
    result: int
    rows: int
    block: int
    element: int = 1
    suffixes: tuple[str, ...] = ("",)

    @property
    def long(self) -> int:
        """Long words of a PE in one vector; 0 if a vector takes one word of a long word."""
        return self.words // WORDS_PER_LONG

    def result_words(self, dtype: MNDtype) -> int:
        """Return the long words of a PE's result in elements of ``dtype``."""
        return self.result * WORDS_PER_LONG // self.element // dtype.words_per_long

    def vector_words(self, dtype: MNDtype) -> int:
        """Return the long words of a PE in one vector of ``dtype``; 0 for one word of them."""
        return self.words // self.element // dtype.words_per_long

    @property
    def packed(self) -> int:
        """Elements of the contracted axis in one long word of each PE of a MAB, or in a vector.

        The larger of the two counts.
        """
        return max(self.words, WORDS_PER_LONG) * self.block // self.words


@lru_cache(maxsize=64)
def precision(name: str, target: Target) -> Precision:
    """Return the facts of the MAU of ``target`` in the precision called ``name``."""
    letter = _LETTERS[name]
    facts = target.products[letter]
    length = "" if facts["mantissa"] is None else f"/{facts['mantissa']}"
    pes, rows, columns = target.counts["pe"], facts["rows"], facts["columns"]
    element = WORDS_PER_LONG * facts["result"] * pes // rows
    convert = f"{letter}bfn{length}"
    suffixes = ("u", "d") if facts["pair"] else ("",)
    return Precision(
        letter, columns // pes * element, convert, facts["result"], rows, columns, element, suffixes
    )


def precision_of(node: MNNode, target: Target) -> Precision:
    """Return the precision that the dtype planner chose."""
    return precision(str(dict(node.attributes).get(PRECISION, "single")), target)


@dataclass(frozen=True)
class Window:
    """A spatial axis of a convolution: a result reads ``taps`` places of the first operand.

    Result ``p`` and tap ``t`` meet at ``p * stride + t * dilation`` of ``reach`` places. ``axis``
    is the taps' axis in the second operand.
    """

    taps: int
    stride: int
    dilation: int
    reach: int
    axis: int

    @property
    def trivial(self) -> bool:
        """Whether every result reads just the place with its own number."""
        return self.taps == 1 and self.stride == 1


@dataclass(frozen=True)
class Roles:
    """Axes of a product ``C[batch, m, n] = sum_k A[batch, m, k] B[batch, k, n]``.

    ``a``, ``b`` and ``c`` number the axes of each operand: first the batch axes (None where the
    operand is repeated), then the other two in the order of the formula (None if the operand lacks
    the axis). ``m``, ``n``, ``k`` and ``batch`` are sizes. ``windows`` names the batch axes that
    are spatial axes of a convolution, by their number in ``batch``; the sum then runs over all
    their taps as well.
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    a: tuple[tuple[int | None, ...], int | None, int]
    b: tuple[tuple[int | None, ...], int, int | None]
    c: tuple[tuple[int, ...], int | None, int | None]
    windows: Mapping[int, Window] = field(default_factory=dict, hash=False)

    @property
    def taps(self) -> int:
        """Elements of the second operand that one element of the contracted axis meets."""
        return prod(window.taps for window in self.windows.values())


def whole_units(node: MNNode, terms: int, unit: int) -> bool:
    """Whether ``terms`` are whole units, and so are those of a last slice that is shorter."""
    shorter = dict(node.attributes).get(SHORTER, 0)
    assert isinstance(shorter, int)
    return terms % unit == 0 and shorter % unit == 0


def roles_of(node: MNNode, graph: MNGraph) -> Roles:
    """Return the roles of the axes of a product."""
    one, other, out = (graph.values[n].shape for n in (*node.inputs[:2], node.outputs[0]))
    facts = dict(node.attributes)
    if node.op == WEIGHT_GRADIENT:
        # The roles are those of the convolution whose weights the result has the shape of.
        taps = facts["kernel_shape"]
        assert isinstance(taps, tuple)
        weights = (other[1], one[1], *(max(1, int(count)) for count in taps))
        return _convolution(one, weights, other, facts, grouped=False)
    if node.op in ("Conv", GROUPED):
        return _convolution(one, other, out, facts, grouped=node.op == GROUPED)
    if node.op == "Gemm":
        am, ak = (1, 0) if facts.get("transA", 0) else (0, 1)
        bk, bn = (1, 0) if facts.get("transB", 0) else (0, 1)
        sizes = one[am], other[bn], one[ak]
        return Roles((), *sizes, ((), am, ak), ((), bk, bn), ((), 0, 1))
    m = None if len(one) == 1 else len(one) - 2
    n = None if len(other) == 1 else len(other) - 1
    bk = 0 if len(other) == 1 else len(other) - 2
    batch = out[: len(out) - (m is not None) - (n is not None)]

    def along(shape: tuple[int, ...]) -> tuple[int | None, ...]:
        own = max(0, len(shape) - 2)
        skipped = len(batch) - own
        return tuple(
            None if axis < skipped or (shape[axis - skipped] == 1 and size != 1) else axis - skipped
            for axis, size in enumerate(batch)
        )

    places = list(range(len(out)))
    cm = len(batch) if m is not None else None
    cn = len(out) - 1 if n is not None else None
    return Roles(
        batch,
        1 if m is None else one[m],
        1 if n is None else other[n],
        one[-1],
        (along(one), m, len(one) - 1),
        (along(other), bk, n),
        (tuple(places[: len(batch)]), cm, cn),
    )


def _convolution(
    one: tuple[int, ...],
    other: tuple[int, ...],
    out: tuple[int, ...],
    facts: Mapping[str, Attribute],
    *,
    grouped: bool,
) -> Roles:
    # Behind the axis of groups, if there is one, the axes are those of a Conv.
    channels = 2 if grouped else 1
    spatial = range(channels + 1, len(one))
    ones = (1,) * len(spatial)
    strides, dilations = (facts.get(name, ones) for name in ("strides", "dilations"))
    assert isinstance(strides, tuple)
    assert isinstance(dilations, tuple)
    windows = {
        1 + i: Window(other[axis], int(strides[i]), int(dilations[i]), one[axis], axis)
        for i, axis in enumerate(spatial)
    }
    along = (0, *spatial, 1) if grouped else (0, *spatial)
    shared: tuple[int | None, ...] = (None,) * (1 + len(spatial))
    return Roles(
        tuple(out[axis] for axis in along),
        1,
        out[channels],
        one[channels],
        (along, None, channels),
        ((*shared, 0), channels, 1) if grouped else (shared, 1, 0),
        (along, None, channels),
        windows,
    )


def bias_of(node: MNNode) -> str | None:
    """Return the name of the row that a Gemm or Conv adds; None if it adds none."""
    return node.inputs[2] if len(node.inputs) > 2 and node.inputs[2] else None


def takes_halves(node: MNNode, graph: MNGraph, target: Target) -> bool:
    """Whether the factors may be given as halves.

    The precision must take more than one long word per PE and vector, and the factors must be two
    values. The channels of a convolution must fill its blocks: the values between convolutions pass
    operators that keep long words of halves whole.
    """
    kind, roles = precision_of(node, target), roles_of(node, graph)
    fills = not roles.windows or roles.k % kind.block == 0
    if node.op == WEIGHT_GRADIENT:
        fills = fills and roles.n % kind.block == 0
    return kind.words > WORDS_PER_LONG and node.inputs[0] != node.inputs[1] and fills
