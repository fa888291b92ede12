"""The form of the inputs and outputs of compiled functions in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import error
from ..graph.graph import TensorType
from .dram import DramTensor
from .executable import Function

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class IOSpec:
    """Shape and dtype of an input or output, and its layout in DRAM.

    ``layout`` and ``device_dtype`` are None for values on the host: all values on ``pfvm:cpu``,
    and those values of a device function that only host operators use.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    layout: str | None = None
    device_dtype: str | None = None
    _place: DramTensor | None = field(default=None, repr=False, compare=False)

    def is_memcopyable_to(self, other: IOSpec) -> bool:
        """Whether bytes of a value with this spec can be read with the spec ``other``. P0704."""
        if not isinstance(other, IOSpec):
            raise error("P0704", name="other", value=repr(other), legal="an IOSpec")
        if (self.shape, self.dtype) != (other.shape, other.dtype):
            return False
        mine, its = self._place, other._place
        if mine is None or its is None:
            return mine is its
        same_machine = mine.board.target.digest == its.board.target.digest
        return same_machine and mine.same_order(its)


def specs_of(function: Function, types: Mapping[str, TensorType]) -> dict[str, IOSpec]:
    """Return the specs of ``types``, which are the inputs or the outputs of ``function``."""
    from ..frontend.torch_dtypes import TORCH_DTYPES  # slow: imports torch

    specs: dict[str, IOSpec] = {}
    for key, type in types.items():
        place = function.place(key, output=types is function.outputs)
        layout, dtype = (None, None) if place is None else (place.layout, place.dtype)
        specs[key] = IOSpec(type.shape, TORCH_DTYPES[type.elem], layout, dtype, place)
    return specs


def wanted_layouts(constraints: Mapping[str, IOSpec]) -> dict[str, str]:
    """Return the layouts that ``constraints`` ask for. P0705 if an entry is not an IOSpec."""
    for name, wanted in constraints.items():
        if not isinstance(wanted, IOSpec):
            raise error("P0705", name=name, reason=f"{wanted!r} is no IOSpec")
    return {name: spec.layout for name, spec in constraints.items() if spec.layout is not None}


def check_constraints(constraints: Mapping[str, IOSpec], function: Function) -> None:
    """Raise P0705 unless all inputs and outputs named in ``constraints`` match their specs."""
    if not constraints:
        return
    inputs = specs_of(function, function.inputs)
    outputs = specs_of(function, function.outputs)
    for name, wanted in constraints.items():
        found = [specs[name] for specs in (inputs, outputs) if name in specs]
        if not found:
            raise error("P0705", name=name, reason="the function has no such input or output")
        for spec in found:
            if (spec.shape, spec.dtype) != (wanted.shape, wanted.dtype):
                reason = f"it is {_shown(spec)}, the spec is {_shown(wanted)}"
                raise error("P0705", name=name, reason=reason)
            if not spec.is_memcopyable_to(wanted):
                reason = f"it is {_lies(spec)}, the spec is of one {_lies(wanted)}"
                raise error("P0705", name=name, reason=reason)


def _lies(spec: IOSpec) -> str:
    return "on the host" if spec.layout is None else f"in DRAM as {spec.device_dtype} {spec.layout}"


def _shown(spec: IOSpec) -> str:
    from ..frontend.torch_dtypes import dtype_name  # slow: imports torch

    return f"{dtype_name(spec.dtype)} {spec.shape}"
