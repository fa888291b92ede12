"""Cut a model between host and device: a table, a model of functions, and one file that runs."""

import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import pycompiler
from pycompiler.partitioning import print_partition
from pycompiler.runtime.app_file import load_app

MODEL = """<ir_version: 10, opset_import: ["": 20]>
network (float[16,64] x) => (float[16,64] y) {
    hidden = MatMul(x, weight)
    active = Relu(hidden)
    wave = Sin(active)
    back = MatMul(wave, weight)
    y = Add(back, x)
}"""

model = onnx.parser.parse_model(MODEL)
random = np.random.default_rng(0)
weight = random.standard_normal((64, 64)).astype(np.float32) / 8
model.graph.initializer.append(numpy_helper.from_array(weight, "weight"))

found = pycompiler.partition(model, "emu2:mini", threshold=float("inf"))
print_partition(found)
onnx.checker.check_model(found.model, full_check=True)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.app"
    found.export(path)
    x = random.standard_normal((16, 64)).astype(np.float32)
    result = load_app(path).run({"x": x})["y"].values()
error = np.abs(result - (np.sin(np.maximum(x @ weight, 0)) @ weight + x)).max()
print(f"largest difference from numpy: {error:.1e}")
assert error < 1e-4
