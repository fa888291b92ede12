"""Shared by the tests: small ONNX graphs, written node by node."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

#: The property that has the source line of a node.
LINE = "pkg.torch.onnx.stack_trace"


class Net:
    """A graph that a test writes node by node. Its first input is ``x``."""

    def __init__(self, rng: random.Random, *shape: int):
        self.rng, self.draw = rng, np.random.default_rng(rng.randrange(2**32))
        self.inputs: dict[str, tuple[int, ...]] = {"x": shape}
        self.nodes: list[onnx.NodeProto] = []
        self.arrays: dict[str, np.ndarray] = {}

    def put(self, op: str, *reads: str, outputs: int = 0, **facts: object) -> str:
        """Append a node; return the name of its result. One with ``outputs`` has it as a prefix."""
        out = f"v{len(self.nodes)}"
        made = [f"{out}_{number}" for number in range(outputs)] or [out]
        node = helper.make_node(op, reads, made, name=f"n{len(self.nodes)}", **facts)
        node.metadata_props.add(key=LINE, value=f'  File "{op}.py", line {len(self.nodes)}')
        self.nodes.append(node)
        return out

    def weights(self, *shape: int) -> str:
        return self.array(self.draw.standard_normal(shape))

    def input(self, *shape: int) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = shape
        return name

    def number(self, number: float) -> str:
        return self.array(np.array(number))

    def ints(self, *numbers: int) -> str:
        return self.array(np.array(numbers), np.int64)

    def view(self, source: str, *shape: int) -> str:
        return self.put("Reshape", source, self.ints(*shape))

    def cut(self, source: str, start: int, end: int, axis: int, *step: int) -> str:
        bounds = (self.ints(number) for number in (start, end, axis, *step))
        return self.put("Slice", source, *bounds)

    def one(self, source: str, index: int, axis: int) -> str:
        """Append a Gather of a scalar index."""
        return self.put("Gather", source, self.array(np.array(index), np.int64), axis=axis)

    def array(self, array: np.ndarray, dtype: type = np.float32) -> str:
        """Keep a constant; return its name."""
        name = f"c{len(self.arrays)}"
        self.arrays[name] = array.astype(dtype)
        return name

    def model(self, outputs: Sequence[str]) -> onnx.ModelProto:
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes,
            "g",
            [info(name, TensorProto.FLOAT, shape) for name, shape in self.inputs.items()],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [numpy_helper.from_array(array, name) for name, array in self.arrays.items()],
        )
        opset = helper.make_opsetid("", 20)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
