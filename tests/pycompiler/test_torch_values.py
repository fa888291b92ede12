"""Exported functions give torch's types, shapes and values on ``pfvm:cpu`` where forms break.

The table of `torch_suite/edges.py`, and samples of torch's operator database in other element
types than those of docs/torch_operators.md. `make test` runs some of the table.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from compiling import LONG
from hypothesis import given, settings
from hypothesis import strategies as st
from suites.outcome import WRONG, Outcome
from torch_suite.cases import typed_samples
from torch_suite.edges import Call, edge_calls
from torch_suite.values import difference, judge_values

CALLS = edge_calls()
#: Calls are exported together, so that the whole table takes a minute.
SAMPLE = CALLS if LONG else CALLS[::31]


def faults(found: Sequence[Outcome]) -> list[tuple[str, ...]]:
    return [(one.name, one.kind, one.code, one.reason) for one in found if one.kind != "host"]


@pytest.mark.parametrize("part", range(0, len(SAMPLE), 96))
def test_edges(part: int) -> None:
    assert not faults(judge_values(SAMPLE[part : part + 96]))


def test_names_differ() -> None:
    assert len({call.name for call in CALLS}) == len(CALLS)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (torch.zeros(2), torch.zeros(2, 1)),
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (torch.tensor([torch.inf]), torch.tensor([1e30])),
        (torch.tensor([torch.nan]), torch.tensor([1.0])),
        (torch.tensor([0.1], dtype=torch.float64), torch.tensor([0.1]).double()),
        (torch.tensor([3]), torch.tensor([4])),
    ],
)
def test_differences_are_seen(found: torch.Tensor, wanted: torch.Tensor) -> None:
    assert difference(found, wanted)
    assert not difference(wanted, wanted.clone())


@pytest.mark.skipif(not LONG, reason="runs in `make test-long`")
@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 30))
def test_samples_of_other_types(seed: int) -> None:
    calls = [Call(*one) for one in typed_samples(seed, 48)]
    wrong = [one for one in judge_values(calls) if one.kind == WRONG]
    assert not faults(wrong), f"seed {seed}"
