"""Elementwise arithmetic with broadcasting: Add, Sub, Mul, Neg and Relu.

An operator is a short chain of instructions; each later one reads the result of the one before it
from a forwarding path, so that a chain of n issues one vector per step after n - 1 steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNNode, MNValue
from ..machine import IntArray, Target
from ..tolerance import ELEMENTWISE, MOVE
from .base import Frame, Layer, Placement, distinct, layout_of, misfits, operand_addresses
from .fragment import Fragment, Instruction, Operand, PeOperand, Special, Step

_RESULTS, _OPERANDS = "grf0", "grf1"  # register files that results and operands pass through
_FORWARD = {"alu": "aluf", "mau": "mauf"}


@dataclass(frozen=True)
class Link:
    """One instruction of a chain. A source is an input's number, negated by ``-``, or ``prev``."""

    slot: str
    mnemonic: str
    sources: tuple[str, ...]


class Elementwise(Layer):
    """An operator that makes each output element of the input elements at its index."""

    dtypes = frozenset({MNDtype.FLOAT})

    def __init__(self, op: str, arity: int, *chain: Link, error: str = ELEMENTWISE):
        self.op = op
        self.arity = arity
        self.chain = chain
        self.error = error

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

        A result takes over an operand that it meets word by word. Without such an operand both
        are smaller than the result and share the other LM.
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
        return Placement((Location.LM1, Location.LM1), (Location.LM0,))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield dtypes and locations the layer cannot use, and layouts that do not agree."""
        values = [graph.values[name] for name in (*node.inputs, *node.outputs)]
        if any(value.dtype not in self.dtypes for value in values):
            yield "a dtype the layer does not compute in"
        banks = (Location.LM0, Location.LM1)
        if any(value.location not in banks for value in values):
            yield "an operand that is not in LM"
        whole = layout_of(graph.values[node.outputs[0]])
        for name, axes in self.frame(node, graph).values:
            problem = misfits(whole, layout_of(graph.values[name]), axes, target)
            if problem is not None:
                yield f"`{name}`: {problem}"
        if self._staged(node, graph) is not None and self._through_registers(node, graph):
            yield "both operands and the result in one LM, which has one port"

    def _addresses(self, node: MNNode, graph: MNGraph) -> dict[str, IntArray]:
        """For each input, the long word of its share that each long word of the result meets."""
        out = graph.values[node.outputs[0]]
        found: dict[str, IntArray] = {}
        for name, axes in self.frame(node, graph).values:
            if name in node.inputs:
                value = graph.values[name]
                whole, own = layout_of(out), layout_of(value)
                words = value.num_lw or 0
                found[name] = operand_addresses(whole, own, axes, out.num_lw or 0, words)
        return found

    def _through_registers(self, node: MNNode, graph: MNGraph) -> bool:
        """Whether the result's LM is also read: its port serves one pattern per step."""
        read = {graph.values[name].location for name in node.inputs}
        return graph.values[node.outputs[0]].location in read

    def _staged(self, node: MNNode, graph: MNGraph) -> str | None:
        """Return the operand that must be read beforehand: its LM is that of the other operand."""
        inputs = distinct(node.inputs)
        homes = [graph.values[name].location for name in inputs]
        return inputs[1] if len(homes) == 2 and homes[0] is homes[1] else None

    def _chunk(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Long words of the result that are made at once: as many as the registers hold."""
        if self._through_registers(node, graph):
            return target.words(_RESULTS)
        if self._staged(node, graph) is not None:
            return target.words(_OPERANDS)
        return max(1, graph.values[node.outputs[0]].num_lw or 0)

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Count one step per vector, two where something passes the registers."""
        num_lw = graph.values[node.outputs[0]].num_lw or 0
        twice = self._through_registers(node, graph) or self._staged(node, graph) is not None
        chunks = -(-num_lw // self._chunk(node, graph, target))
        vectors = num_lw // target.cycles
        return vectors * (2 if twice else 1) + chunks * (len(self.chain) - 1)

    def emit(self, node: MNNode, graph: MNGraph, target: Target) -> Fragment:
        """Emit the chain over all vectors of the result's share, chunk by chunk."""
        out = graph.values[node.outputs[0]]
        num_lw = out.num_lw or 0
        addresses = self._addresses(node, graph)
        through, staged = self._through_registers(node, graph), self._staged(node, graph)
        size = self._chunk(node, graph, target)
        steps: list[Step] = []
        for first in range(0, num_lw, size):
            vectors = range(first, min(first + size, num_lw), target.cycles)
            homes = [_vector(out, range(at, at + target.cycles)) for at in vectors]
            registers = [tuple(range(at - first, at - first + target.cycles)) for at in vectors]
            operands: dict[str, Sequence[Operand]] = {}
            for name, words in addresses.items():
                value = graph.values[name]
                read = [_vector(value, words[at : at + target.cycles]) for at in vectors]
                operands[name] = read
                if name == staged:
                    operands[name] = [PeOperand(_OPERANDS, cycles) for cycles in registers]
                    steps += _copies(read, operands[name])
            results = homes
            if through:
                results = [PeOperand(_RESULTS, cycles) for cycles in registers]
            steps += self._chained(node, operands, results)
            if through:
                steps += _copies(results, homes)
        return Fragment(tuple(steps))

    def _chained(
        self,
        node: MNNode,
        operands: Mapping[str, Sequence[Operand]],
        results: Sequence[Operand],
    ) -> Iterator[Step]:
        """Return the chain over all vectors, link k running k vectors behind link 0."""
        for turn in range(len(results) + len(self.chain) - 1):
            line: list[Instruction] = []
            for number, link in enumerate(self.chain):
                vector = turn - number
                if not 0 <= vector < len(results):
                    continue
                last = number == len(self.chain) - 1
                result: Operand = results[vector] if last else Special("nowrite")
                sources: list[Operand] = []
                for text in link.sources:
                    if text == "prev":
                        sources.append(Special(_FORWARD[self.chain[number - 1].slot]))
                        continue
                    operand = operands[node.inputs[int(text.lstrip("-"))]][vector]
                    if text.startswith("-") and isinstance(operand, PeOperand):
                        operand = replace(operand, negate=True)
                    sources.append(operand)
                line.append(Instruction(link.slot, link.mnemonic, tuple(sources), (result,)))
            yield Step(tuple(line))


def _vector(value: MNValue, words: Sequence[int] | IntArray) -> PeOperand:
    """Return the long words of ``value`` that one step touches, one per cycle."""
    return PeOperand(value.location.memory, tuple(int(word) for word in words), value.name)


def _copies(sources: Sequence[Operand], destinations: Sequence[Operand]) -> Iterator[Step]:
    """One step per vector that copies it."""
    for source, destination in zip(sources, destinations, strict=True):
        yield Step((Instruction("alu", "lpassa", (source,), (destination,)),))


def _aligned(shape: tuple[int, ...], frame: tuple[int, ...]) -> tuple[int | None, ...]:
    """Axes of a broadcast operand counted from the right; None where it is repeated."""
    skipped = len(frame) - len(shape)
    return tuple(
        None if size == 1 and frame[skipped + axis] != 1 else skipped + axis
        for axis, size in enumerate(shape)
    )


LAYERS: tuple[Layer, ...] = (
    Elementwise("Add", 2, Link("mau", "fvadd", ("0", "1"))),
    Elementwise("Sub", 2, Link("mau", "fvadd", ("0", "-1"))),
    Elementwise("Mul", 2, Link("mau", "fvmul", ("0", "1"))),
    Elementwise("Neg", 1, Link("mau", "fvpassa", ("-0",)), error=MOVE),
    # `frelu` gives -0 for negative inputs; the MAU makes it +0, as torch has it.
    Elementwise(
        "Relu",
        1,
        Link("alu", "frelu", ("0", "0")),
        Link("mau", "fvpassa", ("prev",)),
        error=MOVE,
    ),
)
