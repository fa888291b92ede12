"""Nodes in another form for the host, where onnxruntime and onnx's evaluator have none."""

from __future__ import annotations

import onnx
from onnx import helper


def largest_of_all(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Write a GlobalMaxPool of doubles, which onnx's evaluator lacks, as a maximum."""
    read, (made,) = node.input[0], node.output
    shape = helper.make_node("Shape", [read], ["whole"])
    rank = helper.make_node("Shape", ["whole"], ["rank"])
    two = helper.make_node("Constant", [], ["two"], value_int=2)
    one = helper.make_node("Constant", [], ["one"], value_int=1)
    first = helper.make_node("Squeeze", ["rank"], ["ranks"])
    axes = helper.make_node("Range", ["two", "ranks", "one"], ["axes"])
    return [
        shape,
        rank,
        two,
        one,
        first,
        axes,
        helper.make_node("ReduceMax", [read, "axes"], [made]),
    ]


def standardised(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Write a MeanVarianceNormalization of doubles, which onnx's evaluator lacks."""
    (read,), (made,) = node.input, node.output
    kind, values = onnx.TensorProto, node.attribute[0].ints
    axes = helper.make_tensor("axes", kind.INT64, [len(values)], list(values))
    least = helper.make_tensor("least", kind.DOUBLE, [], [1e-9])
    return [
        helper.make_node("Constant", [], ["axes"], value=axes),
        helper.make_node("Constant", [], ["least"], value=least),
        helper.make_node("ReduceMean", [read, "axes"], ["mean"]),
        helper.make_node("Sub", [read, "mean"], ["moved"]),
        helper.make_node("Mul", ["moved", "moved"], ["square"]),
        helper.make_node("ReduceMean", ["square", "axes"], ["variance"]),
        helper.make_node("Sqrt", ["variance"], ["deviation"]),
        helper.make_node("Add", ["deviation", "least"], ["divisor"]),
        helper.make_node("Div", ["moved", "divisor"], [made]),
    ]


def mean_as_sum(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Write a Mean as a sum over its number: onnx's evaluator does not broadcast it."""
    nodes, total = [], node.input[0]
    for number, name in enumerate(node.input[1:]):
        nodes.append(helper.make_node("Add", [total, name], [f"total{number}"]))
        total = f"total{number}"
    count = helper.make_tensor("value", onnx.TensorProto.DOUBLE, [], [len(node.input)])
    nodes.append(helper.make_node("Constant", [], ["count"], value=count))
    return [*nodes, helper.make_node("Div", [total, "count"], list(node.output))]


def gemm_as_product(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Write a Gemm of integers, which onnxruntime lacks, as a product and a sum."""
    facts = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    nodes, names = [], list(node.input)
    for place, flag in enumerate(("transA", "transB")):
        if facts[flag]:
            nodes.append(helper.make_node("Transpose", [names[place]], [flag], perm=[1, 0]))
            names[place] = flag
    nodes.append(helper.make_node("MatMul", names[:2], ["product"]))
    goal = node.output[0]
    for part, factor in (("product", "alpha"), *((name, "beta") for name in names[2:])):
        number = helper.make_node("Constant", [], [f"{factor}.whole"], value_int=int(facts[factor]))
        nodes += [
            number,
            helper.make_node("CastLike", [f"{factor}.whole", part], [f"{factor}.own"]),
            helper.make_node("Mul", [part, f"{factor}.own"], [f"{factor}.part"]),
        ]
    parts = ["alpha.part", "beta.part"][: 1 + len(names[2:])]
    nodes.append(helper.make_node("Add" if len(parts) > 1 else "Identity", parts, [goal]))
    return nodes
