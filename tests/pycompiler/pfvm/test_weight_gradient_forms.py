"""Gradients of weights of drawn convolutions, as the compiler writes them for a machine."""

from __future__ import annotations

import random

import numpy as np
import onnxruntime
import pytest
from compiling import tried
from gradient_models import gradient_model, wanted_gradient
from hypothesis import given, settings
from hypothesis import strategies as st

from pycompiler.machine import load_target
from pycompiler.pfvm.lower import lower
from pycompiler.pfvm.optimise import optimise


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(40, 800))
def test_written_forms_give_the_gradient(machine: str, seed: int) -> None:
    """Tiles, groups of channels, products, and strides that become channels: whole numbers stay."""
    rng = random.Random(seed)
    kernel = tuple(rng.choice((1, 2, 3, 4, 5, 7)) for _ in range(rng.choice((1, 2, 2))))
    stride, dilation, pad = rng.choice((1, 2, 2, 3, 4)), rng.choice((1, 1, 2)), rng.randrange(4)
    least = (max(1, (taps - 1) * dilation + 1 - 2 * pad) for taps in kernel)
    size = tuple(rng.randint(one, 40) for one in least)
    channels, columns = rng.choice((1, 2, 3, 5, 8, 20)), rng.choice((1, 3, 8, 17))
    case = (rng.randint(1, 4), channels, columns, size, kernel, stride, dilation, pad)
    model, shapes = gradient_model(case)
    numbers = np.random.default_rng(seed)
    data = {n: numbers.integers(-7, 8, one).astype(np.float32) for n, one in shapes.items()}
    written = lower(optimise(model), load_target(machine)).SerializeToString()
    session = onnxruntime.InferenceSession(written, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, data)
    assert (found == wanted_gradient(data["x"], data["g"], case)).all()
