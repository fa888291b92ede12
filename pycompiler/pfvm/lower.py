"""The last step before the graph: writes out composite operators and folds constants."""

from __future__ import annotations

import onnx

from ..machine import Target
from .composites import decompose
from .empty import settle_empty
from .fold import fold_constants
from .parameters import with_parameters
from .prepare import prepare, static_types
from .registered import attach, detach

_ROUNDS = 8


def _with_parameters(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the parameters that its types decide; one may make others known."""
    for _ in range(_ROUNDS):
        found = with_parameters(model)
        if len(found.graph.initializer) == len(model.graph.initializer):
            break
        model = prepare(found)
    return model


def lower(model: onnx.ModelProto, target: Target | None) -> onnx.ModelProto:
    """Return the model from which the graph is made; ``model`` is unchanged. P0103, P0108, P0109.

    ``target`` None stands for the host.
    """
    plain, registered = detach(model)
    plain = _with_parameters(prepare(plain))
    settled = settle_empty(plain)
    plain = plain if settled is plain else prepare(settled)
    plain = prepare(decompose(plain, static_types(plain), target))
    return attach(fold_constants(plain, static_types(plain)), registered)
