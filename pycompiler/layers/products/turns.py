"""The order in which a resident product works: which tiles share both banks, and their vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .roles import Precision

#: Groups of the contracted axis: addresses in both operands, word, elements that exist.
Sums = Sequence[tuple[int, int, int, int]]


def turns_of(
    order: Sequence[tuple[int, int]], sums: Sums, kind: Precision, banks: int
) -> Iterator[Sequence[tuple[int, int]]]:
    """Yield the tiles of the matrix that are written one behind the other, each to its bank.

    After them come the vectors of all of them. So the memories of both operands have pauses that
    are long enough for a write, and downloads of the next operands come at the same time.
    """
    made: list[tuple[int, int]] = []
    for turn in order:
        whole = sums[turn[0]][3] == kind.block
        if made and (not whole or len(made) == banks):
            yield made
            made = []
        made.append(turn)
        if not whole:
            yield made
            made = []
    if made:
        yield made


def together_ahead(
    turns: Sequence[Sequence[tuple[int, int]]], sums: Sums, kind: Precision, most: int
) -> Iterator[Sequence[Sequence[tuple[int, int]]]]:
    """Yield up to ``most`` successive turns whose vectors are converted together.

    All tiles of such a turn meet the same vectors, which stay in registers until their turn. So the
    memory of the vectors has long pauses, in which the next operands arrive.
    """
    made: list[Sequence[tuple[int, int]]] = []
    for turn in turns:
        (first, _), *others = turn
        same = all(number == first for number, _ in others)
        alone = not others or not same or sums[first][3] < kind.block
        if made and (alone or len(made) >= most):
            yield made
            made = []
        made.append(turn)
        if alone:
            yield made
            made = []
    if made:
        yield made
