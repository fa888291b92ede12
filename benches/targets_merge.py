"""Compares merged programs with their nodes one after the other: rows for `make bench`.

Values are cycles of the cycle model, with `scheduler: spill_opt`; nothing runs on the emulator. The
busiest resource is an issue slot or a memory that MVs hold: no order of the same lines and MVs can
take fewer cycles than it is busy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from merge_bound import Bound, bound_of
from targets_layers import Row, encoder, with_biases
from torch import nn

from pycompiler.emit.fragment_cache import Fragments
from pycompiler.emit.segments import CONCAT, MERGED, addresses_of, emit_segments, kind_of
from pycompiler.errors import PycompilerError
from pycompiler.frontend.export import export
from pycompiler.graph.graph import MNGraph
from pycompiler.machine import Target, load_target
from pycompiler.models.libraries import build_model
from pycompiler.models.names import find
from pycompiler.options import parse_options
from pycompiler.pfvm.optimise import optimise
from pycompiler.pipeline import compile_onnx
from pycompiler.report.report import Report
from pycompiler.request import Request

Tensors = dict[str, torch.Tensor]
Made = tuple[Callable[[Tensors], Tensors], Tensors]


def of_encoder() -> Made:
    """Return an encoder layer 768/12/3072 and 4 x 256 tokens."""
    case = encoder(768, 12, 4, 256, 0)
    module = with_biases(case.make())
    return lambda d: {"y": module(d["x"])}, {"x": torch.randn(case.shape)}


def of_resnet() -> Made:
    """Return ResNet-20 and 64 images."""
    made = build_model(find("own:resnet20"), 64)
    return made.function, dict(made.inputs)


def of_perceptron() -> Made:
    """Return an MLP of 8 layers of width 1024 and 256 rows."""
    parts: list[nn.Module] = []
    for _ in range(8):
        parts += [nn.Linear(1024, 1024), nn.ReLU()]
    model = nn.Sequential(*parts).eval()
    return lambda d: {"y": model(d["x"])}, {"x": torch.randn(256, 1024)}


#: What is compiled, its dtype, and the most of the cycles without merging that it may take.
CASES: tuple[tuple[str, Callable[[], Made], str, float | None], ...] = (
    ("encoder layer 768/12/3072, 4x256 tokens", of_encoder, "mixed", 0.80),
    ("ResNet-20, batch 64", of_resnet, "mixed", 0.85),
    ("MLP, 8 layers of width 1024, batch 256", of_perceptron, "mixed", 0.75),
    ("MLP, 8 layers of width 1024, batch 256", of_perceptron, "float", None),
)


def rows(machine: str = "mncore2") -> Iterator[Row]:
    """Yield a row for every case."""
    target = load_target(machine)
    for name, make, mode, most in CASES:
        torch.manual_seed(0)
        function, inputs = make()
        yield measured(f"merged: {name}, {mode}", function, inputs, mode, most, target)


def measured(
    name: str,
    function: Callable[[Tensors], Tensors],
    inputs: Tensors,
    mode: str,
    most: float | None,
    target: Target,
) -> Row:
    """Compile a function once, and emit it both ways; a diagnostic makes a row without a value."""
    options = {"float_dtype": mode, "strict": True, "scheduler": "spill_opt", "emit": CONCAT}
    report = Report(target.name, options)
    try:
        model = optimise(export(function, inputs))
        graph = compile_onnx(Request(model, target, parse_options(options), report)).graph
    except PycompilerError as problem:
        said = str(problem).splitlines()[0]
        return {"name": f"{name}: {said}", "value": None, "target": "", "met": False}
    cycles: dict[str, int] = {CONCAT: 0, MERGED: 0}
    busy: dict[str, int] = {}
    fragments = Fragments(target)
    for emit in cycles:
        for segment in emit_segments(graph, fragments, emit):
            if segment.code is None:
                continue
            found: dict[str, Any] = target.assemble(segment.code.text, "x.vsm").report()
            cycles[emit] += found["cycles"]
            if emit == MERGED:
                for slot, steps in found["busy_steps"].items():
                    busy[slot] = busy.get(slot, 0) + steps * target.cycles
                for port, held in found["port_cycles"].items():
                    busy[port] = busy.get(port, 0) + held
    worst = max(busy, key=lambda resource: busy[resource])
    least = bound(graph, target)
    ratio = cycles[MERGED] / cycles[CONCAT]
    return {
        "name": name,
        "value": cycles[MERGED],
        "unit": f"cycles (busiest: {worst}, {busy[worst]}; no order of the same lines takes fewer "
        f"than {least.cycles}: {least.what})",
        "bound": cycles[CONCAT],
        "ratio": ratio,
        "target": "" if most is None else f"at most {most:g}",
        "met": most is None or ratio <= most,
    }


def bound(graph: MNGraph, target: Target) -> Bound:
    """Return the cycles that no order of the lines can fall below; all nodes are one program."""
    fragments = Fragments(target)
    made = [(node.name, "", fragments.of(node, graph)) for node in graph.nodes]
    kinds = [kind_of(node) for node in graph.nodes]
    found = bound_of(made, addresses_of(graph), target, kinds)
    assert found is not None
    return found


if __name__ == "__main__":
    for row in rows():
        print(f"{row['name']}: {row['value']} {row['unit']} of {row['bound']} {row['target']}")
