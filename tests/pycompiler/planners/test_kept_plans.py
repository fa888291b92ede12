"""What the planners keep from one set of cuts to the next: it changes no layout and saves runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from compiling import Shape, compiled, model_of

from pycompiler.graph.graph import MNGraph
from pycompiler.graph.layout import Layout, SubAxis
from pycompiler.machine import Target
from pycompiler.planners import layout
from pycompiler.planners.layout import LayoutFacts, WithSwitches, plan_layouts
from pycompiler.planners.lpz.known import Guesses, Known
from pycompiler.planners.overrides import Overrides
from pycompiler.planners.time_slices.passes import SlicedLayouts


def perceptron(batch: int, sizes: tuple[int, ...], *, residual: bool) -> onnx.ModelProto:
    """Return products with Relu between them; its batch is cut, and planned several times."""
    rng = np.random.default_rng(3)
    weights = {
        f"w{n}": rng.standard_normal(sizes[n : n + 2], np.float32) for n in range(len(sizes) - 1)
    }
    nodes, last = [], "x"
    for name in weights:
        nodes += [("MatMul", [last, name], f"{name}.m"), ("Relu", [f"{name}.m"], f"{name}.r")]
        last = f"{name}.r"
    nodes.append(("Add", [last, "x" if residual else last], "y"))
    shapes: dict[str, Shape] = {"x": (batch, sizes[0])}
    return model_of(nodes, shapes, ["y"], weights)


MODELS = [
    perceptron(3000, (24, 32, 10), residual=False),
    perceptron(500, (64, 128, 64), residual=True),
    perceptron(160, (96, 384, 96), residual=True),
]


#: What `make test` compiles: a batch that is cut.
QUICK = ((0, "float"),)


def plan_anew(
    self: SlicedLayouts,
    graph: MNGraph,
    overrides: Overrides,
    planner: str,
    facts: LayoutFacts | None,
) -> WithSwitches:
    """Plan as `SlicedLayouts._plan_of` does, but keep nothing."""
    return plan_layouts(graph, self.target, overrides, planner, self.specs, facts)


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[object]:
    """Return how often each set of cuts is planned from now on."""
    runs: Counter[object] = Counter()
    plain = layout.PLANNERS["lpz"]

    def plan(
        graph: MNGraph,
        target: Target,
        wanted: Mapping[str, Layout],
        facts: LayoutFacts,
        known: Known,
    ) -> Mapping[str, Layout]:
        runs[tuple(value.type for value in graph.values.values())] += 1
        return plain(graph, target, wanted, facts, known)

    monkeypatch.setattr(layout, "PLANNERS", {**layout.PLANNERS, "lpz": plan})
    return runs


@pytest.mark.parametrize(
    ("model", "mode"),
    [
        pytest.param(model, mode, marks=() if (number, mode) in QUICK else pytest.mark.long)
        for number, model in enumerate(MODELS)
        for mode in ("float", "mixed")
    ],
)
def test_kept_plans_are_those_of_a_new_planner(
    model: onnx.ModelProto, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = counted(monkeypatch)
    kept, report = compiled(model, float_dtype=mode)
    if mode == "float":
        assert set(runs.values()) == {1}, "the same cuts are planned once"
    assert max(row["slices"] for row in report["nodes"]) > 1
    monkeypatch.setattr(SlicedLayouts, "_plan_of", plan_anew)
    anew, _ = compiled(model, float_dtype=mode)
    assert kept.dumps == anew.dumps
    assert kept.vsm == anew.vsm


def test_guesses_are_asked_for_once() -> None:
    """Tables grow in any order, and each entry is the cost of its own pair."""
    rng = np.random.default_rng(5)
    layouts = [Layout(((SubAxis(size),),)) for size in range(2, 40)]
    known, asked = Guesses(), Counter[tuple[int, int]]()

    def cost(source: Layout, result: Layout) -> int:
        return 100 * source.axes[0][0].size + result.axes[0][0].size

    def ask(sources: Sequence[Layout], results: Sequence[Layout]) -> list[list[int]]:
        pairs = [
            (one.axes[0][0].size, other.axes[0][0].size) for one in sources for other in results
        ]
        asked.update(pairs)
        return [[cost(one, other) for other in results] for one in sources]

    for _ in range(30):
        ours, theirs = (
            [layouts[n] for n in rng.integers(0, len(layouts), rng.integers(1, 12))] for _ in "ab"
        )
        wanted = [[cost(one, other) for other in theirs] for one in ours]
        before = asked.total()
        assert np.array_equal(known.table(ours, theirs, ask), wanted)
        told = asked.total()
        assert np.array_equal(known.table(ours, theirs, ask), wanted)
        assert asked.total() == told >= before


def test_a_candidate_more_on_both_sides_asks_for_its_own_pairs() -> None:
    layouts = [Layout(((SubAxis(size),),)) for size in range(2, 12)]
    known, asked = Guesses(), []

    def ask(sources: Sequence[Layout], results: Sequence[Layout]) -> list[list[int]]:
        asked.append(len(sources) * len(results))
        return [[1 for _ in results] for _ in sources]

    known.table(layouts[:9], layouts[:9], ask)
    known.table(layouts, layouts, ask)
    assert asked == [81, 10, 9]
