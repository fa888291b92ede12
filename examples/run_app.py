"""Write a model as one file, and run the file without the compiler, as `emu2 app run` does."""

import io
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import pycompiler
from emu2._core import run_app

MODEL = """<ir_version: 10, opset_import: ["": 20]>
network (float[16,64] x) => (float[16,64] y) {
    hidden = MatMul(x, weight)
    active = Relu(hidden)
    y = Add(active, x)
}"""

model = onnx.parser.parse_model(MODEL)
random = np.random.default_rng(0)
weight = random.standard_normal((64, 64)).astype(np.float32) / 8
model.graph.initializer.append(numpy_helper.from_array(weight, "weight"))

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    found = pycompiler.partition(model, "emu2:mini", threshold=float("inf"))
    found.export(folder / "model.app")
    x = random.standard_normal((16, 64)).astype(np.float32)
    np.savez(folder / "in.npz", x=x)
    result = np.load(io.BytesIO(run_app(folder / "model.app", folder / "in.npz")))["y"]
error = np.abs(result - (np.maximum(x @ weight, 0) + x)).max()
print(f"largest difference from numpy: {error:.1e}")
assert error < 1e-4
