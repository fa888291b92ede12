"""Tables of MNCoreLookup, which stay in DRAM as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import replace

from ..graph.graph import MNNode, TensorType
from ..pfvm.device_functions import LOOKUP
from ..pfvm.held import Array
from ..pfvm.names import fresh


def with_own_tables(
    nodes: Iterable[MNNode],
    types: MutableMapping[str, TensorType],
    data: MutableMapping[str, Array],
) -> Iterator[MNNode]:
    """Yield the nodes; a constant that lookups and other nodes read is there twice.

    The second one goes to ``data`` and ``types``.
    """
    nodes = tuple(nodes)
    uses = Counter(name for node in nodes for name in dict.fromkeys(node.inputs))
    own = Counter(node.inputs[0] for node in nodes if node.op == LOOKUP)
    rows: dict[str, str] = {}
    for table, count in own.items():
        if table in data and uses[table] > count:
            rows[table] = fresh(f"{table}.rows", {*types, *data})
            data[rows[table]], types[rows[table]] = data[table], types[table]
    for node in nodes:
        table, *index = node.inputs or ("",)
        known = node.op == LOOKUP and table in rows
        yield replace(node, inputs=(rows[table], *index)) if known else node
