"""The last step before the graph: writes out composite operators and folds constants."""

from __future__ import annotations

from math import prod

import onnx

from ..errors import PycompilerError, error
from ..graph.dtypes import device_dtype, onnx_name
from ..machine import Target
from .composites import decompose, has_first
from .device_functions import check_domain, inlined
from .empty import settle_empty
from .fold import fold_constants
from .known_shapes import known_types
from .narrow_integers import widen_integers
from .onnx_functions import write_out_functions
from .parameters import settled_parameters
from .prepare import prepare, static_types
from .registered import attach, detach, updates
from .stored_rows import store_rows
from .unroll import unrolled

#: A value between two operators may be alive in slices only; yet some share of it must fit.
_SLICES = 16

#: Functions of ONNX call others of ONNX; deeper ones run on the host.
_DEEPEST = 4


def _written_out(model: onnx.ModelProto, target: Target | None, parts: int) -> onnx.ModelProto:
    """Return the model with composites, and then functions of ONNX, written out."""
    if has_first(model):
        model = prepare(decompose(model, static_types(model), target, parts, first=True))
    written = decompose(model, static_types(model), target, parts)
    plain = prepare(written)
    made = _made(written, model)
    for _ in range(_DEEPEST):
        whole = write_out_functions(plain, static_types(plain))
        if whole is plain:
            break
        try:
            found = settled_parameters(unrolled(prepare(whole)))
            found = prepare(fold_constants(found))
            plain = prepare(decompose(found, static_types(found), target, parts, keep=made))
        except PycompilerError:
            break  # a function whose shapes stay open: the host runs the operator as a whole
    return plain


def _made(model: onnx.ModelProto, before: onnx.ModelProto) -> set[str]:
    """Return the results of the operators that composites wrote between operators of ``before``.

    They are as the device takes them. Written out a second time, convolutions between tiles could
    get tiles of their places.
    """
    old = {name for node in before.graph.node for name in node.output}
    return {node.output[0] for node in model.graph.node} - old


def _check_room(model: onnx.ModelProto, target: Target) -> None:
    """Refuse, before anything is made, a value that all DRAMs together cannot hold. P0302."""
    graph, capacity = model.graph, target.words("dram")
    ends = {info.name for info in (*graph.input, *graph.output, *graph.initializer)}
    for name, (elem, shape) in known_types(graph).items():
        words = -(-prod(shape) // (device_dtype(onnx_name(elem)).words_per_long or 1))
        words = -(-words // target.groups)
        if words > capacity * (1 if name in ends else _SLICES):
            raise error("P0302", words=words, memory="dram", capacity=capacity)


def lower(model: onnx.ModelProto, target: Target | None, parts: int = 1) -> onnx.ModelProto:
    """Return the model from which the graph is made; ``model`` is unchanged.

    P0103, P0108, P0109, P0302. ``target`` None stands for the host. Tiles of convolutions suit one
    of ``parts`` of the batch.
    """
    plain, registered = detach(inlined(model))
    check_domain(plain)
    plain = settled_parameters(prepare(plain))
    if target is not None:
        _check_room(plain, target)
        plain = settled_parameters(unrolled(plain))
        widened = widen_integers(plain, static_types(plain))
        plain = plain if widened is plain else prepare(widened)
    settled = settle_empty(plain)
    plain = plain if settled is plain else prepare(settled)
    if target is not None and (new := updates(model)):
        stored = store_rows(plain, static_types(plain), new, target)
        plain = plain if stored is plain else prepare(stored)
    plain = _written_out(plain, target, parts)
    if target is not None:  # functions of ONNX divide integers too
        widened = widen_integers(plain, static_types(plain))
        plain = plain if widened is plain else prepare(widened)
    return attach(fold_constants(plain), registered)
