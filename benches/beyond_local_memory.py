"""Counts what becomes of operators on values that do not fit local memory, on drawn shapes.

For each kind of operator the script draws shapes of more elements than the local memories of all
PEs together hold, compiles the operator alone and between two elementwise operators, and compares
the device's bits with those of the host.

    python benches/beyond_local_memory.py --seed 1 --count 4 --kind Reshape
"""

from __future__ import annotations

import argparse
import random
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from pycompiler.errors import PycompilerError
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pfvm.session import HostSession
from pycompiler.pipeline import compile_onnx
from pycompiler.report.report import Report
from pycompiler.request import Request
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction

Shape = tuple[int, ...]
KINDS = ("Reshape", "Transpose", "Slice", "Concat", "Pad", "Tile", "Expand", "Gather", "Split")


class Case:
    """One operator with its shapes: the shapes of its inputs, its constants and attributes."""

    def __init__(self, kind: str, inputs: list[Shape], results: list[Shape], **facts: Any):
        self.kind, self.inputs, self.results = kind, inputs, results
        self.attributes = facts.pop("attributes", {})
        self.constants: dict[str, Any] = facts

    def __str__(self) -> str:
        small = {n: v for n, v in self.constants.items() if np.size(v) < 20}
        return f"{self.kind} {self.inputs} -> {self.results} {small} {self.attributes}"

    def model(self, between: bool) -> onnx.ModelProto:
        """Return the model of the operator, alone or between a Neg and an Abs."""
        names = [f"x{n}" for n in range(len(self.inputs))]
        outs = [f"y{n}" for n in range(len(self.results))]
        nodes: list[onnx.NodeProto] = []
        read, made = names, outs
        if between:
            read, made = [f"{n}.n" for n in names], [f"{n}.o" for n in outs]
            nodes = [helper.make_node("Neg", [a], [b]) for a, b in zip(names, read, strict=True)]
        parameters = list(self.constants)
        nodes.append(helper.make_node(self.kind, [*read, *parameters], made, **self.attributes))
        if between:
            nodes += [helper.make_node("Abs", [a], [b]) for a, b in zip(made, outs, strict=True)]
        graph = helper.make_graph(
            nodes,
            "g",
            [
                helper.make_tensor_value_info(n, 1, s)
                for n, s in zip(names, self.inputs, strict=True)
            ],
            [
                helper.make_tensor_value_info(n, 1, s)
                for n, s in zip(outs, self.results, strict=True)
            ],
            [numpy_helper.from_array(np.asarray(v), n) for n, v in self.constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        model.ir_version = 10
        return model


def near(rng: random.Random, size: float) -> int:
    """Return a length near ``size``: with many divisors, with few, or odd."""
    count = max(2, int(size * rng.uniform(0.8, 1.25)))
    unit = rng.choice([1, 1, 2, 32, 100])
    return max(2, count // unit * unit)


def drawn_shape(rng: random.Random, words: int) -> Shape:
    """Return a shape of a little more than ``words`` elements, up to four times as many."""
    total = words * rng.uniform(1.1, 4)
    kind = rng.choice(["one", "wide", "tall", "square", "many"])
    if kind == "one":
        return (near(rng, total),)
    if kind == "wide":
        lead = rng.choice([2, 3, 5])
        return (lead, near(rng, total / lead))
    if kind == "tall":
        last = rng.choice([2, 3, 5, 7])
        return (near(rng, total / last), last)
    if kind == "square":
        lead = near(rng, total**0.5)
        return (lead, near(rng, total / lead))
    lead, last = rng.choice([2, 3]), rng.choice([3, 5, 8])
    return (lead, near(rng, total / lead / last), last)


def recut(rng: random.Random, shape: Shape) -> Shape:
    """Return another shape of as many elements."""
    count = prod(shape)
    divisors = [d for d in range(2, int(count**0.5) + 1) if count % d == 0]
    ways: list[Shape] = [(count,), shape[::-1]]
    if divisors:
        few, many = rng.choice(divisors[:4]), divisors[-1]
        ways += [(few, count // few), (count // few, few), (many, count // many)]
    return rng.choice([way for way in ways if way != shape] or [(1, *shape)])


def drawn(kind: str, rng: random.Random, words: int) -> Case:
    """Return a case of one kind of operator."""
    shape = drawn_shape(rng, words)
    axis = max(range(len(shape)), key=lambda a: shape[a])
    if rng.random() < 0.3:
        axis = rng.randrange(len(shape))
    size = shape[axis]

    def like(length: int) -> Shape:
        return (*shape[:axis], length, *shape[axis + 1 :])

    if kind == "Reshape":
        goal = recut(rng, shape)
        return Case(kind, [shape], [goal], shape=list(goal))
    if kind == "Transpose":
        if len(shape) == 1:
            shape = (shape[0] // 3, 3)
        order = list(range(len(shape)))[::-1]
        return Case(kind, [shape], [tuple(shape[a] for a in order)], attributes={"perm": order})
    if kind == "Slice":
        step = rng.choice([1, 1, 1, 2, -1, 3])
        start, stop = sorted((rng.randrange(size // 4 + 1), size - rng.randrange(size // 4 + 1)))
        chosen = range(start, stop, step) if step > 0 else range(stop - 1, start - 1, step)
        ends = chosen.stop if chosen.stop >= 0 else -(1 << 40)
        return Case(
            kind,
            [shape],
            [like(len(chosen))],
            starts=[chosen.start],
            ends=[ends],
            axes=[axis],
            steps=[step],
        )
    if kind == "Concat":
        more = near(rng, size / 2)
        return Case(kind, [shape, like(more)], [like(size + more)], attributes={"axis": axis})
    if kind == "Pad":
        ends = [0] * (2 * len(shape))
        ends[axis], ends[axis + len(shape)] = rng.randrange(40), rng.randrange(1, 40)
        goal = like(size + ends[axis] + ends[axis + len(shape)])
        return Case(kind, [shape], [goal], pads=ends)
    if kind == "Tile":
        times = [1] * len(shape)
        times[rng.randrange(len(shape))] = 2
        goal = tuple(s * t for s, t in zip(shape, times, strict=True))
        return Case(kind, [shape], [goal], repeats=times)
    if kind == "Expand":
        if len(shape) == 1:
            return Case(kind, [(1,)], [shape], shape=list(shape))
        return Case(kind, [like(1)], [shape], shape=list(shape))
    if kind == "Gather":
        index = np.array([rng.randrange(size) for _ in range(near(rng, min(size, 300)))])
        return Case(kind, [shape], [like(len(index))], attributes={"axis": axis}, index=index)
    first = rng.randrange(1, size)
    sizes = [first, size - first]
    return Case("Split", [shape], [like(s) for s in sizes], attributes={"axis": axis}, split=sizes)


def outcome(case: Case, machine: str, between: bool, options: dict[str, Any]) -> tuple[str, str]:
    """Return what became of a case, and figures."""
    target, began = load_target(machine), time.perf_counter()
    model, report = case.model(between), Report(machine, options)
    rng = np.random.default_rng(3)
    names = [f"x{n}" for n in range(len(case.inputs))]
    given = {
        n: rng.standard_normal(s).astype(np.float32)
        for n, s in zip(names, case.inputs, strict=True)
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = compile_onnx(Request(model, target, parse_options(options), report))
    except PycompilerError as problem:
        return problem.code, problem.message[:150]
    built = time.perf_counter() - began
    host = report.data.get("host_fallback") or []
    found = DeviceFunction(made.app, Board(target)).run(given)
    wanted = HostSession(model, "model").run(given)
    right = all(np.array_equal(found[name].values(), wanted[name]) for name in wanted)
    if not right:
        return "WRONG", ""
    if host:
        return "host", "; ".join(f"{one['op']}: {one['reason']}" for one in host)
    bound = report.data["bound"]
    cycles = report.data.get("cycles", 0)
    note = f"{cycles} cycles, x{bound.get('factor') or 0:.1f} of the bound, {built:.0f} s"
    return "device", note


def cases(args: argparse.Namespace) -> Iterator[Case]:
    """Yield the drawn cases."""
    target = load_target(args.machine)
    words = int(prod(target.pe_shape) * target.words("lm0") * 2 * args.scale)
    for kind in args.kind or KINDS:
        rng = random.Random(f"{args.seed} {kind}")
        for _ in range(args.count):
            yield drawn(kind, rng, words)


def main() -> None:
    """Print the outcome of each case, and the counts."""
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--count", type=int, default=4, help="shapes for each kind")
    parse.add_argument("--kind", action="append", choices=KINDS)
    parse.add_argument("--machine", default="mini")
    parse.add_argument("--scale", type=float, default=1.0, help="shapes begin at so many LMs")
    parse.add_argument("--strict", action="store_true")
    args = parse.parse_args()
    counts: dict[str, Counter[str]] = {}
    for number, case in enumerate(cases(args)):
        for between in (False, True):
            dtype = ("float", "mixed")[number % 2]
            options = {"float_dtype": dtype, "strict": args.strict}
            found, note = outcome(case, args.machine, between, options)
            counts.setdefault(case.kind, Counter())[found] += 1
            place = "between" if between else "alone"
            print(f"{found:8} {place:8} {dtype:6} {case} {note}", flush=True)
    for kind, own in counts.items():
        print(f"{kind:10}", dict(own))
    print("total     ", dict(sum(counts.values(), Counter())))


if __name__ == "__main__":
    main()
