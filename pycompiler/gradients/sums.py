"""Gradients of reductions, softmax and matrix products."""

from __future__ import annotations

from .back import Back, Rule


def _kept(back: Back, value: str, axes: list[int]) -> str:
    """Append ``value`` with the reduced axes at size 1."""
    shape = [1 if axis in axes else size for axis, size in enumerate(back.shape(0))]
    return value if int(back.attribute("keepdims", 1)) else back.reshape(value, shape)


def _reduce_sum(back: Back) -> bool:
    axes = back.reduced_axes()
    if axes is None:
        return False
    back.give(0, back.op("Expand", _kept(back, back.grad, axes), back.ints(back.shape(0))))
    return True


def _reduce_extreme(back: Back) -> bool:
    """Share each gradient among the elements that are the largest (or smallest)."""
    axes = back.reduced_axes()
    if axes is None:
        return False
    hit = back.op("Equal", back.input(0), _kept(back, back.node.output[0], axes))
    ones = back.op("Where", hit, back.number(1.0), back.number(0.0))
    count = back.op("ReduceSum", ones, back.ints(axes), keepdims=1)
    back.give(0, back.where(hit, back.op("Div", _kept(back, back.grad, axes), count)))
    return True


def _axis(back: Back) -> int:
    return int(back.attribute("axis", -1)) % len(back.shape(0))


def _softmax(back: Back) -> bool:
    if not back.shape(0):
        return False
    y = back.node.output[0]
    each = back.op("Mul", back.grad, y)
    total = back.op("ReduceSum", each, back.ints([_axis(back)]), keepdims=1)
    back.give(0, back.op("Sub", each, back.op("Mul", y, total)))
    return True


def _log_softmax(back: Back) -> bool:
    if not back.shape(0):
        return False
    total = back.op("ReduceSum", back.grad, back.ints([_axis(back)]), keepdims=1)
    shares = back.op("Exp", back.node.output[0])
    back.give(0, back.op("Sub", back.grad, back.op("Mul", shares, total)))
    return True


def _cumulative(back: Back) -> bool:
    flags = {"exclusive": back.attribute("exclusive", 0)}
    flags["reverse"] = 1 - int(back.attribute("reverse", 0))
    back.give(0, back.op("CumSum", back.grad, back.input(1), **flags))
    return True


def _matmul(back: Back) -> bool:
    left, right = back.input(0), back.input(1)
    rows, columns, grad = list(back.shape(0)), list(back.shape(1)), back.grad
    given = list(back.result_shape())
    if len(rows) == 1:
        rows = [1, *rows]
        left, given = back.reshape(left, rows), [*given, 1]
        given[-2:] = [1, given[-2]] if len(columns) > 1 else [1]
    if len(columns) == 1:
        columns = [*columns, 1]
        right, given = back.reshape(right, columns), [*given, 1]
    if given != list(back.result_shape()):
        grad = back.reshape(grad, given)
    if back.wants(0):
        found = back.op("MatMul", grad, back.turned(right, len(columns)))
        made = [*given[:-1], rows[-1]]
        found = back.unbroadcast(found, made, rows)
        back.give(0, back.reshape(found, back.shape(0)) if len(back.shape(0)) == 1 else found)
    if back.wants(1):
        if len(columns) == 2:  # one product over all rows, instead of a sum of products
            left = back.reshape(left, [-1, rows[-1]]) if len(rows) > 2 else left
            grad = back.reshape(grad, [-1, columns[-1]]) if len(given) > 2 else grad
            found = back.op("MatMul", back.turned(left, 2), grad)
        else:
            found = back.op("MatMul", back.turned(left, len(rows)), grad)
            found = back.unbroadcast(found, [*given[:-2], *columns[-2:]], columns)
        back.give(1, back.reshape(found, back.shape(1)) if len(back.shape(1)) == 1 else found)
    return True


def _gemm(back: Back) -> bool:
    flip = [int(back.attribute(name, 0)) for name in ("transA", "transB")]
    alpha, beta = (float(back.attribute(name, 1.0)) for name in ("alpha", "beta"))
    left, right = back.input(0), back.input(1)
    grad = back.times(back.grad, alpha)
    for own, other in ((0, right), (1, left)):
        if back.wants(own):
            other = other if flip[1 - own] else back.turned(other, 2)
            factors = [other, grad] if own else [grad, other]
            if flip[own]:
                factors = [back.turned(factor, 2) for factor in reversed(factors)]
            back.give(own, back.op("MatMul", *factors))
    if back.wants(2):
        back.give_each(2, back.times(back.grad, beta))
    return True


SUMS: dict[str, Rule] = {
    "CumSum": _cumulative,
    "Gemm": _gemm,
    "LogSoftmax": _log_softmax,
    "MatMul": _matmul,
    "ReduceMax": _reduce_extreme,
    "ReduceMin": _reduce_extreme,
    "ReduceSum": _reduce_sum,
    "Softmax": _softmax,
}
