"""The last step before the graph: writes out composite operators and folds constants."""

from __future__ import annotations

import onnx

from ..machine import Target
from .composites import decompose, has_first
from .empty import settle_empty
from .fold import fold_constants
from .prepare import prepare, static_types
from .registered import attach, detach


def lower(model: onnx.ModelProto, target: Target | None) -> onnx.ModelProto:
    """Return the model from which the graph is made; ``model`` is unchanged. P0103, P0108, P0109.

    ``target`` None stands for the host.
    """
    plain, registered = detach(model)
    plain = prepare(plain)
    settled = settle_empty(plain)
    plain = plain if settled is plain else prepare(settled)
    if has_first(plain):
        plain = prepare(decompose(plain, static_types(plain), target, first=True))
    plain = prepare(decompose(plain, static_types(plain), target))
    return attach(fold_constants(plain, static_types(plain)), registered)
