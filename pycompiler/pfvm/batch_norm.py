"""BatchNormalization in inference, folded into the product in front of it.

The factor of a channel scales its weights, and the rest is a bias. So nothing is computed for it on
the device. The scaled weights are rounded once more, to singles: by 2^-24, far below the bounds of
products.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .held import Array
from .replacing import DOMAINS, Made, constant_of, only_user, shape_of

_PRODUCTS = ("Conv", "ConvTranspose", "Gemm")
_EPSILON = 1e-5  # of ONNX, where the attribute is missing


def fold_batch_norms(model: ir.Model) -> None:
    """Fold the nodes of the main graph whose parameters are constants, in place.

    The product must have no other reader. It keeps its name and takes over the source lines.
    """
    for node in list(model.graph):
        if node.op_type == "BatchNormalization" and node.domain in DOMAINS:
            product = _product(node)
            found = _folded(product, node) if product is not None else None
            if product is not None and found is not None:
                made = Made(product, "folded")
                given = (product.inputs[0], *map(made.constant, found))
                shape, facts = shape_of(product.outputs[0]), product.attributes
                value = made(product.op_type, *given, shape=shape, facts=facts)
                made.nodes[0].name = product.name
                made.put(value, [product, node])


def _product(node: ir.Node) -> ir.Node | None:
    """Return the product that only this normalization reads; None if there is none."""
    value = node.inputs[0]
    made = None if value is None else value.producer()
    training = node.attributes.get_int("training_mode", 0)
    if made is None or training or any(out.uses() for out in node.outputs[1:]):
        return None
    known = made.op_type in _PRODUCTS and made.domain in DOMAINS and made.graph is node.graph
    return made if known and only_user(value, node.graph) is node else None


def _folded(product: ir.Node, node: ir.Node) -> tuple[Array, Array] | None:
    """Return the new weights and bias, computed in double precision.

    None if a parameter is no constant of singles, or if a result is no finite single.
    """
    bias = product.inputs[2] if len(product.inputs) > 2 else None
    given = [product.inputs[1], *node.inputs[1:5], *([bias] if bias is not None else [])]
    found = [array for array in map(constant_of, given) if array is not None]
    singles = all(array.dtype == np.float32 for array in found)
    # A bias in front of which Gemm has a factor would need the inverse factor.
    if len(found) < len(given) or not singles or product.attributes.get_float("beta", 1.0) != 1.0:
        return None
    weights, scale, offset, mean, variance, *added = (array.astype(np.float64) for array in found)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + node.attributes.get_float("epsilon", _EPSILON))
        made = (
            _scaled(product, weights, factor),
            ((added[0] if added else 0.0) - mean) * factor + offset,
        )
        one, other = (np.asarray(array, dtype=np.float32) for array in made)
    return (one, other) if np.isfinite(one).all() and np.isfinite(other).all() else None


def _scaled(product: ir.Node, weights: Array, factor: Array) -> Array:
    """Return the weights with the channels of the result multiplied by ``factor``."""
    if product.op_type == "Gemm":
        return weights * (factor[:, None] if product.attributes.get_int("transB", 0) else factor)
    ones = (1,) * (weights.ndim - 2)
    if product.op_type == "Conv":
        return weights * factor.reshape(-1, 1, *ones)
    # The weights of ConvTranspose are (channels of the input, results of a group, ...).
    group = product.attributes.get_int("group", 1)
    apart = weights.reshape(group, -1, *weights.shape[1:])
    return (apart * factor.reshape(group, 1, -1, *ones)).reshape(weights.shape)
