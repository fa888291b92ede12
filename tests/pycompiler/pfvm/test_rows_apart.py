"""Rows of contractions and of transforms stay axes of their own: flat ones would move."""

from __future__ import annotations

import numpy as np
import torch
from compiling import compiled, run

from pycompiler.frontend.export import export
from pycompiler.pfvm.optimise import optimise


def test_contraction() -> None:
    def function(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"c": torch.einsum("ijkl,klm->ijm", given["a"], given["b"])}

    given = {"a": torch.randn(5, 7, 3, 5).double(), "b": torch.randn(3, 5, 9).double()}
    result, _ = compiled(optimise(export(function, given)), "mini")
    arrays = {name: tensor.numpy() for name, tensor in given.items()}
    found = run(result, arrays, "mini")["c"]
    wanted = np.tensordot(arrays["a"], arrays["b"], 2)
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-13)
    assert all(value.shape != (5 * 7, 3 * 5) for value in result.graph.values.values())


def test_transform_of_a_middle_axis() -> None:
    def function(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        found = torch.fft.fft(given["x"], dim=1)
        return {"re": found.real, "im": found.imag}

    given = {"x": torch.randn(3, 7, 5).double()}
    result, _ = compiled(optimise(export(function, given)), "mini")
    found = run(result, {"x": given["x"].numpy()}, "mini")
    wanted = np.fft.fft(given["x"].numpy(), axis=1)
    np.testing.assert_allclose(found["re"], wanted.real, rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(found["im"], wanted.imag, rtol=1e-13, atol=1e-12)
    assert all(value.shape[:1] != (3 * 5,) for value in result.graph.values.values())
