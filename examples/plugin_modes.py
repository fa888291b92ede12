"""One network in graph mode, in kernels with a host part, and operator by operator."""

import numpy as np
import onnx
from onnx import numpy_helper

from pycompiler.plugins import Eager, MixedGraph, Session, open_device

MODEL = """<ir_version: 10, opset_import: ["": 20]>
network (float[16,64] x) => (float[16,64] y) {
    hidden = MatMul(x, weight)
    active = Relu(hidden)
    y = Add(active, x)
}"""
model = onnx.parser.parse_model(MODEL)
random = np.random.default_rng(0)
weight = random.standard_normal((64, 64)).astype(np.float32) / 8
x = random.standard_normal((16, 64)).astype(np.float32)
model.graph.initializer.append(numpy_helper.from_array(weight, "weight"))
wanted = np.maximum(x @ weight, 0) + x

whole = open_device("emu2-graph", device="emu2:mini").graphs.compile(model, {})
chip = Session(open_device("emu2-kernel", device="emu2:mini"))
host = Session(open_device("host"))
graph = MixedGraph(model, chip, host)
print(f"kernel mode takes {graph.cycles} cycles, graph mode {whole.cycles}")
assert np.abs(graph.run({"x": x})["y"] - wanted).max() < 1e-4

mixed = MixedGraph(model, chip, host, on_host=["Relu"])
print("on the host:", mixed.reasons)
assert np.abs(mixed.run({"x": x})["y"] - wanted).max() < 1e-4

eager = Eager(chip)
a, b = eager.tensor(x), eager.tensor(weight)
[hidden] = eager.run("MatMul", a, b)
[y] = eager.run("Add", *eager.run("Relu", hidden), a)
assert np.abs(y.numpy() - wanted).max() < 1e-4
print(f"eager operators took {eager.cycles} cycles")
