"""Functions of NumPy give scalars for arrays without axes; calls take them like arrays."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import compiled, model_of, run


@pytest.mark.parametrize(
    "given", [np.float32(-3), np.array(-3, np.float32)], ids=["scalar", "array"]
)
def test_a_scalar_is_an_input(given: np.ndarray) -> None:
    result, _ = compiled(model_of([("Neg", ["x"], "y")], {"x": ()}, ["y"]))
    found = run(result, {"x": given})["y"]
    assert found.shape == ()
    assert found == 3
