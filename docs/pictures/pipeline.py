"""A convolution in all its forms: what each pass of the compiler makes of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from pycompiler.graph import Level, MNGraph, MNValue, parse_graph

from .svg import FILLS, Picture

_MODEL = """
import torch
from pycompiler.mlsdk import Context, MNDevice

torch.manual_seed(0)
conv = torch.nn.Conv2d(3, 8, 3, padding=1)
Context(MNDevice("emu2:mini")).compile(
    lambda given: {"y": conv(given["x"])},
    {"x": torch.randn(2, 3, 8, 8)},
    "out",
    options={"float_dtype": "mixed"},
)
"""
_WIDE, _GAP, _HIGH, _LEFT, _LINES = 118, 12, 44, 15, 4

Says = Callable[[MNValue], str]


def _units(value: MNValue) -> str:
    """Name the levels whose units share the elements."""
    assert value.layout is not None
    units = (Level.L2B, Level.L1B, Level.MAB, Level.PE)
    return "on " + ", ".join(level.value for level in units if value.layout.on(level))


def _place(value: MNValue) -> str:
    where = value.location.value
    return where if value.addr is None else f"{where} from {value.addr}"


#: The file of a dump, what the pass decides, and what a box says of the result of its node.
_ROWS: tuple[tuple[str, str, Says], ...] = (
    (
        "side",
        "import: operators of the device; padding and channels become tiles",
        lambda value: "",
    ),
    ("dtype", "dtype: which values are halves", lambda value: value.dtype.value),
    ("layout", "layout: where each element lies, and the switches in between", _units),
    ("spill_opt", "scheduler: what moves between DRAM and LM, and when", _place),
    ("address", "address: the first long word of each value", _place),
)


def pipeline() -> str:
    """Compile a convolution and return the picture of its forms."""
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", _MODEL], cwd=folder, check=True)
        out = Path(folder) / "out"
        graphs = [parse_graph((out / f"layout.{name}.txt").read_text()) for name, _, _ in _ROWS]
        return drawn(graphs, (out / "model.vsm").read_text())


def drawn(graphs: list[MNGraph], code: str) -> str:
    """Draw the graphs of `_ROWS` one below the other; a node keeps its column from row to row."""
    order = [node.name for node in graphs[-1].nodes]
    conv = next(node for node in graphs[-1].nodes if node.op == "Conv")
    wide = 2 * _LEFT + len(order) * (_WIDE + _GAP)
    picture = Picture(wide, 130 + (len(graphs) + 1) * 96, "A convolution in all its forms")
    picture.write(_LEFT, 24, "A convolution in all its forms", "ink bold", size=15)
    middle = _LEFT + order.index(conv.name) * (_WIDE + _GAP)
    _box(picture, middle, 56, "torch.nn.Conv2d", "3, 8, 3, padding=1", "", FILLS[1])
    picture.write(_LEFT, 74, "export: the module as a node of ONNX (model.onnx)", "dim")
    top, known = 132.0, {conv.name}
    for (_, about, says), graph in zip(_ROWS, graphs, strict=True):
        before, known = known, {node.name for node in graph.nodes}
        for node in graph.nodes:
            left = _LEFT + order.index(node.name) * (_WIDE + _GAP)
            value = graph.values[node.outputs[0]]
            shape = " x ".join(map(str, value.shape))
            fill = FILLS[1] if node.op == "Conv" else "" if node.name in before else FILLS[0]
            name = node.op.removeprefix("MNCore")
            _box(picture, left, top, name, shape, says(value), fill)
            if node.name in before:
                above = top - 96 + _HIGH if graph is not graphs[0] else 56 + _HIGH
                picture.line([(left + _WIDE / 2, above), (left + _WIDE / 2, top)])
        picture.box(_LEFT - 4, top - 22, 6.4 * len(about) + 12, 18, "paper")
        picture.write(_LEFT, top - 8, about, "dim")
        top += 96
    picture.write(_LEFT, top - 8, "emit: lines of the Conv among those of all nodes", "dim")
    lines = [line for line in code.splitlines() if line.startswith("hmfma")]
    picture.box(_LEFT, top, wide - 2 * _LEFT, 16 * _LINES + 12)
    for at, line in enumerate(lines[:_LINES]):
        picture.write(_LEFT + 8, top + 18 + 16 * at, line)
    picture.write(_LEFT + 290, 24, "blue: new in this pass; orange: the Conv", "dim")
    return picture.text()


def _box(picture: Picture, x: float, y: float, name: str, shape: str, says: str, fill: str) -> None:
    picture.box(x, y, _WIDE, _HIGH, fill=fill)
    ink = "dark" if fill else "ink"
    picture.write(x + _WIDE / 2, y + 13, name, f"{ink} bold", "middle", size=11)
    picture.write(x + _WIDE / 2, y + 26, shape, ink, "middle", size=10)
    picture.write(x + _WIDE / 2, y + 39, says, ink, "middle", size=10)
