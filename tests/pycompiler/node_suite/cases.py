"""ONNX's node tests, as its package makes them."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx


@dataclass(frozen=True)
class NodeTest:
    """A test: ``case`` is the object of onnx's package."""

    case: Any

    @property
    def name(self) -> str:
        return str(self.case.name)

    @property
    def operator(self) -> str:
        return operator_of(self.case.model, self.name)


def operator_of(model: onnx.ModelProto, name: str) -> str:
    """Return the operator that a test is about; a test of an expanded function names it."""
    nodes = model.graph.node
    if len(nodes) == 1 and not name.endswith("_expanded"):
        return str(nodes[0].op_type)
    return str(nodes[0].op_type) if len(nodes) == 1 else "functions and small graphs"


@cache
def node_tests() -> tuple[NodeTest, ...]:
    """Return all tests, in the order of the package. It takes some seconds."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return tuple(map(NodeTest, collect_testcases(None)))


def chosen_tests(patterns: Sequence[str]) -> list[NodeTest]:
    """Return the tests with one of the patterns in their name; all without patterns."""
    tests = node_tests()
    return [one for one in tests if not patterns or any(part in one.name for part in patterns)]
