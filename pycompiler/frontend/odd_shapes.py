"""Calls on shapes for which ONNX has no form, in operators that keep their meaning.

ONNX squeezes no axis of several elements, and reduces or writes along no axis of a number. Its
LSTM has no projections. torch's exporter fails at affine grids of one row, and cuts the bounds and
steps of integers afterwards. The table has whether a call is concerned, and what computes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

_ATEN = torch.ops.aten
_Concerns = Callable[[torch.fx.Node], bool]


def _first(node: torch.fx.Node) -> torch.Tensor:
    found: torch.Tensor = node.args[0].meta["val"]  # type: ignore[union-attr]
    return found


def _wide(node: torch.fx.Node) -> bool:
    """Whether a squeezed axis has several elements, or there is none: torch leaves them alone."""
    x, axes = _first(node), node.args[1]
    chosen = [axes] if isinstance(axes, int) else list(axes)  # type: ignore[arg-type]
    return not x.ndim or not chosen or any(x.shape[axis] != 1 for axis in chosen)


def _squeezed(x: torch.Tensor, axes: int | Sequence[int]) -> Any:
    chosen = [axes] if isinstance(axes, int) else axes
    own = {axis % x.ndim for axis in chosen if x.ndim}
    if own and all(x.shape[axis] == 1 for axis in own):
        return NotImplemented
    return x.view([n for axis, n in enumerate(x.shape) if n != 1 or axis not in own])


def is_number(node: torch.fx.Node) -> bool:
    """Whether the first operand has no axis."""
    return not _first(node).ndim


def _of_number(op: Any) -> Callable[..., Any]:
    """Return what works along the one axis of lists of one number instead of none."""

    def made_of(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.ndim:
            return NotImplemented
        given = tree_map_only(torch.Tensor, lambda one: one.reshape(1), (x, *args))
        return tree_map_only(torch.Tensor, lambda one: one.reshape(()), op(*given, **kwargs))

    return made_of


def _has_one_row(node: torch.fx.Node) -> bool:
    return 1 in node.args[1][2:]  # type: ignore[index,operator]


def _affine_grid(theta: torch.Tensor, size: Sequence[int], align_corners: bool) -> Any:
    """Return the places of a grid: an axis of one element is in the middle."""
    axes, batch = size[2:], size[0]
    if 1 not in axes:
        return NotImplemented
    parts = []
    for number, count in enumerate(reversed(axes)):
        place = torch.arange(count, dtype=theta.dtype) * 2 - (count - 1)
        place = place / ((count - 1 if align_corners else count) or 1)
        parts.append(place.reshape([-1, *[1] * number]).expand(list(axes)))
    parts.append(torch.ones(list(axes), dtype=theta.dtype))
    base = torch.stack(parts, -1).reshape(1, -1, len(axes) + 1).expand(batch, -1, -1)
    return (base @ theta.transpose(1, 2)).reshape(batch, *axes, len(axes))


def _projects(node: torch.fx.Node) -> bool:
    """Whether an LSTM projects its state, which the exporter ignores."""
    states: Any = node.args[1]
    state, cell = (one.meta["val"] for one in states)
    return bool(state.shape != cell.shape)


def _projected(x: torch.Tensor, state: Sequence[torch.Tensor], *args: Any) -> Any:
    """Return the layer as torch writes it in steps."""
    if state[0].shape == state[1].shape:
        return NotImplemented
    return torch._decomp.decompositions.lstm_impl(x, state, *args)


def _is_whole(node: torch.fx.Node) -> bool:
    return not node.meta["val"].is_floating_point()


def _whole_steps(start: float, end: float, step: float = 1, *, dtype: Any = None, **_: Any) -> Any:
    """Return integers from a start that is cut, by a step that is cut, as many as uncut ones."""
    if dtype is None or dtype.is_floating_point or float not in map(type, (start, end, step)):
        return NotImplemented
    return (torch.arange(math.ceil((end - start) / step)) * int(step) + int(start)).to(dtype)


def _whole_points(start: Any, end: Any, steps: int, base: Any = None, **kwargs: Any) -> Any:
    """Return integers, or powers of a base, between bounds that are cut if there are two."""
    dtype = kwargs.get("dtype")
    if dtype is None or dtype.is_floating_point or dtype.is_complex:
        return NotImplemented
    ends = [torch.as_tensor(bound, dtype=torch.float64) for bound in (start, end)]
    if base is None or steps > 1:
        ends = [bound.to(torch.int64).to(dtype).double() for bound in ends]
    place, step = torch.arange(steps), (ends[1] - ends[0]) / max(steps - 1, 1)
    near, far = ends[0] + step * place, ends[1] - step * (steps - 1 - place)
    made = torch.where(place < max(steps // 2, 1), near, far)
    return (made if base is None else base**made).to(dtype)


def _whole_powers(start: Any, end: Any, steps: int, base: float = 10, **kwargs: Any) -> Any:
    return _whole_points(start, end, steps, base, **kwargs)


_SPREADS = (_ATEN.var, _ATEN.std, _ATEN.var_mean, _ATEN.std_mean)
_OF_ONE_AXIS = [
    *(_ATEN.any.dim, _ATEN.any.dims, _ATEN.all.dim, _ATEN.all.dims, _ATEN.aminmax.default),
    *(op for spread in _SPREADS for op in (spread.dim, spread.correction)),
    *(_ATEN.flip.default, _ATEN.prod.dim_int, _ATEN.topk.default),
    *(_ATEN.scatter.src, _ATEN.scatter.value, _ATEN.scatter_add.default),
]
_BOUNDS = ("default", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")
ODD_SHAPES: Mapping[Any, tuple[_Concerns, Callable[..., Any]]] = {
    **dict.fromkeys((_ATEN.arange.start, _ATEN.arange.start_step), (_is_whole, _whole_steps)),
    **{getattr(_ATEN.linspace, ends): (_is_whole, _whole_points) for ends in _BOUNDS},
    **{getattr(_ATEN.logspace, ends): (_is_whole, _whole_powers) for ends in _BOUNDS},
    _ATEN.squeeze.dim: (_wide, _squeezed),
    _ATEN.squeeze.dims: (_wide, _squeezed),
    **{op: (is_number, _of_number(op)) for op in _OF_ONE_AXIS},
    _ATEN.affine_grid_generator.default: (_has_one_row, _affine_grid),
    _ATEN.lstm.input: (_projects, _projected),
}
