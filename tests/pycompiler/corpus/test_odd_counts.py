"""Networks of the corpus match the host where no count of units is a power of two."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import compiled, run

from pycompiler.pfvm.session import HostSession

from .networks import embedding, pyramid

MACHINE = "what_if/odd"


@pytest.mark.parametrize(
    "model",
    [
        embedding(60, 50, 7),
        pyramid(1, 4, 12),
        pytest.param(pyramid(1, 5, 20), marks=pytest.mark.long),
    ],
    ids=["embedding", "pyramid", "pyramid whose blocks move by odd counts of words"],
)
def test_networks_match_the_host(model) -> None:  # type: ignore[no-untyped-def]
    (given,) = model.graph.input
    shape = [axis.dim_value for axis in given.type.tensor_type.shape.dim]
    rows = np.random.default_rng(3).integers(0, 60, shape).astype(np.float32)
    inputs = {"x": rows if len(shape) == 1 else rows / np.float32(60)}
    found = run(compiled(model, MACHINE)[0], inputs, MACHINE)
    for name, wanted in HostSession(model, "model").run(inputs).items():
        assert np.allclose(found[name], wanted, rtol=1e-5, atol=1e-5), name
