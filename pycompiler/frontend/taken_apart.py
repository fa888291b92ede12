"""Decomposes calls that torch's ONNX exporter translates wrongly or not at all.

The table has a rule per operator. torch applies it before the export.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..errors import error

_ATEN = torch.ops.aten
#: torch's numbers of the reductions; the third is the sum.
_NONE, _MEAN = 0, 1


@dataclass(frozen=True)
class _Rule:
    """``concerns`` tells whether a call must be decomposed, ``made_of`` computes it instead."""

    concerns: Callable[[torch.fx.Node], bool]
    made_of: Callable[..., Any]


def _argument(node: torch.fx.Node, place: int, name: str, default: object) -> Any:
    return node.args[place] if place < len(node.args) else node.kwargs.get(name, default)


def _no_plain_classes(node: torch.fx.Node) -> bool:
    """Whether the loss has smoothing, targets that are chances, or no batch axis.

    The exporter drops smoothing, and takes every target for a batch of classes.
    """
    chances, target = (node.args[place].meta["val"] for place in (0, 1))  # type: ignore[union-attr]
    smoothed = _argument(node, 5, "label_smoothing", 0.0) != 0.0
    return bool(smoothed or target.is_floating_point() or chances.ndim == 1)


def _extreme(op: Any) -> _Rule:
    """Return the rule for a reduction without axes, for which the exporter requires axes."""

    def made_of(x: torch.Tensor, axes: Sequence[int] = (), keepdim: bool = False) -> Any:
        if axes:
            return NotImplemented
        found = op(x.reshape(-1), [0])
        return found.reshape([1] * x.ndim) if keepdim else found

    return _Rule(lambda node: not _argument(node, 1, "dim", ()), made_of)


def _cross_entropy(
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    reduction: int = _MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    """Return the loss by the formula of torch's documentation."""
    if x.ndim == 1:
        one = _cross_entropy(
            x[None], target[None], weight, reduction, ignore_index, label_smoothing
        )
        return one[0] if reduction == _NONE else one
    classes, chances = x.shape[1], x.log_softmax(1)
    weighted = chances
    if weight is not None:
        weighted = chances * weight.reshape(-1, *[1] * (x.ndim - 2))
    if target.is_floating_point():
        smooth = target * (1 - label_smoothing) + label_smoothing / classes
        each = -(weighted * smooth).sum(1)
        return _joined(each, reduction, each.numel())
    ignored = target == ignore_index
    known = target.masked_fill(ignored, 0)
    weights = torch.ones_like(known, dtype=x.dtype) if weight is None else weight[known]
    weights = weights.masked_fill(ignored, 0.0)
    loss = -(chances.gather(1, known[:, None]).squeeze(1) * weights)
    if label_smoothing != 0.0:
        rest = weighted.sum(1).masked_fill(ignored, 0.0)
        loss = (1 - label_smoothing) * loss - label_smoothing / classes * rest
    return _joined(loss, reduction, weights.sum())


def _joined(each: torch.Tensor, reduction: int, count: torch.Tensor | int) -> torch.Tensor:
    if reduction == _NONE:
        return each
    return each.sum() / count if reduction == _MEAN else each.sum()


def _drawn_once(node: torch.fx.Node) -> bool:
    """Whether samples are drawn without replacement, which the exporter ignores."""
    several = node.args[1] != 1
    return bool(several and not _argument(node, 2, "replacement", False))


def _refused(*_: object, **__: object) -> torch.Tensor:
    raise error("P0102", op="aten.multinomial.default without replacement")


_RULES: dict[object, _Rule] = {
    _ATEN.cross_entropy_loss.default: _Rule(_no_plain_classes, _cross_entropy),
    _ATEN.amax.default: _extreme(_ATEN.amax.default),
    _ATEN.amin.default: _extreme(_ATEN.amin.default),
    _ATEN.multinomial.default: _Rule(_drawn_once, _refused),
}


def taken_apart(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return ``program`` with the calls that the table concerns decomposed."""
    found: dict[Any, Callable[..., Any]] = {}
    for node in program.graph.nodes:
        rule = _RULES.get(node.target)
        if rule is not None and rule.concerns(node):
            found[node.target] = rule.made_of
    return program.run_decompositions(found) if found else program
