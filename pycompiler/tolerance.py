"""Error bounds of compiled functions, by the dtype that computed and the kind of operator.

One table: the operators document it, the tests compare with it. A bound is relative to the
reference unless it says otherwise.
"""

from __future__ import annotations

ELEMENTWISE = "elementwise"
FUNCTION = "function"
MOVE = "move"
SUM = "sum"

#: (computing dtype, kind of operator) -> largest |result - reference| / |reference|
RELATIVE: dict[tuple[str, str], float] = {
    ("Float", ELEMENTWISE): 2.0**-22,
    ("Float", FUNCTION): 2.0**-20,
    ("Float", MOVE): 0.0,
}

#: (computing dtype, kind) -> largest error of a sum of K products over K max|a| max|b|; a sum
#: alone has b = 1.
SUMS: dict[tuple[str, str], float] = {
    ("Float", SUM): 2.0**-20,
    # Block float of 18 bits: half a unit of the block's largest element, for each factor.
    ("PseudoSingle", SUM): 0.5 * 2.0**-15,
    # A factor is rounded to half and then to block float: that adds up in the worst case.
    ("Half", SUM): 1.5 * 2.0**-8,
}

#: Results below this magnitude are flushed to zero (single precision has no denormals here).
FLUSH: dict[str, float] = {"Float": 2.0**-126}


def bound(dtype: str, kind: str, operations: int = 1) -> float:
    """Return the relative bound after ``operations`` operators in a row whose errors only add."""
    return RELATIVE[dtype, kind] * operations
