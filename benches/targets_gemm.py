"""Compares matrix products with the MAU's peak: rows for `make bench`.

A row has name, value, bound, ratio (value / bound), target (least ratio) and met. Values and
bounds are multiply-adds per cycle of the emulated machine; cycles are those of the cycle model. A
product with its operands in LM has its own lines, without other nodes between them.
`docs/figures.md` has the figures.
"""

from __future__ import annotations

from typing import Any

import onnx
from onnx import TensorProto, helper

from pycompiler.emit.fragment_cache import Fragments
from pycompiler.emit.segments import CONCAT, emit_segments
from pycompiler.layers.products.roles import DOUBLE
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pipeline import Compiled, compile_onnx
from pycompiler.report.bound import peak
from pycompiler.report.report import Report
from pycompiler.request import Request

SIZE, WIDE_SIZE = 2048, 512
Targets = tuple[tuple[str, str, float], ...]
#: Name, cycles that count (of the node or the whole program), least share of the peak.
TARGETS: Targets = (
    ("half GEMM, operands in LM", "node", 0.40),
    ("half GEMM, from and to DRAM, result in singles", "program", 0.35),
)
#: The same for a result of 16 bits, which leaves the device as halves.
HALF_TARGETS: Targets = (("half GEMM, from and to DRAM, result in halves", "program", 0.42),)
WIDE_TARGETS: Targets = (
    ("double GEMM, operands in LM", "node", 0.75),
    ("double GEMM, from and to DRAM", "program", 0.35),
)


def compiled(
    size: int, machine: str, elem: int = TensorProto.FLOAT
) -> tuple[Compiled, dict[str, Any]]:
    """Return a product of two square matrices, and its report."""
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
    result = compile_onnx(Request(model, load_target(machine), parse_options(options), report))
    return result, report.data


def rows(
    size: int = SIZE, machine: str = "mncore2", wide_size: int = WIDE_SIZE
) -> list[dict[str, Any]]:
    """Return the rows. Compiles three times, in some seconds; nothing runs on the emulator."""
    return [
        *_rows(size, machine, "half", TARGETS, TensorProto.FLOAT),
        *_rows(size, machine, "half", HALF_TARGETS, TensorProto.FLOAT16),
        *_rows(wide_size, machine, DOUBLE, WIDE_TARGETS, TensorProto.DOUBLE),
    ]


def _rows(
    size: int, machine: str, precision: str, targets: Targets, elem: int
) -> list[dict[str, Any]]:
    target = load_target(machine)
    result, data = compiled(size, machine, elem)
    cycles = {"program": data["cycles"]}
    if any(which == "node" for _, which, _ in targets):
        (code,) = (one.code for one in emit_segments(result.graph, Fragments(target), CONCAT))
        assert code is not None
        steps = next(node.steps for node in code.nodes if node.node == "product")
        cycles["node"] = target.cycles * steps
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
