"""Compares matrix products with the MAU's peak: rows for `make bench`.

A row has name, value, bound, ratio (value / bound), target (least ratio) and met. Values and
bounds are multiply-adds per cycle of the emulated machine; cycles are those of the cycle model.
"""

from __future__ import annotations

from typing import Any

import onnx
from onnx import TensorProto, helper

from pycompiler.layers.products.roles import DOUBLE
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pipeline import compile_onnx
from pycompiler.report.bound import peak
from pycompiler.report.report import Report

SIZE, WIDE_SIZE = 2048, 512
#: Name, cycles that count (of the node or the whole program), least share of the peak.
TARGETS = (
    ("half GEMM, operands in LM", "node", 0.40),
    ("half GEMM, from and to DRAM", "program", 0.20),
)
WIDE_TARGETS = (
    ("double GEMM, operands in LM", "node", 0.75),
    ("double GEMM, from and to DRAM", "program", 0.35),
)


def compiled(size: int, machine: str, elem: int = TensorProto.FLOAT) -> dict[str, Any]:
    """Return the report of a product of two square matrices."""
    shape = (size, size)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["a", "b"], ["y"], name="product")],
        "gemm",
        [helper.make_tensor_value_info(name, elem, shape) for name in "ab"],
        [helper.make_tensor_value_info("y", elem, shape)],
    )
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    options = {"float_dtype": "mixed", "strict": True}
    report = Report(machine, options)
    compile_onnx(model, load_target(machine), parse_options(options), report)
    return report.data


def rows(
    size: int = SIZE, machine: str = "mncore2", wide_size: int = WIDE_SIZE
) -> list[dict[str, Any]]:
    """Return the rows. Compiles twice, in some seconds; nothing runs on the emulator."""
    return [
        *_rows(size, machine, "half", TARGETS, TensorProto.FLOAT),
        *_rows(wide_size, machine, DOUBLE, WIDE_TARGETS, TensorProto.DOUBLE),
    ]


def _rows(
    size: int, machine: str, precision: str, targets: tuple[tuple[str, str, float], ...], elem: int
) -> list[dict[str, Any]]:
    target, data = load_target(machine), compiled(size, machine, elem)
    steps = next(row["steps"] for row in data["nodes"] if row["op"] == "MatMul")
    cycles = {"node": target.cycles * steps, "program": data["cycles"]}
    bound = peak(target, precision)
    out = []
    for name, which, least in targets:
        value = size**3 / cycles[which]
        ratio = value / bound
        out.append(
            {
                "name": f"{name}, {size}x{size}x{size}",
                "value": value,
                "bound": bound,
                "ratio": ratio,
                "target": least,
                "met": ratio >= least,
            }
        )
    return out


if __name__ == "__main__":
    for row in rows():
        print(
            f"{row['name']}: {row['value']:.0f} of {row['bound']} multiply-adds per cycle,"
            f" {row['ratio']:.1%} (at least {row['target']:.0%}: {'yes' if row['met'] else 'no'})"
        )
