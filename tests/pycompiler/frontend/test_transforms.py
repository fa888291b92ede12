"""Transforms of torch.func inside of a compiled function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from compiling import context, in_turns
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from pycompiler.errors import PycompilerError
from pycompiler.frontend.constant_names import recognised
from pycompiler.frontend.export import export
from pycompiler.frontend.tensor_names import memory_of

Tensors = dict[str, torch.Tensor]
MATRIX = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [0.1, 0.2, 0.3]])
LAYER = torch.nn.Linear(3, 2)


def energy(v: torch.Tensor) -> torch.Tensor:
    return ((MATRIX @ v).tanh() * v).sum()


#: Results of each transform, on a matrix (3, 3).
TRANSFORMS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "vmap": vmap(lambda row: row.sin().sum()),
    "nested": vmap(vmap(lambda one: one * 2 + 1)),
    "in_dims": lambda x: vmap(lambda row, m: m @ row, in_dims=(0, None))(x, MATRIX),
    "grad": lambda x: grad(energy)(x[0]),
    "each": vmap(grad(energy)),
    "jacrev": lambda x: jacrev(lambda v: (v @ MATRIX).sin())(x[0]),
    "jacfwd": lambda x: jacfwd(lambda v: (v @ MATRIX).sin())(x[0]),
    "hessian": lambda x: hessian(energy)(x[0]),
    "hessians": vmap(hessian(lambda v: torch.where(v > 0, v.exp(), v * 0.1).sum())),
    "call": lambda x: functional_call(LAYER, {"weight": x[:2], "bias": x[0, :2]}, (x,)),
    "jvp": lambda x: jvp(torch.sin, (x,), (x + 1,))[1],
    "vjp": lambda x: vjp(torch.sin, x)[1](x)[0],
    "complex": lambda x: torch.view_as_real(
        torch.einsum("ij,jk->ki", torch.complex(x, x + 1), torch.complex(MATRIX, x))
    ),
}


@pytest.mark.parametrize("training", [None, False])
def test_transforms(tmp_path: Path, training: bool | None) -> None:
    chosen = in_turns(TRANSFORMS, int(training is None), 2)

    def transforms(d: Tensors) -> Tensors:
        return {name: transform(d["x"]) for name, transform in chosen.items()}

    given = {"x": torch.linspace(-1, 1, 9).reshape(3, 3)}
    made = context("pfvm:cpu").compile(transforms, given, tmp_path / "out", training=training)
    assert torch._C._functorch.peek_interpreter_stack() is None  # no transform is left open
    found = made(given)
    for name, wanted in transforms(given).items():
        tensor = found[name].cpu()
        assert isinstance(tensor, torch.Tensor)
        torch.testing.assert_close(tensor, wanted, rtol=1e-4, atol=1e-5, msg=name)


def test_tensors_of_the_tracer_have_no_memory() -> None:
    """Transforms leave some among the constants; torch may refuse their pointers."""
    ours, left = torch.ones(3), torch.ones(3, device="meta")
    torch._C._set_throw_on_mutable_data_ptr(left)
    program: Any = SimpleNamespace(constants={"ours": ours, "left": left, "none": torch.ones(0)})
    assert recognised(program, {memory_of(ours): "w"}) == {"ours": "w"}
    assert recognised(program, {}) == {}


def test_a_transform_beside_a_write_is_a_training_step() -> None:
    counts = torch.zeros(3)

    def function(d: Tensors) -> Tensors:
        counts.add_(1)
        return {"y": vmap(torch.sin)(d["x"])}

    with pytest.raises(PycompilerError) as caught:
        export(function, {"x": torch.ones(2, 3)}, registered={"counts": counts}, training=False)
    assert caught.value.code == "P0116"
    assert counts.tolist() == [0, 0, 0]
