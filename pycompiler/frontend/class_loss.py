"""Cross entropy by its formula, for calls that torch's exporter translates wrongly."""

from __future__ import annotations

import torch

#: torch's numbers of the reductions; the third is the sum.
_NONE, _MEAN = 0, 1


def no_plain_classes(node: torch.fx.Node, smoothing: float) -> bool:
    """Whether the loss has smoothing, targets that are chances, or no batch axis.

    The exporter drops smoothing, and takes every target for a batch of classes.
    """
    chances, target = (place.meta["val"] for place in node.args[:2])  # type: ignore[union-attr]
    return bool(smoothing or target.is_floating_point() or chances.ndim == 1)


def cross_entropy(
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    reduction: int = _MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    """Return the loss by the formula of torch's documentation."""
    if x.ndim == 1:
        one = cross_entropy(x[None], target[None], weight, reduction, ignore_index, label_smoothing)
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
