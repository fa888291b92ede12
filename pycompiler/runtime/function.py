"""Functions ready to call, on arrays: an app on a board, or an ONNX model on the host."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import emu2

from ..app.model import App, DeviceSegment, HostSegment, Port
from ..emit.concat import relocate
from ..errors import error
from ..graph.dtypes import numpy_dtype
from ..graph.graph import TensorType
from ..pfvm.session import Array, HostSession
from .device import Board
from .image import dram_image

#: An output that is unpacked when somebody looks at it.
Lazy = Callable[[], Array]


@dataclass(frozen=True)
class Output:
    """One output of a call: its type, and how to get its values."""

    type: TensorType
    values: Lazy


class Function(Protocol):
    """What a compiled function runs on."""

    inputs: Mapping[str, TensorType]
    outputs: Mapping[str, TensorType]

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Output]:
        """Return outputs by key; ``inputs`` are arrays of exactly the types in ``inputs``."""


class HostFunction:
    """A whole model on the host runtime."""

    def __init__(
        self,
        model: bytes,
        inputs: Mapping[str, TensorType],
        outputs: Mapping[str, TensorType],
    ):
        self.inputs, self.outputs = inputs, outputs
        self._session = HostSession(model, "model.onnx")

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Output]:
        """Run the model."""
        results = self._session.run(inputs)
        return {key: Output(self.outputs[key], _given(results[key])) for key in self.outputs}


def _given(array: Array) -> Lazy:
    return lambda: array


class DeviceFunction:
    """An app on a board. Programs and constants are loaded at the first call.

    P0302 if the board's DRAM is full, P0602 if the host runtime lacks an operator of the app.
    """

    def __init__(self, app: App, board: Board):
        self.app, self.board = app, board
        # What the host cannot run is better known now than at the first call.
        self._sessions = {
            number: HostSession(segment.model, f"host segment {number}")
            for number, segment in enumerate(app.segments)
            if isinstance(segment, HostSegment)
        }
        self.inputs = _types(app, app.inputs)
        self.outputs = _types(app, app.outputs)
        #: Seconds the emulator ran in the last call, host segments and transfers apart.
        self.emulation_seconds = 0.0
        self._base = board.allocate(app.dram_words)
        self._steps: list[emu2.Program | HostSession] | None = None

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Output]:
        """Run the segments in order; outputs are fetched from DRAM, unpacked when looked at."""
        with self.board.lock:
            return self._run(inputs)

    def _run(self, inputs: Mapping[str, Array]) -> dict[str, Output]:
        values: dict[str, Array] = {}
        for port in self.app.inputs:
            self._give(port.value, np.array(inputs[port.key]), values)
        steps = self._loaded()
        self.emulation_seconds = 0.0
        for segment, step in zip(self.app.segments, steps, strict=True):
            if isinstance(step, HostSession):
                fetched = {name: self._fetch(name, values)() for name in segment.inputs}
                for name, array in step.run(fetched).items():
                    self._give(name, array, values)
            else:
                self._execute(step)
        return {
            port.key: Output(self.outputs[port.key], self._fetch(port.value, values))
            for port in self.app.outputs
        }

    def _loaded(self) -> list[emu2.Program | HostSession]:
        if self._steps is None:
            steps: list[emu2.Program | HostSession] = []
            target = self.board.target
            for number, segment in enumerate(self.app.segments):
                if isinstance(segment, DeviceSegment):
                    code = relocate(segment.code, segment.relocations, self._base, target)
                    steps.append(target.assemble(code, f"segment{number}.vsm"))
                else:
                    steps.append(self._sessions[number])
            for name, array in self.app.constants.items():
                self._place(name, array)
            self._steps = steps
        return self._steps

    def _execute(self, program: emu2.Program) -> None:
        start = time.perf_counter()
        try:
            self.board.machine.run(program)
        except emu2.RunError as problem:
            raise error("P0604", reason=problem.message) from problem
        self.emulation_seconds += time.perf_counter() - start

    def _give(self, name: str, array: Array, values: dict[str, Array]) -> None:
        """Make a value known to host segments, and to the device if it looks at it."""
        values[name] = array
        self._place(name, array)

    def _place(self, name: str, array: Array) -> None:
        value = self.app.values[name]
        if value.layout is None:
            return
        image = dram_image(value.layout, value.shape, value.dtype, self.board.target)
        for group, words in enumerate(image.pack(array)):
            self.board.machine.write("dram", words, addr=self._base + value.dram, group=group)

    def _fetch(self, name: str, values: dict[str, Array]) -> Lazy:
        """Return the values of ``name`` as they are now; long words are unpacked when looked at."""
        if name in values:
            return _given(values[name])
        if name in self.app.constants:
            return _given(self.app.constants[name])
        value = self.app.values[name]
        assert value.layout is not None, f"`{name}` is neither on the host nor in DRAM"
        image = dram_image(value.layout, value.shape, value.dtype, self.board.target)
        words: NDArray[np.uint64] = np.stack(
            [
                self.board.machine.read(
                    "dram", addr=self._base + value.dram, count=image.dram_words, group=group
                )
                for group in range(self.board.target.groups)
            ]
        )
        dtype = numpy_dtype(value.elem)
        return lambda: image.unpack(words, dtype)


def _types(app: App, ports: Sequence[Port]) -> Mapping[str, TensorType]:
    values = ((port.key, app.values[port.value]) for port in ports)
    return {key: TensorType(value.elem, value.shape) for key, value in values}
