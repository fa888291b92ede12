"""Settings and fixtures of the compiler's tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from quick_export import keep_tables_of_exports
from sanitizing import every_call_sanitized

from pycompiler.layers.operators import LAYERS
from pycompiler.machine import Target, load_target

torch.set_num_threads(2)

keep_tables_of_exports()


#: Files whose tests need operators without a layer, and the layers that are taken away for them.
_HOSTED = {
    "test_app_reader": ("Sin",),
    "test_apps": ("Sin",),
    "test_cache": ("Sin",),
    "test_command_line": ("Sin",),
    "test_codegen_files": ("Sin",),
    "test_context": ("Sin", "Cos"),
    "test_empty": ("Sin",),
    "test_frontend": ("Sin",),
    "test_graph_text": ("Sin",),
    "test_host_runtime": ("Sin",),
    "test_linked_apps": ("Sin", "Cos"),
    "test_partition": ("Sin", "Cos"),
    "test_planners": ("Sin", "Cos"),
    "test_rounded_factors": ("Atan",),
    "test_tuning": ("Sin",),
    "test_user_functions": ("Sin", "Cos", "Asinh"),
    "test_views": ("Sin",),
}


@pytest.fixture(autouse=True)
def without_layers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take layers away where a test is about operators on the host."""
    for op in _HOSTED.get(request.module.__name__.rpartition(".")[2], ()):
        monkeypatch.delitem(LAYERS, op)


@pytest.fixture(params=["mncore2", "mini"])
def target(request: pytest.FixtureRequest) -> Target:
    """Run the test on both machines."""
    return load_target(request.param)


@pytest.fixture(autouse=True)
def no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the device that the test names."""
    monkeypatch.delenv("MLSDK_DEVICE", raising=False)
    # Some libraries set the width of the terminal for the whole process.
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def sanitized(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look at all calls of compiled models if `EMU2_SANITIZE` is set."""
    if not os.environ.get("EMU2_SANITIZE"):
        yield
        return
    with every_call_sanitized(monkeypatch):
        yield
