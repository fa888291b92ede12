"""The CTC loss in plain operators, one step of its recursion per frame.

Graves et al., 2006: the labels get blanks between them, and alpha[s] is the log of the sum over all
alignments that end at label s. torch's own operator has a size that depends on data.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

#: Stands for the logarithm of 0. Sums of a few million of them stay finite in float32.
_NEVER = -1e30

Lengths = torch.Tensor | Sequence[int] | int


def ctc_loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str | int = "mean",
    zero_infinity: bool = False,
) -> torch.Tensor:
    """Return ``torch.nn.functional.ctc_loss`` of the same arguments; ``torch.ctc_loss`` counts.

    ``log_probs``: frames, batch, classes, or without batch; ``targets``: batch, labels, or the
    labels of all samples in a row. ValueError for arguments that torch refuses too.
    """
    known = ("none", "mean", "sum")
    reduction = known[reduction] if isinstance(reduction, int) else reduction
    if reduction not in known:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if not 0 <= blank < log_probs.shape[-1]:
        raise ValueError(f"blank must be one of {log_probs.shape[-1]} classes, not {blank}")
    batched = log_probs.dim() == 3
    if not batched:
        log_probs = log_probs.unsqueeze(1)
    frames, batch, _ = log_probs.shape
    own = _lengths("input_lengths", input_lengths, log_probs)
    wanted = _lengths("target_lengths", target_lengths, log_probs)
    if targets.dim() == 1 and batched:
        targets = _padded(targets, target_lengths, wanted)
    labels = targets.reshape(batch, -1).to(torch.int64)
    count = 2 * labels.shape[1] + 1
    place = torch.arange(count, device=labels.device)
    shown = _between(labels, blank)
    # A step of two labels skips a blank. It must not join two equal labels.
    earlier = torch.cat([labels.new_full((batch, min(2, count)), blank), shown[:, :-2]], 1)
    may_skip = (shown != blank) & (shown != earlier)
    score = log_probs.gather(2, shown.unsqueeze(0).expand(frames, batch, count))
    never = score.new_full((batch, 2), _NEVER)
    alpha = torch.where(place < 2, score[0], _NEVER)
    for frame in range(1, frames):
        one = torch.cat([never[:, :1], alpha[:, :-1]], 1)
        two = torch.cat([never[:, : min(2, count)], alpha[:, :-2]], 1)
        ways = torch.stack([alpha, one, torch.where(may_skip, two, _NEVER)])
        new = torch.logsumexp(ways, 0) + score[frame]
        alpha = torch.where((frame < own).unsqueeze(1), new, alpha)
    last = wanted.unsqueeze(1) * 2
    ends = (place == last) | (place == last - 1)
    loss = -torch.logsumexp(torch.where(ends, alpha, _NEVER), 1)
    impossible = loss > -_NEVER / 2
    loss = torch.where(impossible, 0.0 if zero_infinity else float("inf"), loss)
    if reduction == "mean":
        return (loss / wanted.clamp(min=1).to(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss if batched else loss.squeeze(0)


def _between(labels: torch.Tensor, blank: int) -> torch.Tensor:
    """Return the labels with a blank before, between and behind them."""
    batch = labels.shape[0]
    pairs = torch.stack([torch.full_like(labels, blank), labels], 2).reshape(batch, -1)
    return torch.cat([pairs, labels.new_full((batch, 1), blank)], 1)


def _lengths(name: str, given: Lengths, like: torch.Tensor) -> torch.Tensor:
    """Return a length for each sample of ``like``: frames, batch, classes."""
    if isinstance(given, torch.Tensor):
        found = given.to(torch.int64).reshape(-1)
    else:
        numbers = [given] if isinstance(given, int) else list(given)
        found = torch.tensor(numbers, dtype=torch.int64, device=like.device)
    if len(found) != like.shape[1]:
        raise ValueError(f"{name} has {len(found)} lengths for a batch of {like.shape[1]}")
    return found


def _padded(targets: torch.Tensor, given: Lengths, wanted: torch.Tensor) -> torch.Tensor:
    """Return one row of labels per sample. Where lengths are tensors, a row may be any length."""
    longest = targets.shape[0]
    if not isinstance(given, torch.Tensor):
        longest = given if isinstance(given, int) else max(given, default=0)
    first = torch.cumsum(wanted, 0) - wanted
    places = first.unsqueeze(1) + torch.arange(longest, device=targets.device)
    return targets[places.clamp(max=max(targets.shape[0] - 1, 0))]
