"""Conversions between singles and halves: which layouts go together, and the words in use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pycompiler.code.lines import PeOperand
from pycompiler.graph import Location, MNGraph, MNNode, MNValue, parse_layout
from pycompiler.graph.dtypes import MNDtype
from pycompiler.graph.graph import TensorType
from pycompiler.graph.layout import Level
from pycompiler.layers.half_conversions import AXIS, NARROW, WIDEN
from pycompiler.layers.operators import LAYERS
from pycompiler.machine import WORDS_PER_LONG, Target, load_target

#: The source's layout, the result's layout, and whether the result can be made of the source.
PLAIN, HALVED = "(8_MAB:1), (4_PE:1, 4:1, 2_W:1)", "(8_MAB:1), (4_PE:1, 2:1, 4_W:1)"
COPIED = "; B@[2_MAB:8]"
CONVERSIONS = [
    (NARROW, PLAIN, HALVED, True),
    (NARROW, PLAIN + COPIED, HALVED, True),
    (NARROW, PLAIN, HALVED + COPIED, False),
    (WIDEN, HALVED, PLAIN, True),
    (WIDEN, HALVED + COPIED, PLAIN, True),
    (WIDEN, HALVED, PLAIN + COPIED, False),
    (NARROW, "(8_MAB:1), (4_PE:1, 2:1, 2:2, 2_W:1)", HALVED, False),
    (WIDEN, HALVED, "(8_MAB:1), (4_PE:1, 2:1, 2:2, 2_W:1)", False),
]


@pytest.mark.parametrize(("op", "source", "result", "legal"), CONVERSIONS)
def test_copies_of_a_source_and_of_a_result(op: str, source: str, result: str, legal: bool) -> None:
    """The source may have copies that the result lacks, not the other way round."""
    target, kind = load_target("mncore2"), TensorType("float", (8, 32))
    values = {}
    for name, layout, location in (("s", source, Location.LM0), ("r", result, Location.LM1)):
        made = MNDtype.HALF if (op == WIDEN) == (name == "s") else MNDtype.FLOAT
        values[name] = MNValue(name, kind, made, location, parse_layout(f"({layout})"))
    node = MNNode("n", op, ("s",), ("r",), ((AXIS, 1),))
    graph = MNGraph("g", "mncore2", nodes=(node,), values=values)
    assert (not list(LAYERS[op].refusals(node, graph, target))) == legal


@pytest.mark.parametrize("op", [NARROW, WIDEN])
@pytest.mark.parametrize("count", [*range(1, 10), 121])
def test_conversions_keep_to_their_words(op: str, count: int, target: Target) -> None:
    """Two long words of singles may be no whole vector, and other values lie behind them."""
    kind, values = TensorType("float", (count, 16)), {}
    layouts = {MNDtype.HALF: f"(({count}:1), (4_PE:1, 4_W:1))"}
    layouts[MNDtype.FLOAT] = f"(({count}:2), (4_PE:1, 2:1, 2_W:1))"
    for name, location in (("s", Location.LM0), ("r", Location.LM1)):
        made = MNDtype.HALF if (op == WIDEN) == (name == "s") else MNDtype.FLOAT
        values[name] = MNValue(name, kind, made, location, parse_layout(layouts[made]))
    node = MNNode("n", op, ("s",), ("r",), ((AXIS, 1),))
    graph = MNGraph("g", target.name, nodes=(node,), values=values)
    assert not list(LAYERS[op].refusals(node, graph, target))
    seen: dict[str, set[int]] = {"s": set(), "r": set()}
    lines = LAYERS[op].emit(node, graph, target).lines
    for line in lines:
        (one,) = line.instructions
        for operand in (*one.sources, *one.destinations):
            assert isinstance(operand, PeOperand)
            assert operand.value is not None
            each = operand.words // WORDS_PER_LONG
            seen[operand.value] |= {at + n for at in operand.offsets for n in range(each)}
    for name, words in seen.items():
        layout = values[name].layout
        assert layout is not None
        assert max(words) < layout.num_lw(target.cycles)
        assert set(range(layout.num_lw(1))) <= words
    assert len(lines) == LAYERS[op].cost(node, graph, target)


#: Layouts of singles, and the layouts of halves near them. The first two are of weights behind
#: their update; the words of the third have the axis already.
NEAR = [
    (
        "(2_L1B:2, 2_L2B:1, 4_PE:1, 2:1, 2_W:1), (2_L1B:4, 2_L1B:1, 16_MAB:1)",
        [
            "(2_L1B:2, 2_L2B:1, 4_PE:1, 4_MAB:1), (2_L1B:4, 2_L1B:1, 4_MAB:4, 4_W:1)",
            "(2_L1B:2, 2_L2B:1, 16_MAB:1), (2_L1B:4, 2_L1B:1, 4_PE:1, 4_W:1)",
        ],
    ),
    (
        "(2:4, 4_PE:1, 2:2, 2_W:1), (16_MAB:1, 2:1)",
        [
            "(2:2, 4_PE:1, 2_MAB:1, 2:1), (8_MAB:2, 4_W:1)",
            "(2:2, 8_MAB:1, 2:1), (2_MAB:8, 4_PE:1, 4_W:1)",
        ],
    ),
    ("(8_MAB:1), (4_PE:1, 2:1, 2_W:1)", []),
    ("(8_MAB:1), (4_PE:1, 3:1); B@[W]", []),
]


@pytest.mark.parametrize(("hint", "halves"), NEAR)
def test_late_candidates(hint: str, halves: list[str]) -> None:
    """The digits of words, and of PEs beside them, change places with those of the axis."""
    target, layout = load_target("mncore2"), parse_layout(f"({hint})")
    values = {
        name: MNValue(name, TensorType("float", layout.padded_shape), made)
        for name, made in (("s", MNDtype.FLOAT), ("r", MNDtype.HALF))
    }
    node = MNNode("n", NARROW, ("s",), ("r",), ((AXIS, 1),))
    graph = MNGraph("g", "mncore2", nodes=(node,), values=values)
    found = list(LAYERS[NARROW].late_candidates(node, graph, target, {"s": layout}))
    assert [str(one["r"]) for one in found] == [f"({text})" for text in halves]
    assert not list(LAYERS[NARROW].late_candidates(node, graph, target, {"r": layout}))
    for one in found:
        places = {
            name: replace(values[name], layout=one[name], location=location)
            for name, location in (("s", Location.LM0), ("r", Location.LM1))
        }
        assert not list(LAYERS[NARROW].refusals(node, graph.with_values(places), target))
        for level in (Level.L1B, Level.L2B):
            assert one["s"].on(level) == layout.on(level)
