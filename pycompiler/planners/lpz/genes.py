"""Genes: for every value, the product that reads it, directly or after other operators.

A gene is a pair: the name of a product, and the operand of it that the value becomes (``A`` is the
left one, ``BT`` the right one). The product proposes layouts for these values. Proposals pass from
operator to operator in the same direction as genes: against the data flow.
"""

from __future__ import annotations

import re

from ...graph.graph import MNGraph
from ...layers.matmul import PRODUCTS
from ..overrides import ROLES

Gene = tuple[str, str]


def genes(graph: MNGraph) -> dict[str, Gene]:
    """Return the gene of every value that a product on the device reads, directly or later on.

    If there are several products, the first one in the order of the graph counts.
    """
    out: dict[str, Gene] = {}
    for node in reversed(list(graph.device_nodes())):
        if node.op in PRODUCTS:
            # The text form writes the pair in brackets with a comma between the two.
            name = re.sub(r"[,\]]", "_", node.name)
            out |= {value: (name, role) for value, role in zip(node.inputs, ROLES, strict=False)}
            continue
        wanted = next((out[name] for name in node.outputs if name in out), None)
        if wanted is not None:
            out |= dict.fromkeys((name for name in node.inputs if name), wanted)
    return out
