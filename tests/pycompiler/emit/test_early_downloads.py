"""Parts of downloads come forward, and nothing that touches a common word changes places."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from compiling import LONG, compiled, model_of, sampled

from emu2._core import Ready
from pycompiler.code.lines import Fragment
from pycompiler.emit.addressed_lines import Shelf
from pycompiler.emit.concat import concatenate
from pycompiler.emit.early_downloads import Part, bring_forward
from pycompiler.emit.fragment_cache import Fragments
from pycompiler.graph.graph import MNGraph
from pycompiler.layers.dram_transfer import DOWNLOAD
from pycompiler.machine import Target, load_target

#: Memories in which values lie. L1BM and L2BM only hold what a node moves.
KEPT = frozenset({"lm0", "lm1", "dram"})
#: The networks that are drawn: one in halves and one in singles, in `make test-long` seven. Of ten,
#: three take up to 8 % more cycles with parts that come early, and the others save more.
SEEDS = range(0 if LONG else 5, 7)


@lru_cache
def network(seed: int) -> MNGraph:
    """Return the final graph of two to four dense layers of drawn sizes."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(40, 400, size=draw.integers(3, 6)).tolist()
    arrays, nodes, value = {}, [], "x"
    for number, (wide, narrow) in enumerate(pairwise(sizes)):
        arrays[f"w{number}"] = draw.standard_normal((wide, narrow)).astype(np.float32)
        arrays[f"b{number}"] = draw.standard_normal(narrow).astype(np.float32)
        nodes += [
            ("MatMul", [value, f"w{number}"], f"p{number}"),
            ("Add", [f"p{number}", f"b{number}"], f"s{number}"),
            ("Tanh", [f"s{number}"], f"t{number}"),
        ]
        value = f"t{number}"
    rows = int(draw.integers(3, 90))
    model = model_of(nodes, {"x": (rows, sizes[0])}, [value], arrays)
    mode = ["float", "mixed"][seed % 2]
    return compiled(model, "mncore2", float_dtype=mode, scheduler="spill_opt")[0].graph


def fragments(graph: MNGraph, target: Target) -> list[tuple[str, str, Fragment]]:
    made = Fragments(target)
    return [(node.name, node.name, made.of(node, graph)) for node in graph.nodes]


def lines(graph: MNGraph, target: Target) -> list[list[Ready]]:
    """Return the lines of every node."""
    addresses = {n: v.addr for n, v in graph.values.items() if v.addr is not None}
    shelf = Shelf(addresses, target)
    return [list(shelf.of(fragment).lines) for _, _, fragment in fragments(graph, target)]


def kept(ready: Ready) -> list[tuple[str, int, int, bool]]:
    """Return what a line touches of values: memory, first word, end, whether it writes."""
    found = [(a, False) for a in ready.reads] + [(a, True) for a in ready.writes]
    return [(a.memory, a.low, a.high, writes) for a, writes in found if a.memory in KEPT]


def depend(one: Ready, other: Ready) -> bool:
    return any(
        a[0] == b[0] and a[1] < b[2] and b[1] < a[2] and (a[3] or b[3])
        for a in kept(one)
        for b in kept(other)
    )


def brought_forward(graph: MNGraph, target: Target) -> tuple[list[list[Ready]], list[Part]]:
    nodes = lines(graph, target)
    downloads = [node.op == DOWNLOAD for node in graph.nodes]
    return nodes, list(bring_forward(nodes, downloads, target))


@pytest.mark.parametrize("seed", sampled([*SEEDS], first=1))
def test_lines_that_touch_common_words_keep_their_order(seed: int) -> None:
    target = load_target("mncore2")
    graph = network(seed)
    nodes, parts = brought_forward(graph, target)
    place = {
        id(ready): (part, at) for part, p in enumerate(parts) for at, ready in enumerate(p.lines)
    }
    assert len(place) == sum(map(len, nodes))
    # A node that is not a download stays whole and in its order.
    stays = [p.owner for p in parts if graph.nodes[p.owner].op != DOWNLOAD]
    assert stays == [n for n, node in enumerate(graph.nodes) if node.op != DOWNLOAD]
    for number, found in enumerate(parts):
        if found.under == found.owner:
            continue
        for passed in range(found.under, found.owner):
            for one in nodes[passed]:
                for other in found.lines:
                    assert place[id(one)] < (number, 0) or not depend(one, other)


def test_parts_come_forward_and_save_cycles() -> None:
    target = load_target("mncore2")
    early, saved = 0, 0
    for seed in SEEDS:
        graph = network(seed)
        _, parts = brought_forward(graph, target)
        early += sum(part.under < part.owner for part in parts)
        addresses = {n: v.addr for n, v in graph.values.items() if v.addr is not None}
        made = fragments(graph, target)
        downloads = [node.op == DOWNLOAD for node in graph.nodes]
        plain, moved = (
            target.assemble(concatenate(made, addresses, target, how).text, "x.vsm").report()
            for how in ((), downloads)
        )
        assert plain["dram_words"] == moved["dram_words"]
        saved += plain["cycles"] - moved["cycles"]
    assert early > 0
    assert saved > 0


def test_a_part_stays_behind_a_node_that_reads_its_words() -> None:
    """A download into words that the node before it reads may not pass that node."""
    target = load_target("mncore2")
    graph = network(0)
    nodes = lines(graph, target)
    downloads = [node.op == DOWNLOAD for node in graph.nodes]
    first = next(n for n, download in enumerate(downloads) if download and n)
    # Before the download stands a copy of it, so each of its words is touched there.
    doubled = [*nodes[:first], nodes[first], *nodes[first:]]
    flags = [*downloads[:first], False, *downloads[first:]]
    found = bring_forward(doubled, flags, target)
    assert all(part.under == part.owner for part in found if part.owner == first + 1)
