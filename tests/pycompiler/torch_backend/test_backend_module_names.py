"""Nodes of captured graphs have the paths of the model's modules."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import pycompiler


def nodes(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> list[str]:
    torch.compile(function, backend="emu2", options={"device": "emu2:mini"})(*inputs)
    rows = pycompiler.last_report().nodes
    return [row["node"].partition(": ")[2] for row in rows if row["op"] in ("Gemm", "MatMul")]


def two_layers() -> torch.nn.Module:
    inner = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU())
    return torch.nn.Sequential(inner, torch.nn.Linear(32, 32))


def test_paths_are_those_of_the_model() -> None:
    found = nodes(two_layers(), torch.ones(32, 32))
    assert [name.rpartition("/")[0] for name in found] == ["0.0", "1"]


def test_paths_of_several_variables_begin_with_them() -> None:
    first, second = torch.nn.Linear(32, 32), two_layers()

    def both(x: torch.Tensor) -> torch.Tensor:
        return first(x) + second(x)

    found = nodes(both, torch.ones(32, 32))
    assert sorted(name.rpartition("/")[0] for name in found) == ["first", "second.0.0", "second.1"]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()
