"""Forms of Resize that torch lacks, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import compiled, run, sampled
from one_node import one_node

from pycompiler.pfvm.session import HostSession

NONE = np.zeros(0, dtype=np.float32)
#: Attributes; scales or sizes; the region.
FORMS: dict[str, tuple[dict[str, Any], list[float] | list[int], list[float] | None]] = {
    **{
        f"{mode}, {ways}": (
            {
                "mode": "nearest",
                "nearest_mode": mode,
                "coordinate_transformation_mode": ways,
            },
            [1.0, 1.0, 1.7, 0.6],
            None,
        )
        for mode in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        for ways in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    },
    **{
        f"{mode}, {ways}, by scales": (
            {"mode": mode, "coordinate_transformation_mode": ways},
            [1.0, 1.0, 1.7, 0.6],
            None,
        )
        for mode in ("linear", "cubic")
        for ways in ("half_pixel_symmetric", "asymmetric", "pytorch_half_pixel", "align_corners")
    },
    "cubic, outside left out": (
        {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5},
        [1.0, 1.0, 2.5, 0.7],
        None,
    ),
    "a region": (
        {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"},
        [1, 2, 4, 3],
        [0.0, 0.0, 0.25, 0.1, 1.0, 1.0, 0.75, 0.8],
    ),
    "a region that is not all inside": (
        {
            "mode": "linear",
            "coordinate_transformation_mode": "tf_crop_and_resize",
            "extrapolation_value": 7.5,
        },
        [1, 2, 6, 5],
        [0.0, 0.0, -0.25, 0.1, 1.0, 1.0, 0.75, 1.2],
    ),
    "one pixel": (
        {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
        [1, 2, 1, 1],
        None,
    ),
    **{
        f"sizes, {policy}": (
            {"mode": mode, "keep_aspect_ratio_policy": policy, "axes": [2, 3]},
            [8, 9],
            None,
        )
        for mode, policy in (("linear", "not_larger"), ("cubic", "not_smaller"))
    },
    "antialias, shrinking": (
        {"mode": "cubic", "antialias": 1, "exclude_outside": 1},
        [1, 2, 2, 3],
        None,
    ),
    "antialias, growing": ({"mode": "linear", "antialias": 1}, [1, 2, 9, 4], None),
}


#: The first forms are all ways for each mode: `make test` runs a third, in which each is.
MANY, NAMES = 24, list(FORMS)


@pytest.mark.parametrize("name", [*sampled(NAMES[:MANY], every=6), *sampled(NAMES[MANY:])])
def test_form(name: str) -> None:
    facts, given, region = FORMS[name]
    roi = NONE if region is None else np.array(region, dtype=np.float32)
    parameters = {"roi": roi, "scales": np.asarray(given, dtype=np.float32)}
    if all(isinstance(number, int) for number in given):
        parameters |= {"scales": NONE, "sizes": np.asarray(given, dtype=np.int64)}
    model = one_node("Resize", {"x": (1, 2, 5, 7)}, parameters, **facts)
    result, report = compiled(model)
    assert report["host_fallback"] == []
    x = np.random.default_rng(1).standard_normal((1, 2, 5, 7)).astype(np.float32)
    wanted = HostSession(model, "model").run({"x": x})["y0"]
    found = run(result, {"x": x})["y0"]
    if facts["mode"] == "nearest":
        assert np.array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, atol=2e-5)


@pytest.mark.parametrize(
    ("shape", "facts"),
    [
        ((1, 1, 3000, 1), {"mode": "nearest"}),
        (
            (1, 1, 4, 4),
            {"mode": "linear", "antialias": 1, "coordinate_transformation_mode": "align_corners"},
        ),
    ],
)
def test_forms_that_run_on_the_host(shape: tuple[int, ...], facts: dict[str, Any]) -> None:
    """An axis that is too long for LM, and filters whose centres nothing defines."""
    scales = np.array([1.0, 1.0, 0.5, 1.0], dtype=np.float32)
    model = one_node("Resize", {"x": shape}, {"roi": NONE, "scales": scales}, **facts)
    _, report = compiled(model)
    assert [row["op"] for row in report["host_fallback"]] == ["Resize"]
