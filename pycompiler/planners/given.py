"""What the passes up to time slices read of the options of a compile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..layout_spec import LayoutSpec


@dataclass(frozen=True)
class Given:
    """What these passes read of the options. They see nothing else."""

    float_dtype: str
    gemm_precision: str
    #: names of rewrites that are left out
    skipped: frozenset[str]
    strict: bool
    #: read by the import
    update: str
    time_slice: str
    layout_planner: str
    layout_specs: tuple[LayoutSpec, ...]
    sram_budget: float
    overrides: Mapping[str, Mapping[str, str]]
