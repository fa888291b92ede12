"""NaNs of inputs and of constants: found, taken for infinities, or left to the host, as the page of
operators says. The signs of zeros: kept where numbers are moved or chosen."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from compiling import compiled, run
from typed_model import typed_model

NAN, INF = np.nan, np.inf
NUMBERS = [-3.0, 0.0, 2.0, INF, -INF, NAN, -NAN]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_isnan_and_isinf_of_inputs(dtype: str) -> None:
    x = np.array(NUMBERS, dtype)
    x[-1:].view(f"u{x.itemsize}")[:] |= 1 << (8 * x.itemsize - 1)
    for op, wanted in (("IsNaN", np.isnan(x)), ("IsInf", np.isinf(x))):
        result, report = compiled(typed_model([(op, ["x"], "y")], {"x": x}, {"y": wanted}))
        assert not report["host_fallback"]
        np.testing.assert_array_equal(run(result, {"x": x})["y"], wanted)


@pytest.mark.parametrize(("dtype", "large"), [("f4", 3e38), ("f8", 1.7e308)])
def test_overflows_are_no_nans(dtype: str, large: float) -> None:
    x, big = np.array([large, -large, INF, 1.0], dtype), np.array(large, dtype)
    nodes = [("Mul", ["x", "big"], "z"), ("IsNaN", ["z"], "n"), ("IsInf", ["z"], "i")]
    truths = np.array([True, True, True, False])
    outputs = {"n": np.zeros(4, bool), "i": truths}
    result, _ = compiled(typed_model(nodes, {"x": x}, outputs, {"big": big}))
    found = run(result, {"x": x})
    assert not found["n"].any()
    np.testing.assert_array_equal(found["i"][:3], truths[:3])


@pytest.mark.parametrize("bounds", [(NAN, 1.0), (-1.0, NAN)])
def test_clip_with_a_nan_runs_on_the_host(bounds: tuple[float, float]) -> None:
    x = np.array(NUMBERS, np.float32)
    low, high = (np.array(bound, np.float32) for bound in bounds)
    model = typed_model([("Clip", ["x", "a", "b"], "y")], {"x": x}, {"y": x}, {"a": low, "b": high})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result, report = compiled(model)
    reasons = {row["reason"] for row in report["host_fallback"]}
    assert reasons == {"a constant with a NaN"}
    assert run(result, {"x": x})["y"].shape == x.shape


@pytest.mark.parametrize("mode", ["float", "mixed"])
def test_where_copies_a_nan(mode: str) -> None:
    """torch's ``xlogy`` selects a NaN like this."""
    x = np.array(NUMBERS, np.float32)
    nodes = [("IsNaN", ["x"], "n"), ("Add", ["x", "x"], "z"), ("Where", ["n", "nan", "z"], "y")]
    given = {"nan": np.array(NAN, np.float32)}
    result, report = compiled(typed_model(nodes, {"x": x}, {"y": x}, given), float_dtype=mode)
    assert report["host_fallback"] == []
    np.testing.assert_array_equal(run(result, {"x": x})["y"][:5], 2 * x[:5])
    assert np.isnan(run(result, {"x": x})["y"][5:]).all()


def test_zeros_that_are_moved_keep_their_signs() -> None:
    x = np.array([-0.0, 0.0, -1.5, 2.0], np.float32)
    low, high = np.array(-1, np.float32), np.array(1, np.float32)
    zero, order = np.array([-0.0, 0, -0.0, -0.0], np.float32), np.array([2, 0, 1, 3])
    numbers = {"low": low, "high": high, "zero": zero, "order": order}
    wanted = {
        "clip": np.clip(x, -1, 1),
        "max": np.array([-0.0, 0, -0.0, 2], np.float32),
        "min": np.array([-0.0, 0, -1.5, -0.0], np.float32),
        "gather": x[[2, 0, 1, 3]],
    }
    nodes = [
        ("Clip", ["x", "low", "high"], "clip"),
        ("Max", ["x", "zero"], "max"),
        ("Min", ["x", "zero"], "min"),
        ("Gather", ["x", "order"], "gather"),
    ]
    result, report = compiled(typed_model(nodes, {"x": x}, wanted, numbers))
    assert report["host_fallback"] == []
    for name, found in run(result, {"x": x}).items():
        assert np.array_equal(found, wanted[name]), name
        assert np.array_equal(np.signbit(found), np.signbit(wanted[name])), name
