"""Names in an ONNX model: renaming, and the caller's keys of inputs and outputs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

import onnx

from .metadata import read, record
from .registered import registered

_INPUT_KEYS = "pycompiler.input_keys"
_OUTPUT_KEYS = "pycompiler.output_keys"


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield ``graph`` and the bodies of its control-flow nodes, at any depth."""
    yield graph
    for node in graph.node:
        for body in bodies_of(node):
            yield from graphs(body)


def bodies_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Return the bodies of a control-flow node; none for other nodes."""
    return [body for a in node.attribute for body in ([a.g] if a.HasField("g") else a.graphs)]


def nodes_of(part: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a graph or a function and of their bodies, at any depth."""
    for node in part.node:
        yield node
        for body in bodies_of(node):
            yield from nodes_of(body)


def own_names(graph: onnx.GraphProto) -> set[str]:
    """Return the values that a graph and its bodies are given or make."""
    given = {v.name for part in graphs(graph) for v in (*part.input, *part.initializer)}
    return given | {name for node in nodes_of(graph) for name in node.output}


def outer_reads(node: onnx.NodeProto) -> list[str]:
    """Return the values outside of its bodies that the bodies of a node read."""
    outer: list[str] = []
    for body in bodies_of(node):
        inner = own_names(body)
        read = (name for n in nodes_of(body) for name in n.input)
        given = (v.name for part in graphs(body) for v in part.output)
        outer += [n for n in (*read, *given) if n and n not in inner and n not in outer]
    return outer


def reads_of(node: onnx.NodeProto) -> list[str]:
    """Return the values that a node reads, also in its bodies; each once."""
    return list(dict.fromkeys(n for n in (*node.input, *outer_reads(node)) if n))


def all_names(graph: onnx.GraphProto) -> set[str]:
    """Return every value name of ``graph`` and its bodies."""
    names: set[str] = set()
    for part in graphs(graph):
        names.update(t.name for t in (*part.input, *part.output, *part.initializer))
        names.update(n for node in part.node for n in (*node.input, *node.output))
    return names - {""}


def fresh(wanted: str, taken: Container[str]) -> str:
    """Return the first of ``wanted``, ``wanted__1``, ``wanted__2``... that is not taken."""
    name, count = wanted, 0
    while name in taken:
        count += 1
        name = f"{wanted}__{count}"
    return name


def reserved(wanted: str, taken: set[str]) -> str:
    """Return a fresh name, which is taken from now on."""
    name = fresh(wanted, taken)
    taken.add(name)
    return name


def rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Rename values of ``graph`` and its bodies in place; ``names`` maps old to new."""
    for part in graphs(graph):
        for item in (*part.input, *part.output, *part.initializer, *part.value_info):
            item.name = names.get(item.name, item.name)
        for node in part.node:
            for index, name in enumerate(node.input):
                node.input[index] = names.get(name, name)
            for index, name in enumerate(node.output):
                node.output[index] = names.get(name, name)


def set_keys(model: onnx.ModelProto, inputs: list[str], outputs: list[str]) -> None:
    """Give the model's inputs and outputs the caller's names, in order.

    Inner values that have one of these names are renamed. Every output becomes a value of its own.
    If a key names both an input and an output, the output gets another ONNX name. The keys are
    recorded in the model's metadata, where :func:`keys` finds them.
    """
    graph = model.graph
    _separate_outputs(graph, all_names(graph))
    old = [value.name for value in (*graph.input, *graph.output)]
    taken = set(inputs)
    output_names: list[str] = []
    for key in outputs:
        output_names.append(reserved(f"{key}__out" if key in taken else key, taken))
    renamed = dict(zip(old, [*inputs, *output_names], strict=True))
    others = all_names(graph) - set(old)
    for name in others & taken:
        renamed[name] = fresh(name, others | taken | set(renamed.values()))
    rename(graph, renamed)
    record_keys(model, inputs, outputs)


def record_keys(model: onnx.ModelProto, inputs: list[str], outputs: list[str]) -> None:
    """Record the caller's names of inputs and outputs, in order, in place of older ones."""
    record(model, _INPUT_KEYS, inputs)
    record(model, _OUTPUT_KEYS, outputs)


def separate_body_outputs(model: onnx.ModelProto) -> None:
    """Give every output of the bodies of control flow a node of its own, in place.

    If one value is two outputs of a body, onnxruntime returns uninitialised memory for it.
    """
    bodies = list(graphs(model.graph))[1:]
    taken = all_names(model.graph) if bodies else set()
    for body in bodies:
        _separate_outputs(body, taken)


def _separate_outputs(graph: onnx.GraphProto, taken: set[str]) -> None:
    """Copy with Identity each output that no node makes, or that is already an output."""
    made = {name for node in graph.node for name in node.output}
    for output in graph.output:
        if output.name in made:
            made.remove(output.name)
            continue
        name = reserved(f"{output.name}__copy", taken)
        graph.node.append(onnx.helper.make_node("Identity", [output.name], [name], name=name))
        output.name = name


def keys(model: onnx.ModelProto) -> tuple[list[str], list[str]]:
    """Return the caller's names of the model's inputs and outputs, in order."""
    not_given = {tensor.name for tensor in model.graph.initializer} | set(registered(model))
    inputs = [value.name for value in model.graph.input if value.name not in not_given]
    outputs = [value.name for value in model.graph.output]
    named_inputs = read(model, _INPUT_KEYS, None) or inputs
    named_outputs = read(model, _OUTPUT_KEYS, None) or outputs
    return list(named_inputs), list(named_outputs)
