"""Random functions under every family of layouts and every scheduler, against torch."""

from __future__ import annotations

import random

import numpy as np
import pytest
from compiling import compiled, run, with_seeds
from random_functions import random_function

from pycompiler.frontend.export import export
from pycompiler.pfvm.optimise import optimise
from pycompiler.planners.layout import PLANNERS
from pycompiler.scheduler.schedulers import SCHEDULERS
from pycompiler.tolerance import NETWORKS


# The modes take turns: the other half runs in `make test-long`.
@pytest.mark.parametrize(
    ("planner", "mode"),
    [
        pytest.param(planner, mode, marks=pytest.mark.long if (k + n) % 2 else ())
        for k, planner in enumerate(PLANNERS)
        for n, mode in enumerate(NETWORKS)
    ],
)
def test_random_functions(planner: str, mode: str) -> None:
    """Each scheduler gives the same bits, and they are near torch's."""

    def check(seed: int) -> None:
        rng = random.Random(seed)
        function, inputs = random_function(rng)
        wanted = {name: value.numpy() for name, value in function(inputs).items()}
        model = optimise(export(function, inputs))
        machine = rng.choice(["mini", "mini", "mncore2"])
        first: dict[str, np.ndarray] = {}
        for scheduler in SCHEDULERS:
            result, report = compiled(
                model, machine, layout_planner=planner, float_dtype=mode, scheduler=scheduler
            )
            assert report["host_fallback"] == []
            found = run(result, {n: value.numpy() for n, value in inputs.items()}, machine)
            first = first or found
            for name, reference in wanted.items():
                assert np.array_equal(found[name], first[name]), scheduler
                largest = np.abs(reference).max(initial=0)
                error = np.abs(found[name] - reference).max(initial=0)
                assert error <= NETWORKS[mode] * largest, name

    with_seeds(check, 1, 30)
