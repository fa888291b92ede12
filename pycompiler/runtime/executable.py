"""Functions on arrays that are ready to call: an app on a board, or an ONNX model on the host."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import onnx

import emu2

from ..app.model import App, DeviceSegment, HostSegment, Port
from ..emit.relocation import Moved, relocate
from ..errors import error
from ..graph.dtypes import MNDtype, numpy_dtype
from ..graph.graph import TensorType
from ..pfvm.session import Array, HostSession
from ..summary.performance import Performance, of_app
from . import trace
from .device import Board
from .dram import DramTensor
from .held_tensor import Held, Source, on_host
from .registered_values import Registered, Registry

#: By name: values that a call reads elsewhere in DRAM instead of in the function's own memory.
Bound = Mapping[str, DramTensor]
_Places = tuple[tuple[str, int], ...]

_PROGRAMS = 4  # program lists kept per function, one for each set of addresses of its bound values


class Function(Protocol):
    """A compiled function, on whichever side it runs."""

    inputs: Mapping[str, TensorType]
    outputs: Mapping[str, TensorType]

    @property
    def host_runtimes(self) -> tuple[str, ...]:
        """The library that runs each part of the function on the host, in order."""

    def run(self, inputs: Mapping[str, Array | Source]) -> dict[str, Held]:
        """Run the function and return its outputs by key.

        The argument ``inputs`` must have exactly the types of the attribute ``inputs``.
        """

    def place(self, key: str, *, output: bool) -> DramTensor | None:
        """Return the DRAM place of an input or output; None if only the host uses it."""

    def allocate(self, key: str) -> Held:
        """Return a new tensor for an input, all zero, where the function can read it."""


def _values(given: Array | Source) -> Array:
    return np.asarray(given) if isinstance(given, np.ndarray | np.generic) else given.values()


def _zeros(type: TensorType) -> Array:
    return np.zeros(type.shape, numpy_dtype(type.elem))


class HostFunction:
    """A whole model on the host runtime."""

    def __init__(
        self,
        model: onnx.ModelProto,
        inputs: Mapping[str, TensorType],
        outputs: Mapping[str, TensorType],
        registered: Mapping[str, Registered],
        updates: Mapping[str, str],
    ):
        self.inputs, self.outputs = inputs, outputs
        self._session = HostSession(model, "model.onnx")
        self._registered = registered
        #: By key of a result of the model: the registered value that it renews.
        self._updates = updates

    def run(self, inputs: Mapping[str, Array | Source]) -> dict[str, Held]:
        """Run the model."""
        given = {key: _values(found) for key, found in inputs.items()}
        state = {value: found.values() for value, found in self._registered.items()}
        with trace.span("model.onnx"):
            results = self._session.run(given, state)
        for key, value in self._updates.items():
            self._registered[value].load(results[key])
        return {key: on_host(self.outputs[key], results[key]) for key in self.outputs}

    @property
    def host_runtimes(self) -> tuple[str, ...]:
        """The library that runs the model."""
        return (self._session.runtime,)

    def place(self, key: str, *, output: bool) -> DramTensor | None:
        """Return None: all values are on the host."""
        return None

    def allocate(self, key: str) -> Held:
        """Return a new tensor for an input, all zero."""
        return on_host(self.inputs[key], _zeros(self.inputs[key]))


class DeviceFunction:
    """An app on a board. Constants and programs are loaded when the function is made.

    An input that is already in DRAM, in the order that the app needs, is read there. Outputs stay
    in DRAM until the next call. Before that call, outputs that are still in use are copied to the
    host. P0302 if the board's DRAM is full, P0602 if the host runtime lacks an operator of the app.
    """

    def __init__(self, app: App, board: Board, registry: Registry | None = None):
        self.app, self.board = app, board
        # Make the sessions now, so that an unsupported operator is refused before the first call.
        self._sessions = {
            number: HostSession(onnx.load_from_string(segment.model), f"host segment {number}")
            for number, segment in enumerate(app.segments)
            if isinstance(segment, HostSegment)
        }
        self.inputs = types_of(app, app.inputs)
        self.outputs = types_of(app, app.outputs)
        #: Seconds that the emulator ran in the last call, without host segments and transfers.
        self.emulation_seconds = 0.0
        registry = Registry() if registry is None else registry
        self._registered = {
            port.value: registry.share(port.key, _type(app, port.value), app.constants[port.value])
            for port in app.registered
        }
        #: Each new value, with the registered value that it renews: one may renew several.
        self._updates = [(port.value, self._registered[port.key]) for port in app.updates]
        read = {port.value for port in (*app.outputs, *app.updates)}
        read.update(*(one.inputs for one in app.segments if isinstance(one, HostSegment)))
        # The data may be that of a module which is trained on: what calls read must not change.
        self._constants = {n: np.array(a) for n, a in app.constants.items() if n in read}
        #: By new value: the registered value whose words the program overwrites with it.
        self._in_place = {
            port.value: port.key
            for port in app.updates
            if self._in_dram(port.value) == self._in_dram(port.key) is not None
        }
        self._block = board.allocate(app.dram_words)
        self._bound_always: Bound | None = None
        self._programs: dict[_Places, list[emu2.Program | HostSession]] = {}
        self._results: list[weakref.ref[Held]] = []
        with board.lock:
            self._load()

    def place(self, key: str, *, output: bool) -> DramTensor | None:
        """Return the DRAM place of an input or output; None if only the host uses it."""
        ports = self.app.outputs if output else self.app.inputs
        return self._own(next(port.value for port in ports if port.key == key))

    def _in_dram(self, name: str) -> int | None:
        """Return the offset of a value in the function's DRAM; None if only the host has it."""
        value = self.app.values[name]
        return None if value.layout is None else value.dram

    def _own(self, name: str) -> DramTensor | None:
        value = self.app.values[name]
        if value.layout is None:
            return None
        type = TensorType(value.elem, value.shape)
        return DramTensor(self.board, self._block, value.dram, value.layout, value.dtype, type)

    def allocate(self, key: str) -> Held:
        """Return a new tensor for an input, all zero, where the function can read it."""
        own = self.place(key, output=False)
        # A buffer of halves would round the singles that are written to it.
        if own is None or own.dtype == MNDtype.HALF.value:
            return on_host(self.inputs[key], _zeros(self.inputs[key]))
        place = own.moved(self.board.allocate(own.image.dram_words))
        place.write(_zeros(place.type))
        return Held(place.type, place=place)

    @property
    def host_runtimes(self) -> tuple[str, ...]:
        """The library that runs each segment of the host, in order."""
        return tuple(session.runtime for session in self._sessions.values())

    @property
    def report(self) -> Performance:
        """How fast the app is, as far as it knows."""
        return of_app(self.app, self.board.target.spec.clock_mhz)

    def run(self, inputs: Mapping[str, Array | Source]) -> dict[str, Held]:
        """Run the segments in order."""
        with self.board.lock, trace.span("call"):
            return self._run(inputs)

    def _run(self, inputs: Mapping[str, Array | Source]) -> dict[str, Held]:
        with trace.span("keep results"):
            self._keep_results()
        bound = dict(self._registered_places())
        values: dict[str, Array] = {}
        with trace.span("place inputs"):
            for port in self.app.inputs:
                given = inputs[port.key]
                place = None if isinstance(given, np.ndarray | np.generic) else given.place
                own = self._own(port.value)
                if place is not None and own is not None and place.like(own):
                    bound[port.value] = place
                else:
                    self._give(port.value, np.array(_values(given)), values)
        steps = self._loaded(bound)
        self.emulation_seconds = 0.0
        for number, (segment, step) in enumerate(zip(self.app.segments, steps, strict=True)):
            if isinstance(step, HostSession):
                with trace.span(f"host segment {number}"):
                    fetched = {name: self._fetch(name, values, bound) for name in segment.inputs}
                    for name, array in step.run(fetched).items():
                        self._give(name, array, values)
            else:
                assert isinstance(segment, DeviceSegment)
                with trace.span(f"segment {number}"):
                    self._execute(step, segment)
                trace.device(f"segment {number}", segment, step.spec.clock_mhz)
        outputs = self._outputs(values, bound)
        with trace.span("update registered values"):
            self._update(values, bound)
        return outputs

    def _update(self, values: Mapping[str, Array], bound: Bound) -> None:
        """Update registered values with the outputs of the call."""
        known = {*values, *bound, *self._registered, *self._constants} - {*self._in_place}
        own = {n: None if n in known else bound.get(n) or self._own(n) for n, _ in self._updates}
        # A new value may be another registered value, as it was before any of them changes.
        arrays = {n: self._fetch(n, values, bound) for n, place in own.items() if place is None}
        for name, registered in self._updates:
            if (place := own[name]) is None:
                registered.load(arrays[name])
            else:
                registered.renew(place)

    def _keep_results(self) -> None:
        """Save earlier results that are still in use: this call overwrites them."""
        for reference in self._results:
            held = reference()
            if held is not None:
                held.keep()
        self._results.clear()

    def _load(self) -> None:
        """Copy constants to DRAM, and prepare the programs of all calls."""
        for name, array in self.app.constants.items():
            own = self._own(name)
            if own is not None and name not in self._registered:
                own.write(array)
        if not self._registered:
            self._loaded({})

    def _registered_places(self) -> Bound:
        """Return the DRAM tensors of registered values; they are allocated at the first call."""
        if self._bound_always is None:
            bound = {
                name: found.copy_like(own)
                for name, found in self._registered.items()
                if (own := self._own(name)) is not None
            }
            new = {name: bound[old] for name, old in self._in_place.items()}
            self._bound_always = {**bound, **new}
        return self._bound_always

    def _loaded(self, bound: Bound) -> list[emu2.Program | HostSession]:
        """Return the segments, with programs that read bound values at their places."""
        key = tuple(sorted((name, place.addr) for name, place in bound.items()))
        found = self._programs.pop(key, None)
        if found is None:
            found = self._assembled(bound)
        while len(self._programs) >= _PROGRAMS:
            del self._programs[next(iter(self._programs))]
        self._programs[key] = found
        return found

    def _assembled(self, bound: Bound) -> list[emu2.Program | HostSession]:
        steps: list[emu2.Program | HostSession] = []
        target = self.board.target
        moved = []
        for name, place in bound.items():
            value = self.app.values[name]
            moved.append(Moved(value.dram, value.dram + value.words, place.addr))
        for number, segment in enumerate(self.app.segments):
            if isinstance(segment, DeviceSegment):
                code = relocate(segment.code, segment.relocations, self._block.addr, target, moved)
                program = target.assemble(code, f"segment{number}.vsm")
                facts = program.report()
                if (facts["steps"], facts["cycles"]) != (segment.steps, segment.cycles):
                    raise error(
                        "P0403",
                        segment=number,
                        found=facts["steps"],
                        found_cycles=facts["cycles"],
                        steps=segment.steps,
                        cycles=segment.cycles,
                    )
                if self.board.findings is None:
                    self.board.machine.prepare(program)
                steps.append(program)
            else:
                steps.append(self._sessions[number])
        return steps

    def _execute(self, program: emu2.Program, segment: DeviceSegment) -> None:
        start = time.perf_counter()
        try:
            report = self.board.machine.run(program, sanitize=self.board.findings is not None)
            if self.board.findings is not None:
                self.board.findings += (
                    {**one, "node": segment.lines.note(one["line"] - 1)} for one in report.findings
                )
        except emu2.RunError as problem:
            raise error("P0604", reason=problem.message) from problem
        self.emulation_seconds += time.perf_counter() - start

    def _give(self, name: str, array: Array, values: dict[str, Array]) -> None:
        """Give a value to host segments, and to the device if the device uses it."""
        values[name] = array
        own = self._own(name)
        if own is not None:
            own.write(array)

    def _fetch(self, name: str, values: Mapping[str, Array], bound: Bound) -> Array:
        """Return the values of ``name`` as they are now."""
        if name in values:
            return values[name]
        if name in self._registered:
            return self._registered[name].values()
        if name in self._constants:
            return self._constants[name]
        place = bound.get(name) or self._own(name)
        assert place is not None, f"`{name}` is neither on the host nor in DRAM"
        return place.read()

    def _outputs(self, values: Mapping[str, Array], bound: Bound) -> dict[str, Held]:
        outputs: dict[str, Held] = {}
        given: set[str] = set()
        known = {*values, *bound, *self._registered, *self._constants}
        for port in self.app.outputs:
            own = self._own(port.value)
            if port.value in known or port.value in given or own is None:
                array = self._fetch(port.value, values, bound)
                outputs[port.key] = on_host(self.outputs[port.key], array)
            else:
                given.add(port.value)
                outputs[port.key] = Held(self.outputs[port.key], place=own)
                self._results.append(weakref.ref(outputs[port.key]))
        return outputs


def _type(app: App, name: str) -> TensorType:
    return TensorType(app.values[name].elem, app.values[name].shape)


def types_of(app: App, ports: Sequence[Port]) -> Mapping[str, TensorType]:
    """Return the types of ports of an app by their keys."""
    return {port.key: _type(app, port.value) for port in ports}
