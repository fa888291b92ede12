"""The emulator as two plug-ins: a kernel per model, or a kernel per operator.

An address is a number of long words in the DRAM of every group. A tensor lies as the layout of its
form says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import onnx
from onnx import helper

import emu2

from ..app.model import App, AppValue, DeviceSegment
from ..emit.relocation import Moved, relocate
from ..errors import PycompilerError, error
from ..graph.dtypes import numpy_dtype, onnx_elem_type
from ..graph.graph import TensorType
from ..options import parse_options
from ..partitioning.source import Unit
from ..partitioning.support import CompilerSupport
from ..pfvm.optimise import optimise
from ..pfvm.session import Array
from ..pipeline import compile_onnx
from ..report.report import Report
from ..request import Request
from ..runtime.device import Board, DramBlock, find_device
from ..runtime.image import DramImage, dram_image
from .interface import (
    DeviceContext,
    Form,
    GraphExecutor,
    Kernel,
    KernelExecutor,
    ResourceManager,
    Stream,
    Words,
)
from .tasks import TaskPool, TaskStream

_PROGRAMS = 16  # programs kept per kernel, one for each list of addresses
_OPSET = 20


class EmulatorMemory(ResourceManager):
    """The DRAM of an emulated machine."""

    unit = "long words of each group"

    def __init__(self, board: Board):
        self.board = board
        self.alignment = board.target.mv_unit
        self.capacity = board.target.words("dram")
        self.tasks = TaskPool()
        self._blocks: dict[int, DramBlock] = {}
        self._forms: dict[TensorType, Form] = {}

    def allocate(self, size: int) -> int:
        """Return the address of a new region. P0821."""
        try:
            block = self.board.allocate(size)
        except PycompilerError as problem:
            used = sum(block.words for block in self._blocks.values())
            raise error(
                "P0821",
                device=self.board.target.name,
                size=size,
                unit=self.unit,
                used=used,
                capacity=self.capacity,
            ) from problem
        self._blocks[block.addr] = block
        return block.addr

    def free(self, address: int) -> None:
        """Give a region back."""
        del self._blocks[address]

    def form(self, type: TensorType) -> Form:
        """Return the form that the compiler gives an operand of an elementwise operator. P0828."""
        if type not in self._forms:
            kind = onnx_elem_type(type.elem)
            op = "Not" if type.elem == "bool" else "Add"
            info = [helper.make_tensor_value_info(n, kind, type.shape) for n in "xy"]
            node = helper.make_node(op, ["x"] if op == "Not" else ["x", "x"], ["y"])
            graph = helper.make_graph([node], "form", info[:1], info[1:])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
            app = compiled(model, self.board, {})
            value = app.values[app.inputs[0].value]
            if value.layout is None:
                raise error("P0828", what=f"a tensor of {type}", reason="it would lie on the host")
            self._forms[type] = form_of(value)
        return self._forms[type]

    def image(self, form: Form) -> DramImage:
        """Return the order of a form's elements."""
        dtype, layout = form.order.split(" ", 1)
        return dram_image(layout, form.type.shape, dtype, self.board.target)

    def same(self, one: Form, other: Form) -> bool:
        """Whether words of one form can be read as those of the other."""
        if one.type != other.type:
            return False
        return one == other or self.image(one).same_order(self.image(other))

    def encode(self, array: Array, form: Form) -> Words:
        """Return the long words of an array, shape ``(groups, words)``."""
        return self.image(form).pack(np.array(array, numpy_dtype(form.type.elem)))

    def decode(self, words: Words, form: Form) -> Array:
        """Return the array of some long words."""
        return self.image(form).unpack(words, numpy_dtype(form.type.elem))

    def write(self, address: int, words: Words) -> None:
        """Copy long words to the DRAM of every group."""
        with self.board.lock:
            for group, own in enumerate(words):
                self.board.machine.write("dram", own, addr=address, group=group)

    def read(self, address: int, form: Form) -> Words:
        """Return the long words of a tensor, shape ``(groups, words)``."""
        with self.board.lock:
            read = partial(self.board.machine.read, "dram", addr=address, count=form.size)
            return np.stack([read(group=g) for g in range(self.board.target.groups)])

    def new_stream(self, device: DeviceContext, number: int) -> Stream:
        """Return a stream of tasks; the machine runs one program at a time."""
        return TaskStream(device, number, self.tasks)


def compiled(model: onnx.ModelProto, board: Board, layouts: Mapping[str, str]) -> App:
    """Return the app of a model without host pieces; ``layouts`` are those that inputs have."""
    target, options = board.target, {"strict": True}
    parsed = replace(parse_options(options), io_layouts=layouts)
    return compile_onnx(Request(model, target, parsed, Report(target.name, options))).app


def form_of(value: AppValue) -> Form:
    """Return the form of a value that lies in DRAM."""
    type = TensorType(value.elem, value.shape)
    return Form(type, f"{value.dtype} {value.layout}", value.words)


class EmulatorKernel(Kernel):
    """An app whose inputs and outputs lie at any address; the rest lies in a block of its own."""

    app: App
    block: DramBlock
    programs: dict[tuple[int, ...], list[emu2.Program]]
    #: Inputs and outputs, by number, that a launch copies to and from the block, and where they lie
    #: there: their words also hold other values, or a program does not write them.
    copied: dict[int, int]


class EmulatorExecutor(KernelExecutor, GraphExecutor):
    """Compiles models, of one operator or of many, to programs for an emulated machine."""

    def __init__(self, memory: EmulatorMemory):
        self.memory, self.board = memory, memory.board
        self._support = CompilerSupport(self.board.target)
        #: The cycles of all launches.
        self.cycles = 0

    def optimise(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """Return the model as a compile optimises it."""
        return optimise(model)

    def refusal(self, unit: Unit) -> str | None:
        """Return why a compile would leave a part on the host."""
        return self._support.reason(unit)

    def compile(self, model: onnx.ModelProto, given: Mapping[str, Form]) -> Kernel:
        """Compile a model; inputs keep the layouts of ``given`` if there is such a program."""
        layouts = {name: form.order.split(" ", 1)[1] for name, form in given.items()}
        try:
            app = compiled(model, self.board, layouts)
        except PycompilerError:
            if not layouts:
                raise
            app = compiled(model, self.board, {})
        return self._kernel(app)

    def _kernel(self, app: App) -> Kernel:
        names = [port.value for port in (*app.inputs, *app.outputs)]
        for name in names:
            if app.values[name].layout is None or app.registered:
                reason = "no program of the device moves it" if not app.registered else "it trains"
                raise error("P0828", what=f"`{name}`", reason=reason)
        inputs, outputs = (
            tuple(form_of(app.values[port.value]) for port in ports)
            for ports in (app.inputs, app.outputs)
        )
        segments = [s for s in app.segments if isinstance(s, DeviceSegment)]
        if len(segments) != len(app.segments):
            raise error("P0828", what="the model", reason="a part of it would run on the host")
        kernel = EmulatorKernel(inputs, outputs, sum(s.cycles for s in segments))
        kernel.app, kernel.block = app, self.board.allocate(app.dram_words)
        kernel.programs, kernel.copied = {}, {}
        for name, array in app.constants.items():
            value = app.values[name]
            if value.layout is not None:
                words = self.memory.encode(array, form_of(value))
                self.memory.write(kernel.block.addr + value.dram, words)
        for number, name in enumerate(names):
            if name in names[:number] or name in app.constants or _shares(app, name):
                kernel.copied[number] = app.values[name].dram
        return kernel

    def launch(self, kernel: Kernel, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Run the programs on the addresses of the tensors. P0604 if the machine refuses."""
        assert isinstance(kernel, EmulatorKernel)
        with self.board.lock:
            programs = self._programs(kernel, (*inputs, *outputs))
            for number, (form, at) in enumerate(zip(kernel.inputs, inputs, strict=True)):
                if number in kernel.copied:
                    own = kernel.block.addr + kernel.copied[number]
                    self.memory.write(own, self.memory.read(at, form))
            for program in programs:
                try:
                    self.board.machine.run(program)
                except emu2.RunError as problem:
                    raise error("P0604", reason=problem.message) from problem
            self.cycles += kernel.cycles or 0
            self._copy_out(kernel, inputs, outputs)

    def _copy_out(
        self, kernel: EmulatorKernel, inputs: Sequence[int], outputs: Sequence[int]
    ) -> None:
        """Write the outputs that the programs did not write where they belong."""
        found = {p.value: at for p, at in zip(kernel.app.inputs, inputs, strict=True)}
        for number, at in enumerate(outputs):
            name, place = kernel.app.outputs[number].value, kernel.copied.get(number + len(inputs))
            if place is None:
                found[name] = at
            else:
                source = found.get(name, kernel.block.addr + place)
                self.memory.write(at, self.memory.read(source, kernel.outputs[number]))

    def _programs(self, kernel: EmulatorKernel, places: tuple[int, ...]) -> list[emu2.Program]:
        found = kernel.programs.pop(places, None)
        if found is None:
            app, target = kernel.app, self.board.target
            ports = (*app.inputs, *app.outputs)
            moved = [
                Moved(value.dram, value.dram + value.words, at)
                for number, (port, at) in enumerate(zip(ports, places, strict=True))
                if number not in kernel.copied
                for value in (app.values[port.value],)
            ]
            found = []
            for segment in app.segments:
                assert isinstance(segment, DeviceSegment)
                code = relocate(segment.code, segment.relocations, kernel.block.addr, target, moved)
                program = target.assemble(code, "kernel.vsm")
                assert program.report()["cycles"] == segment.cycles
                found.append(program)
        while len(kernel.programs) >= _PROGRAMS:
            del kernel.programs[next(iter(kernel.programs))]
        kernel.programs[places] = found
        return found


def _shares(app: App, name: str) -> bool:
    """Whether words of a value also hold another one, so that its place cannot be moved alone."""
    own = app.values[name]
    for other in app.values.values():
        if other.name != name and other.layout is not None and other.words:
            apart = other.dram >= own.dram + own.words or own.dram >= other.dram + other.words
            if not apart:
                return True
    places = (r.value for s in app.segments if isinstance(s, DeviceSegment) for r in s.relocations)
    return any(place not in app.values for place in places)


class EmulatorContext(DeviceContext):
    """An emulated machine in one of the two modes, or in both."""

    def __init__(self, device: str, graphs: bool, kernels: bool):
        found = find_device(device)
        if found.machine is None:
            raise error("P0601", name=device, legal="emu2 or emu2:MACHINE")
        self.name, self.board = device, Board(found.target)
        self.resources = self._memory = EmulatorMemory(self.board)
        self.executor = EmulatorExecutor(self._memory)
        self.graphs = self.executor if graphs else None
        self.kernels = self.executor if kernels else None

    def close(self) -> None:
        """Free the machine, and end the threads."""
        self._memory.tasks.close()
        self.board.close()


def graph_mode(device: str = "emu2") -> EmulatorContext:
    """Return an emulated machine in graph mode. P0601."""
    return EmulatorContext(device, graphs=True, kernels=False)


def kernel_mode(device: str = "emu2") -> EmulatorContext:
    """Return an emulated machine in kernel mode. P0601."""
    return EmulatorContext(device, graphs=False, kernels=True)
