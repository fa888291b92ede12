"""The public interface: compile, call, proxies, folders, options, devices."""

from __future__ import annotations

import concurrent.futures
import os
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from compiling import context, report_of
from torch import nn

from pycompiler.app import read_app
from pycompiler.errors import HostFallbackWarning, PycompilerError
from pycompiler.graph import parse_graph
from pycompiler.mlsdk import Context, MNDevice, TensorProxy, path, storage
from pycompiler.pfvm.session import has_cuda

Tensors = dict[str, torch.Tensor]
HOST_FILES = {"model.onnx", "report.json", "out.txt", "out.json"}
FILES = {
    *HOST_FILES,
    *("model.vsm", "model.app", "l3ir.txt", "l3ir_stripped.onnx", "trace.json"),
}
DUMPS = {
    f"layout.{planner}.txt"
    for planner in (
        *("side", "dtype", "location", "layout", "time_slice", "slices"),
        *("spill_opt", "address"),
    )
}


def same(found: TensorProxy, wanted: torch.Tensor) -> None:
    tensor = found.cpu()
    assert isinstance(tensor, torch.Tensor)
    assert tensor.shape == wanted.shape == found.shape
    assert tensor.dtype is wanted.dtype is found.dtype
    assert torch.allclose(tensor, wanted, rtol=2.0**-20, atol=1e-6)


@pytest.mark.parametrize("device", ["emu2", "emu2:mini", "mncore2:0", "pfvm:cpu"])
def test_a_function_with_everything(tmp_path: Path, device: str) -> None:
    weight = torch.nn.Parameter(torch.randn(16))

    def function(d: Tensors) -> Tensors:
        h = torch.relu(d["x"] * weight + d["y"])
        square = h * h
        return {
            "square": square,
            "h": h,
            "difference": square - 2.5,
            "input": d["x"],
            "constant": weight,
            "scalar": -d["s"],
            "also h": h,
        }

    def inputs() -> Tensors:
        shapes = {"x": (8, 16), "y": (8, 1), "s": (), "unused": (3,)}
        return {name: torch.randn(shape) for name, shape in shapes.items()}

    compiled = context(device).compile(function, inputs(), tmp_path / "out")
    for _ in range(2):
        given = inputs()
        outputs = compiled(dict(reversed(given.items())))
        wanted = function(given)
        assert list(outputs) == list(wanted)
        for key, tensor in wanted.items():
            same(outputs[key], tensor)
    report = report_of(tmp_path / "out")
    assert report["status"] == "ok"
    assert report["host_fallback"] == []
    assert report["device"] == device
    on_host = device == "pfvm:cpu"
    files = HOST_FILES if on_host else FILES | DUMPS
    rewritten = set() if on_host else {"rewrite.12.fuse_elementwise.txt"}
    assert {file.name for file in (tmp_path / "out").iterdir()} == files | rewritten
    assert (report["steps"] == 0) is on_host
    if not on_host:
        graph = parse_graph((tmp_path / "out" / "l3ir.txt").read_text())
        assert graph.stage.name == "ADDRESSED"
        app = read_app((tmp_path / "out" / "model.app").read_bytes(), "model.app")
        assert [port.key for port in app.outputs] == list(wanted)
        words = [row["dram_words"] for row in report["nodes"]]
        for direction in ("read", "written"):
            assert sum(row[direction] for row in words) == report["dram_words"][direction]
        passes = [row["pass"] for row in report["passes"]]
        assert passes[:4] == ["export", "pfvm", "import", "side"]


def test_what_a_call_checks(tmp_path: Path) -> None:
    sample = {"x": torch.ones(2, 3), "y": torch.ones(3)}
    compiled = context().compile(lambda d: {"z": d["x"] + d["y"]}, sample, tmp_path / "out")
    bad: list[tuple[Any, str]] = [
        ({"x": torch.ones(2, 3)}, "`y` is missing"),
        ({**sample, "y": torch.ones(4)}, "`y` has shape (4,)"),
        ({**sample, "y": torch.ones(3, dtype=torch.complex64)}, "`y` is complex64"),
        ({**sample, "y": 3.0}, "`y` has shape ()"),
        ({**sample, "y": [1.0, 2.0, 3.0]}, "`y` is a list"),
        ([1], "a dict is needed"),
        ({**sample, "y": torch.ones(3).to_sparse()}, "`y` is sparse"),
        ({**sample, "y": torch.ones(3, device="meta")}, "`y` is without data"),
    ]
    for inputs, problem in bad:
        with pytest.raises(PycompilerError) as caught:
            compiled(inputs)
        assert caught.value.code == "P0603"
        assert problem in caught.value.message
        assert "x: float32 (2, 3), y: float32 (3,)" in caught.value.help
    stretched = torch.ones(1, 3).expand(2, 3)
    same(compiled({"x": stretched, "y": torch.ones(3, requires_grad=True)})["z"], stretched + 1)
    negated = torch._neg_view(torch.ones(3))
    same(compiled({"x": stretched, "y": negated})["z"], stretched - 1)


def test_threads_share_a_board(tmp_path: Path) -> None:
    shared, sample = context("emu2:mini"), {"x": torch.ones(64)}
    functions = [
        shared.compile(lambda d, k=k: {"out": d["x"] * k + 1.0}, sample, tmp_path / f"{k}")
        for k in (2.0, 3.0)
    ]

    def call(number: int) -> bool:
        x, odd = torch.full((64,), float(number)), number % 2
        return torch.equal(functions[odd]({"x": x})["out"].cpu(), x * (2.0 + odd) + 1.0)

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert all(threads.map(call, range(200)))


def test_proxies_keep_their_values_and_chain(tmp_path: Path) -> None:
    shared = context()
    sample = {"x": torch.ones(4, 4)}
    double = shared.compile(lambda d: {"out": d["x"] * 2.0}, sample, tmp_path / "double")
    negate = shared.compile(lambda d: {"out": -d["x"]}, sample, tmp_path / "negate")
    first = double({"x": torch.full((4, 4), 1.5)})
    second = double({"x": torch.full((4, 4), 2.5)})
    third = negate({"x": second["out"]})
    same(first["out"], torch.full((4, 4), 3.0))
    same(second["out"], torch.full((4, 4), 5.0))
    same(third["out"], torch.full((4, 4), -5.0))
    same(double({"x": torch.full((4, 4), 7.0)})["out"], torch.full((4, 4), 14.0))
    tensor = first["out"].cpu()
    tensor.zero_()
    same(first["out"], torch.full((4, 4), 3.0))
    first["out"] = tensor
    rows = "[[5., 5., 5., 5.],", *3 * ["             [5., 5., 5., 5.],"]
    assert repr(second["out"]) == f"TensorProxy({chr(10).join(rows).removesuffix(',')}])"
    assert repr(double({"x": torch.ones(4, 4)})["out"].sum()) == "tensor(32.)"


def test_outputs_are_copies_of_inputs(tmp_path: Path) -> None:
    x = torch.ones(3)
    compiled = context().compile(lambda d: {"out": d["x"]}, {"x": x}, tmp_path / "out")
    out = compiled({"x": x})["out"]
    x.zero_()
    same(out, torch.ones(3))


def test_other_dtypes(tmp_path: Path) -> None:
    def function(d: Tensors) -> Tensors:
        return {"i": d["i"] + 1, "f": d["f"] * 2.0, "b": d["b"]}

    inputs = {
        "i": torch.arange(5),
        "f": torch.rand(3, dtype=torch.float64),
        "b": torch.tensor([True, False]),
    }
    compiled = context("emu2:mini").compile(function, inputs, tmp_path / "out")
    outputs = compiled(inputs)
    for key, tensor in function(inputs).items():
        assert torch.equal(outputs[key].cpu(), tensor)
        assert outputs[key].cpu().dtype is tensor.dtype


# -- host fallback ----------------------------------------------------------------------------


def test_host_fallback(tmp_path: Path) -> None:
    def function(d: Tensors) -> Tensors:
        a = d["x"] + 1.0
        b = torch.sin(a) * 0.5
        return {"out": torch.cos(b) + a, "b": b}

    line = function.__code__.co_firstlineno
    sample = {"x": torch.randn(6, 4)}
    with pytest.warns(HostFallbackWarning) as caught:
        compiled = context().compile(function, sample, tmp_path / "out")
    assert len([w for w in caught if w.category is HostFallbackWarning]) == 1
    rows = report_of(tmp_path / "out")["host_fallback"]
    assert [(row["op"], row["reason"], row["source"]) for row in rows] == [
        ("Sin", "no layer for Sin", f"{__file__}:{line + 2}"),
        ("Cos", "no layer for Cos", f"{__file__}:{line + 3}"),
    ]
    assert all(row["node"] for row in rows)
    given = {"x": torch.randn(6, 4)}
    for key, tensor in function(given).items():
        same(compiled(given)[key], tensor)
    vsm = (tmp_path / "out" / "model.vsm").read_text()
    assert "# segment 1 runs on the host" in vsm


def test_strict(tmp_path: Path) -> None:
    def function(d: Tensors) -> Tensors:
        return {"out": torch.sin(d["x"])}

    with pytest.raises(PycompilerError) as caught:
        context().compile(
            function, {"x": torch.ones(2)}, tmp_path / "out", options={"strict": True}
        )
    assert caught.value.code == "P0303"
    place = caught.value.place
    assert place is not None
    assert (place.file, place.line) == (__file__, function.__code__.co_firstlineno + 1)
    failed = report_of(tmp_path / "out.failed")
    assert failed["error"]["code"] == "P0303"
    assert not (tmp_path / "out").exists()


# -- models ---------------------------------------------------------------------------------------


def test_a_tensor_too_large(tmp_path: Path) -> None:
    with pytest.raises(PycompilerError) as caught:
        context("emu2:mini").compile(
            lambda d: {"out": -d["x"]},
            {"x": torch.ones(300, 300)},
            tmp_path / "out",
            options={"time_slice": "off"},
        )
    assert caught.value.code == "P0301"
    assert str(caught.value.place).startswith(f"{__file__}:")
    assert not (tmp_path / "out").exists()


def test_what_onnxruntime_lacks_runs_all_the_same(tmp_path: Path) -> None:
    """onnxruntime has no sine of bfloat16; onnx's reference evaluator has."""
    sample = {"x": torch.linspace(-2, 2, 5).bfloat16()}
    with pytest.warns(HostFallbackWarning):
        compiled = context("emu2:mini").compile(
            lambda d: {"out": d["x"].sin()}, sample, tmp_path / "out"
        )
    found, wanted = compiled(sample)["out"].cpu(), sample["x"].float().sin()
    assert found.dtype is torch.bfloat16
    assert torch.allclose(found.float(), wanted, rtol=2.0**-7)


def test_functions_without_inputs_or_operators(tmp_path: Path) -> None:
    weight = torch.rand(3)
    shared = context("emu2:mini")
    compiled = shared.compile(lambda d: {"out": weight, "more": weight}, {}, tmp_path / "a")
    same(compiled({})["more"], weight)
    empty = {"x": torch.ones(0, 4)}
    compiled = shared.compile(lambda d: {"out": d["x"] + 1}, empty, tmp_path / "b")
    assert compiled(empty)["out"].shape == (0, 4)
    compiled = shared.compile(lambda d: {}, {"x": torch.ones(1)}, tmp_path / "c")
    assert compiled({"x": torch.ones(1)}) == {}


# -- devices and paths ------------------------------------------------------------------------


@pytest.mark.skipif(not has_cuda(), reason="onnxruntime has no CUDA here")
@pytest.mark.parametrize("name", ["pfvm:cuda", "pfvm:gpu"])
def test_a_gpu(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer, sample = nn.Linear(8, 4), {"x": torch.randn(2, 8)}
    compiled = Context(MNDevice(name)).compile(lambda d: {"y": layer(d["x"])}, sample, tmp_path)
    assert torch.allclose(compiled(sample)["y"].cpu(), layer(sample["x"]), atol=1e-4)


def test_a_gpu_runs_what_it_has_kernels_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only functions of that context ask for it, and what it lacks runs on the host."""
    asked: list[list[str]] = []
    start = onnxruntime.InferenceSession

    def session(*args: Any, providers: list[str], **facts: Any) -> Any:
        asked.append(providers)
        return start(*args, providers=providers[-1:], **facts)

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    providers = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: providers)
    sample = {"x": torch.ones(2)}
    for name, wanted in (("pfvm:cuda", providers), ("pfvm:cpu", providers[1:])):
        folder, shared = tmp_path / name[5:], Context(MNDevice(name))
        shared.compile(lambda d: {"y": d["x"] + 1}, sample, folder, quiet=True)
        assert shared.load_codegen_dir(folder)(sample)["y"].cpu().tolist() == [2, 2]
        assert asked
        assert all(own == wanted for own in asked)
        asked.clear()


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("emu2", "emu2:mini", "mncore2:auto", "mncore2:7", "pfvm:cpu"):
        assert MNDevice(name).name == name
    # A device of MLSDK that is not there, and names that are none.
    wrong = dict.fromkeys(("", "tpu", "mncore2", "mncore2:8", "emu2x"), "P0601")
    gpus = {} if has_cuda() else dict.fromkeys(("pfvm:cuda", "pfvm:gpu"), "P0703")
    for name, code in {**wrong, **gpus}.items():
        with pytest.raises(PycompilerError) as caught:
            MNDevice(name)
        assert caught.value.code == code
    with pytest.raises(PycompilerError) as caught:
        MNDevice("emu2:nothing/here")
    assert caught.value.code == "P0606"
    for wrong in (lambda: MNDevice(3), lambda: Context("emu2")):  # type: ignore[arg-type]
        with pytest.raises(PycompilerError) as caught:
            wrong()
        assert caught.value.code == "P0601"
    with pytest.raises(PycompilerError) as caught:
        context().compile(lambda d: d, {}, 3)  # type: ignore[arg-type]
    assert caught.value.code == "P0704"
    monkeypatch.setenv("MLSDK_DEVICE", "pfvm:cpu")
    assert MNDevice("mncore2:auto").name == "pfvm:cpu"
    assert repr(MNDevice("emu2")) == "MNDevice('pfvm:cpu')"


def test_contexts_switch() -> None:
    one, two = context(), context("pfvm:cpu")
    Context.switch_context(one)
    one.switch_context(two)
    with pytest.raises(PycompilerError) as caught:
        Context.switch_context("emu2")  # type: ignore[arg-type]
    assert caught.value.code == "P0704"


def test_storage_paths(tmp_path: Path) -> None:
    assert path is storage.path
    assert storage.path("a/b") / "c" == Path("a/b/c")
    assert storage.path(f"file://{tmp_path}", target="cpu") == tmp_path
    assert os.fspath(storage.path(tmp_path)) == str(tmp_path)
    torch.save({"a": 1}, storage.path(str(tmp_path)) / "x.pt")
    with pytest.raises(PycompilerError) as caught:
        storage.path("s3://bucket/x")
    assert caught.value.code == "P0605"
    with pytest.raises(PycompilerError) as caught:
        storage.path(3)  # type: ignore[arg-type]
    assert caught.value.code == "P0704"
