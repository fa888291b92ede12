"""Runs a model on a device in kernel mode and on the host, as dependent tasks.

Each operation is a task that starts when its operands are there: a kernel, or a copy between
memories. Kernels of the device, and copies into its memory, run in the order of the model; kernels
of the host run beside them. Memory of a call is planned ahead (:mod:`.reuse`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import onnx
from onnx import numpy_helper

from ..errors import PycompilerError, error
from ..graph.graph import TensorType
from ..partitioning.source import Unit, read_source
from ..pfvm.names import keys
from ..pfvm.session import Array
from .interface import Form, Kernel
from .pool import Buffer
from .reuse import Plan, Step, plan_reuse
from .session import Session, type_of
from .tasks import TaskPool

_FLOATS = ("float", "double", "float16", "bfloat16")


@dataclass(eq=False)
class _Tensor:
    """A value in the memory of one side. ``buffer`` is that of a constant."""

    name: str
    side: Session
    form: Form
    buffer: Buffer | None = None


@dataclass(eq=False)
class _Run:
    """One call: the inputs, and the memory of each side."""

    inputs: Mapping[str, Array]
    bases: dict[Session, int] = field(default_factory=dict)


class MixedGraph:
    """A model, split into kernels of ``device`` and of ``host``.

    Operators named in ``on_host``, those that the device refuses, and those whose compile fails
    run on the host; ``reasons`` has why. ``cycles`` are those of the device's kernels, ``kernels``
    how many there are, ``moves`` the tensors that change their form on the way through the host.
    ``plans`` has the memory plan of each side. P0103, P0801, P0828.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        device: Session,
        host: Session,
        *,
        on_host: Collection[str] = (),
        threads: int = 4,
        seconds: float = 2.0,
    ):
        if device.kernels is None or host.kernels is None or device.device.kernels is None:
            raise error("P0828", what="a mixed graph", reason="it has no kernel mode")
        self.device, self.host = device, host
        chip = device.device.kernels
        self.source = read_source(chip.optimise(model))
        self.reasons: dict[str, str] = {}
        self.cycles = self.kernels = self.moves = 0
        self._steps: list[Step] = []
        self._works: list[Callable[[_Run], None]] = []
        self._maker: dict[str, int] = {}
        self._tensors: dict[str, list[_Tensor]] = {}
        self._all: dict[str, _Tensor] = {}
        for unit in chip.split(self.source):
            reason = "the caller wants it there" if unit.name in on_host else chip.refusal(unit)
            if reason is None:
                try:
                    self._kernel(unit, device)
                    continue
                except PycompilerError as problem:
                    reason = f"{problem.code}: {problem.message}"
            self.reasons[unit.nodes[0].output[0]] = reason
            self._kernel(unit, host)
        self._results = {name: self._result(name) for name in dict.fromkeys(self.source.outputs)}
        self.plans = {side: self._plan(side, seconds) for side in (device, host)}
        self._tasks = TaskPool(threads)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model on arrays by name, and return its outputs. P0821, P0825, P0828."""
        given, made = keys(self.source.model)
        found = dict(zip(given, self.source.inputs, strict=True))
        for key, name in found.items():
            if (
                not isinstance(inputs.get(key), np.ndarray)
                or type_of(inputs[key]) != self.source.types[name]
            ):
                reason = f"the input `{key}` must be {self.source.types[name]}"
                raise error("P0828", what="the call", reason=reason)
        run = _Run({name: inputs[key] for key, name in found.items()})
        arenas = []
        try:
            for side, plan in self.plans.items():
                if plan.size:
                    arena = side.pool.allocate(plan.size)
                    arenas.append((side, arena))
                    run.bases[side] = arena.address
            futures: list[Future[None]] = []
            for work, before in zip(self._works, self._before, strict=True):
                futures.append(self._tasks.submit(partial(work, run), [futures[i] for i in before]))
            wait(futures)
            for future in futures:
                future.result()
            results = {n: self._array(self._all[t], run) for n, t in self._results.items()}
        finally:
            for side, arena in arenas:
                side.pool.free(arena)
        return dict(zip(made, (results[name] for name in self.source.outputs), strict=True))

    def close(self) -> None:
        """End the threads, and free the constants."""
        self._tasks.close()
        for tensor in self._all.values():
            if tensor.buffer is not None:
                tensor.side.pool.free(tensor.buffer)
        self._all.clear()

    # -- building ----------------------------------------------------------------------------

    def _kernel(self, unit: Unit, side: Session) -> None:
        """Add the kernel of a unit, and the copies that it needs."""
        part = self.source.part(unit.numbers, "kernel")
        executor = side.device.kernels
        assert side.kernels is not None
        assert executor is not None
        freed = _without_weights(part, self.source.types) if side is self.device else part
        for model in (freed, part):
            names = [value.name for value in model.graph.input]
            have = {n: t[0].form for n in names if (t := self._on(n, side))}
            try:
                kernel = side.kernels.kernel(model, have)
                break
            except PycompilerError:
                if model is part:
                    raise
        given = [
            self._tensor(name, side, form) for name, form in zip(names, kernel.inputs, strict=True)
        ]
        made = [
            self._new(value.name, side, form)
            for value, form in zip(model.graph.output, kernel.outputs, strict=True)
        ]

        def work(run: _Run, kernel: Kernel = kernel) -> None:
            places = [[self._address(t, run) for t in some] for some in (given, made)]
            executor.launch(kernel, *places)

        self._step(side, work, given, made)
        if side is self.device:
            self.cycles += kernel.cycles or 0
            self.kernels += 1

    def _on(self, name: str, side: Session) -> list[_Tensor]:
        return [tensor for tensor in self._tensors.get(name, []) if tensor.side is side]

    def _tensor(self, name: str, side: Session, form: Form) -> _Tensor:
        """Return a value in the memory of a side, in the given form; adds a copy if there is none.

        Constants are put there now, inputs by a step of each call.
        """
        resources = side.device.resources
        for tensor in self._on(name, side):
            if resources.same(tensor.form, form):
                return tensor
        made = self._new(name, side, form)
        if name in self.source.constants:
            made.buffer = side.pool.allocate(form.size)
            array = numpy_helper.to_array(self.source.constants[name])
            resources.write(made.buffer.address, resources.encode(array, form))
        elif name in self.source.inputs:

            def load(run: _Run) -> None:
                words = resources.encode(run.inputs[name], form)
                resources.write(self._address(made, run), words)

            self._step(side, load, [], [made])
        else:
            source = self._tensors[name][0]
            self.moves += source.side is side

            def copy(run: _Run) -> None:
                array = self._array(source, run)
                resources.write(self._address(made, run), resources.encode(array, form))

            self._step(side, copy, [source], [made])
        return made

    def _result(self, name: str) -> str:
        """Return the tensor that holds an output; nothing may overwrite it."""
        if not self._tensors.get(name):
            self._tensor(name, self.host, self.host.device.resources.form(self.source.types[name]))
        tensor = self._tensors[name][0]
        # The host reads all results in the end: after every step.
        self._step(None, lambda run: None, [tensor], [])
        return tensor.name

    def _new(self, name: str, side: Session, form: Form) -> _Tensor:
        made = _Tensor(f"{name} {len(self._all)}", side, form)
        self._all[made.name] = made
        self._tensors.setdefault(name, []).append(made)
        return made

    def _step(
        self,
        side: Session | None,
        work: Callable[[_Run], None],
        reads: list[_Tensor],
        writes: list[_Tensor],
    ) -> None:
        number = len(self._steps)
        stream = {self.device: 0, None: 1}.get(side, number + 2)
        after = {self._maker[t.name] for t in reads if t.name in self._maker}
        if side is None:
            after = set(range(number))
        read, written = (tuple(t.name for t in some) for some in (reads, writes))
        self._maker.update(dict.fromkeys(written, number))
        self._steps.append(Step(stream, read, written, tuple(sorted(after))))
        self._works.append(work)

    def _plan(self, side: Session, seconds: float) -> Plan:
        """Return the memory plan of a side."""
        own = {n: t for n, t in self._all.items() if t.side is side and t.buffer is None}
        steps = [
            Step(
                step.stream,
                tuple(name for name in step.reads if name in own),
                tuple(name for name in step.writes if name in own),
                step.after,
            )
            for step in self._steps
        ]
        sizes = {name: tensor.form.size for name, tensor in own.items()}
        align = side.device.resources.alignment
        return plan_reuse(steps, sizes, alignment=align, seconds=seconds)

    @property
    def _before(self) -> list[list[int]]:
        """Return the steps that each step waits for."""
        last: dict[int, int] = {}
        found = []
        for number, step in enumerate(self._steps):
            found.append([*step.after, *([last[step.stream]] if step.stream in last else [])])
            last[step.stream] = number
        return found

    # -- running -----------------------------------------------------------------------------

    def _address(self, tensor: _Tensor, run: _Run) -> int:
        if tensor.buffer is not None:
            return tensor.buffer.address
        return run.bases[tensor.side] + self.plans[tensor.side].offsets[tensor.name]

    def _array(self, tensor: _Tensor, run: _Run) -> Array:
        resources = tensor.side.device.resources
        words = resources.read(self._address(tensor, run), tensor.form)
        return resources.decode(words, tensor.form)


def _without_weights(part: onnx.ModelProto, types: Mapping[str, TensorType]) -> onnx.ModelProto:
    """Return the model with its constant tensors of floats as inputs: kernels are alike then."""
    made = onnx.ModelProto()
    made.CopyFrom(part)
    for tensor in part.graph.initializer:
        if types[tensor.name].elem in _FLOATS and tensor.dims:
            made.graph.initializer.remove(tensor)
            info = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            made.graph.input.append(info)
    return made
