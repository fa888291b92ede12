"""Error bounds of compiled functions, by computing dtype and kind of operator.

The documentation of the operators and the tests use this one table. A bound is relative to the
reference unless it says otherwise.
"""

from __future__ import annotations

ELEMENTWISE = "elementwise"
FUNCTION = "function"
MOVE = "move"
PRODUCT = "product"
SUM = "sum"

#: (computing dtype, kind of operator) -> largest |result - reference| / |reference|
RELATIVE: dict[tuple[str, str], float] = {
    ("Float", ELEMENTWISE): 2.0**-22,
    ("Float", FUNCTION): 2.0**-20,
    ("Float", MOVE): 0.0,
    ("Double", ELEMENTWISE): 2.0**-51,
    ("Double", FUNCTION): 2.0**-48,
    ("Double", MOVE): 0.0,
}

#: (computing dtype, kind) -> largest relative error of a product of K factors, divided by K.
PRODUCTS: dict[tuple[str, str], float] = {
    ("Float", PRODUCT): 2.0**-23,
    ("Double", PRODUCT): 2.0**-52,
}

#: (computing dtype, kind) -> largest error of a sum of K products, divided by K max|a| max|b|.
#: For a plain sum, b = 1.
SUMS: dict[tuple[str, str], float] = {
    ("Float", SUM): 2.0**-20,
    ("Double", SUM): 2.0**-48,
    # Block float of 18 bits: for each factor, half a unit in the last place of the block's largest.
    ("PseudoSingle", SUM): 0.5 * 2.0**-15,
    # A factor is rounded to half and then to block float. In the worst case both errors add up.
    ("Half", SUM): 1.5 * 2.0**-8,
}

#: Results below this magnitude become zero (this machine has no denormals).
FLUSH: dict[str, float] = {"Float": 2.0**-126, "Double": 2.0**-1022}

#: float_dtype -> largest |result - reference| of a whole network, divided by the largest
#: |reference| of the same output. Errors of layers add up in ways that no bound of one layer gives.
NETWORKS: dict[str, float] = {"float": 1e-4, "mixed": 5e-2}
#: The same for networks of `float64`, in every ``float_dtype``.
WIDE_NETWORKS = 1e-12


def bound(dtype: str, kind: str, operations: int = 1) -> float:
    """Return the relative bound after ``operations`` operators in a row whose errors only add."""
    return RELATIVE[dtype, kind] * operations
