"""Rewrites of a graph: rows of a table, each with a pattern or an analysis, and one driver.

A :class:`Rewrite` looks for a pattern of nodes. Its edit is made at once, and what it changed is
looked at again, until nothing matches. A :class:`FlowRewrite` first analyses the whole graph, and
then gives its edits. The driver keeps who makes and who reads each value, and the verifier judges
the graph behind each rewrite that changed something.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..errors import error
from ..machine import Target
from .draft import Draft, Edit
from .dtypes import MNDtype
from .graph import MNGraph, MNNode, Side
from .verify import Rule, verify

#: How often a pattern may be rewritten for each node of the graph: more means that it never ends.
_MOST = 8


@dataclass(frozen=True)
class Facts:
    """What rewrites read beside the graph.

    ``exact`` are values that stay and keep all their bits, such as those that overrides name.
    ``data`` has the elements of constants. Operators of the types ``apart`` stay as they are.
    ``skipped`` are the names of rewrites that are left out.
    """

    target: Target
    exact: Collection[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    apart: Collection[str] = ()
    skipped: Collection[str] = ()


@dataclass(frozen=True)
class Pattern:
    """A node of the device, and nodes that make its operands, in the same segment.

    ``inputs`` are the patterns of the first operands, in order; ``operand`` is one that any operand
    may have. ``dtypes`` are those that all operands and results have. Only the matched reader may
    read what an ``only`` node makes, and nothing else may need that value.
    """

    ops: frozenset[str]
    inputs: tuple[Pattern, ...] = ()
    operand: Pattern | None = None
    dtypes: frozenset[MNDtype] = frozenset()
    only: bool = True

    def matches(self, node: MNNode, part: Part) -> Iterator[tuple[MNNode, ...]]:
        """Yield the nodes of each match at ``node``: itself, then those of its operands."""
        if node.op not in self.ops or node.side is not Side.DEVICE or node.op in part.facts.apart:
            return
        if self.dtypes and not all(
            name and part.values[name].dtype in self.dtypes
            for name in (*node.inputs, *node.outputs)
        ):
            return
        if self.operand is not None:
            for name in dict.fromkeys(node.inputs):
                yield from ((node, *more) for more in self.operand._made(name, node, part))
        elif not self.inputs:
            yield (node,)
        elif len(node.inputs) >= len(self.inputs):
            yield from ((node, *more) for more in self._operands(node, part))

    def _operands(self, node: MNNode, part: Part) -> Iterator[tuple[MNNode, ...]]:
        operands: list[tuple[MNNode, ...]] = [()]
        for pattern, name in zip(self.inputs, node.inputs, strict=False):
            operands = [
                (*before, *more) for before in operands for more in pattern._made(name, node, part)
            ]
        yield from operands

    def _made(self, name: str, reader: MNNode, part: Part) -> Iterator[tuple[MNNode, ...]]:
        """Yield the matches at the node that makes an operand."""
        maker = part.draft.maker(name)
        if maker is None or maker.segment != reader.segment:
            return
        if self.only and (name in part.kept or len(part.draft.readers(name)) != 1):
            return
        yield from self.matches(maker, part)


@dataclass(frozen=True)
class Part:
    """What an edit of a match reads: the graph while it changes, and the facts."""

    draft: Draft
    facts: Facts

    @property
    def graph(self) -> MNGraph:
        """The graph with the values as they are now."""
        return self.draft.graph

    @property
    def values(self) -> Mapping[str, Any]:
        """The values as they are now, by name."""
        return self.draft.values

    @cached_property
    def kept(self) -> frozenset[str]:
        """The values that must stay: results, and those that keep their bits."""
        return frozenset((*self.facts.exact, *(name for _, name in self.graph.outputs)))


@dataclass(frozen=True)
class Row:
    """A rewrite by name. ``rounding`` says how results may differ; "" keeps all their bits.

    Without one that is ``needed`` there is no code.
    """

    name: str
    rounding: str = ""
    needed: bool = field(default=False, kw_only=True)

    @abstractmethod
    def sweep(self, draft: Draft, facts: Facts) -> int:
        """Change the graph, and return how often."""

    @abstractmethod
    def text(self) -> str:
        """Return what the rewrite does: the docstring of its function."""


@dataclass(frozen=True)
class Rewrite(Row):
    """A rewrite of a pattern; ``edit`` says what changes at a match, or None."""

    pattern: Pattern = Pattern(frozenset())
    edit: Callable[[Sequence[MNNode], Part], Edit | None] = lambda nodes, part: None

    def sweep(self, draft: Draft, facts: Facts) -> int:
        """Rewrite all matches, with what the edits make of them."""
        part, count, most = Part(draft, facts), 0, _MOST * len(draft.nodes)
        for start in list(draft.nodes):
            waiting = [start]
            while waiting:
                node = draft.nodes.get(waiting.pop())
                edit = None if node is None else self._first(node, part)
                if edit is None:
                    continue
                draft.apply(edit)
                count += 1
                if count > most:
                    problem = f"rewrites {count} matches in a graph of {len(draft.nodes)} nodes"
                    raise error("P0204", stage="rewrites", rule=self.name, problem=problem)
                new = (one for nodes in edit.behind.values() for one in nodes)
                waiting += [*(one.name for one in new), *edit.instead]
        return count

    def _first(self, node: MNNode, part: Part) -> Edit | None:
        edits = (self.edit(nodes, part) for nodes in self.pattern.matches(node, part))
        return next((one for one in edits if one is not None), None)

    def text(self) -> str:
        """Return the docstring of the edit."""
        return self.edit.__doc__ or ""


@dataclass(frozen=True)
class FlowRewrite(Row):
    """A rewrite that analyses the whole graph before its first edit."""

    edits: Callable[[MNGraph, Facts], Iterable[Edit]] = lambda graph, facts: ()

    def sweep(self, draft: Draft, facts: Facts) -> int:
        """Apply the edits of the graph as it is."""
        edits = list(self.edits(draft.done(), facts))
        for edit in edits:
            draft.apply(edit)
        return len(edits)

    def text(self) -> str:
        """Return the docstring of the analysis."""
        return self.edits.__doc__ or ""


def rewritten(
    graph: MNGraph,
    rows: Iterable[Row],
    facts: Facts,
    rules: Sequence[Rule],
    fired: Callable[[Row, int, MNGraph], None] = lambda row, count, graph: None,
) -> MNGraph:
    """Return the graph after the rewrites, in their order; P0204 for one that breaks ``rules``.

    ``fired`` is told of each rewrite that changed the graph: how often, and what it made.
    """
    for row in rows:
        if row.name in facts.skipped:
            continue
        draft = Draft(graph)
        if count := row.sweep(draft, facts):
            graph = verify(draft.done(), facts.target, rules)
            fired(row, count, graph)
    return graph
