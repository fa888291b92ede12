"""Tensors without elements become constants, whatever the device and the runtimes support."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from compiling import compiled, context, report_of, run
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional

from pycompiler.errors import PycompilerError
from pycompiler.mlsdk import set_tensor_name
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

Tensors = dict[str, torch.Tensor]
INPUTS: Tensors = {
    "none": torch.zeros(0, 3),
    "wide": torch.zeros(2, 0),
    "z": torch.ones(2, 3),
    "whole": torch.zeros(0, 2, dtype=torch.int64),
    "index": torch.zeros(0, dtype=torch.int64),
}


def operators(d: Tensors) -> Tensors:
    """Return one operator of each kind that makes or reads a tensor without elements."""
    none, wide, z = d["none"], d["wide"], d["z"]
    return {
        "unary": none.relu() + torch.ones(1, 3),
        "where": torch.where(none > 0, none, -none),
        "whole": d["whole"] * 2 + 1,
        "cast": none.to(torch.int32),
        "sum": none.sum(0),
        "all": none.sum(),
        "lines": none.sum(1),
        "largest": none.amax(1),
        "mean": none.mean(0),
        "product": none.prod(0),
        "norm": none.norm(dim=0),
        "log sum": torch.logsumexp(none, 0),
        "any": (none > 0).any(0),
        "every": (none > 0).all(0),
        "rows": none @ torch.ones(3, 4),
        "contracted": wide @ torch.ones(0, 4),
        "linear": functional.linear(wide, torch.ones(3, 0), z[0]),
        "batched": none.reshape(0, 1, 3) @ torch.ones(0, 3, 4),
        "softmax": none.softmax(1),
        "over nothing": wide.softmax(1),
        "norms": functional.layer_norm(none, (3,)),
        "view": none.reshape(3, 0),
        "transposed": none.t().unsqueeze(0),
        "cut": z[1:1],
        "cut and summed": z[1:1].sum(0) + z[0],
        "joined": torch.cat([none, z, none], 0) * 2,
        "more": torch.cat([z, none, z], 0) * 2,
        "nothing": torch.cat([none, none], 0),
        "left": z.split([0, 2], 0)[0],
        "right": z.split([0, 2], 0)[1],
        "parts": z.split([0, 1, 1], 0)[2] + 1,
        "expanded": torch.ones(1, 3).expand(0, 3),
        "padded": functional.pad(none, (0, 0, 1, 1)) + z,
        "picked": functional.embedding(d["index"], z),
        "one hot": functional.one_hot(d["index"], 4),
        "places": none.argmax(1),
        "loss": functional.cross_entropy(none, d["index"]),
        "summed loss": functional.cross_entropy(none, d["index"], reduction="sum"),
        "losses": functional.cross_entropy(none, d["index"], reduction="none"),
        "no layer": torch.sin(none).cumsum(0),
        "itself": none,
        "beside": z * 2,
    }


def same(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    alike = (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    return alike and torch.equal(found.double().nan_to_num(7), wanted.double().nan_to_num(7))


def test_operators_give_what_torch_gives(tmp_path: Path) -> None:
    device, host = context("emu2:mini"), context("pfvm:cpu")
    made = device.compile(operators, INPUTS, tmp_path / "out", options={"strict": True})
    given = {**INPUTS, "z": torch.randn(2, 3)}
    for function in (made, host.load_codegen_dir(tmp_path / "out")):
        found = function(given)
        wrong = [n for n, wanted in operators(given).items() if not same(found[n].cpu(), wanted)]
        assert wrong == []


#: Results of reductions over nothing by the ONNX standard, or by torch where ONNX is silent.
REDUCTIONS = [
    ("ReduceSum", TensorProto.FLOAT, 0),
    ("ReduceSumSquare", TensorProto.FLOAT, 0),
    ("ReduceL1", TensorProto.FLOAT, 0),
    ("ReduceL2", TensorProto.FLOAT, 0),
    ("ReduceProd", TensorProto.INT64, 1),
    ("ReduceMean", TensorProto.FLOAT, np.nan),
    ("ReduceLogSum", TensorProto.FLOAT, -np.inf),
    ("ReduceLogSumExp", TensorProto.FLOAT, -np.inf),
    ("ReduceMax", TensorProto.FLOAT, -np.inf),
    ("ReduceMin", TensorProto.FLOAT, np.inf),
    ("ReduceMax", TensorProto.INT32, -(1 << 31)),
    ("ReduceMin", TensorProto.INT64, (1 << 63) - 1),
    ("ReduceMax", TensorProto.BOOL, False),
    ("ReduceMin", TensorProto.BOOL, True),
]


def model_of(nodes: list[onnx.NodeProto], x: onnx.ValueInfoProto, elem: int) -> onnx.ModelProto:
    axes = numpy_helper.from_array(np.array([0]), "axes")
    y = helper.make_tensor_value_info("y", elem, (1, 3))
    graph = helper.make_graph(nodes, "g", [x], [y], [axes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    return model


@pytest.mark.parametrize(("op", "elem", "value"), REDUCTIONS)
def test_reductions_of_nothing(op: str, elem: int, value: float) -> None:
    x = helper.make_tensor_value_info("x", elem, (0, 3))
    model = model_of([helper.make_node(op, ["x", "axes"], ["y"], name="r")], x, elem)
    dtype = helper.tensor_dtype_to_np_dtype(elem)
    wanted, inputs = np.full((1, 3), value, dtype), {"x": np.zeros((0, 3), dtype)}
    result, report = compiled(model)
    assert report["host_fallback"] == []
    np.testing.assert_array_equal(run(result, inputs)["y"], wanted)
    host = HostSession(optimise(model), "model").run(inputs)
    np.testing.assert_array_equal(host["y"], wanted)


def test_what_is_added_to_a_product_of_nothing() -> None:
    """Test a Gemm whose third operand is given, has a factor and is broadcast."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (3,))
    empty = {"a": (1, 0), "b": (0, 3)}
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.zeros(s, "f")))
        for name, s in empty.items()
    ]
    gemm = helper.make_node("Gemm", ["a", "b", "x"], ["y"], name="gemm", beta=2.0)
    result, report = compiled(model_of([*nodes, gemm], x, TensorProto.FLOAT))
    assert report["host_fallback"] == []
    given = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(run(result, {"x": given})["y"], 2 * given[None])


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_places_in_nothing_are_refused(op: str) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (0, 3))
    model = model_of([helper.make_node(op, ["x"], ["y"], name="n", axis=0)], x, TensorProto.INT64)
    for refuse in (compiled, optimise):
        with pytest.raises(PycompilerError) as caught:
            refuse(model)
        assert caught.value.code == "P0108"
        assert f"{op} `n`" in caught.value.message


def test_calls(tmp_path: Path) -> None:
    """Empty proxies, registered values and outputs work like any other tensor."""
    shared = context("emu2:mini")
    table = nn.Parameter(torch.zeros(0, 3))
    set_tensor_name(table, "table")
    shared.register_param(table)

    def joined(d: Tensors) -> Tensors:
        return {"y": torch.cat([d["x"], table, d["z"]]) * 2, "e": d["x"] + 1}

    sample = {"x": torch.zeros(0, 3), "z": torch.zeros(2, 3)}
    function = shared.compile(joined, sample, tmp_path / "a")
    other = shared.compile(lambda d: {"v": d["x"].relu()}, {"x": sample["x"]}, tmp_path / "b")
    z = torch.randn(2, 3)
    proxies = function.allocate_input_proxy()
    proxies["z"].load_from(z)
    proxies["x"].load_from(sample["x"])
    shared.get_registered_value_proxy(table).load_from(torch.zeros(0, 3))
    for given in (
        proxies,
        {"x": other({"x": proxies["x"]})["v"], "z": z},
        {"x": function({"x": sample["x"], "z": z})["e"], "z": proxies["z"]},
    ):
        found = function(given)
        assert torch.equal(found["y"].cpu(), 2 * z)
        assert found["e"].cpu().shape == found["e"].shape == (0, 3)
    shared.synchronize()
    for name in ("emu2:mini", "pfvm:cpu"):
        loaded = context(name).load_codegen_dir(tmp_path / "a")
        assert torch.equal(loaded({"x": sample["x"], "z": z})["y"].cpu(), 2 * z)
    assert report_of(tmp_path / "a")["host_fallback"] == []
    for code, wrong in (
        ("P0603", lambda: function({"x": torch.zeros(0, 4), "z": z})),
        ("P0603", lambda: function({"x": z, "z": sample["x"]})),
        ("P0609", lambda: proxies["x"].load_from(z)),
    ):
        with pytest.raises(PycompilerError) as caught:
            wrong()
        assert caught.value.code == code
