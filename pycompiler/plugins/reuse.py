"""Memory for tensors that several streams use: offsets in one region, found ahead of a run.

Two tensors may share memory if all uses of one come before the other is made. Streams wait for each
other, so this order is a partial one. It becomes life times in the order of the steps: a tensor
lives until the first place from which on every tensor is made after all of its uses. Then the exact
search of :mod:`pycompiler.memory` finds the offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import error
from ..memory import ACTIVATION, Tensor, lower_bound, packed


@dataclass(frozen=True)
class Step:
    """An operation of a stream, and the tensors it uses.

    It runs after the step before it in its stream, and after the steps ``after`` (numbers of
    earlier ones), for whose events it waits.
    """

    stream: int
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Offsets of tensors, the units they need, and the most that live at one time.

    ``lower_bound`` belongs to the life times: on one stream no plan needs less.
    """

    offsets: dict[str, int]
    size: int
    lower_bound: int


def plan_reuse(
    steps: Sequence[Step],
    sizes: Mapping[str, int],
    *,
    alignment: int = 1,
    groups: Sequence[Sequence[str]] = (),
    seconds: float = 10.0,
) -> Plan:
    """Return offsets, multiples of ``alignment``, for tensors of ``sizes`` units.

    The first step that uses a tensor writes it, and all others run after that one (P0822). Tensors
    of a group lie one behind the other without a gap, as a collective operation wants them; only
    the first is aligned, and all live as long as the group. The exact search takes about
    ``seconds`` if best fit does not reach the lower bound. P0826.
    """
    before = _before(steps)
    users: dict[str, list[int]] = {name: [] for name in sizes}
    for number, step in enumerate(steps):
        for name in dict.fromkeys((*step.reads, *step.writes)):
            if name not in users:
                raise error("P0826", reason=f"step {number} uses `{name}`, which has no size")
            users[name].append(number)
    for name, used in users.items():
        _check(name, used, steps, before, sizes[name])
    members = _groups(groups, users)
    makers = sorted({used[0] for used in users.values()}, reverse=True)
    tensors = []
    for names in members:
        every = sorted({number for name in names for number in users[name]})
        size = -(-sum(sizes[name] for name in names) // alignment) * alignment
        end = _end(every, makers, before)
        tensors.append(Tensor(names[0], ACTIVATION, size, every[0], end))
    starts, size = packed(tensors, seconds)
    offsets = {}
    for names in members:
        at = starts[names[0]]
        for name in names:
            offsets[name] = at
            at += sizes[name]
    return Plan(offsets, size, lower_bound(tensors))


def _before(steps: Sequence[Step]) -> list[int]:
    """Return the steps before each step, as bits."""
    before: list[int] = []
    last: dict[int, int] = {}
    for number, step in enumerate(steps):
        bits = 0
        for other in (*step.after, *([last[step.stream]] if step.stream in last else [])):
            if not 0 <= other < number:
                raise error("P0826", reason=f"step {number} waits for step {other}")
            bits |= before[other] | 1 << other
        before.append(bits)
        last[step.stream] = number
    return before


def _check(
    name: str, used: Sequence[int], steps: Sequence[Step], before: Sequence[int], size: int
) -> None:
    if size <= 0 or not used:
        reason = f"`{name}` has {size} units" if used else f"no step uses `{name}`"
        raise error("P0826", reason=reason)
    first = used[0]
    if name not in steps[first].writes:
        raise error("P0826", reason=f"step {first} reads `{name}` before any step writes it")
    written: list[int] = []
    for number in used:
        step = steps[number]
        earlier = [n for n in used if n < number] if name in step.writes else written
        for other in earlier:
            if not before[number] >> other & 1:
                reason = (
                    f"step {number} of stream {step.stream} does not wait for step {other} of "
                    f"stream {steps[other].stream}"
                )
                raise error("P0822", what=f"`{name}`", reason=reason)
        if name in step.writes:
            written.append(number)


def _groups(
    groups: Sequence[Sequence[str]], users: Mapping[str, Sequence[int]]
) -> list[tuple[str, ...]]:
    """Return all tensors, those of a group together."""
    taken: set[str] = set()
    for name in (name for group in groups for name in group):
        if name in taken or name not in users:
            reason = f"`{name}` is in two groups" if name in taken else f"`{name}` has no size"
            raise error("P0826", reason=reason)
        taken.add(name)
    return [*(tuple(g) for g in groups if g), *((name,) for name in users if name not in taken)]


def _end(used: Sequence[int], makers: Sequence[int], before: Sequence[int]) -> int:
    """Return from which step on all tensors are made after all of ``used``."""
    bits = sum(1 << number for number in used)
    for maker in makers:
        if maker <= used[-1]:
            break
        if before[maker] & bits != bits:
            return maker + 1
    return used[-1] + 1
