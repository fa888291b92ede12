"""The rewrites of a graph between import and code, in the order in which they run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..graph.rewrite import Facts, Row
from ..layout_spec import OperandSpec
from ..machine import Target
from .cropped_slices import CROP_SLICES
from .early_variances import PART_VARIANCES
from .fused_elementwise import FUSE_ELEMENTWISE
from .fused_functions import MEAN_IN_SINGLES, RECIPROCAL_ROOT
from .given import Given
from .halves import STORE_HALVES
from .parted_sums import CROSS_IN_DRAM, PART_SUMS, SUM_IN_DRAM
from .recut_chains import JOIN_RECUTS
from .rounded_factors import ROUND_DEPTHWISE, ROUND_FACTORS
from .rounded_results import ROUND_RESULTS
from .saved_halves import KEEP_FACTORS_AS_HALVES
from .saved_signs import SIGNS_OF_HALVES
from .stencils import TILE_STENCILS
from .sums_of_products import SUM_PRODUCTS

#: Before it is decided which nodes the host runs.
IMPORTED: tuple[Row, ...] = (TILE_STENCILS, CROP_SLICES)
#: Before values have dtypes.
SIDED: tuple[Row, ...] = (RECIPROCAL_ROOT, MEAN_IN_SINGLES)
#: Before values have locations and layouts.
TYPED: tuple[Row, ...] = (
    PART_VARIANCES,
    STORE_HALVES,
    ROUND_FACTORS,
    ROUND_DEPTHWISE,
    ROUND_RESULTS,
    SIGNS_OF_HALVES,
    KEEP_FACTORS_AS_HALVES,
    FUSE_ELEMENTWISE,
    SUM_PRODUCTS,
    JOIN_RECUTS,
)
#: Behind layouts and time slices.
SLICED: tuple[Row, ...] = (PART_SUMS, SUM_IN_DRAM, CROSS_IN_DRAM)

#: All of them, in the order in which they run.
REWRITES = (*IMPORTED, *SIDED, *TYPED, *SLICED)
#: What the option `fuse_elementwise` leaves out.
FUSIONS = frozenset({FUSE_ELEMENTWISE.name, SUM_PRODUCTS.name})


def facts_of(
    target: Target, given: Given, registered: Collection[str], data: Mapping[str, Any]
) -> Facts:
    """Return what rewrites read of the options of a compile.

    ``registered`` values are shared by several functions on the device, so they stay. ``data`` has
    the elements of constants. Operators of which the layouts of single operands are given stay
    apart.
    """
    apart = {spec.op_type for spec in given.layout_specs if isinstance(spec, OperandSpec)}
    return Facts(target, {*given.overrides, *registered}, data, apart, given.skipped)
