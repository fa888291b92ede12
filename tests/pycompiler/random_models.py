"""Random models of all kinds of operators."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZES = (1, 2, 3, 4, 6, 8, 12)


def random_model(rng: random.Random) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a graph of three to eight nodes; some of its inner values are outputs."""
    arrays = np.random.default_rng(rng.randrange(1 << 30))
    shapes: dict[str, tuple[int, ...]] = {}
    for index in range(rng.randrange(1, 3)):
        shapes[f"x{index}"] = tuple(rng.choice(SIZES) for _ in range(rng.randrange(1, 4)))
    inputs = dict(shapes)
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, np.ndarray] = {}

    def constant(array: np.ndarray) -> str:
        name = f"c{len(constants)}"
        constants[name] = array
        return name

    def ints(values: list[int]) -> str:
        return constant(np.array(values, dtype=np.int64))

    def add(op: str, reads: list[str], shape: tuple[int, ...], **facts: object) -> None:
        name = f"v{len(nodes)}"
        nodes.append(helper.make_node(op, reads, [name], name=f"n{len(nodes)}_{op}", **facts))
        shapes[name] = shape

    for _ in range(rng.randrange(3, 9)):
        one = rng.choice(list(shapes))
        shape = shapes[one]
        kind = rng.choice(["unary", "binary", "product", "reduce", "reshape", "move", "slice"])
        if kind == "unary":
            add(rng.choice(["Relu", "Neg", "Tanh"]), [one], shape)
        elif kind == "binary":
            fitting = [n for n, s in shapes.items() if s == shape]
            other = rng.choice(fitting)
            if rng.random() < 0.3:
                wide = tuple(size if rng.random() < 0.5 else 1 for size in shape)
                other = constant(arrays.standard_normal(wide).astype(np.float32))
            add(rng.choice(["Add", "Mul", "Sub", "Max"]), [one, other], shape)
        elif kind == "product" and len(shape) >= 2:
            columns = rng.choice(SIZES)
            weight = arrays.standard_normal((shape[-1], columns)) / shape[-1]
            add("MatMul", [one, constant(weight.astype(np.float32))], (*shape[:-1], columns))
        elif kind == "reduce" and shape:
            axis = rng.randrange(len(shape))
            keep = rng.randrange(2)
            rest = (*shape[:axis], *(1,) * keep, *shape[axis + 1 :])
            op = rng.choice(["ReduceMax", "ReduceMean"])
            add(op, [one, ints([axis])], rest, keepdims=keep)
        elif kind == "reshape":
            first = rng.choice([f for f in range(1, prod(shape) + 1) if prod(shape) % f == 0])
            made = (first, prod(shape) // first)
            add("Reshape", [one, ints(list(made))], made)
        elif kind == "move" and len(shape) >= 2:
            order = rng.sample(range(len(shape)), len(shape))
            add("Transpose", [one], tuple(shape[axis] for axis in order), perm=order)
        elif kind == "slice" and shape and shape[0] > 1:
            add("Slice", [one, ints([1]), ints([1 << 30]), ints([0])], (shape[0] - 1, *shape[1:]))
    if not nodes:
        add("Relu", ["x0"], shapes["x0"])
    made_here = [node.output[0] for node in nodes]
    outputs = sorted({made_here[-1], *rng.sample(made_here, min(2, len(made_here)))})
    float_info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [float_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [float_info(name, TensorProto.FLOAT, shapes[name]) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    given_inputs = {n: arrays.standard_normal(s).astype(np.float32) for n, s in inputs.items()}
    return model, given_inputs
