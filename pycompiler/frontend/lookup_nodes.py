"""Gathers of rows of long tables become MNCoreLookup: the table stays in DRAM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import onnx

from ..graph.dtypes import device_dtype
from ..graph.graph import MNNode, TensorType
from ..machine import Target
from ..pfvm.names import fresh
from ..pfvm.session import Array
from ..pfvm.source import source_of

#: The graph's own operator for rows of a table in DRAM.
LOOKUP = "MNCoreLookup"


def lookups(
    protos: Mapping[str, onnx.NodeProto],
    types: dict[str, TensorType],
    data: dict[str, Array],
    target: Target,
) -> dict[str, MNNode]:
    """Return the lookups that take the place of nodes, by name.

    A lookup reads its table as rows, so a constant that other nodes read as well is there twice;
    the second one goes to ``data`` and ``types``. An input that other nodes read as well is not
    looked up.
    """
    found = {name: proto for name, proto in protos.items() if _is_lookup(proto, types, target)}
    uses = Counter(name for proto in protos.values() for name in dict.fromkeys(proto.input))
    own = Counter(proto.input[0] for proto in found.values())
    rows: dict[str, str] = {}
    out: dict[str, MNNode] = {}
    for name, proto in found.items():
        table = proto.input[0]
        if table in data:
            if uses[table] > own[table] and table not in rows:
                rows[table] = fresh(f"{table}.rows", {*types, *data})
                data[rows[table]], types[rows[table]] = data[table], types[table]
            proto.input[0] = rows.get(table, table)
        elif uses[table] > own[table] or any(table in one.output for one in protos.values()):
            continue
        out[name] = MNNode(
            name, LOOKUP, tuple(proto.input), tuple(proto.output), source=source_of(proto)
        )
    return out


def _is_lookup(proto: onnx.NodeProto, types: Mapping[str, TensorType], target: Target) -> bool:
    """Whether ``proto`` is a Gather of rows of a matrix that is too long for LM."""
    if proto.op_type != "Gather" or proto.domain not in ("", "ai.onnx"):
        return False
    table, index = types.get(proto.input[0]), types.get(proto.input[1])
    axis = next((a.i for a in proto.attribute if a.name == "axis"), 0)
    if table is None or index is None or axis or len(table.shape) != 2 or not index.shape:
        return False
    longest = target.dar_row * device_dtype(table.elem).words_per_long
    return table.shape[0] > target.words("lm0") // 2 and table.shape[1] <= longest
