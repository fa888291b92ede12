"""Constants near 0 and 1 are numbers of their own."""

from __future__ import annotations

import pytest
import torch

from pycompiler.mlsdk import Context, MNDevice


@pytest.mark.parametrize("device", ["pfvm:cpu", "emu2:mini"])
def test_constants_near_0_and_1_stay(device, tmp_path):
    small, one = 1e-8, 1 + 3e-6

    def function(d):
        x = d["x"]
        return {
            "quotient": x / (x.abs() + small),
            "sum": (x * small + small) * 1e8,
            "difference": (x * small - small) * 1e8,
            "product": x * one - x,
            "divided": x / one - x,
            "folded": x * torch.tensor(one) - x,
        }

    x = torch.tensor([0.0, 1.0, -2.0, 0.0, 3.5])
    compiled = Context(MNDevice(device)).compile(function, {"x": x}, tmp_path / "out")
    found, wanted = compiled({"x": x}), function({"x": x})
    for name, value in wanted.items():
        torch.testing.assert_close(found[name].cpu(), value, rtol=1e-5, atol=2e-6, msg=name)
    assert found["product"].cpu().abs().max() > 5e-6
