"""Transforms of torch.func inside of a compiled function."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from compiling import context
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from pycompiler.errors import PycompilerError
from pycompiler.frontend.export import export

Tensors = dict[str, torch.Tensor]
MATRIX = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [0.1, 0.2, 0.3]])
LAYER = torch.nn.Linear(3, 2)


def energy(v: torch.Tensor) -> torch.Tensor:
    return ((MATRIX @ v).tanh() * v).sum()


def transforms(d: Tensors) -> Tensors:
    """Return a result of each transform."""
    x = d["x"]
    pair = torch.complex(x, x + 1), torch.complex(MATRIX, x)
    return {
        "vmap": vmap(lambda row: row.sin().sum())(x),
        "nested": vmap(vmap(lambda one: one * 2 + 1))(x),
        "in_dims": vmap(lambda row, m: m @ row, in_dims=(0, None))(x, MATRIX),
        "grad": grad(energy)(x[0]),
        "each": vmap(grad(energy))(x),
        "jacrev": jacrev(lambda v: (v @ MATRIX).sin())(x[0]),
        "jacfwd": jacfwd(lambda v: (v @ MATRIX).sin())(x[0]),
        "hessian": hessian(energy)(x[0]),
        "hessians": vmap(hessian(lambda v: torch.where(v > 0, v.exp(), v * 0.1).sum()))(x),
        "call": functional_call(LAYER, {"weight": x[:2], "bias": x[0, :2]}, (x,)),
        "jvp": jvp(torch.sin, (x,), (x + 1,))[1],
        "vjp": vjp(torch.sin, x)[1](x)[0],
        "complex": torch.view_as_real(torch.einsum("ij,jk->ki", *pair)),
    }


@pytest.mark.parametrize("training", [None, False])
def test_transforms(tmp_path: Path, training: bool | None) -> None:
    given = {"x": torch.linspace(-1, 1, 9).reshape(3, 3)}
    made = context("pfvm:cpu").compile(transforms, given, tmp_path / "out", training=training)
    assert torch._C._functorch.peek_interpreter_stack() is None  # no transform is left open
    found = made(given)
    for name, wanted in transforms(given).items():
        tensor = found[name].cpu()
        assert isinstance(tensor, torch.Tensor)
        torch.testing.assert_close(tensor, wanted, rtol=1e-4, atol=1e-5, msg=name)


def test_a_transform_beside_a_write_is_a_training_step() -> None:
    counts = torch.zeros(3)

    def function(d: Tensors) -> Tensors:
        counts.add_(1)
        return {"y": vmap(torch.sin)(d["x"])}

    with pytest.raises(PycompilerError) as caught:
        export(function, {"x": torch.ones(2, 3)}, registered={"counts": counts}, training=False)
    assert caught.value.code == "P0116"
    assert counts.tolist() == [0, 0, 0]
