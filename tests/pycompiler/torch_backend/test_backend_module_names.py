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


def inputs(function: Callable[..., torch.Tensor], *given: torch.Tensor) -> set[str]:
    torch.compile(function, backend="emu2", options={"device": "emu2:mini"})(*given)
    rows = pycompiler.last_report().nodes
    return {row["node"].rpartition(".download.")[2] for row in rows if "Download" in row["op"]}


def test_parameters_have_the_names_of_the_model() -> None:
    found = inputs(two_layers(), torch.ones(32, 32))
    assert {"0.0.weight", "0.0.bias", "1.weight", "1.bias"} <= found


def test_parameters_of_several_variables_begin_with_them() -> None:
    first, second = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32)
    found = inputs(lambda x: first(x) + second(x), torch.ones(32, 32))
    assert {"first.weight", "second.weight", "x"} <= found


@pytest.mark.parametrize("names", ["y0", "x1, x0", "x, x7"])
def test_arguments_may_have_the_names_that_pieces_give(names: str) -> None:
    own: dict[str, Callable[..., torch.Tensor]] = {}
    sums = names.replace(",", " * 2 +")
    exec(f"def function({names}):\n    return {sums} - 1", own)
    given = [torch.full((8, 32), k + 1.0) for k in range(len(names.split(",")))]
    compiled = torch.compile(own["function"], backend="emu2", options={"device": "emu2:mini"})
    assert torch.equal(compiled(*given), own["function"](*given))


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()
