"""Apps of partitions of drawn graphs with several element types and results, on both sides."""

from __future__ import annotations

import random
from math import inf

import numpy as np
import onnx
import onnxruntime
from compiling import tried
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from net import Net
from onnx import TensorProto

import pycompiler
from pycompiler.app import read_app, write_app
from pycompiler.app.verify import verify_app
from pycompiler.machine import load_target
from pycompiler.partitioning import CompilerSupport, Costs, Unit
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction

#: Operators of one value: no layer takes the first.
UNARY = ("Sin", "Cos", "Atan", "Relu", "Neg", "Tanh", "Abs", "Identity")
#: Cut everywhere, and where a piece pays on a slow host behind a fast way.
THRESHOLDS = ((inf, None), (inf, None), (0.5, Costs(bandwidth=1e11, launch=0, host_elements=1e6)))


class Lot(CompilerSupport):
    """The compiler's support, but some nodes stay on the host by lot."""

    def __init__(self, rng: random.Random):
        super().__init__(load_target("mini"))
        self.rng, self.share = rng, rng.choice((0.1, 0.3, 0.5))

    def reason(self, unit: Unit) -> str | None:
        return "by lot" if self.rng.random() < self.share else super().reason(unit)


def drawn_model(rng: random.Random) -> tuple[onnx.ModelProto, list[str]]:
    """Return a graph of six to fourteen steps, with truth values and integers, and its inputs.

    Only inputs become truth values and integers: they have the same digits on both sides.
    """
    shape = (rng.choice((1, 2, 3, 5)), rng.choice((2, 4, 6)))
    net = Net(rng, *shape)
    floats, truths, whole, made = ["x", net.input(*shape)], list[str](), list[str](), list[str]()
    for _ in range(rng.randrange(6, 15)):
        x, other = rng.choice(floats), rng.choice(floats)
        kind = rng.choice(("one", "two", "product", "test", "where", "cast", "split", "topk"))
        given = rng.choice(floats[:2])
        if kind == "test":
            truths.append(net.put(rng.choice(("Greater", "Less")), given, net.number(0.1)))
            made.append(truths[-1])
        elif kind == "cast":
            long = net.put("Cast", net.put("Ceil", given), to=TensorProto.INT64)
            whole.append(net.put("Add", long, rng.choice([*whole, long])))
            floats.append(net.put("Cast", whole[-1], to=TensorProto.FLOAT))
            made += [whole[-1], floats[-1]]
        elif kind == "split":
            half = net.put("Split", x, outputs=2, axis=1, num_outputs=2)
            floats.append(net.put("Concat", f"{half}_1", f"{half}_0", axis=1))
        elif kind == "topk":
            top = net.put("TopK", x, net.ints(shape[1]), outputs=2)
            floats.append(f"{top}_0")
        elif kind == "product":
            floats.append(net.put("MatMul", x, net.weights(shape[1], shape[1])))
        elif kind == "where" and truths:
            floats.append(net.put("Where", rng.choice(truths), x, other))
        elif kind == "two":
            floats.append(net.put(rng.choice(("Add", "Mul", "Sub", "Max")), x, other))
        else:
            floats.append(net.put(rng.choice(UNARY), x))
    made += floats[2:]
    outputs = sorted({made[-1], *rng.sample(made, min(3, len(made)))})
    return net.model(outputs), list(net.inputs)


@drawn(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(3, 120))
def test_drawn_partitions(seed: int) -> None:
    rng = random.Random(seed)
    model, names = drawn_model(rng)
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    numbers = np.random.default_rng(seed)
    inputs = {name: numbers.standard_normal(shape).astype(np.float32) for name in names}
    threshold, costs = rng.choice(THRESHOLDS)
    found = pycompiler.partition(
        model, "emu2:mini", support=Lot(rng), threshold=threshold, costs=costs
    )
    target = load_target("mini")
    app = read_app(write_app(found.app()), "app")
    verify_app(app, target, "app")
    function = DeviceFunction(app, Board(target))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    wanted = session.run(None, inputs)
    for _ in range(2):  # a second call finds the words that the first one left
        made = [held.values() for held in function.run(inputs).values()]
        for mine, own in zip(made, wanted, strict=True):
            assert mine.dtype == own.dtype
            np.testing.assert_allclose(mine, own, rtol=1e-4, atol=1e-4 * (np.abs(own).max() + 1))
