"""The ONNX nodes that compute on the host what a node of the graph computes on the device.

A node of the graph may stand for several ONNX nodes. The host has operators for those only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import onnx

from ..graph.graph import MNNode
from ..pfvm.names import outer_reads

#: By name of a node of the graph: its ONNX nodes, in order.
HostForms = dict[str, tuple[onnx.NodeProto, ...]]


def host_forms(
    nodes: Iterable[MNNode], protos: Sequence[onnx.NodeProto], known: Collection[str]
) -> HostForms:
    """Return the ONNX nodes between inputs and outputs of each node, out of ``protos`` in order.

    They read the constants in ``known`` too.
    """
    places = {name: place for place, proto in enumerate(protos) for name in proto.output}
    forms: HostForms = {}
    for node in nodes:
        given = {"", *node.inputs, *known} - set(node.outputs)
        found: set[int] = set()
        wanted = [name for name in node.outputs if name]
        while wanted:
            name = wanted.pop()
            if name in given or name not in places or places[name] in found:
                continue
            found.add(places[name])
            proto = protos[places[name]]
            wanted += [*proto.input, *outer_reads(proto)]
        if found:
            forms[node.name] = tuple(protos[place] for place in sorted(found))
    return forms
