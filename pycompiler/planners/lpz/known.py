"""A cache of the planner: costs of layouts, and candidates that layers propose.

The entries depend only on shapes, dtypes and layouts. So graphs that differ only in their cuts
share most entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...graph.dtypes import MNDtype
from ...graph.layout import Layout
from ...graph.plan import Plan

#: Layouts of the operands of a node, and the plan that they go with.
Offer = tuple[tuple[Layout, ...], Plan | None]
#: Returns the costs of switches from each source to each result, in rows.
Ask = Callable[[Sequence[Layout], Sequence[Layout]], Sequence[Sequence[int]]]


class Guesses:
    """The guessed costs of switches of values with one shape and dtype."""

    def __init__(self) -> None:
        self._rows: dict[Layout, int] = {}
        self._columns: dict[Layout, int] = {}
        #: Costs by the numbers of both layouts; -1 where none is known yet.
        self._table = np.full((0, 0), -1, dtype=np.int64)

    def table(
        self, sources: Sequence[Layout], results: Sequence[Layout], ask: Ask
    ) -> NDArray[np.int64]:
        """Return the costs from each of ``sources`` to each of ``results``.

        ``ask`` is called for those that nobody has asked for yet.
        """
        rows = [self._rows.setdefault(one, len(self._rows)) for one in sources]
        columns = [self._columns.setdefault(one, len(self._columns)) for one in results]
        self._make_room()
        at = np.ix_(rows, columns)
        missing = self._table[at] < 0
        new = np.asarray(missing.all(axis=1))
        # New sources first, then new results for the others: known costs are not asked for again.
        for part in (new[:, None] & missing, ~new[:, None] & missing):
            if part.any():
                ours = {rows[i]: sources[i] for i in np.flatnonzero(part.any(axis=1)).tolist()}
                theirs = {columns[i]: results[i] for i in np.flatnonzero(part.any(axis=0)).tolist()}
                self._table[np.ix_([*ours], [*theirs])] = ask([*ours.values()], [*theirs.values()])
        return self._table[at]

    def _make_room(self) -> None:
        have, want = self._table.shape, (len(self._rows), len(self._columns))
        if want[0] > have[0] or want[1] > have[1]:
            # Twice the room that is needed, so that tables seldom move.
            wider = np.full([2 * max(sizes) for sizes in zip(have, want, strict=True)], -1)
            wider[: have[0], : have[1]] = self._table
            self._table = wider


@dataclass(eq=False)
class Known:
    """Costs of nodes, transfers and switches, guesses and candidates, by all that they depend on.

    It is for one machine. ``work`` counts the switches that searches have gone through, each time
    that they ask for the costs of all. ``choice`` has what searches chose for variables that are
    alike.
    """

    work: int = 0
    choice: dict[object, Mapping[str, Layout]] = field(default_factory=dict)
    nodes: dict[object, int] = field(default_factory=dict)
    transfers: dict[tuple[Layout, MNDtype], tuple[int, int, int]] = field(default_factory=dict)
    switches: dict[object, int] = field(default_factory=dict)
    guesses: dict[tuple[tuple[int, ...], MNDtype], Guesses] = field(default_factory=dict)
    candidates: dict[object, list[Offer]] = field(default_factory=dict)
