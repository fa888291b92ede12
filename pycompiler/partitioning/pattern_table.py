"""The patterns that every partition looks for; a new one is a function here."""

from __future__ import annotations

from .patterns import Any, Constant, Part, Pattern, either, maybe, op, pattern


def _gelu(x: Part) -> Part:
    """Return Gelu as one operator, by erf, or by tanh, with the orders of exporters."""
    erf = op("Add", op("Erf", either(op("Div", x, Constant(2**0.5)), _times(x, 0.5**0.5))), _ONE)
    cubed = either(op("Pow", x, Constant(3.0)), op("Mul", op("Mul", x, x), x))
    term = either(_times(cubed, 0.044715), op("Mul", op("Mul", _times(x, 0.044715), x), x))
    inner = _times(op("Add", x, term), 0.7978845608)
    tanh = op("Add", op("Tanh", inner), _ONE)
    return either(op("Gelu", x), *(form for factor in (erf, tanh) for form in _halved(x, factor)))


def _halved(x: Part, factor: Part) -> tuple[Part, ...]:
    return (
        _times(op("Mul", x, factor), 0.5),
        op("Mul", _times(x, 0.5), factor),
        op("Mul", x, _times(factor, 0.5)),
    )


def _times(x: Part, number: float) -> Part:
    return op("Mul", x, Constant(number))


_ONE = Constant(1.0)


def _product() -> Part:
    product = op("MatMul", Any(), Constant())
    return either(op("Gemm"), op("Add", product, Constant()), product)


def _mean(x: Part) -> Part:
    return op("ReduceMean", x)


def _square(x: Part) -> Part:
    return either(op("Pow", x, Constant(2.0)), op("Mul", x, x))


def _normalized(x: Part) -> Part:
    """Return x over the root of the mean of its squares plus a constant."""
    root = op("Sqrt", op("Add", _mean(_square(x)), Constant()))
    inverse = either(op("Reciprocal", root), op("Div", _ONE, root))
    return either(op("Div", x, root), op("Mul", x, inverse))


@pattern("Attention")
def attention() -> Part:
    """Match Softmax of scaled products of queries and keys, masked or not, times values."""
    scores: Part = op("MatMul", Any(), Any())
    scaled = either(op("Mul", scores, Constant()), op("Div", scores, Constant()), scores)
    masked = either(op("Add", scaled, Any()), scaled)
    return op("MatMul", op("Softmax", masked), Any())


@pattern("LayerNorm")
def layer_norm() -> Part:
    """Match a normalization that is written out, with factor and bias."""
    x = Any()
    centred = op("Sub", x, _mean(x))
    return op("Add", op("Mul", _normalized(centred), Constant()), Constant())


@pattern("RMSNorm")
def rms_norm() -> Part:
    """Match a normalization by the root of the mean of squares, with a factor."""
    return op("Mul", _normalized(Any()), Constant())


@pattern("Product_Gelu")
def product_gelu() -> Part:
    """Match a product with a constant matrix, then Gelu."""
    return _gelu(_product())


@pattern("Product_Relu")
def product_relu() -> Part:
    """Match a product with a constant matrix, then Relu."""
    return op("Relu", _product())


@pattern("Conv_Add_Relu")
def conv_add_relu() -> Part:
    """Match a convolution, the sum with a side branch, then Relu."""
    return op("Relu", op("Add", maybe("BatchNormalization", op("Conv")), Any()))


@pattern("Conv_Relu")
def conv_relu() -> Part:
    """Match a convolution, normalized or not, then Relu."""
    return op("Relu", maybe("BatchNormalization", op("Conv")))


@pattern("Gelu_Parts")
def gelu() -> Part:
    """Match Gelu that is written out."""
    return _gelu(Any())


#: In the order in which they are looked for.
PATTERNS: tuple[Pattern, ...] = (
    attention,
    layer_norm,
    rms_norm,
    product_gelu,
    product_relu,
    conv_add_relu,
    conv_relu,
    gelu,
)
