"""Settings and fixtures of the compiler's tests."""

from __future__ import annotations

import pytest
import torch

from pycompiler.machine import Target, load_target

torch.set_num_threads(2)


@pytest.fixture(params=["mncore2", "mini"])
def target(request: pytest.FixtureRequest) -> Target:
    """Both machines."""
    return load_target(request.param)


@pytest.fixture(autouse=True)
def no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is the one the test names."""
    monkeypatch.delenv("MLSDK_DEVICE", raising=False)
