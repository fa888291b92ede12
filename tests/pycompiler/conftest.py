"""Settings and fixtures of the compiler's tests."""

from __future__ import annotations

import functools

import pytest
import torch
from torch.onnx._internal.exporter import _registration

from pycompiler.machine import Target, load_target

torch.set_num_threads(2)

# torch parses the 500 functions of its library again for every export, which takes longer than the
# rest of it. They are always the same. Where torch does it otherwise, it goes on doing so.
apis = getattr(_registration, "onnxscript_apis", None)
if hasattr(apis, "get_torchlib_ops"):
    apis.get_torchlib_ops = functools.cache(apis.get_torchlib_ops)


@pytest.fixture(params=["mncore2", "mini"])
def target(request: pytest.FixtureRequest) -> Target:
    """Both machines."""
    return load_target(request.param)


@pytest.fixture(autouse=True)
def no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is the one the test names."""
    monkeypatch.delenv("MLSDK_DEVICE", raising=False)
