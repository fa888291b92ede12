"""A chain of views becomes one cut of axes, one exchange of axes, and one join of axes.

torch writes the heads of attention by chains of views that join the batch with the heads and take
them apart again. An axis that is only cut, and not joined with another one first, can be worked on
slice by slice.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

import onnx_ir as ir

from .head_products import Atom, Atoms, transposed
from .replacing import DOMAINS, VIEWS, Made, only_user, shape_of


def join_views(model: ir.Model) -> None:
    """Shorten the chains of views of the main graph, in place."""
    for node in list(model.graph):
        if node.graph is model.graph and _is_view(node):
            source = node.inputs[0]
            before = source.producer() if source is not None else None
            # A chain begins behind another node, or where other nodes read the value too.
            if before is None or not _is_view(before) or only_user(source, model.graph) is None:
                _shorten(model.graph, node)


def _is_view(node: ir.Node) -> bool:
    return node.domain in DOMAINS and (node.op_type == "Transpose" or node.op_type in VIEWS)


def _shorten(graph: ir.Graph, node: ir.Node) -> None:
    source = node.inputs[0]
    shape = shape_of(source)
    if shape is None or prod(shape) == 1:
        return
    atoms = Atoms(shape)
    chain = _views_from(node, atoms, graph)
    result = shape_of(chain[-1].outputs[0]) if chain else None
    if result is None:
        return
    _merge(atoms)
    have = [atom for axis in atoms.axes for atom in axis]
    want = [atom for axis in atoms.now for atom in axis]
    sizes, turned = [tuple(atom.size for atom in order) for order in (have, want)]
    moved = [id(atom) for atom in have] != [id(atom) for atom in want]
    steps = int(result != shape)
    if moved:
        cut = sizes != tuple(size for size in shape if size > 1)
        steps = 1 + cut + (turned != result)
    if steps >= len(chain):
        return
    made = Made(chain[-1], "joined")
    # Without a cut the axes of one element stay where they are, in front.
    value = transposed(made, made.view(source, sizes), have, want) if moved else source
    made.put(made.view(value, result), chain)


def _views_from(node: ir.Node, atoms: Atoms, graph: ir.Graph) -> list[ir.Node]:
    """Return the views from a node on of which each is read by the next one only."""
    chain, user = list[ir.Node](), node
    while _is_view(user) and atoms.take(user):
        chain.append(user)
        reader = only_user(user.outputs[0], graph)
        if reader is None or reader.inputs[0] is not user.outputs[0]:
            break
        user = reader
    return chain


def _merge(atoms: Atoms) -> None:
    """Join neighbours that are neighbours in both shapes."""
    for axis in atoms.axes:
        for one, other in list(pairwise(list(axis)))[::-1]:
            place = next((own for own in atoms.now if one in own), None)
            if place is None or other not in place or place.index(other) != place.index(one) + 1:
                continue
            joined = Atom(one.size * other.size)
            for own in (axis, place):
                at = own.index(one)
                own[at : at + 2] = [joined]
