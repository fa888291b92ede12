"""A part of a graph that runs on the device, compiled for each set of shapes that arrives."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import torch.fx.traceback

from ..mlsdk.function import CompiledFunction
from ..summary.performance import Performance
from .module_paths import input_names
from .settings import Settings
from .views import Views

#: Tensors, and whole numbers that stand for sizes.
Value = torch.Tensor | int | float | bool
_Key = tuple[object, ...]
Tensors = dict[str, torch.Tensor]
Function = Callable[[Tensors], Tensors]

_numbers = itertools.count()


class Piece(torch.nn.Module):
    """Runs a graph of operators on the device; its result is a tuple.

    A tensor that a call gives with the same bytes as the call before stays on the device. So
    parameters are copied there once, and again after each change.
    """

    def __init__(self, graph: torch.fx.GraphModule, settings: Settings):
        super().__init__()
        self._views = Views(graph)
        # As an attribute of its own, the graph would be a submodule.
        self.__dict__["_graph"] = self._views.device_part()
        self._settings, self._number = settings, next(_numbers)
        self._compiled: dict[_Key, _Resident] = {}
        #: One report for each set of shapes.
        self.reports: list[Performance] = []

    @property
    def graph(self) -> torch.fx.GraphModule:
        """The graph that the device runs."""
        graph: torch.fx.GraphModule = self.__dict__["_graph"]
        return graph

    @property
    def placeholders(self) -> list[torch.fx.Node]:
        """The inputs of the graph."""
        return [node for node in self.graph.graph.nodes if node.op == "placeholder"]

    def forward(self, *values: Value) -> tuple[torch.Tensor, ...]:
        """Run the graph; it is compiled if these shapes are new. Raises what a compile raises."""
        # Threads share the tensors on the device.
        with self._settings.lock:
            return self._views.finished(values, self.prepared(values)(values))

    def prepared(self, values: Sequence[Value]) -> _Resident:
        """Return the function for values like these."""
        key: _Key = tuple(
            (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else value
            for value in values
        )
        if key not in self._compiled:
            self._compiled[key] = self._compile(values)
        return self._compiled[key]

    @staticmethod
    def traced(graph: torch.fx.GraphModule, values: Sequence[Value]) -> tuple[Function, Tensors]:
        """Return a graph as a function of a dict, and a sample of its inputs.

        Numbers in ``values`` become part of the function.
        """
        names = input_names(graph)
        sample = {
            name: sample_of(tuple(value.shape), value.dtype)
            for name, value in zip(names, values, strict=True)
            if isinstance(value, torch.Tensor)
        }

        def function(given: Tensors) -> Tensors:
            operands = (given.get(name, one) for name, one in zip(names, values, strict=True))
            with torch.fx.traceback.preserve_node_meta():  # the lines of the user's model
                found = torch.fx.Interpreter(graph).run(*operands)
            return {f"y{place}": tensor for place, tensor in enumerate(found)}

        return function, sample

    def _compile(self, values: Sequence[Value]) -> _Resident:
        settings = self._settings
        function, sample = self.traced(self.graph, values)
        with tempfile.TemporaryDirectory(prefix="emu2-") as scratch:
            base = settings.codegen_dir or Path(scratch)
            folder = base / f"piece{self._number}.{len(self._compiled)}"
            compiled = settings.context.compile(
                function,
                sample,
                folder,
                options=settings.compile,
                cache_options=settings.cache,
                training=False,
            )
            compiled.report.name = f"piece {self._number}"
            _ = compiled.report.slices  # read them while the folder is there
            self.reports.append(compiled.report)
        return _Resident(compiled, input_names(self.graph))


class _Resident:
    """A compiled function whose inputs stay on the device."""

    def __init__(self, compiled: CompiledFunction, names: Sequence[str]):
        self._compiled, self._names = compiled, names
        self._inputs = compiled.allocate_input_proxy()
        self._kept: dict[str, torch.Tensor] = {}

    def __call__(self, values: Sequence[Value]) -> tuple[torch.Tensor, ...]:
        for name, value in zip(self._names, values, strict=True):
            if isinstance(value, torch.Tensor):
                self._load(name, value.detach())
        found = self._compiled(self._inputs)
        return tuple(found[f"y{place}"].cpu() for place in range(len(found)))

    def _load(self, name: str, value: torch.Tensor) -> None:
        kept = self._kept.get(name)
        if kept is None or not _same_bytes(kept, value):
            self._kept[name] = value.clone(memory_format=torch.contiguous_format)
            self._inputs[name].load_from(self._kept[name])


def _same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype have the same bits: 0 is not -0."""
    bits = (tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other))
    return torch.equal(*bits)


def sample_of(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor that stands for those of a call."""
    return torch.zeros(shape, dtype=dtype)
