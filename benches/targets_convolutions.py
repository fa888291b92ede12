"""Compares convolutions with their bound: rows for `make bench`.

Values are cycles of the cycle model, nothing runs on the emulator. The bound is the larger of the
multiply-adds at the MAU's peak and, for programs from and to DRAM, the words that must cross it as
halves (:mod:`pycompiler.report.bound`). The ratio is cycles over the bound. A layer
includes its padding and the exchange of halos.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pycompiler.errors import PycompilerError
from pycompiler.frontend.export import export
from pycompiler.machine import load_target
from pycompiler.models.libraries import build_model
from pycompiler.models.names import find
from pycompiler.options import parse_options
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.windows import DEPTHWISE
from pycompiler.pipeline import compile_onnx
from pycompiler.report.report import Report
from pycompiler.request import Request

Row = dict[str, Any]
MODE = "mixed"


@dataclass(frozen=True)
class Case:
    """A convolution of squares with a square kernel: at most ``layer`` or ``program`` bounds."""

    name: str
    shape: tuple[int, int, int, int]
    rows: int
    taps: int
    stride: int = 1
    group: int = 1
    layer: float | None = None
    program: float | None = None

    @property
    def results(self) -> tuple[int, ...]:
        """The shape of the result; the padding keeps the size of stride 1."""
        batch, _, *sides = self.shape
        return (batch, self.rows, *(-(-side // self.stride) for side in sides))

    def model(self) -> onnx.ModelProto:
        """Return the model of one node, with random weights."""
        shape = (self.rows, self.shape[1] // self.group, self.taps, self.taps)
        weights = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        facts = {"strides": [self.stride] * 2, "group": self.group, "pads": [self.taps // 2] * 4}
        graph = helper.make_graph(
            [helper.make_node("Conv", ["x", "w"], ["y"], name="convolution", **facts)],
            "convolution",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, self.results)],
            [numpy_helper.from_array(weights, "w")],
        )
        opset = helper.make_opsetid("", 20)
        return helper.make_model(graph, opset_imports=[opset], ir_version=10)


CASES = (
    Case("3x3, 64 to 64 channels, 56x56", (16, 64, 56, 56), 64, 3, layer=2.0),
    Case("1x1, 256 to 64 channels, 56x56", (16, 256, 56, 56), 64, 1, layer=2.5),
    Case("7x7 stride 2, 3 to 64 channels, 224x224", (16, 3, 224, 224), 64, 7, 2, layer=8.0),
    Case("depthwise 3x3, 96 channels, 112x112", (16, 96, 112, 112), 96, 3, group=96, program=3.0),
)


#: Networks by their names in `python -m pycompiler.models`: the batch, and the most bounds.
NETWORKS = (("own:resnet20", 64, 8.0), ("torchvision:resnet50@224", 16, 6.0))


def rows(machine: str = "mncore2") -> Iterator[Row]:
    """Yield a row for the layer alone and one for the whole program of every case."""
    target = load_target(machine)
    options = {"float_dtype": MODE, "strict": True, "scheduler": "spill_opt"}
    for name, batch, most in NETWORKS:
        made = build_model(find(name), batch)
        model = export(made.function, made.inputs)
        name = f"{name}, batch {batch}"
        report = Report(machine, options)
        try:
            compile_onnx(Request(optimise(model), target, parse_options(options), report))
        except PycompilerError as problem:
            yield _refused(name, problem)
            continue
        yield _row(name, report.data["cycles"], report.data["bound"]["cycles"], most)
    for case in CASES:
        report = Report(machine, options)
        try:
            compile_onnx(Request(case.model(), target, parse_options(options), report))
        except PycompilerError as problem:
            yield _refused(case.name, problem)
            continue
        layers = ("Conv", "MNCoreTiles", DEPTHWISE)
        alone = sum(node["steps"] for node in report.data["nodes"] if node["op"] in layers)
        cycles, bound = report.data["cycles"], report.data["bound"]
        if alone:
            yield _row(f"{case.name}, in LM", target.cycles * alone, bound["mau"], case.layer)
        yield _row(f"{case.name}, from and to DRAM", cycles, bound["cycles"], case.program)


def _refused(name: str, problem: PycompilerError) -> Row:
    said = str(problem).splitlines()[0]
    return {"name": f"{name}: {said}", "value": None, "target": "", "met": False}


def _row(name: str, value: int, bound: int, most: float | None) -> Row:
    ratio = value / bound
    return {
        "name": name,
        "value": value,
        "unit": "cycles",
        "bound": bound,
        "ratio": ratio,
        "target": "" if most is None else f"at most {most:g}",
        "met": most is None or ratio <= most,
    }


if __name__ == "__main__":
    for row in rows():
        ratio = "" if row["value"] is None else f"{row['value']} cycles, {row['ratio']:.2f} bounds"
        print(f"{row['name']}: {ratio} {row['target']}", flush=True)
