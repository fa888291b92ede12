"""Batches of a compiled model over the processes of Dask."""

import numpy as np
import onnx
from distributed import Client

import pycompiler
from pycompiler.boards import AppTask, map_batches

MODEL = """<ir_version: 10, opset_import: ["": 20]>
network (float[16,32] x) => (float[16,32] y) { a = Relu(x) y = Add(a, x) }"""


def main() -> None:
    """Run eight batches on two workers, and compare them with numpy."""
    model = onnx.parser.parse_model(MODEL)
    found = pycompiler.partition(model, "emu2:mini", threshold=float("inf"))
    task = AppTask(found.app())
    random = np.random.default_rng(0)
    batches = [{"x": random.standard_normal((16, 32)).astype(np.float32)} for _ in range(8)]
    with Client(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as client:
        results = map_batches(client, task, batches)
    for batch, result in zip(batches, results, strict=True):
        np.testing.assert_array_equal(result["y"], np.maximum(batch["x"], 0) + batch["x"])
    print(f"{len(results)} batches")


if __name__ == "__main__":
    main()
