"""Llama models as the stages of a pipeline over several devices."""

from __future__ import annotations

from typing import NoReturn

import torch

from ....errors import error

__all__ = ["split_llama"]


def split_llama(model: torch.nn.Module, n_stages: int) -> NoReturn:
    """Raise P0703: what the stages take and return is not published."""
    reason = "what the stages of MLSDK take and return is not published"
    remedy = "write each stage as a module over some of `model.model.layers`, and compile those"
    raise error("P0703", name="split_llama", reason=reason, remedy=remedy)
