"""Families of layouts: one order of axes takes the units, from the outermost ones inward."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import compiled, model_of, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from net import Net
from random_layouts import elements
from torch import nn

from pycompiler.frontend.export import export
from pycompiler.graph import Layout, Level, MNDtype, MNValue
from pycompiler.graph.digits import agrees
from pycompiler.graph.graph import TensorType
from pycompiler.graph.layout_text import parse_layout
from pycompiler.graph.verify import layout_ranges
from pycompiler.machine import load_target
from pycompiler.pfvm.optimise import optimise
from pycompiler.planners.lpz import planner
from pycompiler.planners.lpz.families import FAMILIES, Family, family_layout

UNITS = (Level.L2B, Level.L1B, Level.MAB)
#: The levels that the last axis takes.
INNER: tuple[tuple[Level, ...], ...] = ((), (Level.MAB,), (Level.MAB, Level.L1B))
SIZES = (1, 2, 3, 5, 7, 8, 12, 16, 20, 33, 40, 64, 100)
#: Large tensors take long, because tests look at each element.
MOST = 50_000


def _value(shape: tuple[int, ...], dtype: MNDtype) -> MNValue:
    return MNValue("v", TensorType("float", shape), dtype)


def _axes_of(layout: Layout, level: Level) -> set[int]:
    """Return the axes that have digits on a level."""
    return {n for n, own in enumerate(layout.axes) if any(sub.level is level for sub in own)}


@given(st.integers(0, 2**32 - 1), st.sampled_from(["mini", "mncore2"]))
@settings(max_examples=tried(80), deadline=None)
def test_every_element_has_a_place(seed: int, machine: str) -> None:
    """A layout is legal, and each copy has all elements; rows and columns have their own units."""
    rng, target = random.Random(seed), load_target(machine)
    shape = tuple(rng.choice(SIZES) for _ in range(rng.randint(1, 4)))
    while prod(shape) > MOST:
        shape = shape[1:]
    dtype = rng.choice([MNDtype.FLOAT, MNDtype.HALF, MNDtype.LONG])
    inner, reverse, packed = rng.choice(INNER), rng.random() < 0.5, rng.random() < 0.5
    layout = family_layout(_value(shape, dtype), Family(inner, reverse), target, packed=packed)
    assert (layout is not None) == any(size > 1 for size in shape[:-1])
    if layout is None:
        return
    layout.check(shape, dtype, layout_ranges(target), target.words("dram"))
    ranges = {**layout_ranges(target), Level.W: dtype.words_per_long}
    copies = prod(entry.size for entry in layout.copies(ranges))
    held = elements(layout, shape, dtype, target)
    assert set(np.bincount(held[held >= 0], minlength=prod(shape)).tolist()) == {copies}
    last = len(shape) - 1
    assert prod(sub.size for sub in layout.axes[last] if sub.level is Level.W) == ranges[Level.W]
    assert _axes_of(layout, Level.PE) <= {last}
    for level in UNITS:
        taken = _axes_of(layout, level)
        assert taken <= {last} if level in inner else last not in taken


def test_packed_singles_that_become_a_long_word_of_halves_stay_in_their_pe() -> None:
    """The last axis is that of a product's result: 3 blocks of columns lie above the MABs."""
    value, target = _value((4, 256, 768), MNDtype.FLOAT), load_target("mncore2")
    found = family_layout(value, FAMILIES["columns_on_mabs"], target, packed=True)
    text = "((4_L2B:2), (2_L2B:1, 8_L1B:1, 16:6), (3:2, 16_MAB:1, 4_PE:1, 2:1, 2_W:1))"
    assert found is not None
    assert agrees(found, parse_layout(text), value.shape, value.dtype, target)


def test_units_that_others_have_no_elements_for_go_to_the_last_axis() -> None:
    """So a small picture leaves no MAB without channels; without it these units hold copies."""
    value, target = _value((8, 2048, 7, 7), MNDtype.FLOAT), load_target("mncore2")
    copies = []
    for spread in (False, True):
        found = family_layout(value, FAMILIES["rows"], target, packed=True, spread=spread, inner=1)
        assert found is not None
        found.check(value.shape, value.dtype, layout_ranges(target), target.words("dram"))
        ranges = {**layout_ranges(target), Level.W: value.dtype.words_per_long}
        copies.append(prod(entry.size for entry in found.copies(ranges)))
        assert _axes_of(found, Level.L2B) == {0}
    above = target.level_range["L1B"] * target.level_range["MAB"]
    assert copies == [above, 1]


@given(st.integers(0, 2**32 - 1), st.sampled_from(INNER))
@settings(max_examples=tried(60), deadline=None)
def test_the_outermost_axis_takes_the_l2bs(seed: int, inner: tuple[Level, ...]) -> None:
    """So it is if the axis is long or a multiple of their number; the other order begins below."""
    rng, target = random.Random(seed), load_target("mncore2")
    count = target.level_range["L2B"]
    rows = [rng.choice([count, 3 * count, *range(4 * count + 1, 6 * count)]) for _ in range(3)]
    shape = (*rows[: rng.randint(1, 3)], rng.choice(SIZES))
    for reverse, axis in ((False, 0), (True, len(shape) - 2)):
        layout = family_layout(_value(shape, MNDtype.FLOAT), Family(inner, reverse), target)
        assert layout is not None
        assert _axes_of(layout, Level.L2B) == {axis}
        assert prod(sub.size for sub in layout.on(Level.L2B)) == count
        # They are the highest digits, the outermost unit first.
        levels = [sub.level for sub in layout.axes[axis] if sub.level in UNITS]
        assert levels == sorted(levels, key=UNITS.index)


@given(st.integers(0, 2**32 - 1), st.sampled_from(INNER), st.booleans())
@settings(max_examples=tried(60), deadline=None)
def test_another_axis_takes_the_part_of_the_last(
    seed: int, inner: tuple[Level, ...], packed: bool
) -> None:
    """Channels of pictures are laid out as the columns of the same picture with channels last."""
    rng, target = random.Random(seed), load_target("mncore2")
    shape = tuple(rng.choice(SIZES) for _ in range(rng.randint(2, 5)))
    axis = rng.randrange(len(shape))
    order = [*(a for a in range(len(shape)) if a != axis), axis]
    turned = tuple(shape[a] for a in order)
    family = Family(inner, rng.choice([False, True]))
    one, other = (
        family_layout(_value(s, MNDtype.FLOAT), family, target, packed=packed, inner=last)
        for s, last in ((shape, axis), (turned, None))
    )
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert tuple(one.axes[a] for a in order) == other.axes


def test_pictures_get_families_of_their_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The convolutions beside a region have channels on words, and so has each of its families."""
    original, seen = planner.add_families, []

    def recorded(*arguments: Any) -> Iterator[Any]:
        for seeds in original(*arguments):
            pools = arguments[0]
            for seed in seeds:
                (name, *_) = pools.variables[seed.number].values
                seen.append(_axes_of(seed.candidate[name], Level.W))
            yield seeds

    monkeypatch.setattr(planner, "add_families", recorded)
    rng = np.random.default_rng(0)
    constants = {name: rng.standard_normal((16, 16, 3, 3)).astype(np.float32) for name in "uv"}
    nodes = [("Conv", ["x", "u"], "c"), ("Relu", ["c"], "r"), ("Conv", ["r", "v"], "y")]
    compiled(model_of(nodes, {"x": (2, 16, 12, 12)}, ["y"], constants), "mini")
    assert seen
    assert all(axes == {1} for axes in seen)


@pytest.mark.parametrize("shape", [(16, 64), (5, 16, 64), (100, 40, 8)])
def test_inside_l1bs_only_mabs_have_parts(shape: tuple[int, ...]) -> None:
    """All L1Bs and L2Bs hold copies; the axes before the last one take the MABs."""
    target = load_target("mncore2")
    value = _value(shape, MNDtype.FLOAT)
    layout = family_layout(value, FAMILIES["inside_l1bs"], target)
    assert layout is not None
    assert not _axes_of(layout, Level.L1B) | _axes_of(layout, Level.L2B)
    assert _axes_of(layout, Level.MAB)
    assert len(shape) - 1 not in _axes_of(layout, Level.MAB)


@given(st.integers(0, 2**32 - 1), st.sampled_from(INNER))
@settings(max_examples=tried(60), deadline=None)
def test_reverse_exchanges_the_order(seed: int, inner: tuple[Level, ...]) -> None:
    """Axes that stand in the opposite order have the units of the plain order."""
    rng, target = random.Random(seed), load_target("mncore2")
    shape = tuple(rng.choice(SIZES) for _ in range(rng.randint(3, 5)))
    turned = (*reversed(shape[:-1]), shape[-1])
    one = family_layout(_value(shape, MNDtype.FLOAT), Family(inner, True), target)
    other = family_layout(_value(turned, MNDtype.FLOAT), Family(inner, False), target)
    assert (one is None) == (other is None)
    if one is None or other is None:
        return
    units = [
        [tuple(sub for sub in own if sub.level is not Level.ADDR) for own in layout.axes]
        for layout in (one, other)
    ]
    assert units[0] == [*reversed(units[1][:-1]), units[1][-1]]


# -- plans -----------------------------------------------------------------------------------


def _linear(net: Net, source: str, terms: int, columns: int) -> str:
    p = net.put("MatMul", source, net.weights(terms, columns))
    return net.put("Add", p, net.weights(columns))


def _chain(net: Net, wide: int) -> Sequence[str]:
    p = net.put("Add", _linear(net, net.put("Relu", "x"), wide, wide), "x")
    return [net.put("Tanh", _linear(net, p, wide, 32))]


def _norm(net: Net, wide: int) -> Sequence[str]:
    p = net.put("LayerNormalization", "x", net.weights(wide), net.weights(wide), axis=-1)
    p = net.put("MatMul", p, net.weights(wide, wide))
    return [net.put("Softmax", net.put("Add", p, "x"), axis=-1)]


def _attention(net: Net, wide: int) -> Sequence[str]:
    """Write attention of two heads, without the product behind it."""
    batch, tokens, _ = net.inputs["x"]
    p = net.view(_linear(net, "x", wide, 3 * wide), batch, tokens, 3, 2, wide // 2)
    p = net.put("Transpose", p, perm=[2, 0, 3, 1, 4])
    q, k, v = (net.one(p, index, 0) for index in range(3))
    p = net.put("MatMul", q, net.put("Transpose", k, perm=[0, 1, 3, 2]))
    return [net.put("MatMul", net.put("Softmax", p, axis=-1), v)]


GRAPHS: dict[str, tuple[Any, tuple[int, ...], str, str]] = {
    "chain": (_chain, (12, 48, 64), "mncore2", "float"),
    "small norm": (_norm, (3, 9, 20), "mini", "float"),
    "norm": (_norm, (12, 50, 96), "mncore2", "mixed"),
    "small attention": (_attention, (3, 7, 24), "mini", "mixed"),
    "attention": (_attention, (9, 20, 32), "mncore2", "float"),
}


def _estimates(kind: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return the estimated steps without families and with them."""
    write, shape, machine, mode = GRAPHS[kind]
    net = Net(random.Random(1), *shape)
    return _with_and_without(net.model(write(net, shape[-1])), machine, mode, monkeypatch)


def _with_and_without(
    model: onnx.ModelProto, machine: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, int]:
    families, steps = planner.add_families, []

    def none(*_: object) -> Iterator[None]:
        return iter(())

    monkeypatch.setattr(planner, "input_families", none)
    for used in (none, families):
        monkeypatch.setattr(planner, "add_families", used)
        _, report = compiled(model, machine, float_dtype=mode)
        passed = next(row for row in report["passes"] if row["pass"] == "layout")
        estimate = passed["estimated_steps"]["lpz"]
        assert not estimate["does_not_fit"]
        steps.append(estimate["steps"])
    return steps[0], steps[1]


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=() if k.startswith("small") else pytest.mark.long) for k in GRAPHS],
)
def test_families_never_cost_steps(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without, used = _estimates(kind, monkeypatch)
    assert used <= without


def test_an_input_begins_in_each_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its region takes over the layout, and no such start makes a plan dearer."""
    write, shape, machine, mode = GRAPHS["small norm"]
    net, original = Net(random.Random(1), *shape), planner.input_families
    model, starts = net.model(write(net, shape[-1])), list[Mapping[str, Layout]]()

    def recorded(*given: Any) -> Iterator[Mapping[str, Layout]]:
        for layouts in original(*given):
            starts.append(layouts)
            yield layouts

    monkeypatch.setattr(planner, "input_families", recorded)
    _, report = compiled(model, machine, float_dtype=mode)
    value = _value(shape, MNDtype.FLOAT)
    families = [
        family_layout(value, family, load_target(machine), packed=packed)
        for packed in (True, False)
        for family in FAMILIES.values()
    ]
    assert starts
    for layouts in starts:
        x = layouts["x"]
        assert any(
            one and agrees(x, one, shape, value.dtype, load_target(machine)) for one in families
        )
        same = [n for n, one in layouts.items() if n != "x" and one.padded_shape == x.padded_shape]
        assert any(layouts[name] == x for name in same)
    passed = next(row for row in report["passes"] if row["pass"] == "layout")
    best = passed["estimated_steps"]["lpz"]["steps"]
    monkeypatch.setattr(planner, "input_families", lambda *_: iter(()))
    _, report = compiled(model, machine, float_dtype=mode)
    passed = next(row for row in report["passes"] if row["pass"] == "layout")
    assert best <= passed["estimated_steps"]["lpz"]["steps"]


@pytest.mark.long
def test_a_family_finds_what_growth_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all neighbours stand beside a family, a layer needs a fifth fewer steps."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, norm_first=True).eval()
    for parameter in layer.parameters():
        # Zeros would make another graph.
        nn.init.normal_(parameter, std=0.02)
    model = export(lambda given: {"y": layer(given["x"])}, {"x": torch.randn(16, 64, 256)})
    without, used = _with_and_without(optimise(model), "mncore2", "mixed", monkeypatch)
    assert used < 0.9 * without
