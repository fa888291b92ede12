"""Two functions, compiled, emulated and compared with PyTorch.

Leaves for each a folder with its ``codegen_dir`` and a program that stands alone: ``model.vsm``
with ``d getf`` lines for the first long words of the result, and ``model.input.json`` with the
inputs, so that ``emu2 run`` prints the same bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from ..app.model import DeviceSegment
from ..files import write_file
from ..mlsdk import Context, MNDevice
from ..report.codegen_dir import MODEL_VSM, REPORT, read_file
from ..runtime.executable import DeviceFunction
from ..runtime.image import dram_image
from ..runtime.tensors import to_array
from ..summary.table import cost_lines, summary_table, totals

INPUT_JSON = "model.input.json"
_SHOWN = 4  # long words of the result that are printed


@dataclass(frozen=True)
class Case:
    """A function with its inputs."""

    name: str
    title: str
    function: Callable[[dict[str, torch.Tensor]], Mapping[str, torch.Tensor]]
    inputs: dict[str, torch.Tensor]


def cases() -> list[Case]:
    """Return the two functions of the demo."""
    torch.manual_seed(0)
    small = {"x": torch.rand(3, 4), "y": torch.rand(3, 4)}
    large = {name: torch.randn(512, 1024) for name in "xyz"}
    return [
        Case("add", "x + y on (3, 4)", lambda d: {"out": d["x"] + d["y"]}, small),
        Case(
            "relu_mul_add",
            "relu(x * y + z) on (512, 1024)",
            lambda d: {"out": torch.relu(d["x"] * d["y"] + d["z"])},
            large,
        ),
    ]


def run_case(case: Case, out: Path, device: str, console: Console) -> float:
    """Compiles and emulates one case and prints its table; the largest difference from torch."""
    context = Context(MNDevice(device))
    compiled = context.compile(case.function, case.inputs, out / "codegen")
    result = compiled(case.inputs)["out"].cpu()
    difference = float((result - case.function(case.inputs)["out"]).abs().max())
    facts = json.loads(read_file(out / "codegen", REPORT))
    lines = [totals(facts), *cost_lines(facts), f"largest difference from PyTorch: {difference:g}"]
    function = compiled.function
    if isinstance(function, DeviceFunction):
        lines.append(f"emulated in {function.emulation_seconds:.3f} s")
        lines += write_program(function, case.inputs, result, out)
        lines.append(f"assembly: {out / MODEL_VSM}; there, the same bits come from")
        lines.append(f"  emu2 run {MODEL_VSM} --load-memory-file {INPUT_JSON} -d out.txt")
    console.print(summary_table(facts, case.title))
    console.print("\n".join(lines), soft_wrap=True)
    console.print()
    return difference


def write_program(
    function: DeviceFunction, inputs: Mapping[str, torch.Tensor], result: torch.Tensor, out: Path
) -> list[str]:
    """Write ``model.vsm``, ``model.input.json`` and its data; lines that name the result's bits.

    ``result`` is the value of the only output.
    """
    app, target = function.app, function.board.target
    drams = np.zeros((target.groups, app.dram_words), dtype=np.uint64)
    arrays = {port.value: to_array(inputs[port.key]) for port in app.inputs}
    for name, array in {**arrays, **app.constants}.items():
        value = app.values[name]
        if value.layout is not None:
            image = dram_image(value.layout, value.shape, value.dtype, target)
            drams[:, value.dram : value.dram + value.words] = image.pack(array)
    entries = []
    for group, words in enumerate(drams):
        file = f"dram{group}.bin"
        write_file(out / file, words.astype(">u8").tobytes())
        entries.append({"region": f"dram{group}", "file": file, "offset": 0})
    write_file(out / INPUT_JSON, (json.dumps({"load": entries}, indent=1) + "\n").encode())
    code = "".join(s.code for s in app.segments if isinstance(s, DeviceSegment))
    output = app.values[app.outputs[0].value]
    letter, count = target.letter("dram"), min(_SHOWN, output.words)
    code += f"# The first long words of the result.\nd getf ${letter}{output.dram}n0 {count}\n"
    write_file(out / MODEL_VSM, code.encode())
    assert output.layout is not None
    image = dram_image(output.layout, output.shape, output.dtype, target)
    words = image.pack(to_array(result))[0, :count]
    lines = []
    for number, word in enumerate(words, output.dram):
        high, low = int(word) >> 32, int(word) & 0xFFFFFFFF
        lines.append(f"{app.outputs[0].key}, long word {number}: (0x{high:08x}, 0x{low:08x})")
    return lines
