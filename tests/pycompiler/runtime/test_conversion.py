"""What a call gives becomes what the function was compiled for, or is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compiling import context

from pycompiler.errors import PycompilerError
from pycompiler.graph.graph import TensorType
from pycompiler.runtime.conversion import UnfitError, converted

T: Callable[..., torch.Tensor] = torch.tensor
BF16, F64 = torch.bfloat16, torch.float64
SPARSE, META = torch.ones(2).to_sparse(), torch.ones(2, device="meta")

#: What is given, the wanted element type and shape, and the values; a text if it is refused.
CASES: list[tuple[Any, str, tuple[int, ...], Any]] = [
    (T([1, 2, 3]), "float", (3,), [1, 2, 3]),
    (T(1), "float", (1,), [1]),
    (T([[0.5]]), "float", (), 0.5),
    (1, "float", (), 1),
    (True, "int64", (1, 1), [[1]]),
    (0.1, "float", (), float(np.float32(0.1))),
    (2.0, "int64", (), 2),
    (1.5, "int64", (), "element 1.5"),
    (-0.5, "int32", (), "element -0.5"),
    (math.nan, "int32", (), "element nan"),
    (math.inf, "int64", (), "element inf"),
    (math.nan, "bool", (), "element nan"),
    (1, "bool", (), True),
    (2, "bool", (), "element 2"),
    (T([0, 300]), "uint8", (2,), "element 300"),
    (T([-1]), "uint8", (1,), "element -1"),
    (T([-1]), "uint64", (1,), "element -1"),
    (np.array([2**63], np.uint64), "int64", (1,), "element 9223372036854775808"),
    (T([2.0**63]), "int64", (1,), "element 9.22"),
    (T([2.0**64]), "uint64", (1,), "element 1.84"),
    (T([-(2.0**63)]), "int64", (1,), [-(2**63)]),
    (2**70, "int64", (), "no tensor"),
    (T([1, 2**53 + 1]), "float", (2,), [1, 2.0**53]),
    (T([1e300], dtype=F64), "float", (1,), "element 1e+300"),
    (T([math.inf, -math.inf], dtype=F64), "float16", (2,), [math.inf, -math.inf]),
    (T([70000]), "float16", (1,), "element 70000"),
    (T([1.0, 257.0]), "bfloat16", (2,), [1, 256]),
    (T([1.5, -2.0], dtype=BF16), "float", (2,), [1.5, -2]),
    (T([1.0, 2.5], dtype=BF16), "int8", (2,), "element 2.5"),
    (torch.ones(3, 2).t(), "int32", (2, 3), [[1] * 3] * 2),
    (T([1.0], requires_grad=True), "double", (1,), [1]),
    (np.arange(4, dtype=">i4")[::-1], "float", (4,), [3, 2, 1, 0]),
    (np.float64(2), "int8", (1,), [2]),
    (torch.zeros(0), "int32", (0,), []),
    (torch.zeros(2), "float", (2, 1), "shape (2,)"),
    (torch.zeros(1), "float", (2,), "shape (1,)"),
    (1j, "float", (), "complex128"),
    (T([1j]), "float", (1,), "complex64"),
    (torch.zeros(2).to(torch.float8_e5m2), "float", (2,), "float8_e5m2"),
    (np.datetime64("2020-01-01"), "int64", (), "datetime64"),
    ([1.0], "float", (1,), "is a list"),
    ("1", "float", (), "is a str"),
    (None, "float", (), "is a NoneType"),
    (np.array(["1"]), "float", (1,), "no tensor"),
    (SPARSE, "float", (2,), "sparse"),
    (META, "float", (2,), "without data"),
]


@pytest.mark.parametrize(("given", "elem", "shape", "wanted"), CASES)
def test_cases(given: Any, elem: str, shape: tuple[int, ...], wanted: Any) -> None:
    type = TensorType(elem, shape)
    if isinstance(wanted, str):
        with pytest.raises(UnfitError) as caught:
            converted(given, type)
        assert wanted in str(caught.value)
        return
    found = converted(given, type)
    assert found.shape == shape
    assert found.astype(np.float64).tolist() == np.array(wanted, np.float64).tolist()


@pytest.mark.parametrize("device", ["pfvm:cpu", "emu2:mini"])
def test_calls(tmp_path: Path, device: str) -> None:
    shared = context(device)
    sample = {"x": torch.ones(3), "n": torch.tensor([2])}
    double = shared.compile(lambda d: {"y": d["x"] * d["n"]}, sample, tmp_path / "out")
    wanted = torch.tensor([2.0, 4.0, 6.0])
    integers = torch.tensor([1, 2, 3])
    whole = shared.compile(lambda d: {"y": d["i"] + 0}, {"i": integers}, tmp_path / "whole")
    proxy = whole({"i": integers})["y"]
    assert proxy.dtype is torch.int64
    for x in (integers, integers.double(), integers.numpy(), proxy):
        for n in (2, torch.tensor(2.0), np.int8(2)):
            found = double({"x": x, "n": n, "of another function": None})["y"].cpu()
            assert found.dtype is torch.float32
            assert torch.equal(found, wanted)
    with pytest.raises(PycompilerError, match=r"`n` has the element 1.5, which int64") as caught:
        double({"x": integers, "n": 1.5})
    assert caught.value.code == "P0603"
    inputs = double.allocate_input_proxy()
    inputs["x"].load_from(proxy)
    inputs["n"].load_from(2.0)
    assert torch.equal(double(inputs)["y"].cpu(), wanted)
    with pytest.raises(PycompilerError, match="which int64 cannot hold"):
        inputs["n"].load_from(torch.tensor([0.25]))
