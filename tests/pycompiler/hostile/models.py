"""Random damage to ONNX models: to their bytes, and to single fields."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import onnx
from onnx import TensorProto, helper

_NUMBERS = (0, 1, -1, 2, 7, 255, 256, -(1 << 31), (1 << 31) - 1, 1 << 40, (1 << 63) - 1, -(1 << 63))

#: The shapes of the results of the models below.
_SHAPES = (
    *((3, 4), (3, 4), (1, 2, 5, 5), (3, 1), (3, 6), (2, 6), (3, 4), (3, 8), (2, 2), (3, 4)),
    *((3, 2), (3, 4), (3,), (1, 1, 6, 8), (3, 4), (1, 2, 2, 2), (8, 3), (3, 4), (2, 4), (4,)),
    (3, 4),
)


def seeds() -> list[onnx.ModelProto]:
    """Return small models of many operators, one of each kind of field."""
    import numpy as np
    from onnx import numpy_helper

    def model(nodes: list[Any], inputs: dict[str, tuple[int, ...]], data: Any = None) -> Any:
        infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
        graph = helper.make_graph(
            nodes,
            "g",
            infos,
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, next(shapes))],
            [numpy_helper.from_array(np.asarray(a), n) for n, a in (data or {}).items()],
        )
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    shapes = iter(_SHAPES)
    node = helper.make_node
    ones = np.ones((4, 4), np.float32)
    ints = np.array
    body = helper.make_graph(
        [node("Add", ["s", "s"], ["t"]), node("Identity", ["c"], ["d"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("c", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, (3, 4)),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("t", TensorProto.FLOAT, (3, 4)),
        ],
    )
    made = [
        model(
            [node("MatMul", ["x", "w"], ["m"]), node("Relu", ["m"], ["y"])],
            {"x": (3, 4)},
            {"w": ones},
        ),
        model(
            [node("Add", ["x", "z"], ["m"]), node("Softmax", ["m"], ["y"], axis=-1)],
            {"x": (3, 4), "z": (4,)},
        ),
        model(
            [node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
            {"x": (1, 2, 5, 5)},
            {"w": np.ones((2, 2, 3, 3), "f4")},
        ),
        model([node("Split", ["x", "s"], ["y", "z"], axis=1)], {"x": (3, 4)}, {"s": ints([1, 3])}),
        model([node("Pad", ["x", "p"], ["y"])], {"x": (3, 4)}, {"p": ints([0, 1, 0, 1])}),
        model([node("Reshape", ["x", "s"], ["y"])], {"x": (3, 4)}, {"s": ints([2, 6])}),
        model([node("Expand", ["x", "s"], ["y"])], {"x": (3, 1)}, {"s": ints([3, 4])}),
        model([node("Tile", ["x", "s"], ["y"])], {"x": (3, 4)}, {"s": ints([1, 2])}),
        model(
            [node("Slice", ["x", "a", "b"], ["y"])],
            {"x": (3, 4)},
            {"a": ints([0, 1]), "b": ints([2, 3])},
        ),
        model(
            [node("ConstantOfShape", ["s"], ["k"]), node("Add", ["x", "k"], ["y"])],
            {"x": (3, 4)},
            {"s": ints([3, 4])},
        ),
        model([node("Gather", ["x", "i"], ["y"], axis=1)], {"x": (3, 4)}, {"i": ints([0, 2])}),
        model(
            [node("Loop", ["n", "c", "x"], ["y"], body=body)],
            {"x": (3, 4)},
            {"n": ints(3), "c": ints(True)},
        ),
        model([node("ReduceSum", ["x", "a"], ["y"], keepdims=0)], {"x": (3, 4)}, {"a": ints([1])}),
        model(
            [node("Resize", ["x", "", "", "s"], ["y"])],
            {"x": (1, 1, 3, 4)},
            {"s": ints([1, 1, 6, 8])},
        ),
        model(
            [node("LayerNormalization", ["x", "w"], ["y"])], {"x": (3, 4)}, {"w": np.ones(4, "f4")}
        ),
        model(
            [node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])],
            {"x": (1, 2, 4, 4)},
        ),
        model(
            [
                node("Transpose", ["x"], ["t"], perm=[1, 0]),
                node("Concat", ["t", "t"], ["y"], axis=0),
            ],
            {"x": (3, 4)},
        ),
        model(
            [
                node("Range", ["a", "b", "c"], ["r"]),
                node("Cast", ["r"], ["f"], to=1),
                node("Add", ["x", "f"], ["y"]),
            ],
            {"x": (3, 4)},
            {"a": ints(0), "b": ints(4), "c": ints(1)},
        ),
        model(
            [node("OneHot", ["i", "d", "v"], ["y"])],
            {},
            {"i": ints([1, 2]), "d": ints(4), "v": np.array([0, 1], "f4")},
        ),
        model(  # sizes that an input decides
            [
                node("Range", ["a", "n", "c"], ["r"]),
                node("ReduceSum", ["r"], ["s"], keepdims=0),
                node("Add", ["x", "s"], ["y"]),
            ],
            {"x": (4,), "n": ()},
            {"a": np.array(0, "f4"), "c": np.array(1, "f4")},
        ),
    ]
    function = helper.make_function(
        "f", "F", ["a"], ["b"], [node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 18)]
    )
    called = model([node("F", ["x"], ["y"], domain="f")], {"x": (3, 4)})
    called.functions.append(function)
    return [*made, called]


def damaged(model: onnx.ModelProto, random: random.Random) -> bytes:
    """Return the bytes of a model with one or two faults."""
    if random.random() < 0.4:
        return damaged_bytes(model.SerializeToString(), random)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for _ in range(random.choice((1, 1, 2))):
        fields = list(_fields(made))
        message, field = random.choice(fields)
        _change(message, field, random)
    data = bytes(made.SerializePartialToString())
    return damaged_bytes(data, random) if random.random() < 0.1 else data


def damaged_bytes(data: bytes, random: random.Random) -> bytes:
    """Return the bytes with one to three of them changed, cut out, doubled or put in."""
    made = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.randrange(len(made)) if made else 0
        kind = random.randrange(6)
        if kind == 0 and made:
            made[at] ^= 1 << random.randrange(8)
        elif kind == 1 and made:
            made[at] = random.choice((0, 1, 127, 128, 255))
        elif kind == 2:
            del made[at : at + random.choice((1, 2, 8))]
        elif kind == 3:
            made[at:at] = bytes(random.randrange(256) for _ in range(random.choice((1, 2, 9))))
        elif kind == 4:
            made[at:at] = made[at : at + random.choice((2, 8, 40))]
        elif random.random() < 0.2:
            del made[at:]
    return bytes(made)


def _fields(message: Any) -> Iterator[tuple[Any, Any]]:
    for field, value in message.ListFields():
        yield message, field
        if field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                yield from _fields(part)


def _change(message: Any, field: Any, random: random.Random) -> None:
    value = getattr(message, field.name)
    if hasattr(value, "ListFields"):
        message.ClearField(field.name)
    elif hasattr(value, "__delitem__") and not isinstance(value, str | bytes):
        at = random.randrange(len(value))
        kind = random.randrange(3)
        if kind == 0:
            del value[at]
        elif field.message_type is not None:
            copy = type(value[at])()
            copy.CopyFrom(value[at])
            value.append(copy)
        elif field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_INT32):
            _set_item(value, at, random)
        elif kind == 1:
            value.append(value[at])
        else:
            del value[:]
    elif field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_INT32, field.CPPTYPE_ENUM):
        number = random.choice((*_NUMBERS, *range(30)))
        try:
            setattr(message, field.name, number)
        except ValueError:
            message.ClearField(field.name)
    elif isinstance(value, str):
        setattr(message, field.name, random.choice(("", "x", "y", "ü", value + "1", "Loop", "Pad")))
    elif isinstance(value, bytes):
        setattr(message, field.name, damaged_bytes(value, random))
    else:
        message.ClearField(field.name)


def _set_item(value: Any, at: int, random: random.Random) -> None:
    try:
        value[at] = random.choice(_NUMBERS)
    except ValueError:
        value[at] = 0
