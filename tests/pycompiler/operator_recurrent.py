"""Rows of recurrent layers, against loops over steps and rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import torch
from onnx import helper
from operator_rows import REAL, WIDE, Row, Sample, Tensor, normal, widened
from torch.nn import functional

from pycompiler.tolerance import SUM

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
COUNTS = {"LSTM": 3, "GRU": 2, "RNN": 1}
DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
Function = Callable[[Tensor], Tensor]
KEYS = ("alpha", "beta")
HALF, QUARTER = ("alpha", 0.5), ("beta", 0.25)
#: The numbers that an activation takes, and its function with them.
ACTIVATIONS: dict[str, tuple[list[tuple[str, float]], Function]] = {
    "Relu": ([], torch.relu),
    "Tanh": ([], torch.tanh),
    "Sigmoid": ([], torch.sigmoid),
    "affine": ([HALF, QUARTER], lambda x: 0.5 * x + 0.25),
    "LeakyRelu": ([HALF], lambda x: functional.leaky_relu(x, 0.5)),
    "ScaledTanh": ([HALF, QUARTER], lambda x: 0.5 * torch.tanh(0.25 * x)),
    "HardSigmoid": ([HALF, QUARTER], lambda x: (0.5 * x + 0.25).clamp(0, 1)),
    "Elu": ([HALF], lambda x: functional.elu(x, 0.5)),
    "SoftSign": ([], functional.softsign),
    "Softplus": ([], functional.softplus),
}
#: Rounding errors of a state reach all later ones: terms of a sum that each step counts as.
STEP = 16


def _step(
    kind: str, facts: dict[str, Any], functions: list[Function], x: Tensor, h: Tensor, c: Tensor,
    w: Tensor, r: Tensor, b: Tensor, p: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """One step of one row, as ONNX writes it; gates in ONNX's order."""
    size = h.shape[0]
    half = b.shape[0] // 2
    own, kept = w @ x + b[:half], r @ h + b[half:]

    def at(value: Tensor, number: int) -> Tensor:
        return value[number * size : (number + 1) * size]

    def activated(place: int, value: Tensor) -> Tensor:
        clip = facts.get("clip", torch.inf)
        return functions[place](value.clamp(-clip, clip))

    if kind == "RNN":
        return activated(0, own + kept), c
    if kind == "GRU":
        z = activated(0, at(own, 0) + at(kept, 0))
        n = activated(0, at(own, 1) + at(kept, 1))
        if facts["linear_before_reset"]:
            inner = n * at(kept, 2)
        else:
            inner = at(r, 2) @ (n * h) + at(b[half:], 2)
        return (1 - z) * activated(1, at(own, 2) + inner) + z * h, c
    gates = own + kept
    i = activated(0, at(gates, 0) + at(p, 0) * c)
    f = activated(0, at(gates, 2) + at(p, 2) * c)
    f = 1 - i if facts.get("input_forget") else f
    c = f * c + i * activated(1, at(gates, 3))
    return activated(0, at(gates, 1) + at(p, 1) * c) * functions[2](c), c


def layer_of(kind: str) -> Callable[[random.Random], Sample]:
    """Every direction, with and without lengths, peepholes, states, and with the batch first."""

    def sample(rng: random.Random) -> Sample:
        steps, batch, width, size = (rng.choice([1, 2, 3]) for _ in range(4))
        direction = rng.choice(["forward", "reverse", "bidirectional"])
        ways, gates, first = 1 + (direction == "bidirectional"), GATES[kind], rng.randint(0, 1)

        def maybe(shape: tuple[int, ...]) -> np.ndarray | None:
            return normal(rng, shape) if rng.random() < 0.6 else None

        made = np.random.default_rng(rng.getrandbits(32))
        state = (batch, ways, size) if first else (ways, batch, size)
        operands: dict[str, np.ndarray | None] = {
            "x": normal(rng, (batch, steps, width) if first else (steps, batch, width)),
            "w": normal(rng, (ways, gates * size, width)) / 2,
            "r": normal(rng, (ways, gates * size, size)) / 2,
            "b": maybe((ways, 2 * gates * size)),
            "lengths": None,
            "h": maybe(state),
        }
        if rng.random() < 0.5:
            operands["lengths"] = made.integers(1, steps + 1, batch).astype(np.int32)
        facts: dict[str, Any] = {"direction": direction, "hidden_size": size, "layout": first}
        if kind == "LSTM":
            operands |= {"c": maybe(state), "p": maybe((ways, 3 * size))}
        elif kind == "GRU":
            facts["linear_before_reset"] = rng.randint(0, 1)
        if rng.random() < 0.3:
            chosen = [rng.choice([*ACTIVATIONS]) for _ in range(ways * COUNTS[kind])]
            facts["activations"] = chosen
            numbers = [numbers for name in chosen for numbers in ACTIVATIONS[name][0]]
            facts |= {f"activation_{key}": [n for k, n in numbers if k == key] for key in KEYS}
            facts = {name: value for name, value in facts.items() if value != []}
        if rng.random() < 0.2:
            facts["clip"] = 0.5
        if kind == "LSTM" and rng.random() < 0.2:
            facts["input_forget"] = 1
        usual = [*DEFAULTS[kind]] * ways
        functions = [ACTIVATIONS[name][1] for name in facts.get("activations", usual)]
        each = len(functions) // ways

        def function(x: Tensor, w: Tensor, r: Tensor, **more: Tensor) -> tuple[Tensor, ...]:
            zeros = torch.zeros(state, dtype=torch.float64)
            b = more.get("b", torch.zeros(ways, 2 * gates * size, dtype=torch.float64))
            p = more.get("p", torch.zeros(ways, 3 * size, dtype=torch.float64))
            h, c = (more.get(name, zeros) for name in "hc")
            if first:
                x, h, c = x.transpose(0, 1), h.transpose(0, 1), c.transpose(0, 1)
            out = torch.zeros(steps, ways, batch, size, dtype=torch.float64)
            ends, cells = h.clone(), c.clone()
            for way in range(ways):
                backwards = way == 1 or direction == "reverse"
                for row in range(batch):
                    count = int(more["lengths"][row]) if "lengths" in more else steps
                    for step in reversed(range(count)) if backwards else range(count):
                        ends[way, row], cells[way, row] = _step(
                            kind, facts, functions[way * each : (way + 1) * each],
                            x[step, row], ends[way, row], cells[way, row],
                            w[way], r[way], b[way], p[way],
                        )  # fmt: skip
                        out[step, way, row] = ends[way, row]
            if first:
                out, ends, cells = (
                    out.permute(2, 0, 1, 3),
                    ends.transpose(0, 1),
                    cells.transpose(0, 1),
                )
            return (out, ends, cells) if kind == "LSTM" else (out, ends)

        return Sample(
            operands,
            function,
            frozenset("wrb" if rng.random() < 0.5 else ""),
            facts,
            outputs=3 if kind == "LSTM" else 2,
            terms=steps * (width + size + STEP),
            scale=4.0,
        )

    return sample


def _steps_first(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Write a layer with the batch first by transpositions: onnxruntime lacks that layout."""
    if not any(a.name == "layout" and a.i for a in node.attribute):
        return [node]
    made, ends = onnx.NodeProto(), []
    made.CopyFrom(node)
    del made.attribute[[a.name for a in made.attribute].index("layout")]
    before = []
    for place, order in ((0, [1, 0, 2]), (5, [1, 0, 2]), (6, [1, 0, 2])):
        if place < len(node.input) and node.input[place]:
            made.input[place] = f"{node.input[place]}.turned"
            turned = [node.input[place]], [made.input[place]]
            before.append(helper.make_node("Transpose", *turned, perm=order))
    for place, name in enumerate(node.output):
        made.output[place] = f"{name}.turned"
        order = [1, 0, 2] if place else [2, 0, 1, 3]
        ends.append(helper.make_node("Transpose", [f"{name}.turned"], [name], perm=order))
    return [*before, made, *ends]


ROWS: tuple[Row, ...] = tuple(
    Row(kind, claim, elem, sample, SUM, range(3, 4), host=_steps_first, slow=True)
    for kind in GATES
    for claim, elem, sample in (
        ("Float", REAL, layer_of(kind)),
        ("Double", WIDE, widened(layer_of(kind))),
    )
)
