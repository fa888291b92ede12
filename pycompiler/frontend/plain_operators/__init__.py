"""Operators that torch's ONNX exporter cannot express, in operators that it can.

The table has a function for each. Operators of the table are decomposed before an export. If the
export fails all the same, the program is decomposed once with torch's table too, so an operator is
found inside of others, and exported again. The host calls the operators that are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch._decomp import decomposition_table

from ...errors import PycompilerError
from ..as_torch import like_torch, traced_place
from ..double_forms import composed, doubles_of, either
from .complex_numbers import COMPLEX, of_reals
from .elementwise import ELEMENTWISE
from .groups import GROUPS, LIBRARIES
from .images import IMAGES
from .matrices import MATRICES
from .order import ORDER
from .places import PLACES, joined_empty
from .replacements import not_expressible
from .special import SPECIAL

_ATEN = torch.ops.aten
#: Operators that torch itself makes of others, which the tables and the exporter have.
_COMPOSED = (
    *(_ATEN.atleast_1d.Sequence, _ATEN.atleast_2d.Sequence, _ATEN.atleast_3d.Sequence),
    *(_ATEN.hstack.default, _ATEN.vstack.default, _ATEN.dstack.default),
    *(_ATEN.column_stack.default, _ATEN.repeat_interleave.self_Tensor),
    *(_ATEN.det.default, _ATEN.linalg_det.default, _ATEN.logdet.default, _ATEN.slogdet.default),
    _ATEN.linalg_slogdet.default,
    *(_ATEN.special_expm1.default, _ATEN.special_log1p.default, _ATEN.special_digamma.default),
    *(_ATEN.special_psi.default, _ATEN.special_erfinv.default, _ATEN.special_i0.default),
    *(_ATEN.special_gammaln.default, _ATEN.special_erfc.default, _ATEN.special_sinc.default),
    *(_ATEN.special_polygamma.default, _ATEN.special_multigammaln.default),
    _ATEN.isclose.default,
)
#: Operators that torch's table writes in others of which these tables have forms.
_TABLED = (
    *(_ATEN.heaviside.default, _ATEN.ldexp.Tensor, _ATEN.mvlgamma.default),
    _ATEN.special_log_ndtr.default,
)
_TABLES = ELEMENTWISE | GROUPS | IMAGES | MATRICES | ORDER | PLACES | SPECIAL
TABLE = _TABLES | {op: of_reals(composed(op)) for op in _COMPOSED}
TABLE |= {op: of_reals(decomposition_table[op]) for op in _TABLED}

#: Operators of which the exporter takes most calls; the others are decomposed if it fails.
PARTIAL: dict[Any, Any] = {torch.ops.aten.cat.default: joined_empty, **COMPLEX}


def in_plain_operators(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return ``program`` without the operators of the table."""
    used = {node.target for node in _all_nodes(program) if node.op == "call_function"}
    found = TABLE if used & TABLE.keys() else {}
    found |= {op: LIBRARIES[str(op)] for op in used if str(op) in LIBRARIES}
    return program.run_decompositions(like_torch(found)) if found else program


def _all_nodes(program: torch.export.ExportedProgram) -> Iterator[torch.fx.Node]:
    """Yield the nodes of the graph and of its parts, such as that of ``torch.no_grad``."""
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from module.graph.nodes


def all_in_plain_operators(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return ``program`` without operators of the table inside of others."""
    table = _torchs_table()
    doubles = {op: either(rule, table.get(op)) for op, rule in doubles_of(program).items()}
    table = {**table, **like_torch({**doubles, **TABLE, **PARTIAL})}
    plain: torch.export.ExportedProgram = program.run_decompositions(table)
    for node in plain.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and not node.target._schema.returns:
            plain.graph.erase_node(node)  # it only looks at values
    return plain


def untranslated(program: torch.export.ExportedProgram) -> dict[Any, PycompilerError]:
    """Return the operators that torch's exporter does not translate, with the refusal of each."""
    from torch.onnx._internal.exporter import _dispatching

    found: dict[Any, PycompilerError] = {}
    for node in _all_nodes(program):
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        if _dispatching.dispatch(node, _registry())[0] is None:
            refused = not_expressible(str(node.target), traced_place(node.meta))
            found.setdefault(node.target, refused)
    return found


@cache
def _registry() -> Any:
    from torch.onnx._internal.exporter import _registration

    return _registration.ONNXRegistry.from_torchlib()


@cache
def _torchs_table() -> dict[Any, Any]:
    """Return the decompositions of torch's exporter: of all operators that it cannot translate."""
    from torch.onnx._internal.exporter import _decomp

    known = _decomp.get_onnx_implemented_overloads(_registry())
    return dict(_decomp.create_onnx_friendly_decomposition_table(set(known)))
