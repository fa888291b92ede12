"""Operators that torch's ONNX exporter cannot express, in operators that it can.

The table has a function for each. Operators of the table are decomposed before an export. If the
export fails all the same, the program is decomposed once with torch's table too, so an operator is
found inside of others, and exported again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch

from .complex_numbers import COMPLEX
from .elementwise import ELEMENTWISE
from .groups import GROUPS, LIBRARIES
from .images import IMAGES
from .matrices import MATRICES
from .order import ORDER
from .places import PLACES, joined_empty
from .special import SPECIAL

TABLE = ELEMENTWISE | GROUPS | IMAGES | MATRICES | ORDER | PLACES | SPECIAL

#: Operators of which the exporter takes most calls; the others are decomposed if it fails.
PARTIAL = {torch.ops.aten.cat.default: joined_empty} | COMPLEX


def in_plain_operators(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return ``program`` without the operators of the table."""
    used = {node.target for node in _all_nodes(program) if node.op == "call_function"}
    found = {op: TABLE[op] for op in used & TABLE.keys()}
    found |= {op: LIBRARIES[str(op)] for op in used if str(op) in LIBRARIES}
    return program.run_decompositions(found) if found else program


def _all_nodes(program: torch.export.ExportedProgram) -> Iterator[torch.fx.Node]:
    """Yield the nodes of the graph and of its parts, such as that of ``torch.no_grad``."""
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from module.graph.nodes


def all_in_plain_operators(
    program: torch.export.ExportedProgram,
) -> torch.export.ExportedProgram | None:
    """Return ``program`` without those inside of others; None if it has none of them."""
    used = False

    def counted(function: Any) -> Any:
        def made_of(*args: Any, **kwargs: Any) -> Any:
            nonlocal used
            found = function(*args, **kwargs)
            used |= found is not NotImplemented
            return found

        return made_of

    table = {**TABLE, **PARTIAL}
    ours = {op: counted(function) for op, function in table.items()}
    plain = program.run_decompositions({**_torchs_table(), **ours})
    return plain if used else None


@cache
def _torchs_table() -> dict[Any, Any]:
    """Return the decompositions of torch's exporter: of all operators that it cannot translate."""
    from torch.onnx._internal.exporter import _decomp, _registration

    known = _decomp.get_onnx_implemented_overloads(_registration.ONNXRegistry.from_torchlib())
    return dict(_decomp.create_onnx_friendly_decomposition_table(set(known)))
