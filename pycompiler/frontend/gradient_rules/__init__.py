"""Gradients that torch's core operators do not express, as operators that the device has.

torch applies a rule in place of the operator while it traces a training step. A rule returns
NotImplemented for calls that it does not concern.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from .moves import MOVE_RULES
from .norms import NORM_RULES
from .picks import PICK_RULES
from .resizes import RESIZE_RULES
from .windows import WINDOW_RULES

#: By operator of torch: the function that computes it.
GRADIENT_RULES: Mapping[Any, Callable[..., Any]] = {
    **MOVE_RULES,
    **NORM_RULES,
    **PICK_RULES,
    **RESIZE_RULES,
    **WINDOW_RULES,
    # As in a function that differentiates nothing, singular matrices give some numbers.
    torch.ops.aten._linalg_check_errors.default: lambda *_, **__: None,
}
