"""Models of which the host runs some nodes one by one: in stages between other sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import onnx
from numpy.typing import NDArray

from ..graph.stages import stages
from .declared import inferred
from .held import array_of
from .names import reads_of
from .torch_calls import DOMAIN, called


class StagedSession:
    """A model cut into stages: each is a model of ``start``, or nodes that run one by one.

    These are calls of torch, and the nodes that ``apart`` marks, which ``alone`` makes sessions of.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        start: Callable[[onnx.ModelProto], Any],
        apart: Sequence[bool],
        alone: Callable[[onnx.ModelProto], Any],
    ):
        model = inferred(model)
        graph = model.graph
        self._outputs = [info.name for info in graph.output]
        self._constants = {t.name: array_of(t) for t in graph.initializer}
        makers = {name: at for at, node in enumerate(graph.node) for name in node.output if name}
        reads = [reads_of(node) for node in graph.node]
        calls = [node.domain == DOMAIN for node in graph.node]
        plain = [not any(own) for own in zip(calls, apart, strict=True)]
        readers: dict[str, set[int]] = {name: {-1} for name in self._outputs}
        for at, names in enumerate(reads):
            for name in names:
                readers.setdefault(name, set()).add(at)
        #: A session, its results and what it reads, or a call of torch, in the order of their runs.
        self._steps: list[tuple[Any, list[str], list[str]] | onnx.NodeProto] = []
        for own in _together(reads, makers, plain):
            nodes = [graph.node[at] for at in own]
            if calls[own[0]]:
                self._steps += nodes
                continue
            results = [n for node in nodes for n in node.output if readers.get(n, set()) - {*own}]
            part = _part(model, nodes, results)
            made = (start if plain[own[0]] else alone)(part)
            self._steps.append((made, results, [port.name for port in part.graph.input]))

    @property
    def runtime(self) -> str:
        """The libraries that run the model."""
        used = ("torch" if isinstance(o, onnx.NodeProto) else o[0].runtime for o in self._steps)
        return " and ".join(sorted({name for names in used for name in names.split(" and ")}))

    def run(self, feed: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the results in order. Raises what a stage raises, ImportError without torch."""
        known = {**self._constants, **feed}
        for step in self._steps:
            if isinstance(step, onnx.NodeProto):
                known |= called(step, [known[name] for name in step.input])
                continue
            session, results, needs = step
            known |= zip(results, session.run({n: known[n] for n in needs}), strict=True)
        return [known[name] for name in self._outputs]


def _together(
    reads: Sequence[Iterable[str]], makers: Mapping[str, int], plain: Sequence[bool]
) -> Iterator[list[int]]:
    """Yield the nodes of each stage, one by one if they are not plain."""
    found = stages(plain, [[makers[n] for n in names if n in makers] for names in reads])
    for stage in sorted(set(found)):
        own = [at for at, number in enumerate(found) if number == stage]
        yield from [own] if plain[own[0]] else ([at] for at in own)


def _part(
    model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], results: Iterable[str]
) -> onnx.ModelProto:
    """Return a model of some nodes, which reads what they do not make."""
    graph = model.graph
    infos = {info.name: info for info in (*graph.input, *graph.value_info, *graph.output)}
    made = {name for node in nodes for name in node.output}
    read = dict.fromkeys(name for node in nodes for name in reads_of(node))
    given = {info.name for info in graph.input}  # with an initializer, it is a default
    constants = [t for t in graph.initializer if t.name in read and t.name not in given]
    known = made | {tensor.name for tensor in constants}
    part = onnx.helper.make_graph(
        nodes,
        "part",
        [infos[name] for name in read if name not in known],
        [infos.get(name, onnx.ValueInfoProto(name=name)) for name in results],
        constants,
        value_info=[infos[name] for name in made if name in infos and name not in results],
    )
    facts = {"opset_imports": model.opset_import, "ir_version": model.ir_version}
    return onnx.helper.make_model(part, **facts)
