"""Modules with the inputs of torch's own tests, through the back end and in torch alone.

torch's wheel has this database. Its tests of back ends are not in the wheel.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

from pycompiler.torch_backend import emu2

BACKEND = partial(emu2, options={"device": "emu2:mini"})
#: Those that `make test` runs.
QUICK = ("nn.CircularPad1d", "nn.Hardswish")
#: Two fail in torch alone with their inputs; those of the third have no numbers (NaN), which the
#: machine lacks.
BROKEN = ("nn.FractionalMaxPool2d", "nn.FractionalMaxPool3d", "nn.KLDivLoss")
INPUTS = 2  # of each module
LONG = bool(os.environ.get("EMU2_LONG"))


def database() -> dict[str, Any]:
    """Return torch's modules by name. It takes seconds to load them."""
    pytest.importorskip("expecttest", reason="torch's database of modules needs it")
    from torch.testing._internal.common_modules import module_db

    return {info.name: info for info in module_db if info.name not in BROKEN}


@pytest.fixture(autouse=True)
def _new_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def results(module: torch.nn.Module, run: Any, inputs: Any, training: bool) -> list[torch.Tensor]:
    """Return what a module makes, and in training the gradients of parameters and inputs."""
    torch.manual_seed(1)
    made = tree_leaves(run(*inputs.args, **inputs.kwargs))
    made = [one for one in made if isinstance(one, torch.Tensor)]
    losses = [one.abs().sum() for one in made if one.requires_grad]
    given = [one for one in tree_leaves((inputs.args, inputs.kwargs)) if torch.is_tensor(one)]
    leaves = [one for one in (*module.parameters(), *given) if one.requires_grad]
    if training and losses and leaves:
        gradients = torch.autograd.grad(sum(losses), leaves, allow_unused=True)
        made += [torch.zeros(()) if one is None else one for one in gradients]
    return made


@pytest.mark.parametrize("training", [False, True], ids=["eval", "training"])
@pytest.mark.parametrize("name", [*database()] if LONG else QUICK)
def test_module(name: str, training: bool) -> None:
    info = database()[name]
    samples = info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=training, training=training
    )
    for sample in samples[: INPUTS if LONG else 1]:
        torch._dynamo.reset()
        torch.manual_seed(0)
        built = sample.constructor_input
        ours = info.module_cls(*built.args, **built.kwargs).train(training)
        theirs = copy.deepcopy(ours)
        wanted = results(theirs, theirs, sample.forward_input, training)
        found = results(ours, torch.compile(ours, backend=BACKEND), sample.forward_input, training)
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
