"""``pfvm:cpu`` runs ``model.onnx``; operators that fall back to the host are named with lines."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from compiling import context, report_of
from torch import nn

from pycompiler.build import build
from pycompiler.errors import HostFallbackWarning, PycompilerError
from pycompiler.machine import load_target
from pycompiler.pfvm.session import HostSession, _PlainSession, evaluator
from pycompiler.runtime.device import Board, find_device

Tensors = dict[str, torch.Tensor]


def test_the_host_runs_the_model_not_the_function(tmp_path: Path) -> None:
    calls: list[int] = []

    def function(d: Tensors) -> Tensors:
        calls.append(1)
        return {"y": d["x"] * 3.0}

    host = context("pfvm:cpu")
    compiled = host.compile(function, {"x": torch.zeros(4)}, tmp_path / "out")
    traced = len(calls)
    assert traced > 0
    x = torch.arange(4.0)
    assert torch.equal(compiled({"x": x})["y"].cpu(), 3 * x)
    assert len(calls) == traced
    # A loaded function follows the model in the folder, not the original function.
    model = onnx.load(tmp_path / "out" / "model.onnx")
    (three,) = (t for t in model.graph.initializer if onnx.numpy_helper.to_array(t) == 3)
    three.CopyFrom(onnx.numpy_helper.from_array(np.array(5, np.float32), three.name))
    onnx.save(model, tmp_path / "out" / "model.onnx")
    assert torch.equal(compiled({"x": x})["y"].cpu(), 3 * x)
    loaded = host.load_codegen_dir(tmp_path / "out")
    assert torch.equal(loaded({"x": x})["y"].cpu(), 5 * x)
    assert len(calls) == traced


class Mixed(nn.Module):
    """A network with one operator that has no layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply it."""
        hidden = torch.relu(self.linear(x))
        hidden = torch.sin(hidden)
        return torch.softmax(self.linear(hidden), -1)


def test_fallback_in_a_network_has_reason_and_line(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Mixed().eval()
    lines, start = inspect.getsourcelines(Mixed.forward)
    line = start + next(n for n, text in enumerate(lines) if "torch.sin" in text)
    sample = {"x": torch.zeros(3, 6)}
    device = context("emu2:mini")
    with pytest.warns(HostFallbackWarning, match="1 of"):
        compiled = device.compile(lambda d: {"y": model(d["x"])}, sample, tmp_path / "out")
    report = report_of(tmp_path / "out")
    (row,) = report["host_fallback"]
    assert (row["op"], row["source"]) == ("Sin", f"{__file__}:{line}")
    assert row["reason"] == "no layer for Sin"
    assert row["node"]
    assert report["host_runtimes"] == ["onnxruntime"]
    assert "Sin" not in {node["op"] for node in report["nodes"]}
    x = torch.randn(3, 6)
    assert torch.allclose(compiled({"x": x})["y"].cpu(), model(x), atol=1e-5)
    with pytest.raises(PycompilerError) as caught:
        device.compile(
            lambda d: {"y": model(d["x"])}, sample, tmp_path / "no", options={"strict": True}
        )
    assert caught.value.code == "P0303"
    assert str(caught.value.place) == f"{__file__}:{line}"
    assert "no layer for Sin" in caught.value.message


@pytest.mark.parametrize("device", ["pfvm:cpu", "emu2:mini"])
@pytest.mark.parametrize(
    ("more", "wanted"), [("", "onnxruntime"), (", shape", "onnx.reference")], ids=["plain", "shape"]
)
def test_the_report_names_the_runtime(tmp_path: Path, device: str, more: str, wanted: str) -> None:
    """Only onnx's evaluator places the elements of a MaxUnpool with a given shape right.

    It has too many elements for the device.
    """
    columns = 128 + len(more) // 7
    text = f"""<ir_version: 10, opset_import: ["": 20]>
        g (float[1, 1, 64, 64] x, int64[1, 1, 64, 64] i) => (float[1, 1, {columns}, {columns}] y)
        <int64[4] shape = {{1, 1, 129, 129}}>
        {{ y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, i{more}) }}"""
    machine = find_device(device).machine
    board = None if machine is None else Board(load_target(machine))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HostFallbackWarning)
        build(lambda: onnx.parser.parse_model(text), device, board, None, tmp_path / "out")
    assert report_of(tmp_path / "out")["host_runtimes"] == [wanted]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("trips", [1, 3])
def test_the_evaluators_loop_joins_along_a_new_axis(shape: tuple[int, ...], trips: int) -> None:
    """onnx's own Loop joins matrices along their first axis, and gives numbers a second one."""
    sizes = ", ".join(map(str, shape))
    of = f"[{sizes}]" if shape else ""
    joined = ", ".join(map(str, (trips, *shape)))
    text = f"""<ir_version: 8, opset_import: ["": 18]>
        g (float{of} x) => (float{of} y, float[{joined}] z) <int64 n = {{{trips}}}, bool go = {{1}}>
        {{ y, z = Loop(n, go, x) <body = b (int64 i, bool c, float{of} s)
            => (bool d, float{of} t, float{of} u) {{
            d = Identity(c)  t = Add(s, s)  u = Neg(t) }}> }}"""
    model = onnx.parser.parse_model(text)
    session = HostSession(model, "model")
    x = np.random.default_rng(trips).standard_normal(shape).astype(np.float32)
    wanted = session.run({"x": x})
    assert session.runtime == "onnxruntime"
    assert isinstance(session._session, _PlainSession)
    session._session.reference = evaluator(model)
    for key, found in session.run({"x": x}).items():
        assert np.array_equal(found, wanted[key])
    assert session.runtime == "onnx.reference"
