"""Decomposes calls that torch's ONNX exporter translates wrongly or not at all.

The table has a rule per operator. torch applies it before the export.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch._decomp import decomposition_table

from .as_torch import like_torch
from .attention import attention, flash_attention, is_hard
from .double_forms import composed, doubles_of, either
from .odd_shapes import ODD_SHAPES, is_number
from .plain_operators.complex_numbers import BY_PARTS, WITH_NUMBERS, meets_number
from .plain_operators.images import PADS
from .plain_operators.places import indexed, joined_empty, scatter_reduced
from .plain_operators.replacements import not_expressible
from .resizes import RESIZES

_ATEN = torch.ops.aten
#: A normalization whose running statistics are results.
_NEW_STATISTICS = _ATEN._native_batch_norm_legit_functional.default


@dataclass(frozen=True)
class _Rule:
    """``concerns`` tells whether a call must be decomposed, ``made_of`` computes it instead.

    torch first writes some calls as ``becomes``, which ``made_of`` then computes.
    """

    concerns: Callable[[torch.fx.Node], bool]
    made_of: Callable[..., Any]
    becomes: object = None


def _argument(node: torch.fx.Node, place: int, name: str, default: object) -> Any:
    return node.args[place] if place < len(node.args) else node.kwargs.get(name, default)


def _extreme(op: Any) -> _Rule:
    """Return the rule for a reduction without axes, for which the exporter requires axes."""

    def made_of(x: torch.Tensor, axes: Sequence[int] = (), keepdim: bool = False) -> Any:
        if axes and x.ndim:
            return NotImplemented
        found = op(x if x.ndim else x.reshape(1), [*range(max(1, x.ndim))], keepdim)
        return found if x.ndim else found.reshape(())

    def concerns(node: torch.fx.Node) -> bool:
        return is_number(node) or not _argument(node, 1, "dim", ())

    return _Rule(concerns, made_of)


def _drawn_once(node: torch.fx.Node) -> bool:
    """Whether samples are drawn without replacement, which the exporter ignores."""
    several = node.args[1] != 1
    return bool(several and not _argument(node, 2, "replacement", False))


def _refused(*_: object, **__: object) -> torch.Tensor:
    raise not_expressible("aten.multinomial.default without replacement")


def _average(op: Any) -> _Rule:
    """Return the rule for a pool with a divisor of its own, which the exporter ignores."""

    def made_of(
        x: torch.Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        if divisor_override is None:
            return NotImplemented
        if ceil_mode:
            raise not_expressible(f"{op} with divisor_override and ceil_mode")
        inner = 2 if op is _ATEN.avg_pool2d.default else 3
        sizes, pads = (tuple(n) * (inner if len(n) == 1 else 1) for n in (kernel, padding))
        # Zeros in place of padding, so that every window has all its elements.
        x = torch.nn.functional.pad(x, [end for pad in reversed(pads) for end in (pad, pad)])
        found = op(x, sizes, stride, [0] * inner, False, True)
        return found * (prod(sizes) / divisor_override)

    return _Rule(lambda node: _argument(node, 6, "divisor_override", None) is not None, made_of)


def _trains(node: torch.fx.Node) -> bool:
    """Whether statistics are those of the batch, which the exporter ignores if it has others."""
    return bool(_argument(node, 5, "training", False)) and node.args[3] is not None


def _changed_statistics(node: torch.fx.Node) -> bool:
    """Refuse the inner form of batch_norm that writes into its running statistics."""
    if _trains(node):
        raise not_expressible("aten.native_batch_norm with running statistics in training")
    return False


def _uneven(node: torch.fx.Node) -> bool:
    """Whether an adaptive pool has windows of different sizes, which the exporter picks singly."""
    sizes: Any = node.args[1]
    shape = node.args[0].meta["val"].shape[-len(sizes) :]  # type: ignore[union-attr]
    return any(size % count for size, count in zip(shape, sizes, strict=True))


def _adaptive_average(x: torch.Tensor, sizes: Sequence[int]) -> Any:
    """Return the averages of windows, as one product with their weights."""
    shape, front = x.shape[-len(sizes) :], x.shape[: -len(sizes)]
    if not any(size % count for size, count in zip(shape, sizes, strict=True)):
        return NotImplemented
    if prod(shape) == 1:
        return x.expand(*front, *sizes).clone()
    weights = torch.ones(1, 1, dtype=x.dtype)
    for size, count in zip(shape, sizes, strict=True):
        number, place = torch.arange(count), torch.arange(size)[:, None]
        first, end = number * size // count, ((number + 1) * size + count - 1) // count
        own = ((place >= first) & (place < end)).to(x.dtype) / (end - first)
        weights = (weights[:, None, :, None] * own[None, :, None, :]).reshape(
            weights.shape[0] * size, weights.shape[1] * count
        )
    found = x.reshape(*front, prod(shape)) @ weights
    return found.reshape(*front, *sizes)


def _reads_a_view(node: torch.fx.Node) -> bool:
    """Whether strides are those of a view's memory, which the exporter takes for rows in order."""
    x: Any = node.args[0]
    return not x.meta["val"].is_contiguous() or x.meta["val"].storage_offset() != 0


def _as_strided(
    x: torch.Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Any:
    """Pick the elements by their place in memory, if ``x`` has all of its memory."""
    if x.is_contiguous() and not x.storage_offset():
        return NotImplemented
    steps = x.stride()
    order = sorted(range(x.ndim), key=lambda axis: -steps[axis])
    whole = x.permute(order)
    if x.storage_offset() or not whole.is_contiguous():
        raise not_expressible("aten.as_strided.default of a part of a tensor")
    first = storage_offset or 0
    place = torch.arange(first, first + 1)
    for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
        own = torch.arange(count) * step
        place = place + own.reshape([-1] + [1] * (len(size) - axis - 1))
    return whole.reshape(-1)[place.reshape(-1)].reshape(size)


def _all_empty(node: torch.fx.Node) -> bool:
    """Whether all operands of a join have no elements, which the exporter refuses."""
    operands: Any = node.args[0]
    return not any(operand.meta["val"].numel() for operand in operands)


def _cropped(node: torch.fx.Node) -> bool:
    """Whether a pad that repeats elements is negative somewhere."""
    return min(node.args[1], default=0) < 0  # type: ignore[arg-type]


def _wide_edges(node: torch.fx.Node) -> bool:
    """Whether the lower limit of a logit is above the upper one; then torch keeps the lower."""
    edge: Any = _argument(node, 1, "eps", None)
    return edge is not None and edge > 0.5


def _logit(x: torch.Tensor, eps: float | None = None) -> Any:
    if eps is None or eps <= 0.5:
        return NotImplemented
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    low, high = torch.full_like(x, eps), torch.full_like(x, 1 - eps)
    kept = torch.where(x < low, low, torch.where(x > high, high, x))
    return torch.log(kept / (1 - kept))


def _of_all(node: torch.fx.Node) -> bool:
    """Whether a norm is of all elements: the exporter makes a list of them, without axes."""
    return is_number(node) or _argument(node, 2, "dim", None) is None


def _vector_norm(
    x: torch.Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    if x.ndim and dim is not None:
        return NotImplemented
    axes = [*range(max(1, x.ndim))]
    found = torch.linalg.vector_norm(x if x.ndim else x.reshape(1), ord, axes, keepdim, dtype=dtype)
    return found if x.ndim else found.reshape(())


def _plain_norm(
    x: torch.Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    return NotImplemented if ord is not None else _vector_norm(x, 2, dim, keepdim, dtype=dtype)


def _by_mask(node: torch.fx.Node) -> bool:
    """Whether a mask says where to write, for which the exporter lists the places."""
    indices: Any = node.args[1]
    only = indices[0] if len(indices) == 1 else None
    return only is not None and only.meta["val"].dtype == torch.bool


def _einsum(equation: str, *given: Any, **named: Any) -> Any:
    """Multiply matrices where axes have no letters: ONNX wants one rank for all of these."""
    return (
        composed(_ATEN.einsum.default)(equation, *given, **named)
        if "." in equation
        else NotImplemented
    )


def _no_plain_classes(node: torch.fx.Node) -> bool:
    """Whether a cross entropy has smoothing, targets that are chances, or no batch axis.

    The exporter drops smoothing, and takes every target for a batch of classes.
    """
    chances, target = (place.meta["val"] for place in node.args[:2])  # type: ignore[union-attr]
    smoothed = _argument(node, 5, "label_smoothing", 0.0) != 0.0
    return bool(smoothed or target.is_floating_point() or chances.ndim == 1)


def _makes_complex(node: torch.fx.Node) -> bool:
    return bool(node.meta["val"].is_complex())


def _joins_otherwise(node: torch.fx.Node) -> bool:
    """Whether a scatter leaves out its own elements, or takes means, which ONNX has not."""
    without = not _argument(node, 5, "include_self", True)
    return bool(without or node.args[4] == "mean")


def _scatter_reduced(*args: Any, **kwargs: Any) -> Any:
    if kwargs.get("include_self", True) and args[4] != "mean":
        return NotImplemented
    return scatter_reduced(*args, **kwargs)


_ADAPTIVE = (_ATEN.adaptive_avg_pool1d, _ATEN.adaptive_avg_pool2d, _ATEN.adaptive_avg_pool3d)
_RULES: dict[object, _Rule] = {
    **{op: _Rule(_makes_complex, rule) for op, rule in BY_PARTS.items()},
    **{pool.default: _Rule(_uneven, _adaptive_average) for pool in _ADAPTIVE},
    _ATEN.as_strided.default: _Rule(_reads_a_view, _as_strided),
    **{op: _average(op) for op in (_ATEN.avg_pool2d.default, _ATEN.avg_pool3d.default)},
    _ATEN.batch_norm.default: _Rule(_trains, decomposition_table[_NEW_STATISTICS], _NEW_STATISTICS),
    _NEW_STATISTICS: _Rule(_trains, decomposition_table[_NEW_STATISTICS]),
    _ATEN.cat.default: _Rule(_all_empty, joined_empty),
    _ATEN.einsum.default: _Rule(lambda node: "." in str(node.args[0]), _einsum),
    _ATEN.index_put.default: _Rule(_by_mask, indexed),
    _ATEN.logit.default: _Rule(_wide_edges, _logit),
    _ATEN.linalg_vector_norm.default: _Rule(_of_all, _vector_norm),
    _ATEN.linalg_norm.default: _Rule(_of_all, _plain_norm),
    **dict.fromkeys(
        (_ATEN.native_batch_norm.default, _ATEN._native_batch_norm_legit.default),
        _Rule(_changed_statistics, decomposition_table[_NEW_STATISTICS]),
    ),
    **{op: _Rule(_cropped, made_of) for op, made_of in PADS.items()},
    _ATEN.cross_entropy_loss.default: _Rule(
        _no_plain_classes,
        composed(_ATEN.cross_entropy_loss.default),
    ),
    **{op: _extreme(op) for op in (_ATEN.amax.default, _ATEN.amin.default)},
    _ATEN.multinomial.default: _Rule(_drawn_once, _refused),
    _ATEN.scaled_dot_product_attention.default: _Rule(is_hard, attention),
    _ATEN._scaled_dot_product_flash_attention_for_cpu.default: _Rule(
        lambda node: True, flash_attention
    ),
    _ATEN.scatter_reduce.two: _Rule(_joins_otherwise, _scatter_reduced),
    **{op: _Rule(meets_number, rule) for op, rule in WITH_NUMBERS.items()},
    **{op: _Rule(rule.concerns, rule) for op, rule in RESIZES.items()},
    **{op: _Rule(*rule) for op, rule in ODD_SHAPES.items()},
}


def taken_apart(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return ``program`` with the calls that the tables concern decomposed."""
    doubles = doubles_of(program)
    used = {node.target for node in program.graph.nodes}
    found = dict(doubles) if used & doubles.keys() else {}
    for node in program.graph.nodes:
        rule = _RULES.get(node.target)
        if rule is not None and rule.concerns(node):
            op = rule.becomes or node.target
            found[op] = either(rule.made_of, doubles.get(op))
    return program.run_decompositions(like_torch(found)) if found else program
