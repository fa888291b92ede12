"""A chip that does not exist, as a plug-in: memory of doubles, backwards; no threads; NumPy inside.

Its streams run each operation at once, its memory counts elements, and it knows six operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from pycompiler.errors import error
from pycompiler.graph.graph import TensorType
from pycompiler.partitioning import Row, SupportTable
from pycompiler.pfvm.prepare import prepare, static_types
from pycompiler.plugins import (
    DeviceContext,
    Form,
    GraphExecutor,
    Kernel,
    KernelExecutor,
    ResourceManager,
    Stream,
)

CAPACITY, ALIGNMENT = 1 << 16, 3
OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Mul": np.multiply,
    "MatMul": np.matmul,
    "Relu": lambda x: np.maximum(x, 0),
    "Transpose": lambda x: x.T,
    "Identity": lambda x: x,
}


def _rank_two(unit: Any) -> str | None:
    shape = unit.source.types[unit.nodes[0].input[0]].shape
    return None if len(shape) == 2 else "the chip transposes matrices only"


CHECKS = {"Transpose": _rank_two}
TABLE = SupportTable(
    [Row(op, frozenset({"float"}), check=CHECKS.get(op)) for op in OPERATORS],
    "the made-up chip",
)


class Queue(Stream):
    """Runs each operation when it is added."""

    failure: BaseException | None = None

    def _enqueue(self, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work())
        except Exception as problem:
            self.failure = self.failure or problem
            future.set_exception(problem)
        return future

    def _record(self) -> None:
        """Everything before has ended."""

    def _wait(self, native: None) -> None:
        """Everything before has ended."""

    def _synchronize(self) -> None:
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure


class Memory(ResourceManager):
    unit, capacity, alignment = "elements", CAPACITY, ALIGNMENT

    def __init__(self) -> None:
        self.elements = np.zeros(CAPACITY)
        self.regions: dict[int, int] = {}

    def allocate(self, size: int) -> int:
        at = 0
        for start, length in sorted(self.regions.items()):
            if at + size <= start:
                break
            at = -(-(start + length) // ALIGNMENT) * ALIGNMENT
        if at + size > CAPACITY:
            used = sum(self.regions.values())
            raise error(
                "P0821", device="chip", size=size, unit=self.unit, used=used, capacity=CAPACITY
            )
        self.regions[at] = size
        return at

    def free(self, address: int) -> None:
        del self.regions[address]

    def form(self, type: TensorType) -> Form:
        if type.elem != "float":
            raise error("P0828", what=f"a tensor of {type}", reason="the chip has floats only")
        return Form(type, "backwards", max(1, prod(type.shape)))

    def encode(self, array: Any, form: Form) -> Any:
        return np.asarray(array, np.float64).reshape(-1)[::-1]

    def decode(self, words: Any, form: Form) -> Any:
        return words[::-1].astype(np.float32).reshape(form.type.shape)

    def write(self, address: int, words: Any) -> None:
        self.elements[address : address + words.size] = words

    def read(self, address: int, form: Form) -> Any:
        return self.elements[address : address + prod(form.type.shape)].copy()

    def new_stream(self, device: DeviceContext, number: int) -> Stream:
        return Queue(device, number)


class Program(Kernel):
    model: onnx.ModelProto


class Compiler(KernelExecutor, GraphExecutor):
    def __init__(self, memory: Memory):
        self.memory = memory

    def refusal(self, unit: Any) -> str | None:
        return TABLE.reason(unit)

    def compile(self, model: onnx.ModelProto, given: Mapping[str, Form]) -> Kernel:
        for node in model.graph.node:
            if node.op_type not in OPERATORS:
                raise error("P0828", what=node.op_type, reason="the chip has no such operator")
        made = prepare(model)
        types, form = static_types(made), self.memory.form
        inputs = tuple(form(types[value.name]) for value in made.graph.input)
        outputs = tuple(form(types[value.name]) for value in made.graph.output)
        program = Program(inputs, outputs, cycles=len(made.graph.node))
        program.model = made
        return program

    def launch(self, kernel: Kernel, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        assert isinstance(kernel, Program)
        memory, graph = self.memory, kernel.model.graph
        values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        for value, at, form in zip(graph.input, inputs, kernel.inputs, strict=True):
            values[value.name] = memory.decode(memory.read(at, form), form)
        for node in graph.node:
            values[node.output[0]] = OPERATORS[node.op_type](*(values[n] for n in node.input))
        for value, at, form in zip(graph.output, outputs, kernel.outputs, strict=True):
            memory.write(at, memory.encode(values[value.name], form))


class Chip(DeviceContext):
    name = "made-up chip"

    def __init__(self) -> None:
        self.resources = memory = Memory()
        self.kernels = self.graphs = Compiler(memory)

    def close(self) -> None:
        self.kernels = self.graphs = None
