"""When a training step computes new values of parameters: as written, or as early as it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import onnx

from .names import reads_of
from .prepare import static_types
from .registered import updates
from .with_nodes import with_nodes

#: The new values where the function computes them, or each as soon as its gradient exists.
LAST, IMMEDIATE = "last", "immediate"


def own_updates(model: onnx.ModelProto) -> dict[str, str]:
    """Return the nodes that serve one parameter alone, by first output: its gradient and update.

    The value is an output with a new value of that parameter or of its state. A state belongs to
    the parameter whose new value is computed from it. Scalars, such as counts of steps, belong to
    none.
    """
    new = updates(model)
    types = static_types(model)
    large = {name for name in new if prod(types[name].shape) > 1}
    shown = {value.name for value in model.graph.output}
    reached: dict[str, set[str]] = {}  # the outputs that a value leads to
    merged = {name: name for name in large}

    def root(name: str) -> str:
        while merged[name] != name:
            name = merged[name]
        return name

    for node in reversed(model.graph.node):
        goals: set[str] = set()
        for name in node.output:
            goals |= reached.get(name, set())
            if name in shown:
                for other in goals & large if name in large else ():
                    merged[root(other)] = root(name)
                goals |= {name}
        for name in reads_of(node):
            reached.setdefault(name, set()).update(goals)
        reached[_key(node)] = goals
    found = {}
    for node in model.graph.node:
        goals = reached[_key(node)]
        if goals and goals <= large and len({root(goal) for goal in goals}) == 1:
            found[_key(node)] = root(next(iter(goals)))
    return found


def _key(node: onnx.NodeProto) -> str:
    return next(filter(None, node.output), "")


def ordered(model: onnx.ModelProto, when: str) -> onnx.ModelProto:
    """Return the model with its nodes in the order that ``when`` asks for.

    LAST leaves them as they are: a traced step has its updates where the function called
    ``step()``, and those that the compiler adds stand at the end. IMMEDIATE moves what serves one
    parameter as far to the front as its operands allow. The nodes are the same ones.
    """
    own = own_updates(model) if when == IMMEDIATE else {}
    if not own:
        return model
    return with_nodes(model, _early(list(model.graph.node), own))


def _early(nodes: list[onnx.NodeProto], own: Mapping[str, str]) -> list[onnx.NodeProto]:
    """Move each node of ``own`` behind the last node that makes one of its operands.

    A node that reads no result of the step, such as the decay of a momentum, could run at any time.
    It moves in front of the first node that reads it.
    """
    made = {name: place for place, node in enumerate(nodes) for name in node.output}
    waiting = _waiting(nodes, own, made)
    free = {place for place, names in waiting.items() if not names}
    readers: dict[str, list[int]] = {}
    for place, names in waiting.items():
        for name in names:
            readers.setdefault(name, []).append(place)
    order: list[onnx.NodeProto] = []
    done: set[int] = set()

    def put(place: int) -> None:
        """Put a node behind the free ones that it reads."""
        stack = [place]
        while stack:
            current = stack[-1]
            first = {made[n] for n in reads_of(nodes[current]) if n in made} & free - done
            stack += sorted(first, reverse=True)
            if not first:
                stack.pop()
                if current not in done:
                    done.add(current)
                    order.append(nodes[current])

    def emit(place: int) -> None:
        stack = [place]
        while stack:
            current = stack.pop()
            put(current)
            ready = []
            for name in nodes[current].output:
                for reader in readers.get(name, ()):
                    waiting[reader].discard(name)
                    if not waiting[reader]:
                        ready.append(reader)
            stack.extend(reversed(ready))

    for place in range(len(nodes)):
        if place not in waiting:
            emit(place)
    for place in sorted(free - done):
        put(place)
    return order


def _waiting(
    nodes: Sequence[onnx.NodeProto], own: Mapping[str, str], made: Mapping[str, int]
) -> dict[int, set[str]]:
    """Return the results that nodes of ``own`` wait for: not those of nodes that wait for none."""
    found: dict[int, set[str]] = {}
    for place, node in enumerate(nodes):
        if _key(node) in own:
            reads = (name for name in reads_of(node) if name in made)
            found[place] = {name for name in reads if found.get(made[name], True)}
    return found
