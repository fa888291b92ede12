"""Elementwise operators on shifted slices work on tiles: drawn stencils, and what stays so."""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping

import numpy as np
import onnx
import pytest
import torch
from compiling import compiled, run, tried
from net import Net

from pycompiler.errors import HostFallbackWarning
from pycompiler.frontend.export import export
from pycompiler.pfvm.device_functions import TILES
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

Data = Mapping[str, np.ndarray]
#: What sums and products of a few singles may round.
BOUND = 2.0**-20


def inputs_of(net: Net) -> Data:
    return {n: net.draw.standard_normal(s).astype(np.float32) for n, s in net.inputs.items()}


def window(
    net: Net, name: str, shape: tuple[int, ...], offset: tuple[int, ...], size: tuple[int, ...]
) -> str:
    """Return the part of a value of ``shape`` that begins at ``offset``; a Slice for each axis."""
    axes = list(range(len(shape)))
    net.rng.shuffle(axes)
    for axis in axes:
        if size[axis] < shape[axis]:
            end = offset[axis] + size[axis]
            name = net.cut(
                name,
                offset[axis],
                end if end < shape[axis] or net.rng.random() < 0.5 else 2**31,
                axis,
                1,
            )
    return name


def sweep(
    net: Net,
    name: str,
    shape: tuple[int, ...],
    radius: tuple[int, ...],
    extra: list[tuple[str, tuple[int, ...]]],
) -> tuple[str, tuple[int, ...]]:
    """Append operators on drawn windows of a value; return the result and its shape."""
    rng = net.rng
    inner = tuple(n - 2 * r for n, r in zip(shape, radius, strict=True))
    made = ""
    for _ in range(rng.randrange(2, 6)):
        offset = tuple(rng.randrange(2 * r + 1) for r in radius)
        one = window(net, name, shape, offset, inner)
        if rng.random() < 0.5:
            one = net.put("Mul", one, net.number(rng.uniform(-1, 1)))
        op = rng.choice(["Add", "Sub", "Max", "Add"])
        made = one if not made else net.put(op, made, one)
    if rng.random() < 0.5:
        # A factor for each place of one axis.
        axis = rng.randrange(len(shape))
        factor = [n if a == axis else 1 for a, n in enumerate(inner)]
        made = net.put("Mul", made, net.weights(*factor[rng.choice([0, axis]) :]))
    for other, size in extra:
        if size == shape and rng.random() < 0.7:
            made = net.put("Mul", made, window(net, other, shape, tuple(radius), inner))
    # Two windows of the value meet in any case.
    far = window(net, name, shape, tuple(2 * r for r in radius), inner)
    near = window(net, name, shape, (0,) * len(shape), inner)
    return net.put("Add", made, net.put("Sub", far, near)), inner


def drawn(rng: random.Random) -> tuple[onnx.ModelProto, Data]:
    """Draw a stencil of one to three dimensions, with one to three sweeps."""
    rank = rng.choice([1, 2, 2, 3])
    most = {1: 400, 2: 40, 3: 20}[rank]
    radius = tuple(rng.choice([0, 1, 1, 2]) for _ in range(rank))
    if not any(radius):
        radius = (*radius[:-1], 1)
    shape = tuple(rng.randrange(15, most) for _ in range(rank))
    net = Net(rng, *shape)
    name, extra = "x", [(net.input(*shape), shape)]
    for _ in range(rng.randrange(1, 4)):
        made, inner = sweep(net, name, shape, radius, extra)
        if rng.random() < 0.7:
            pads = net.ints(*radius, *radius)
            name = net.put("Pad", made, pads)
        else:
            name, shape = made, inner
        if min(shape) <= 6 * max(radius) + 2:
            break
    outputs = [name] if rng.random() < 0.5 else [made, net.put("Neg", name)]
    return net.model(outputs), inputs_of(net)


def check(model: onnx.ModelProto, data: Data, machine: str, **options: object) -> set[str]:
    """Compare with onnxruntime; return the operators of the program."""
    result, _ = compiled(model, machine, **options)
    found, wanted = run(result, data, machine), HostSession(model, "model").run(data)
    for name, value in wanted.items():
        scale = float(np.abs(value).max())
        assert np.abs(found[name] - value).max() <= BOUND * scale, name
    return {node.op for node in result.graph.nodes}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fill", ["a number", "a value", "zeros around a slice"])
def test_what_is_no_window(fill: str) -> None:
    """Zeros are outside of a whole value only: other numbers, and zeros around a slice, are not."""
    net = Net(random.Random(1), 24, 16)
    around = fill == "zeros around a slice"
    source = net.cut("x", 0, 16, 0) if around else "x"
    filled = {"a number": [net.number(2.5)], "a value": [net.input()], "zeros around a slice": []}
    pads = net.ints(*((5, 0, 5, 0) if around else (1, 0, 1, 0)))
    padded = net.put("Pad", source, pads, *filled[fill])
    near, far = (net.cut(padded, start, start + 24, 0) for start in (0, 2))
    model, data = net.model([net.put("Add", near, far)]), inputs_of(net)
    check(model, {name: np.asarray(array) for name, array in data.items()}, "mncore2")


@pytest.mark.parametrize("kept", [1, pytest.param(2, marks=pytest.mark.long), 12])
def test_updates_in_place(kept: int) -> None:
    """What `u[1:-1] = ...` writes meets what stays; of 30 rows, the 6 inner ones are no tiles."""
    size = 30

    def function(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        u = given["u"].clone()
        for _ in range(2):
            first, last = kept, size - kept
            around = u[first - 1 : last - 1, 1:-1] + u[first + 1 : last + 1, 1:-1]
            u[first:last, 1:-1] = 0.5 * (around - u[first:last, :-2])
        return {"y": u}

    given = {"u": torch.randn(size, 17)}
    model = optimise(export(function, given))
    result, report = compiled(model, "mncore2")
    assert report["host_fallback"] == []
    found = run(result, {"u": given["u"].numpy()}, "mncore2")["y"]
    assert np.array_equal(found, function(given)["y"].numpy())
    assert (TILES in {node.op for node in result.graph.nodes}) == (kept < 12)


def test_an_update_stays_at_its_place() -> None:
    """Neighbours exchange halos at most once a sweep; what is written moves to no other tile."""
    sweeps = 3

    def function(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        u = given["u"].clone()
        for _ in range(sweeps):
            u[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] - u[1:-1, :-2] - 0.5 * u[1:-1, 2:]
        return {"y": u}

    given = {"u": torch.randn(47, 51)}
    result, _ = compiled(optimise(export(function, given)), "mncore2")
    found = run(result, {"u": given["u"].numpy()}, "mncore2")["y"]
    np.testing.assert_allclose(found, function(given)["y"].numpy(), rtol=BOUND, atol=BOUND)
    tiles = [dict(node.attributes) for node in result.graph.nodes if node.op == TILES]
    # Constants that say which rows or columns are written are cut along one axis.
    grids = [facts for facts in tiles if len(facts["axes"]) == 2]
    assert sum(facts["reach"] != facts["places"] for facts in grids) <= sweeps


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
def test_factors_of_rows_and_columns(machine: str) -> None:
    """Values with one element along an axis are read at the places of an update, with a margin."""
    seed = random.randrange(10**6)
    print(f"{seed=}")
    rng = random.Random(seed)
    torch.manual_seed(seed)
    rows, columns = rng.randrange(19, 90), rng.randrange(19, 90)
    top, left = rng.randrange(1, 3), rng.randrange(1, 3)

    def function(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        u, keeps = given["u"], given["rows"] > 0
        for _ in range(2):
            inner = u[top:-top, left:-left]
            new = u[: -2 * top, left:-left] - 0.5 * u[top:-top, 2 * left :] + inner
            new = new * given["factor"] + given["shift"]
            ends = (left, left, top, top)
            new = torch.nn.functional.pad(new, ends)
            u = torch.where(keeps, torch.where(given["columns"] > 0, new, u), 0.25 * u)
        return {"y": u}

    given = {
        "u": torch.randn(rows, columns),
        "rows": torch.randn(rows, 1),
        "columns": torch.randn(columns),
        "factor": torch.randn(rows - 2 * top, 1),
        "shift": torch.randn(columns - 2 * left),
    }
    result, report = compiled(optimise(export(function, given)), machine)
    assert report["host_fallback"] == []
    found = run(result, {name: one.numpy() for name, one in given.items()}, machine)["y"]
    np.testing.assert_allclose(found, function(given)["y"].numpy(), rtol=2.0**-16, atol=2.0**-16)


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
def test_masks_of_an_update(machine: str) -> None:
    """`torch.compile` writes an update of a slice as choices by masks of rows and columns."""

    def function(u: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            after = torch.zeros_like(u)
            new = u[:-2, 1:-1] + u[2:, 1:-1] - u[1:-1, :-2] - 0.5 * u[1:-1, 2:]
            after[1:-1, 1:-1] = new - before[1:-1, 1:-1]
            u, before = after, u
        return u

    torch._dynamo.reset()
    made = torch.compile(function, backend="emu2", options={"device": f"emu2:{machine}"})
    given = torch.randn(87, 41), torch.randn(87, 41)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HostFallbackWarning)
        found = made(*given)
    np.testing.assert_allclose(found, function(*given), rtol=2.0**-18, atol=2.0**-18)


@pytest.mark.parametrize("shape", [(64, 16), (30, 32), (8, 12, 16), (15, 21)])
def test_rings(shape: tuple[int, ...]) -> None:
    """Axes that `torch.roll` closes are cut; if tiles do not take all of them, their ends go on."""
    seed = random.randrange(10**6)
    print(f"{seed=}")
    rng = random.Random(seed)
    axes = [axis for axis in range(len(shape)) if rng.random() < 0.7] or [0]
    shifts = [(axis, rng.choice([-2, -1, 1, 2, shape[axis] - 1])) for axis in axes]

    def function(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        u = given["u"]
        for _ in range(2):
            total = u - torch.roll(u, [1, -1], [0, 1])
            for axis, shift in shifts:
                total = total + 0.5 * torch.roll(u, shift, axis)
            u = torch.maximum(total, -u)
        return {"y": u}

    given = {"u": torch.randn(*shape)}
    result, report = compiled(optimise(export(function, given)), "mncore2")
    assert report["host_fallback"] == []
    found = run(result, {"u": given["u"].numpy()}, "mncore2")["y"]
    np.testing.assert_allclose(found, function(given)["y"].numpy(), rtol=2.0**-20, atol=2.0**-20)
    if any(n % 2 == 0 for n in shape):
        assert TILES in {node.op for node in result.graph.nodes}


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
@pytest.mark.parametrize("own", [1, 0])
def test_odd_rings(machine: str, own: int) -> None:
    """A torus of odd sizes is cut too: what lies around it goes to its ends.

    Lax and Friedrichs read the neighbours of a point only, not its own value.
    """
    seed = random.randrange(10**6)
    print(f"{seed=}")
    rng = random.Random(seed)
    shape = (2 * rng.randrange(6, 14) + 1, 2 * rng.randrange(6, 14) + 1)

    def function(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        u = given["u"]
        for _ in range(2):
            around = [torch.roll(u, by, axis) for axis in (0, 1) for by in (-1, 1)]
            total = 0.25 * (around[0] + around[1] - around[2] + around[3])
            u = total - u if own else total
        return {"y": u}

    given = {"u": torch.randn(*shape)}
    result, report = compiled(optimise(export(function, given)), machine)
    assert report["host_fallback"] == []
    found = run(result, {"u": given["u"].numpy()}, machine)["y"]
    np.testing.assert_allclose(found, function(given)["y"].numpy(), rtol=2.0**-20, atol=2.0**-20)
    assert TILES in {node.op for node in result.graph.nodes}


@pytest.mark.parametrize("size", [(31, 99), (2101, 2999)])
def test_ends_that_stay(size: tuple[int, int]) -> None:
    """What a Concat puts between the ends of an old value, or between zeros, is cut; any length."""
    seed = random.randrange(10**6)
    print(f"{seed=}")
    rng = random.Random(seed)
    shape, far = (rng.randrange(*size),), rng.choice([1, 2, 3])

    def function(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        a, none = given["a"], torch.zeros(far)
        for _ in range(2):
            inner = 0.5 * (a[: -2 * far] - a[2 * far :]) + a[far:-far]
            a = torch.cat([a[:far], inner, a[-far:]])
        wide = torch.cat([none, a, none])
        return {"y": a, "z": wide[2 * far :] - wide[: -2 * far]}

    given = {"a": torch.randn(*shape)}
    given["a"][::7] = -0.0
    result, report = compiled(optimise(export(function, given)), "mncore2")
    assert report["host_fallback"] == []
    found, wanted = run(result, {"a": given["a"].numpy()}, "mncore2"), function(given)
    for name, one in wanted.items():
        assert np.array_equal(found[name], one.numpy())
    operators = {node.op for node in result.graph.nodes}
    assert TILES in operators
    assert "Concat" not in operators


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
@pytest.mark.parametrize("number", range(tried(2, 40)))
def test_drawn_stencils(number: int, machine: str) -> None:
    seed = random.randrange(10**6)
    print(f"{seed=}")
    model, data = drawn(random.Random(seed))
    found = check(model, data, machine)
    # Tiles must leave room in LM, of which `mini` has little; wide halos on three axes take much.
    if machine == "mncore2" and data["x"].ndim < 3:
        assert TILES in found
