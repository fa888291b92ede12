"""Attention and RotaryEmbedding: products, a mask, a softmax; turns of pairs of channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...graph.dtypes import numpy_dtype, onnx_elem_type
from ..held import Array
from .writer import Writer

_LOWEST = float(np.finfo(np.float32).min)
#: The values that the output `qk_matmul_output` may have, by `qk_matmul_output_mode`.
_SCORES, _CAPPED, _MASKED, _SHARES = range(4)


def attention(write: Writer) -> str | bool:
    """Write softmax(Q K^T scale + mask) V; query heads that share a key head are its rows."""
    node = write.node
    names = [*node.input, *[""] * (7 - len(node.input))]
    outputs = [*node.output, *[""] * (4 - len(node.output))]
    mode = int(write.attribute("qk_matmul_output_mode", _SCORES))
    query, key, value = (_with_heads(write, place) for place in range(3))
    if query is None or key is None or value is None or query.shape[1] % key.shape[1]:
        return False
    if bool(names[4]) != bool(names[5]) or (names[4] and names[6]):
        return False
    past = write.types[names[4]].shape[2] if names[4] else 0
    key = _behind(write, names[4], key, outputs[1])
    value = _behind(write, names[5], value, outputs[2])
    batch, heads, queries, _ = query.shape
    sizes = _Sizes(batch, heads, queries, keys=key.shape[2], groups=key.shape[1])
    scores = _scores(write, query, key, sizes)
    shown = {_SCORES: scores}
    cap = write.single("softcap", 0.0)
    if cap > 0:
        bent = write.op("Tanh", write.op("Mul", scores, _number(write, 1 / cap, "cap")))
        scores = write.op("Mul", bent, _number(write, cap, "cap"))
    shown[_CAPPED] = scores
    mask = _Mask(write, sizes, past, names[3], names[6])
    scores = mask.applied(scores)
    shown[_MASKED] = scores
    powers, total = _powers(write, scores, mask.may_hide_rows)
    inverse = write.op("Reciprocal", total)
    if outputs[3] and mode == _SHARES:
        shown[_SHARES] = write.op("Mul", powers, inverse)
    if outputs[3]:
        _result(write, shown[mode], outputs[3])
    # The sums are divided, not the shares: a row has fewer channels than keys.
    rows = (sizes.batch, sizes.groups, sizes.heads // sizes.groups * sizes.queries)
    found = write.op("MatMul", write.reshape(powers, (*rows, sizes.keys)), value.name)
    whole = (sizes.batch, sizes.heads, sizes.queries, value.shape[3])
    found = write.op("Mul", write.reshape(found, whole), inverse)
    if len(write.type(0).shape) == 3:
        found = write.op("Transpose", found, perm=[0, 2, 1, 3])
        found = write.reshape(found, (sizes.batch, sizes.queries, sizes.heads * value.shape[3]))
    return _result(write, found)


@dataclass(frozen=True)
class _Heads:
    """A tensor of (batch, heads, length, channels)."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class _Sizes:
    batch: int
    heads: int
    queries: int
    keys: int
    #: the heads of keys and values
    groups: int


def _with_heads(write: Writer, place: int) -> _Heads | None:
    """Return Q, K or V with an axis of heads; None if its channels are no whole heads."""
    shape = write.type(place).shape
    name = _plain(write, write.node.input[place])
    if len(shape) == 4:
        return _Heads(name, tuple(shape))
    heads = int(write.attribute("q_num_heads" if place == 0 else "kv_num_heads", 0))
    if len(shape) != 3 or not heads or shape[2] % heads:
        return None
    batch, length, channels = shape
    apart = write.reshape(name, (batch, length, heads, channels // heads))
    turned = write.op("Transpose", apart, perm=[0, 2, 1, 3])
    return _Heads(turned, (batch, heads, length, channels // heads))


def _behind(write: Writer, past: str, new: _Heads, present: str) -> _Heads:
    """Append keys or values to those of earlier calls; ``present`` is the result's name."""
    found = new
    if past:
        joined = write.op("Concat", _plain(write, past), new.name, axis=2)
        batch, heads, length, channels = new.shape
        found = _Heads(joined, (batch, heads, write.types[past].shape[2] + length, channels))
    if present:
        _result(write, found.name, present)
    return found


def _scores(write: Writer, query: _Heads, key: _Heads, sizes: _Sizes) -> str:
    """Append the products of queries and keys, times the scale."""
    channels = query.shape[3]
    scale = write.attribute("scale", None)
    scale = channels**-0.5 if scale is None else float(scale)
    scaled = write.op("Mul", query.name, _number(write, scale, "scale"))
    rows = (sizes.batch, sizes.groups, sizes.heads // sizes.groups * sizes.queries, channels)
    turned = write.op("Transpose", key.name, perm=[0, 1, 3, 2])
    found = write.op("MatMul", write.reshape(scaled, rows), turned)
    return write.reshape(found, (sizes.batch, sizes.heads, sizes.queries, sizes.keys))


def _powers(write: Writer, scores: str, may_hide_rows: bool) -> tuple[str, str]:
    """Append the powers of the softmax and their sums.

    A row without a key has powers of 0 and a sum of 1. In any other row, the largest power is 1.
    """
    largest = write.op("ReduceMax", scores, write.ints([-1]), keepdims=1)
    if may_hide_rows:
        largest = write.op("Max", largest, _number(write, _LOWEST, "lowest"))
    powers = write.op("Exp", write.op("Sub", scores, largest))
    total = write.op("ReduceSum", powers, write.ints([-1]), keepdims=1)
    if may_hide_rows:
        total = write.op("Max", total, _number(write, 1.0, "one"))
    return powers, total


class _Mask:
    """What is added to the scores, and which keys a query may see.

    ``past`` keys come from earlier calls. ``added`` is the operand `attn_mask`, ``lengths`` the
    operand `nonpad_kv_seqlen`; empty if they are not given.
    """

    def __init__(self, write: Writer, sizes: _Sizes, past: int, added: str, lengths: str):
        self._write, self._sizes = write, sizes
        self._added = added if added and write.types[added].elem != "bool" else ""
        self._seen: list[str] = []
        self._lengths = lengths
        place = np.arange(sizes.queries)[:, None] + (0 if lengths else past)
        #: the place of a key less that of a query; with `nonpad_kv_seqlen`, less its length too
        self._ahead = np.arange(sizes.keys) - place + (sizes.queries if lengths else 0)
        self._fixed = np.ones((sizes.queries, sizes.keys), dtype=bool)
        if added:
            self._take(added)
        left = int(write.attribute("left_window_size", -1))
        right = int(write.attribute("right_window_size", -1))
        if int(write.attribute("is_causal", 0)):
            self._see("LessOrEqual", np.less_equal, 0)
        if right >= 0:
            self._see("LessOrEqual", np.less_equal, right)
        if left >= 0:
            self._see("GreaterOrEqual", np.greater_equal, -left)
        if lengths:
            self._seen.append(self._compared("Less", np.arange(sizes.keys)[None, :], 0))
        self.may_hide_rows = bool(self._seen or self._added or not self._fixed.any(axis=-1).all())

    def applied(self, scores: str) -> str:
        """Append the mask; hidden keys have the score -inf."""
        write = self._write
        if self._added:
            scores = write.op("Add", scores, self._added)
        seen = list(self._seen)
        if not self._fixed.all():
            seen.append(write.constant(self._fixed, "seen"))
        if not seen:
            return scores
        whole = seen[0]
        for other in seen[1:]:
            whole = write.op("And", whole, other)
        return write.op("Where", whole, scores, _number(write, -np.inf, "hidden"))

    def _take(self, mask: str) -> None:
        """Read `attn_mask`; keys behind its end are hidden."""
        write, shape = self._write, self._write.types[mask].shape
        missing = self._sizes.keys - shape[-1]
        if self._added:
            self._added = _plain(write, mask)
        if missing > 0:
            self._fixed[:, shape[-1] :] = False
            amounts = write.ints([*[0] * (2 * len(shape) - 1), missing])
            nothing = write.constant(np.asarray(False), "fill")
            fill = _number(write, 0.0, "fill") if self._added else nothing
            padded = self._added or mask
            mask = write.op("Pad", padded, amounts, fill)
            self._added = mask if self._added else ""
        if not self._added:
            self._seen.append(mask)

    def _see(self, op: str, compare: np.ufunc, places: int) -> None:
        if self._lengths:
            self._seen.append(self._compared(op, self._ahead, places))
        else:
            self._fixed &= compare(self._ahead, places)

    def _compared(self, op: str, ahead: Array, places: int) -> str:
        """Append a comparison of ``ahead`` with `nonpad_kv_seqlen` plus ``places``."""
        write = self._write
        wide = write.reshape(self._lengths, (self._sizes.batch, 1, 1, 1))
        return write.op(op, write.constant((ahead - places).astype(np.int64), "places"), wide)


def rotary_embedding(write: Writer) -> str | bool:
    """Turn pairs of channels by an angle that depends on the place: two products each."""
    shape, value = write.type(0).shape, _plain(write, write.node.input[0])
    cosine, sine = (_plain(write, name) for name in write.node.input[1:3])
    places = write.input(3)
    if len(shape) == 3:
        heads = int(write.attribute("num_heads", 0))
        if not heads or shape[2] % heads:
            return False
        batch, length, channels = shape[0], shape[1], shape[2] // heads
        wide: Sequence[int] = (batch, length, heads, channels)
        value, axis = write.reshape(value, wide), 2
    else:
        batch, heads, length, channels = shape
        wide, axis = shape, 1
    turned = int(write.attribute("rotary_embedding_dim", 0)) or channels
    pairs = turned // 2
    angles = [batch, length, pairs]
    angles.insert(axis, 1)
    if places:
        cosine, sine = (write.op("Gather", cache, places, axis=0) for cache in (cosine, sine))
    cosine, sine = (write.reshape(cache, angles) for cache in (cosine, sine))
    interleaved = bool(int(write.attribute("interleaved", 0)))
    rest = write.cut(value, [3], [turned], [channels]) if turned < channels else ""
    value = write.cut(value, [3], [0], [turned]) if rest else value
    apart = (*wide[:3], pairs, 2) if interleaved else (*wide[:3], 2, pairs)
    pair_axis = 4 if interleaved else 3
    value = write.reshape(value, apart)
    one, other = (
        write.reshape(write.cut(value, [pair_axis], [n], [n + 1]), (*wide[:3], pairs))
        for n in range(2)
    )
    real = write.op("Sub", write.op("Mul", one, cosine), write.op("Mul", other, sine))
    imaginary = write.op("Add", write.op("Mul", one, sine), write.op("Mul", other, cosine))
    single = (*apart[:pair_axis], 1, *apart[pair_axis + 1 :])
    parts = [write.reshape(part, single) for part in (real, imaginary)]
    value = write.reshape(write.op("Concat", *parts, axis=pair_axis), (*wide[:3], turned))
    if rest:
        value = write.op("Concat", value, rest, axis=3)
    return _result(write, write.reshape(value, shape))


def _computed(write: Writer) -> str:
    """Return the element type of the computation: doubles stay, all others are singles."""
    return "double" if write.type(0).elem == "double" else "float"


def _number(write: Writer, value: float, what: str) -> str:
    """Return the name of a constant of that type."""
    return write.constant(np.asarray(value, numpy_dtype(_computed(write))), what)


def _plain(write: Writer, name: str) -> str:
    """Return a value as it is computed with: short floats are cast."""
    elem = _computed(write)
    if write.types[name].elem == elem:
        return name
    return write.op("Cast", name, to=onnx_elem_type(elem))


def _result(write: Writer, value: str, name: str | None = None) -> str:
    """Append the copy that gives a result its name and the element type of the first input."""
    elem = write.type(0).elem
    if elem == _computed(write):
        return write.op("Identity", value, result=name)
    return write.cast(value, elem, name)
