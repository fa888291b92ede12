"""Nodes in another form for the host, where onnxruntime and onnx's evaluator have none."""

from __future__ import annotations

import onnx
from onnx import helper


def largest_of_all(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Write a GlobalMaxPool of doubles, which onnx's evaluator lacks, as a maximum."""
    return _over_pixels(node, "ReduceMax")


def norm_of_all(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Write a GlobalLpPool of doubles, which onnx's evaluator lacks, as a norm."""
    return _over_pixels(node, f"ReduceL{node.attribute[0].i}")


def _over_pixels(node: onnx.NodeProto, op: str) -> list[onnx.NodeProto]:
    read, (made,) = node.input[0], node.output
    return [
        helper.make_node("Shape", [read], ["whole"]),
        helper.make_node("Shape", ["whole"], ["rank"]),
        helper.make_node("Constant", [], ["two"], value_int=2),
        helper.make_node("Constant", [], ["one"], value_int=1),
        helper.make_node("Squeeze", ["rank"], ["ranks"]),
        helper.make_node("Range", ["two", "ranks", "one"], ["axes"]),
        helper.make_node(op, [read, "axes"], [made]),
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


def neighbours_summed(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Write an LRN of doubles tap by tap: onnx's evaluator counts batches for channels."""
    facts = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    read, size, kind = node.input[0], facts["size"], onnx.TensorProto

    def number(name: str, value: float) -> onnx.NodeProto:
        held = helper.make_tensor(name, kind.DOUBLE, [], [value])
        return helper.make_node("Constant", [], [name], value=held)

    def whole(name: str, *values: int) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [name], value_ints=list(values))

    before = (size - 1) // 2
    nodes = [
        helper.make_node("Mul", [read, read], ["square"]),
        whole("ends", before, size - 1 - before),
        whole("one", 1),
        helper.make_node("Pad", ["square", "ends", "", "one"], ["padded"]),
        helper.make_node("Shape", [read], ["channels"], start=1, end=2),
    ]
    total = ""
    for tap in range(size):
        part, joined = f"part{tap}", f"total{tap}"
        nodes += [
            whole(f"start{tap}", tap),
            helper.make_node("Add", [f"start{tap}", "channels"], [f"end{tap}"]),
            helper.make_node("Slice", ["padded", f"start{tap}", f"end{tap}", "one"], [part]),
            helper.make_node(
                *(("Add", [total, part]) if total else ("Identity", [part])), [joined]
            ),
        ]
        total = joined
    return [
        *nodes,
        *(number(name, facts[name]) for name in ("bias", "beta")),
        number("share", facts["alpha"] / size),
        helper.make_node("Mul", [total, "share"], ["scaled"]),
        helper.make_node("Add", ["scaled", "bias"], ["base"]),
        helper.make_node("Pow", ["base", "beta"], ["divisor"]),
        helper.make_node("Div", [read, "divisor"], list(node.output)),
    ]
