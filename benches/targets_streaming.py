"""Compares streaming programs with the speed of DRAM: ``python benches/targets_streaming.py``.

Compiles an elementwise chain and a softmax for the chip. The bound is the time that DRAM needs to
read every input and write every output once. ``--run`` also runs the programs on the emulator and
compares with PyTorch.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import TypedDict

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pfvm.optimise import optimise
from pycompiler.pipeline import compile_onnx
from pycompiler.report.report import Report
from pycompiler.request import Request
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction

MACHINE = "mncore2"
ELEMENTS = 1 << 24
SOFTMAX = (4096, 1024)


class Row(TypedDict):
    """A line of the report; ``value`` and ``bound`` are cycles, ``ratio`` is bound over value."""

    name: str
    value: float
    bound: float
    ratio: float
    target: float
    met: bool


def _model(
    nodes: list[onnx.NodeProto], shape: tuple[int, ...], data: Mapping[str, float]
) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in "xy")
    constants = [numpy_helper.from_array(np.float32(v), n) for n, v in data.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    return optimise(model)


def chain() -> onnx.ModelProto:
    """Return a chain of eight operators, from Mul to Sigmoid."""
    rows = (
        ("Mul", "x", "c0", "a"),
        ("Add", "a", "c1", "b"),
        ("Relu", "b", "", "c"),
        ("Sub", "c", "c0", "d"),
        ("Abs", "d", "", "e"),
        ("Mul", "e", "e", "f"),
        ("Min", "f", "c2", "g"),
        ("Sigmoid", "g", "", "y"),
    )
    nodes = [
        helper.make_node(op, [n for n in (one, other) if n], [out], name=f"n{number}")
        for number, (op, one, other, out) in enumerate(rows)
    ]
    return _model(nodes, (ELEMENTS,), {"c0": 1.5, "c1": 0.5, "c2": 9.0})


def chain_reference(x: torch.Tensor) -> torch.Tensor:
    """Compute :func:`chain` with PyTorch."""
    moved = ((x * 1.5 + 0.5).relu() - 1.5).abs()
    return (moved * moved).clamp(max=9.0).sigmoid()


def softmax() -> onnx.ModelProto:
    """Return a softmax over the last axis."""
    node = helper.make_node("Softmax", ["x"], ["y"], name="softmax", axis=-1)
    return _model([node], SOFTMAX, {})


Case = tuple[str, Callable[[], onnx.ModelProto], int, float, Callable[[torch.Tensor], torch.Tensor]]
CASES: tuple[Case, ...] = (
    ("elementwise chain of 8 on 16 M floats", chain, ELEMENTS, 0.7, chain_reference),
    (
        "softmax over (4096, 1024)",
        softmax,
        SOFTMAX[0] * SOFTMAX[1],
        0.25,
        lambda x: x.softmax(-1),
    ),
)


def measure(case: Case, *, run: bool = False, **options: object) -> Row:
    """Compile one case and return its row; ``run`` also compares with PyTorch."""
    name, make, elements, wanted, reference = case
    target = load_target(MACHINE)
    report = Report(MACHINE, options)
    result = compile_onnx(Request(make(), target, parse_options(options), report))
    assert report.data["host_fallback"] == []
    cycles = report.data["cycles"]
    # Everything is read and written once, with two floats per long word, by all DRAMs in parallel.
    rate = target.mv_block * target.groups
    bound = 2 * (elements / 2) / rate
    if run:
        function = DeviceFunction(result.app, Board(target))
        shape = function.inputs["x"].shape
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        found = function.run({"x": x})["y"].values()
        want = reference(torch.from_numpy(x).double()).numpy()
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-9)
    ratio = bound / cycles
    return Row(
        name=name, value=cycles, bound=bound, ratio=ratio, target=wanted, met=ratio >= wanted
    )


def rows(*, run: bool = False) -> list[Row]:
    """Measure all cases."""
    return [measure(case, run=run) for case in CASES]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true", help="run on the emulator too")
    given = parser.parse_args()
    missed = 0
    for row in rows(run=given.run):
        said = "met" if row["met"] else "MISSED"
        print(
            f"{row['name']:40} {row['value']:9.0f} cycles, bound {row['bound']:9.0f}: "
            f"{100 * row['ratio']:5.1f} % (target {100 * row['target']:.0f} %, {said})",
            flush=True,
        )
        missed += not row["met"]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
