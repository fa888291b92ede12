"""Settings and fixtures of the compiler's tests."""

from __future__ import annotations

import functools

import pytest
import torch
from torch.onnx._internal.exporter import _registration

from pycompiler.machine import Target, load_target

torch.set_num_threads(2)

# For every export, torch parses the 500 functions of its library again, which takes longer than the
# export itself. Cache the result, which never changes. Other versions of torch are left alone.
apis = getattr(_registration, "onnxscript_apis", None)
if hasattr(apis, "get_torchlib_ops"):
    apis.get_torchlib_ops = functools.cache(apis.get_torchlib_ops)


@pytest.fixture(params=["mncore2", "mini"])
def target(request: pytest.FixtureRequest) -> Target:
    """Run the test on both machines."""
    return load_target(request.param)


@pytest.fixture(autouse=True)
def no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the device that the test names."""
    monkeypatch.delenv("MLSDK_DEVICE", raising=False)
