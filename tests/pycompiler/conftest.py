"""Settings of the compiler's tests: hypothesis prints how to repeat a failure."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, settings

from pycompiler.machine import Target, load_target

settings.register_profile(
    "pycompiler",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("pycompiler")
torch.set_num_threads(2)


@pytest.fixture(params=["mncore2", "mini"])
def target(request: pytest.FixtureRequest) -> Target:
    """Both machines."""
    return load_target(request.param)


@pytest.fixture(autouse=True)
def no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is the one the test names."""
    monkeypatch.delenv("MLSDK_DEVICE", raising=False)
