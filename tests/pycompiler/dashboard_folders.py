"""Codegen_dirs for the tests of the dashboard: small compiles, a failed one, a large one."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import model_of

from pycompiler.app.model import App, DeviceSegment
from pycompiler.app.writer import write_app
from pycompiler.build import build
from pycompiler.emit.line_table import LineTable, Owner, Run
from pycompiler.errors import PycompilerError
from pycompiler.graph.dtypes import MNDtype
from pycompiler.graph.graph import Location, MNGraph, MNNode, MNValue, Stage, TensorType
from pycompiler.graph.layout_text import parse_layout
from pycompiler.graph.text import print_graph
from pycompiler.machine import load_target
from pycompiler.runtime.device import Board

#: The places of the compiles in the list of the site that tests show.
HOSTILE, FAILED, BIG, ONE, OTHER = range(5)
LARGE = 10_000  # nodes of the large one
EVIL = "<img src=x onerror=window.evil=1>"
MATRIX = np.linspace(-1, 1, 24 * 10, dtype=np.float32).reshape(24, 10)


def network(name: str = "x") -> Any:
    nodes = [
        ("MatMul", [name, "w"], "h"),
        ("Relu", ["h"], "r"),
        ("MatMul", ["r", "v"], "m"),
        ("Softmax", ["m"], "y"),
    ]
    return model_of(nodes, {name: (9, 24)}, ["y"], {"w": MATRIX, "v": MATRIX[:10]})


def write_folders(root: Path) -> None:
    """Write two compiles of a network, one with hostile names, and a failed one below ``root``."""
    target = load_target("mini")
    for name, options in (
        ("one", {"simulation_mode": "best"}),
        ("other", {"emit": "concat", "float_dtype": "mixed", "compare_float": False}),
    ):
        build(network, "emu2:mini", Board(target), options, root / name)
    build(lambda: network(EVIL), "emu2:mini", Board(target), {}, root / "<b>evil")
    unknown = model_of([("Det", ["x"], "y")], {"x": (33, 33)}, ["y"])
    with pytest.raises(PycompilerError):
        build(lambda: unknown, "emu2:mini", Board(target), {"strict": True}, root / "bad")


def write_large(folder: Path, count: int, *, whole: bool, steps_of_node: int = 60) -> None:
    """Write a synthetic compile of ``count`` nodes; without ``whole``, its report alone."""
    draw = random.Random(1)
    layout = parse_layout("((10:3, 2_L1B:1), (3:1, 4_PE:1, 2_W:1); B@[MAB,L2B])")
    type = TensorType("float", (20, 24))
    blank = MNValue("x", type, MNDtype.FLOAT, Location.DRAM, layout, 32, addr=0)
    values, nodes, rows, code, runs = {"x": blank}, [], [], list[str](), []
    for k in range(count):
        before = f"v{k - 1}" if k else "x"
        more = (f"v{draw.randrange(max(0, k - 60), k - 1)}",) if k > 9 and k % 3 == 0 else ()
        bank, addr = (Location.LM1, Location.LM0)[k % 2], 32 * draw.randrange(15)
        values[f"v{k}"] = replace(blank, name=f"v{k}", location=bank, addr=addr)
        op = draw.choice(["Add", "Mul", "Relu", "Gemm", "MNCoreLayoutSwitch", "Exp"])
        node = MNNode(f"block{k // 50}/node{k}", op, (before, *more), (f"v{k}",), segment=0)
        nodes.append(node)
        steps = draw.randrange(4, steps_of_node)
        rows.append(
            {
                **{"node": node.name, "op": op, "output": f"v{k}", "shape": [20, 24]},
                **{"layout": str(layout), "location": bank.value, "slices": 1, "steps": steps},
                **{"cycles": 4 * steps, "wait_cycles": 0, "dram_words": {"read": 0, "written": 0}},
                **{"multiply_adds": 1000 if op == "Gemm" else 0, "operand_words": 99},
                **{"busy_steps": {"mau": steps // 2}, "utilisation": 0.5, "source": None},
            }
        )
        runs.append(Run(len(code), sum(row["cycles"] for row in rows[:-1]), (k,)))
        code += ["fvadd $lm0v $ln8v $lr0v"] * (steps - 2) + ["nop/2"]
    cycles = sum(row["cycles"] for row in rows)
    facts = {
        **{"status": "ok", "device": "emu2:mini", "steps": cycles // 4, "cycles": cycles},
        **{"nodes": rows, "passes": [{"pass": "side", "seconds": 0.5}, {"pass": "address"}]},
    }
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(facts))
    if whole:
        outputs = (("y", f"v{count - 1}"),)
        graph = MNGraph("big", "mini", Stage.ADDRESSED, ("x",), outputs, {}, tuple(nodes), values)
        bare = {name: replace(value, addr=None) for name, value in values.items()}
        (folder / "l3ir.txt").write_text(print_graph(graph))
        (folder / "layout.address.txt").write_text(print_graph(graph))
        (folder / "layout.side.txt").write_text(print_graph(replace(graph, values=bare)))
        table = LineTable(tuple(Owner(node.name, node.op) for node in nodes), tuple(runs))
        text = "\n".join(code) + "\n"
        segment = DeviceSegment((), (), text, (), cycles // 4, cycles, table)
        app = App("tests", "mini", (), (), {}, {}, (segment,), 0)
        (folder / "model.app").write_bytes(write_app(app))
