"""Proxies: read in place, loaded, used as tensors; nested arguments; traces."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from compiling import context
from perfetto import read_trace

from pycompiler.errors import PycompilerError
from pycompiler.graph import parse_layout
from pycompiler.mlsdk import (
    IOSpec,
    TensorProxy,
    register_pytree_dataclass,
    register_pytree_namedtuple,
    trace_event,
    trace_scope,
)
from pycompiler.runtime.device import Board

Tensors = dict[str, torch.Tensor]
LAYOUT = "((4:3, 4_PE:1), (3:1, 2_W:1))"


class Spy:
    """A machine that counts accesses of DRAM."""

    def __init__(self, machine: Any):
        self.machine, self.reads, self.writes = machine, 0, 0

    def read(self, *args: Any, **kwargs: Any) -> Any:
        self.reads += 1
        return self.machine.read(*args, **kwargs)

    def write(self, *args: Any, **kwargs: Any) -> Any:
        self.writes += 1
        return self.machine.write(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.machine, name)


def test_a_consumer_reads_the_producers_buffer_in_place(tmp_path: Path) -> None:
    shared, sample = context("emu2:mini"), {"x": torch.zeros(13, 6)}
    options = {"overrides": {"x": {"layout": LAYOUT}}}
    consumer = shared.compile(
        lambda d: {"z": d["x"] + 1}, sample, tmp_path / "consumer", options=options
    )
    free = shared.compile(lambda d: {"y": d["x"] * 2}, sample, tmp_path / "free")
    wanted = consumer.input_specs["x"]
    assert wanted.layout == str(parse_layout(LAYOUT))
    assert not free.output_specs["y"].is_memcopyable_to(wanted)
    bound = shared.compile(
        lambda d: {"y": d["x"] * 2}, sample, tmp_path / "bound", io_spec_constraints={"y": wanted}
    )
    assert bound.output_specs["y"].is_memcopyable_to(wanted)
    x = torch.randn(13, 6)
    board = shared._board
    assert board is not None
    groups = board.target.groups
    for producer, copies in ((bound, 0), (free, groups)):
        consumer({"x": producer({"x": x})["y"]})  # loads constants
        for value in (x, -x):
            spy = Spy(board.machine)
            board._machine = spy  # type: ignore[assignment]
            middle = producer({"x": value})["y"]
            assert (spy.reads, spy.writes) == (0, groups)
            result = consumer({"x": middle})["z"]
            assert (spy.reads, spy.writes) == (copies, groups + copies)
            board._machine = spy.machine
            assert torch.allclose(result.cpu(), value * 2 + 1, rtol=1e-6, atol=1e-6)
            assert torch.allclose(middle.cpu(), value * 2)
            del middle, result  # results in use would be fetched before they are overwritten
    # A function can read its own earlier result, which it is about to overwrite.
    once = bound({"x": x})["y"]
    twice = bound({"x": once})["y"]
    assert torch.allclose(once.cpu(), 2 * x)
    assert torch.allclose(twice.cpu(), 4 * x)


def test_constraints_that_cannot_be_followed(tmp_path: Path) -> None:
    shared, sample = context("emu2:mini"), {"x": torch.zeros(4, 6)}
    first = shared.compile(lambda d: {"y": d["x"] * 2}, sample, tmp_path / "first")
    spec = first.input_specs["x"]
    other = context("pfvm:cpu").compile(lambda d: {"y": d["x"] * 2}, sample, tmp_path / "host")
    host = other.output_specs["y"]
    assert host == IOSpec((4, 6), torch.float32)
    assert host.is_memcopyable_to(host)
    assert not host.is_memcopyable_to(spec)
    wrong: dict[str, Any] = {"z": spec, "x": 3, "y": host}
    for name, value in wrong.items():
        with pytest.raises(PycompilerError) as caught:
            shared.compile(
                lambda d: {"y": d["x"] + 1},
                sample,
                tmp_path / "out",
                io_spec_constraints={name: value},
            )
        assert caught.value.code == "P0705"
        assert f"`{name}`" in caught.value.message
    with pytest.raises(PycompilerError) as caught:
        shared.compile(
            lambda d: {"y": d["x"] + 1},
            {"x": torch.zeros(4, 3)},
            tmp_path / "out",
            io_spec_constraints={"y": spec},
        )
    assert caught.value.code in ("P0705", "P0202", "P0306")
    with pytest.raises(PycompilerError) as caught:
        spec.is_memcopyable_to(3)  # type: ignore[arg-type]
    assert caught.value.code == "P0704"


@pytest.mark.parametrize("device", ["emu2:mini", "pfvm:cpu"])
def test_allocated_inputs(tmp_path: Path, device: str) -> None:
    shared = context(device)
    sample = {"x": torch.zeros(5), "unused": torch.zeros(2)}
    compiled = shared.compile(lambda d: {"y": d["x"] + 1.0}, sample, tmp_path / "out")
    one, two = compiled.allocate_input_proxy(), compiled.allocate_input_proxy()
    assert torch.equal(compiled(one)["y"].cpu(), torch.ones(5))
    x = torch.arange(5.0)
    one["x"].load_from(x, clone=True)
    two["x"].load_from(compiled(one)["y"])
    x.zero_()
    assert torch.equal(compiled(two)["y"].cpu(), torch.arange(5.0) + 2)
    assert torch.equal(compiled(one)["y"].cpu(), torch.arange(5.0) + 1)
    assert torch.equal(one["x"].cpu(), torch.arange(5.0))
    for wrong in (torch.ones(4), torch.full((5,), 1e300, dtype=torch.float64), 3.0):
        with pytest.raises(PycompilerError) as caught:
            one["x"].load_from(wrong)  # type: ignore[arg-type]
        assert caught.value.code == "P0609"
    out = compiled(one)["y"]
    out.load_from(torch.full((5,), 9.0))
    assert torch.equal(out.cpu(), torch.full((5,), 9.0))


def test_proxies_are_used_as_tensors(tmp_path: Path) -> None:
    x = torch.arange(12.0).reshape(3, 4)
    compiled = context("pfvm:cpu").compile(
        lambda d: {"y": d["x"] * 1.0, "count": (d["x"] > 3).sum()}, {"x": x}, tmp_path / "out"
    )
    out = compiled({"x": x})
    y = out["y"]
    assert out["count"].item() == 8
    assert isinstance(out["count"].item(), int)
    assert torch.equal(torch.cat([y, x]), torch.cat([x, x]))
    assert torch.allclose(y, x)
    assert torch.equal(x + y, 2 * x)
    assert torch.equal(1 - y, 1 - x)
    assert torch.equal(y @ x.T, x @ x.T)
    assert torch.equal(y == x, torch.ones(3, 4, dtype=torch.bool))
    assert torch.equal(-y[-2:, 1:], -x[-2:, 1:])
    assert [part.shape for part in y.chunk(2, 1)] == [(3, 2), (3, 2)]
    assert y.argmax().item() == 11
    assert torch.stack((y, y), dim=0).shape == (2, 3, 4)
    assert y.size(0) == 3
    assert y.size() == (3, 4)
    assert float(y.sum()) == 66.0
    assert isinstance(y, TensorProxy)
    assert {y: 1}[y] == 1
    for name in ("add_", "nothing", "__len__", "__setitem__"):
        assert not hasattr(y, name)
    with pytest.raises(PycompilerError) as caught:
        y.item()
    assert caught.value.code == "P0704"
    with pytest.raises(RuntimeError):
        torch.add(y, torch.ones(5))


# -- nested arguments -------------------------------------------------------------------------


@register_pytree_namedtuple
class Pair(NamedTuple):
    """A named tuple."""

    left: torch.Tensor
    right: torch.Tensor


@register_pytree_dataclass
@dataclass
class Box:
    """A dataclass with a value that is not a tensor."""

    tensor: torch.Tensor
    factor: float


def test_automap(tmp_path: Path) -> None:
    def function(pair: Pair, box: Box, scale: float = 1.0, *, more: dict[str, Any]) -> Any:
        total = pair.left * scale + pair.right * box.factor
        return {"total": total, "rest": [Box(box.tensor - more["a"][0], 1.5), None, 3]}

    def arguments(seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        torch.manual_seed(seed)
        tensors = [torch.randn(3, 4) for _ in range(4)]
        return (Pair(*tensors[:2]), Box(tensors[2], 2.0)), {"more": {"a": (tensors[3], "text")}}

    args, kwargs = arguments(0)
    shared = context("emu2:mini")
    compiled = shared.compile_automap(function, args, kwargs, tmp_path / "out", quiet=True)
    args, kwargs = arguments(1)
    found, wanted = compiled(*args, **kwargs), function(*args, **kwargs)
    assert isinstance(found["total"], TensorProxy)
    assert torch.allclose(found["total"].cpu(), wanted["total"], atol=1e-6)
    box = found["rest"][0]
    assert isinstance(box, Box)
    assert torch.allclose(box.tensor.cpu(), wanted["rest"][0].tensor, atol=1e-6)
    assert (box.factor, found["rest"][1:]) == (1.5, [None, 3])
    assert list(compiled.compiled.input_specs) == [
        "pair.left",
        "pair.right",
        "box.tensor",
        "more.a.0",
    ]
    pair, box = args
    again = compiled(box=box, more=kwargs["more"], pair=pair)
    assert torch.equal(again["total"].cpu(), found["total"].cpu())
    for wrong_args, problem in (
        ((pair, Box(box.tensor, 3.0)), "`box.factor` is 3.0, it was 2.0"),
        ((tuple(pair), box), "another structure"),
        ((pair,), "missing a required argument: 'box'"),
        ((Pair(pair.left, 3), box), "`pair.right` is a int"),
    ):
        with pytest.raises(PycompilerError) as caught:
            compiled(*wrong_args, **kwargs)
        assert caught.value.code == "P0603"
        assert problem in caught.value.message
    for wrong in (
        lambda: shared.compile_automap(function, 3, {}, tmp_path),  # type: ignore[arg-type]
        lambda: shared.compile_automap(function, (), 3, tmp_path),  # type: ignore[arg-type]
        lambda: shared.compile_automap(3, (), {}, tmp_path),  # type: ignore[arg-type]
        lambda: register_pytree_dataclass(Pair),
        lambda: register_pytree_namedtuple(Box),
    ):
        with pytest.raises(PycompilerError) as caught:
            wrong()
        assert caught.value.code == "P0704"


# -- traces -------------------------------------------------------------------------------------


def test_trace(tmp_path: Path) -> None:
    sample = {"x": torch.zeros(4, 4)}
    compiled = context("emu2:mini").compile(
        lambda d: {"y": torch.relu(d["x"]) + 1},
        sample,
        tmp_path / "out",
        options={"fuse_elementwise": False},
    )
    file = tmp_path / "deep" / "trace.pb"
    with trace_scope(file):
        with trace_event("mine"):
            compiled(sample)["y"].cpu()
        compiled(sample)
        with trace_scope(None):
            compiled(sample)
    compiled(sample)
    slices = read_trace(file.read_bytes())
    host = [name for track, name, *_ in slices if track == "host"]
    assert (host.count("call"), host.count("mine"), host.count("fetch")) == (2, 1, 1)
    runs = [s for s in slices if s[:2] == ("device", "segment 0")]
    nodes = [s for s in slices if s[0] == "device" and s[1].startswith("Relu")]
    assert len(runs) == 2
    text = (tmp_path / "out" / "report.json").read_text()
    cycles = runs[0][4]["cycles"]
    assert f'"cycles": {cycles},' in text
    assert runs[1][2] == pytest.approx(cycles * 1000 / 750, abs=1)
    # The lines of a node may lie among those of others.
    for run in runs:
        within = [node for node in nodes if run[2] <= node[2] < node[3] <= run[3]]
        assert 0 < len(within) == len(nodes) / 2
    with pytest.raises(PycompilerError) as caught, trace_scope(tmp_path / "out"):
        pass
    assert caught.value.code == "P0003"
    with pytest.raises(PycompilerError) as caught, trace_scope(3):  # type: ignore[arg-type]
        pass
    assert caught.value.code == "P0704"


def free_words(board: Board) -> int:
    return sum(end - start for start, end in [*board._holes, *board._returned])


def test_device_memory_is_given_back(tmp_path: Path) -> None:
    shared, sample = context("emu2:mini"), {"x": torch.zeros(64)}
    compiled = shared.compile(lambda d: {"y": d["x"] + 1}, sample, tmp_path / "one")
    board = shared._board
    assert board is not None
    used = []
    for value in range(5):
        inputs = compiled.allocate_input_proxy()
        assert torch.equal(inputs["x"].cpu(), torch.zeros(64))
        inputs["x"].load_from(torch.full((64,), float(value)))
        assert torch.equal(compiled(inputs)["y"].cpu(), torch.full((64,), value + 1.0))
        used.append(free_words(board))
    assert used[1] == used[-1]  # two results are alive at a time
    # A result keeps its function's memory allocated.
    out = compiled({"x": torch.full((64,), 5.0)})["y"]
    del compiled
    other = shared.compile(lambda d: {"y": d["x"] + 1}, sample, tmp_path / "two")
    other({"x": torch.zeros(64)})
    assert torch.equal(out.cpu(), torch.full((64,), 6.0))
    before = free_words(board)
    del other
    third = shared.compile(lambda d: {"y": d["x"] + 1}, sample, tmp_path / "three")
    assert torch.equal(third({"x": torch.zeros(64)})["y"].cpu(), torch.ones(64))
    assert free_words(board) == before


def test_proxies_become_tensors_and_copies(tmp_path: Path) -> None:
    given = {"x": torch.arange(6.0).reshape(2, 3)}
    compiled = context().compile(
        lambda d: {"y": d["x"] * 2, "half": d["x"].bfloat16()}, given, tmp_path / "out"
    )
    found = compiled(given)
    for proxy in found.values():
        for make in (torch.as_tensor, torch.tensor, torch.asarray):
            made = make(proxy)
            assert made.dtype is proxy.dtype
            assert torch.equal(made, proxy.cpu())
        copied = copy.deepcopy(proxy)
        copied.load_from(proxy.cpu() * 0)
        assert proxy.cpu().any()
        assert not copied.cpu().any()
    assert np.array_equal(np.asarray(found["y"]), found["y"].cpu().numpy())
    for refused in (found["y"], compiled):
        with pytest.raises(PycompilerError, match="P0703"):
            pickle.dumps(refused)
    with pytest.raises(PycompilerError, match=r"P0703.*load_codegen_dir"):
        copy.deepcopy(compiled)
    assert torch.equal(copy.copy(compiled)(given)["y"].cpu(), found["y"].cpu())


def test_proxies_are_indices(tmp_path: Path) -> None:
    x = torch.arange(12.0).reshape(4, 3)

    def function(d: Tensors) -> Tensors:
        rows = d["x"].argmax(0)[:2] - torch.tensor([1, 2])
        return {"rows": rows, "mask": d["x"] > 4, "one": d["x"].argmin()}

    found: Any = context("pfvm:cpu").compile(function, {"x": x}, tmp_path / "o", quiet=True)
    found = found({"x": x})
    for name, proxy in found.items():
        index, changed, wanted = proxy.cpu(), x.clone(), x.clone()
        assert torch.equal(x[proxy], x[index]), name
        assert np.array_equal(x.numpy()[np.asarray(proxy)], x[index].numpy()), name
        changed[proxy] = -1
        wanted[index] = -1
        assert torch.equal(changed, wanted), name
    assert torch.equal(x[found["rows"], 1], torch.tensor([7.0, 4.0]))
    assert torch.equal(x[:, found["one"]], x[:, 0])


def test_proxies_are_numbers_too(tmp_path: Path) -> None:
    x = torch.tensor([4.0, 2.5, 3.0])
    run = context("pfvm:cpu").compile(
        lambda d: {"most": d["x"].argmax() + 1, "x": d["x"]}, {"x": x}, tmp_path / "o", quiet=True
    )
    found = run({"x": x})
    most: Any = found["most"]
    assert [7, 8, 9][most] == 8
    assert list(range(most)) == [0]
    assert f"{most:03d} {found['x'][1]:.1f}" == "001 2.5"
    assert (complex(most), 2.5 in found["x"], 7 in found["x"]) == (1, True, False)
    with pytest.raises(TypeError):
        range(found["x"])  # type: ignore[call-overload]


@dataclass
class Unregistered:
    """No class that torch looks into."""

    tensor: Any


def test_nested_arguments_that_hide_tensors(tmp_path: Path) -> None:
    """They would be constants, and results of the trace."""
    shared, x = context("pfvm:cpu"), torch.ones(2)
    functions: list[tuple[Any, Any]] = [
        (lambda d: d.tensor * 2, Unregistered(x)),
        (lambda d: sum(d), {x}),
        (lambda d: Unregistered(d * 2), x),
        (lambda d: {d * 2}, x),
    ]
    for function, argument in functions:
        with pytest.raises(PycompilerError, match=r"P0704.*register_pytree_dataclass"):
            shared.compile_automap(function, (argument,), None, tmp_path / "o")


def test_names_of_nested_arguments(tmp_path: Path) -> None:
    """The order of keys does not count, and keys with dots are apart."""
    shared, x, y = context("pfvm:cpu"), torch.ones(2), torch.zeros(2)
    by_name = shared.compile_automap(
        lambda **given: given["a"] - given["b"], (), {"a": x, "b": y}, tmp_path / "o", quiet=True
    )
    assert by_name(b=x * 2, a=x).cpu().tolist() == [-1, -1]
    dots = {"a.b": x, "a": {"b": y}}
    run = shared.compile_automap(
        lambda d: d["a.b"] - d["a"]["b"], (dots,), None, tmp_path / "dots", quiet=True
    )
    assert run({"a.b": x * 5, "a": {"b": x}}).cpu().tolist() == [4, 4]
