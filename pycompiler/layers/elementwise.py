"""Elementwise operators with broadcasting: the layer of every function in :mod:`.functions`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ..code.lines import Fragment, PeOperand
from ..code.nest import Nest
from ..graph.dtypes import MNDtype
from ..graph.graph import Attribute, Location, MNGraph, MNNode, MNValue
from ..machine import IntArray, Target
from .base import (
    Frame,
    Layer,
    Placement,
    distinct,
    layout_of,
    misfits,
    operand_addresses,
    outside_lm,
)
from .functions.elementwise_function import Call, Function
from .functions.fused import FUSED
from .functions.program import Input, Program
from .functions.shorter import with_products_in_sums, without_masks
from .functions.table import FUNCTIONS
from .pipeline_code import Pipeline, best_pipeline, pipeline_code


class Elementwise(Layer):
    """An operator that computes each output element from the input elements at the same index."""

    def __init__(self, function: Function):
        self.function = function
        self.op = function.op
        pairs = frozenset(dtype for pair in function.pairs for dtype in pair)
        self.dtypes = frozenset(function.dtypes) | pairs
        self.halves = function.halves
        self.attributes = function.attributes
        self.error = function.error

    def unsupported(self, node: MNNode, graph: MNGraph, dtypes: Sequence[MNDtype]) -> str | None:
        """Return why the node cannot run on the device; None if it can."""
        if "" in node.inputs:
            return f"{self.op} needs all its inputs on the device"
        for name, _ in node.attributes:
            if name not in self.attributes:
                return f"{self.op} has no attribute `{name}` on the device"
        wrong = self.function.mismatch(dtypes[:-1], dtypes[-1])
        return wrong or self.function.refuse(dict(node.attributes))

    def frame(self, node: MNNode, graph: MNGraph) -> Frame:
        """Work over the output's index space; inputs align at their last axes."""
        shape = graph.values[node.outputs[0]].shape
        whole: tuple[int | None, ...] = tuple(range(len(shape)))
        values = [(node.outputs[0], whole)]
        for name in distinct(node.inputs):
            values.append((name, _aligned(graph.values[name].shape, shape)))
        return Frame(shape, tuple(values))

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Use LM0 and LM1 so that the share of the result may fill one of them.

        A result takes over the long words of an operand with the same size and order. Without such
        an operand, all operands are smaller than the result and share the other LM.
        """
        inputs = distinct(node.inputs)
        if len(inputs) == 1:
            return Placement((Location.LM0,), (Location.LM1,))
        addresses = self._addresses(node, graph)
        for name in inputs:
            words = np.arange(graph.values[node.outputs[0]].num_lw or 0)
            same_size = graph.values[name].num_lw == words.size
            if same_size and np.array_equal(addresses[name], words):
                banks = tuple(Location.LM0 if n == name else Location.LM1 for n in inputs)
                return Placement(banks, (Location.LM0,), node.inputs.index(name))
        return Placement((Location.LM1,) * len(inputs), (Location.LM0,))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield dtypes and locations that the layer cannot use, and layouts that do not agree."""
        values = [graph.values[name] for name in (*node.inputs, *node.outputs)]
        wrong = self.function.mismatch([v.dtype for v in values[:-1]], values[-1].dtype)
        if wrong is not None:
            yield wrong
        yield from outside_lm((*node.inputs, *node.outputs), graph)
        whole = layout_of(graph.values[node.outputs[0]])
        for name, axes in self.frame(node, graph).values:
            problem = misfits(whole, layout_of(graph.values[name]), axes, target)
            if problem is not None:
                yield f"`{name}`: {problem}"

    def _addresses(self, node: MNNode, graph: MNGraph) -> dict[str, IntArray]:
        """Return for each input the long words that the long words of the result meet."""
        out = graph.values[node.outputs[0]]
        found: dict[str, IntArray] = {}
        for name, axes in self.frame(node, graph).values:
            if name in node.inputs:
                value = graph.values[name]
                whole, own = layout_of(out), layout_of(value)
                words = value.num_lw or 0
                found[name] = operand_addresses(whole, own, axes, out.num_lw or 0, words)
        return found

    def steps_in(
        self, node: MNNode, graph: MNGraph, placement: Placement, target: Target
    ) -> int | None:
        """Count the steps of the pipeline between these banks."""
        return self._pipeline(node, graph, placement, target)[1]

    def _pipeline(
        self, node: MNNode, graph: MNGraph, placement: Placement, target: Target
    ) -> tuple[Pipeline, int]:
        """Return the pipeline between these banks, and its steps."""
        inputs = distinct(node.inputs)
        out = graph.values[node.outputs[0]]
        program = program_of(
            self.op,
            tuple(inputs.index(name) for name in node.inputs),
            tuple(graph.values[name].dtype for name in node.inputs),
            out.dtype,
            node.attributes,
        )
        rows = -(-(out.num_lw or 0) // target.cycles)
        words = tuple(graph.values[name].num_lw or 0 for name in inputs)
        homes = tuple(bank.memory for bank in placement.inputs)
        return best_pipeline(program, homes, placement.outputs[0].memory, target, rows, words)

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the pipeline over all rows of the result's share."""
        inputs, out = distinct(node.inputs), graph.values[node.outputs[0]]
        addresses = self._addresses(node, graph)
        operands = [
            _rows(graph.values[name], addresses[name], target).__getitem__ for name in inputs
        ]
        results = _rows(out, np.arange(out.num_lw or 0, dtype=np.int64), target)
        found, _ = self._pipeline(node, graph, _banks(node, graph), target)
        return pipeline_code(found, operands, results.__getitem__, len(results), target)

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Return the number of steps, of which no addresses are needed."""
        return self._pipeline(node, graph, _banks(node, graph), target)[1]

    def emit(self, node: MNNode, graph: MNGraph, target: Target) -> Fragment:
        """Return the lines, which cannot be packed further."""
        return replace(super().emit(node, graph, target), packed=True)


@lru_cache(maxsize=1024)
def program_of(
    op: str,
    numbers: tuple[int, ...],
    dtypes: tuple[MNDtype, ...],
    result: MNDtype,
    attributes: tuple[tuple[str, Attribute], ...],
) -> Program:
    """Return the program of an operator; ``numbers`` tells which inputs are the same value."""
    call = Call(tuple(map(Input, numbers)), dtypes, result, dict(attributes))
    program = Program()
    found = without_masks(program.finish(FUNCTIONS[op].build(program, call)))
    return with_products_in_sums(found) if op == FUSED else found


def _banks(node: MNNode, graph: MNGraph) -> Placement:
    """Return where the operands and the result lie."""
    inputs, outputs = (
        tuple(graph.values[name].location for name in names)
        for names in (distinct(node.inputs), node.outputs)
    )
    return Placement(inputs, outputs)


def _rows(value: MNValue, words: IntArray, target: Target) -> list[PeOperand]:
    """Return the long words of ``value`` that each row touches, one per cycle."""
    rows = words.reshape(-1, target.cycles).tolist()
    return [PeOperand(value.location.memory, tuple(row), value.name) for row in rows]


def _aligned(shape: tuple[int, ...], frame: tuple[int, ...]) -> tuple[int | None, ...]:
    """Return the frame axes of a broadcast operand, from the right; None where it is repeated."""
    skipped = len(frame) - len(shape)
    return tuple(
        None if size == 1 and frame[skipped + axis] != 1 else skipped + axis
        for axis, size in enumerate(shape)
    )


LAYERS: tuple[Layer, ...] = tuple(Elementwise(function) for function in FUNCTIONS.values())
