"""Keeps kernels, by their model without the names of its values, and by the forms of its inputs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future

import onnx

from .interface import Executor, Form, Kernel


class KernelCache:
    """The kernels of one executor, at most ``most``; those that were not used for long go first.

    Threads that ask for the same kernel wait for one compile. A compile that fails is not kept.
    """

    def __init__(self, executor: Executor, most: int = 1024):
        self.executor, self.most = executor, most
        self.compiled = self.found = 0
        self._kept: OrderedDict[object, Future[Kernel]] = OrderedDict()
        self._lock = threading.Lock()

    def kernel(self, model: onnx.ModelProto, given: Mapping[str, Form] | None = None) -> Kernel:
        """Return the kernel of a model; raises what the compile raises."""
        forms = given or {}
        key = (_nameless(model), tuple(forms.get(v.name) for v in model.graph.input))
        with self._lock:
            future = self._kept.get(key)
            if future is None:
                own: Future[Kernel] | None = Future()
                assert own is not None
                self._kept[key] = future = own
                self.compiled += 1
                while len(self._kept) > self.most:
                    self._kept.popitem(last=False)
            else:
                own = None
                self._kept.move_to_end(key)
                self.found += 1
        if own is not None:
            try:
                own.set_result(self.executor.compile(model, forms))
            except BaseException as problem:
                with self._lock:
                    self._kept.pop(key, None)
                own.set_exception(problem)
        return future.result()


def _nameless(model: onnx.ModelProto) -> bytes:
    """Return the model with numbers for the names of its values and nodes."""
    graph = model.graph
    if any(a.HasField("g") or a.graphs for node in graph.node for a in node.attribute):
        return bytes(model.SerializeToString(deterministic=True))  # bodies read names of outside
    numbers: dict[str, str] = {"": ""}

    def renamed(name: str) -> str:
        return numbers.setdefault(name, str(len(numbers)))

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.graph.name = "kernel"
    del copy.graph.value_info[:]
    for value in (*copy.graph.input, *copy.graph.initializer):
        value.name = renamed(value.name)
    for node in copy.graph.node:
        node.name = ""
        node.input[:] = [renamed(name) for name in node.input]
        node.output[:] = [renamed(name) for name in node.output]
    for value in copy.graph.output:
        value.name = renamed(value.name)
    return bytes(copy.SerializeToString(deterministic=True))
