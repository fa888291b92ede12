"""ONNX's node tests, as its package makes them."""

from __future__ import annotations

import contextlib
import io
import warnings
from functools import cache
from typing import Any


@cache
def node_tests() -> tuple[Any, ...]:
    """Return all tests, in the order of the package. It takes some seconds."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return tuple(collect_testcases(None))
