"""What to write in place of operators that have no form of ours either."""

from __future__ import annotations

from ...errors import PycompilerError, SourceLocation, error

_HOST = "compute it on the host, before or after the compiled function"
_VALUES = f"{_HOST}; a system is solved by torch.linalg.solve, lstsq, qr or cholesky"
_RANGE = "use a polynomial over the range that the model needs"

#: The beginning of an operator's name, as the exporter gives it, and the replacement.
_REPLACEMENTS = {
    "aten._linalg_svd": _VALUES,
    "aten._linalg_eigh": _VALUES,
    "aten.linalg_eig": _VALUES,
    "aten.linalg_pinv": "use torch.linalg.lstsq for a matrix of full rank",
    "aten.linalg_lstsq": "leave the argument `driver` out",
    "prims.as_strided_scatter": "use torch.slice_scatter, select_scatter or torch.where",
    "aten.linalg_polar": _VALUES,
    "aten.linalg_matrix_sqrth": _VALUES,
    "aten.linalg_ldl": "use torch.linalg.cholesky or torch.linalg.solve",
    "aten.geqrf": "use torch.linalg.qr",
    "aten.ormqr": "use torch.linalg.qr and a product",
    "prims.gcd": _HOST,
    "prims.igamma": _HOST,
    "prims.nextafter": "add a small multiple of the number",
    "prims.zeta": _RANGE,
    "prims.bessel": _RANGE,
    "aten.special_": _RANGE,
    "aten.segment_reduce": "use torch.scatter_reduce with the number of each element's segment",
    "aten.native_batch_norm": "use torch.nn.functional.batch_norm",
    "aten.fractional_max_pool": "use max_pool or adaptive_max_pool of torch.nn.functional",
    "aten.multinomial": "add -log(-log(torch.rand_like(p))) to p.log(), and take torch.topk",
    "aten._histogramdd": "use torch.bucketize for each axis, and torch.scatter_reduce",
    "aten.hash_tensor": _HOST,
    "aten.empty_permuted": "use torch.zeros and permute",
    "aten.avg_pool": "leave out one of divisor_override and ceil_mode",
    "torch.Generator": "draw on the host and pass the numbers as an input, or leave the generator "
    "out: torch.manual_seed before compile() decides the numbers of the function",
    "torch_nn._linear_cross_entropy": "use torch.nn.functional.linear, then cross_entropy",
}


def not_expressible(op: str, place: SourceLocation | None = None) -> PycompilerError:
    """Return the diagnostic of an operator: P0138 if the table knows a replacement, else P0102."""
    for name, text in _REPLACEMENTS.items():
        if op.startswith(name):
            return error("P0138", place=place, op=op, replacement=text)
    return error("P0102", place=place, op=op)
