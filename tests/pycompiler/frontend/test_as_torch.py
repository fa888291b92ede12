"""Results of an export have the dtypes and shapes of torch's own trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from compiling import context
from onnxscript import opset20
from torch.fx.experimental.proxy_tensor import make_fx

from pycompiler.errors import PycompilerError
from pycompiler.frontend.as_torch import like_torch, mendable
from pycompiler.frontend.export import export

Tensors = dict[str, torch.Tensor]
_ATEN = torch.ops.aten
F = torch.nn.functional

INTS, BYTES = torch.tensor([2, 3, 4]), torch.tensor([1, 128, 255], dtype=torch.uint8)
HALVES = torch.tensor([0.1, 0.2, 0.3]).half()

#: Functions of one tensor whose ONNX form had another dtype than torch.
FUNCTIONS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor]] = {
    "power of integers": (lambda x: x ** torch.tensor([0.5, 1.5, 0.5]), INTS),
    "left shift of bytes": (lambda x: x << 1, BYTES),
    "right shift of bytes": (lambda x: x >> 1, BYTES),
    "sum of halves": (lambda x: x.sum(), HALVES),
    "norm of halves": (lambda x: x.norm(), HALVES),
    "any of bytes": (lambda x: x.any(), BYTES),
    "angle of integers": (lambda x: torch.angle(x - 3), INTS),
    "mean of integers by index": (
        lambda x: x.index_reduce(0, torch.tensor([0, 0]), x[:2] * 3, "mean", include_self=False),
        INTS,
    ),
}


def test_dtypes_are_torchs(tmp_path: Path) -> None:
    given = {name: tensor for name, (_, tensor) in FUNCTIONS.items()}

    def everything(d: Tensors) -> Tensors:
        return {name: function(d[name]) for name, (function, _) in FUNCTIONS.items()}

    found = context("pfvm:cpu").compile(everything, given, tmp_path / "out")(given)
    for name, wanted in everything(given).items():
        tensor = found[name].cpu()
        assert isinstance(tensor, torch.Tensor)
        assert tensor.dtype is wanted.dtype, name
        torch.testing.assert_close(tensor, wanted, msg=name)


def wrong_type(self: Any, **_: Any) -> Any:
    return opset20.Cast(self, to=onnx.TensorProto.INT64)


def wrong_shape(self: Any, **_: Any) -> Any:
    return opset20.ReduceSum(self, opset20.Constant(value_ints=[0]), keepdims=0)


def with_translation(op: Any, translation: Any) -> dict[str, Any]:
    return {"custom_translation_table": {op: translation}}


@pytest.mark.parametrize("wrong", [wrong_type, wrong_shape])
def test_a_wrong_translation_of_an_inner_operator_is_replaced(wrong: Any, tmp_path: Path) -> None:
    def function(d: Tensors) -> Tensors:
        return {"y": torch.sin(d["x"]).abs() > 0.3}

    given = {"x": torch.linspace(-1, 1, 8)}
    made = context("pfvm:cpu").compile(
        function,
        given,
        tmp_path / "out",
        export_kwargs=with_translation(_ATEN.sin.default, wrong),
    )
    assert torch.equal(made(given)["y"].cpu(), function(given)["y"])  # type: ignore[arg-type]


def test_a_random_operator_is_refused_by_name_and_line() -> None:
    table = with_translation(_ATEN.rand_like.default, wrong_type)
    with pytest.raises(PycompilerError, match=r"rand_like.*int64 \(4,\).*float32 \(4,\)") as caught:
        export(lambda d: {"y": torch.rand_like(d["x"]) + 1}, {"x": torch.ones(4)}, table)
    assert caught.value.code == "P0140"
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


@pytest.mark.parametrize(
    ("made", "wanted", "mends"),
    [
        (torch.float32, torch.float16, True),
        (torch.float64, torch.float32, True),
        (torch.float32, torch.float64, False),
        (torch.float16, torch.bfloat16, False),
        (torch.int64, torch.uint8, True),
        (torch.int8, torch.uint8, False),
        (torch.bool, torch.uint8, True),
        (torch.bool, torch.int64, False),
        (torch.int64, torch.float32, False),
        (torch.int64, torch.bool, False),
    ],
)
def test_a_conversion_mends_only_wider_numbers(
    made: torch.dtype, wanted: torch.dtype, mends: bool
) -> None:
    assert mendable(made, wanted) is mends


def test_decompositions_get_torchs_dtype_and_strides_or_are_left() -> None:
    rules = like_torch(
        {
            _ATEN.sin.default: lambda x: (x.double() * 2).contiguous(),
            _ATEN.cos.default: lambda x: x[:1],
        },
        leave=True,
    )
    trace = make_fx(lambda x: (x.T.sin(), x.cos()), decomposition_table=rules, tracing_mode="fake")(
        torch.ones(2, 3)
    )
    first, second = (node.meta["val"] for node in trace.graph.output_node().args[0])
    assert (first.dtype, first.stride()) == (torch.float32, (1, 3))
    assert second.shape == (2, 3)
    assert _ATEN.cos.default in {node.target for node in trace.graph.nodes}
