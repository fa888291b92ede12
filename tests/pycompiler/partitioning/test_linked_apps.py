"""Apps of partitions: the programs of all pieces in one file, with host pieces between them."""

from __future__ import annotations

import random
import runpy
import subprocess
import sys
from math import inf
from pathlib import Path

import numpy as np
import onnx
import pytest
from compiling import model_of, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import random_model

import pycompiler
from pycompiler.app import DeviceSegment, HostSegment, read_app, write_app
from pycompiler.app.verify import verify_app
from pycompiler.machine import load_target
from pycompiler.partitioning import CompilerSupport, Unit
from pycompiler.pfvm.session import HostSession
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction


class Some(CompilerSupport):
    """The compiler's support, but some nodes stay on the host by lot."""

    def __init__(self, rng: random.Random):
        super().__init__(load_target("mini"))
        self.rng = rng

    def reason(self, unit: Unit) -> str | None:
        return "by lot" if self.rng.random() < 0.4 else super().reason(unit)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(6))
def test_drawn_graphs(seed: int) -> None:
    rng = random.Random(seed)
    model, inputs = random_model(rng)
    found = pycompiler.partition(model, "emu2:mini", support=Some(rng), threshold=inf)
    target = load_target("mini")
    app = read_app(write_app(found.app()), "app")
    verify_app(app, target, "app")
    function = DeviceFunction(app, Board(target))
    wanted = HostSession(model, "model").run(inputs)
    for _ in range(2):  # a second call finds the words that the first one left
        for name, held in function.run(inputs).items():
            scale = float(np.abs(wanted[name]).max(initial=0)) + 1
            assert np.abs(held.values() - wanted[name]).max(initial=0) <= 1e-4 * scale


def sandwich() -> onnx.ModelProto:
    """Return a model whose first piece makes a value that host and both others read."""
    nodes = [
        ("MatMul", ["x", "w"], "a"),
        ("Sin", ["a"], "s"),
        ("Add", ["s", "a"], "b"),
        ("Cos", ["b"], "c"),
        ("MatMul", ["c", "w"], "d"),
        ("Add", ["d", "a"], "y"),
    ]
    weight = np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32)
    return model_of(nodes, {"x": (5, 6)}, ["y", "a"], {"w": weight})


def test_it_runs_without_torch(tmp_path: Path) -> None:
    model = sandwich()
    found = pycompiler.partition(model, "emu2:mini", threshold=inf)
    app = found.app()
    assert sum(isinstance(part, DeviceSegment) for part in app.segments) == 3
    assert sum(isinstance(part, HostSegment) for part in app.segments) >= 2
    found.export(tmp_path / "model.app")
    code = """
import sys
import numpy as np
from pycompiler.runtime.app_file import load_app
function = load_app("model.app")
x = np.arange(30, dtype=np.float32).reshape(5, 6) / 10
np.savez("out.npz", **{name: held.values() for name, held in function.run({"x": x}).items()})
print(sorted({"torch", "onnxscript"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    x = np.arange(30, dtype=np.float32).reshape(5, 6) / 10
    wanted = HostSession(model, "model").run({"x": x})
    made = np.load(tmp_path / "out.npz")
    for name, array in wanted.items():
        np.testing.assert_allclose(made[name], array, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "text",
    [
        "g (float[3] x) => (float[3] y) { y = Identity(x) }",
        "g (float[2] x) => (float[2] k, float[2] y) <float[2] k = {1.0, 2.0}> { y = Add(x, k) }",
        "g (float[3] x) => (float[3] y, float[3] z) { y = Neg(x) z = Identity(y) }",
        "g (float[3] x) => (float[3] y, float[3] z) { a = Neg(x) y = Sin(a) z = Neg(y) }",
        "g (float[0] x) => (float[0] y) { y = Neg(x) }",
    ],
)
def test_unusual_ports(text: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}')
    size = model.graph.input[0].type.tensor_type.shape.dim[0].dim_value
    x = {"x": np.linspace(-1, 1, size, dtype=np.float32)}
    found = pycompiler.partition(model, "emu2:mini", threshold=inf)
    target = load_target("mini")
    app = found.app()
    verify_app(app, target, "app")
    made = DeviceFunction(app, Board(target)).run(x)
    wanted = HostSession(model, "model").run(x)
    assert list(made) == list(wanted)
    for name, array in wanted.items():
        np.testing.assert_allclose(made[name].values(), array, rtol=1e-6)


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[3] / "examples" / "partition_model.py"
    assert len(path.read_text().splitlines()) <= 40
    runpy.run_path(str(path))
    shown = capsys.readouterr().out
    assert "no layer for Sin" in shown
    assert "device_1" in shown
