"""Tables of lookups elsewhere in DRAM: second functions, held tensors, registered values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compiling import Compiled, compiled, context
from typed_model import typed_model

from pycompiler.app.model import DeviceSegment
from pycompiler.app.writer import write_app
from pycompiler.errors import PycompilerError
from pycompiler.machine import load_target
from pycompiler.runtime.app_file import function_of
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction

Array = np.ndarray[Any, Any]


def lookup(seed: int, given: bool = False, machine: str = "mini") -> tuple[Compiled, Array]:
    """A compiled lookup in a table of many rows, and the table."""
    rows = 600 if machine == "mini" else 1100
    table = np.random.default_rng(seed).standard_normal((rows, 24)).astype(np.float32)
    index = np.zeros(5, dtype=np.int64)
    inputs, constants = {"i": index}, {"w": table}
    if given:
        inputs, constants = {**inputs, **constants}, {}
    model = typed_model([("Gather", ["w", "i"], "y")], inputs, {"y": table[index]}, constants)
    return compiled(model, machine)[0], table


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
def test_the_second_function_of_a_board(machine: str) -> None:
    """Its block does not begin at address 0. Both functions stay right, in any order."""
    board, index = Board(load_target(machine)), np.array([599, 0, -1, 17, 256])
    functions = [
        (DeviceFunction(made.app, board), table)
        for made, table in (lookup(seed, machine=machine) for seed in (1, 2, 3))
    ]
    assert len({function._block.addr for function, _ in functions}) == 3
    for function, table in (*functions, *reversed(functions)):
        found = function.run({"i": index})["y"].values()
        assert np.array_equal(found, table[index])


def test_a_segment_with_other_steps_than_counted() -> None:
    """A bug of the compiler says P0403; in the bytes of an app it is damage."""
    app = lookup(5)[0].app
    (segment,) = app.segments
    assert isinstance(segment, DeviceSegment)
    other = replace(app, segments=(replace(segment, steps=segment.steps + 1),))
    board = Board(load_target("mini"))
    with pytest.raises(PycompilerError) as caught:
        DeviceFunction(other, board)
    assert caught.value.code == "P0403"
    with pytest.raises(PycompilerError) as caught:
        function_of(write_app(other), "model.app", board)
    assert caught.value.code == "P0501"


def test_a_table_that_is_held_elsewhere_in_dram() -> None:
    """A tensor in DRAM in the right order is read where it lies; one on the host is copied."""
    made, table = lookup(4, given=True)
    board, index = Board(load_target("mini")), np.array([599, 0, -1, 17, 256])
    first, function = DeviceFunction(made.app, board), DeviceFunction(made.app, board)
    held = [function.allocate("w") for _ in range(2)]
    for factor, tensor in enumerate(held, 1):
        assert tensor.place is not None
        tensor.place.write(table * factor)
    for factor, tensor in enumerate(held, 1):
        assert np.array_equal(
            function.run({"i": index, "w": tensor})["y"].values(), (table * factor)[index]
        )
    assert np.array_equal(first.run({"i": index, "w": held[1]})["y"].values(), (table * 2)[index])
    assert np.array_equal(function.run({"i": index, "w": -table})["y"].values(), -table[index])


def test_a_registered_embedding(tmp_path: Path) -> None:
    """Two functions of a context read one table; a change of its values is seen by both."""
    torch.manual_seed(5)
    shared = context("emu2:mini")
    embedding = torch.nn.Embedding(600, 24)
    shared.registry.register("embedding", embedding)
    sample = {"i": torch.zeros(5, dtype=torch.int64)}
    one = shared.compile(lambda d: {"y": embedding(d["i"])}, sample, tmp_path / "one")
    two = shared.compile(lambda d: {"y": embedding(d["i"]) * 2}, sample, tmp_path / "two")
    index, table = torch.tensor([599, 0, 3, 17, 256]), embedding.weight.detach().clone()
    for value in (table, torch.randn(600, 24)):
        shared.get_registered_value_proxy(embedding.weight).load_from(value)
        for function, factor in ((one, 1), (two, 2), (one, 1)):
            found = function({"i": index})["y"].cpu()
            assert torch.equal(found, value[index] * factor)
