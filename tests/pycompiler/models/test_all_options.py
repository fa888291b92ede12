"""Every scheduler, emit mode, preset and executor gives the same bits.

`make test` has a drawn model, `make test-long` ten of them and all quick models of the catalogue.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import compiled, run, tried
from random_models import random_model

from pycompiler.emit.segments import EMITS
from pycompiler.frontend.export import export
from pycompiler.layout_passes import LayoutPlans
from pycompiler.models.catalogue import CATALOGUE, Entry
from pycompiler.models.libraries import build_model
from pycompiler.models.names import LIBRARIES
from pycompiler.options import parse_options
from pycompiler.presets.read import same_bits
from pycompiler.scheduler.annealing.scheduler import NAME
from pycompiler.scheduler.schedulers import SCHEDULERS
from pycompiler.simulation.settings import MODES

QUICK = [entry for entry in CATALOGUE.values() if entry.quick]


def combinations(executors: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield options: all schedulers with all emit modes, presets, and simulations on executors."""
    short = {"sa_expected_run_iters": 50, "simulation_mode": "fake"}
    for scheduler in (*SCHEDULERS, NAME):
        for emit in EMITS:
            more = short if scheduler == NAME else {}
            yield {"scheduler": scheduler, "emit": emit, **more}
    for name in same_bits():
        yield {"option_json": name}
    for executor in executors:
        yield {"executor": executor, "num_threads": 2, "simulation_mode": "best"}
        yield {"scheduler": NAME, "executor": executor, "num_threads": 2, **short}
    for mode in MODES:
        yield {"simulation_mode": mode}


def check(
    model: onnx.ModelProto, inputs: Mapping[str, np.ndarray], machine: str, **options: Any
) -> None:
    executors = options.pop("executors")
    wanted: dict[str, np.ndarray] = {}
    plans = LayoutPlans()  # what differs here comes behind the layouts
    for more in combinations(executors):
        made, _ = compiled(model, machine, plans, **options, **more)
        found = run(made, inputs, machine)
        wanted = wanted or found
        assert found.keys() == wanted.keys()
        for key, array in wanted.items():
            assert np.array_equal(array, found[key], equal_nan=True), (key, more)


def test_every_option_is_tried() -> None:
    found = [parse_options(one) for one in combinations(("threads",))]
    assert {one.scheduler for one in found} == {*SCHEDULERS, NAME}
    assert {one.emit for one in found} == set(EMITS)


@pytest.mark.parametrize("seed", range(1, 1 + tried(1)))
def test_drawn_models_keep_their_bits(seed: int) -> None:
    model, inputs = random_model(random.Random(15_000 + seed))
    mode = ("float", "mixed")[seed % 2]
    check(model, inputs, "mini", float_dtype=mode, sram_budget=0.5, executors=("threads",))


@pytest.mark.skipif(not os.environ.get("EMU2_LONG"), reason="only in `make test-long`")
@pytest.mark.parametrize("mode", ["float", "mixed"])
@pytest.mark.parametrize("entry", QUICK, ids=lambda entry: entry.name)
def test_models_keep_their_bits(entry: Entry, mode: str) -> None:
    if entry.library in LIBRARIES[1:]:
        pytest.importorskip(entry.library, reason=f"{entry.library} is not installed")
    torch.manual_seed(0)
    made = build_model(entry, entry.batches[0])
    model = export(made.function, dict(made.inputs))
    inputs = {name: array.numpy() for name, array in made.inputs.items()}
    check(model, inputs, "mncore2", float_dtype=mode, executors=("threads", "processes"))
