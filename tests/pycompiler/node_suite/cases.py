"""ONNX's node tests, as its package makes them."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx
from onnx.backend.test.case import node


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
    """Return all tests by name. It takes some seconds."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        found = node.collect_testcases(None)
    return tuple(map(NodeTest, sorted(found, key=lambda case: str(case.name))))


def cases_of(*modules: str) -> list[Any]:
    """Return the objects of some modules of the package by name, without making all others."""
    for module in modules:
        importlib.import_module(f"{node.__name__}.{module}")
    return sorted(node._NodeTestCases, key=lambda case: str(case.name))


def chosen_tests(patterns: Sequence[str]) -> list[NodeTest]:
    """Return the tests whose names match one of the patterns; all without patterns."""
    tests = node_tests()
    found = [one for one in tests if any(re.search(part, one.name) for part in patterns)]
    return found if patterns else list(tests)
