"""Compositions of the transforms of torch.func, drawn, by both doors."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from compiling import context
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)

Tensor = torch.Tensor
Function = Callable[[Tensor], Tensor]
MATRIX = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [0.1, 0.2, 0.3]])
LAYERS = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
KERNEL = torch.tensor([[[0.5, -1.0]], [[1.0, 0.25]]])
PARAMETERS = {name: value.detach() for name, value in LAYERS.named_parameters()}


def called(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
    return functional_call(LAYERS, parameters, (x,)).square().sum()


#: Functions of three numbers, to one number.
NUMBERS: tuple[Function, ...] = (
    lambda v: ((MATRIX @ v).tanh() * v).sum(),
    lambda v: torch.logsumexp(v * 1.3, 0),
    lambda v: called(PARAMETERS, v),
    lambda v: v.norm() ** 2 + torch.nn.functional.layer_norm(v, (3,), MATRIX[0]).sum(),
    lambda v: v.prod() + v.cumsum(0).square().mean(),
    lambda v: torch.nn.functional.conv1d(v[None, None], KERNEL).sin().sum(),
    lambda v: (v.roll(1) * v).sum() + v.max(),
    lambda v: torch.cat([v, v * 2]).reshape(2, 3).softmax(1).square().sum(),
    lambda v: v[torch.tensor([2, 0, 0])].exp().sum() + torch.where(v > 0, v, v * 0.1).sum(),
)
#: Functions of three numbers, to three.
LISTS: tuple[Function, ...] = (
    lambda v: (MATRIX @ v).sin(),
    lambda v: v.softmax(0),
    lambda v: v.cumsum(0) * v,
    lambda v: v.square() + v.flip(0),
    lambda v: v.sort().values * torch.arange(3.0),
    lambda v: torch.nn.functional.pad(v, (1, -1)) * v,
    torch.nn.functional.gelu,
    lambda v: torch.outer(v, v).sum(1) + torch.einsum("i,ij->j", v, MATRIX),
)


def transformed(one: Function, many: Function) -> dict[str, Function]:
    """Functions of a matrix of three rows, by what they transform."""
    return {
        "grads": vmap(grad(one)),
        "columns": vmap(many, in_dims=1),
        "nested": lambda x: vmap(
            vmap(lambda a, b: many(a) * b, in_dims=(None, 0)), in_dims=(0, None)
        )(x, x[0]),
        "jacrev": lambda x: jacrev(many)(x[0]),
        "jacfwd": lambda x: jacfwd(many)(x[1]),
        "hessian": lambda x: hessian(one)(x[2]),
        "jacobians": vmap(jacrev(many)),
        "hessians": vmap(hessian(one)),
        "forwards over backwards": lambda x: jacfwd(jacrev(many))(x[0]),
        "jvp": lambda x: torch.stack(jvp(many, (x[0],), (x[1],))),
        "vjp": lambda x: vjp(lambda a, b: many(a) * b, x[0], x[1])[1](x[2])[1],
        "rows of a jacobian": lambda x: vmap(vjp(many, x[0])[1])(torch.eye(3))[0],
        "a gradient of a gradient": lambda x: grad(lambda v: grad(one)(v).square().sum())(x[0]),
        "parameters": lambda x: grad(called)(PARAMETERS, x)["0.weight"],
        "parameters by row": lambda x: vmap(grad(called), in_dims=(None, 0))(PARAMETERS, x)[
            "2.weight"
        ],
        "plain operands": lambda x: vmap(
            lambda a, m, c: (m @ many(a)) * c, in_dims=(0, None, None)
        )(x, MATRIX, 2.0),
        "another axis": vmap(lambda v: torch.outer(many(v), v), out_dims=2),
        "more results": lambda x: grad_and_value(lambda v: (one(v), many(v)), has_aux=True)(x[0])[
            1
        ][1],
        "the second operand": lambda x: jacrev(lambda a, b: many(a) * b, argnums=(0, 1))(
            x[0], x[1]
        )[1],
        "chunks": vmap(many, chunk_size=2),
        "a way back of rows": lambda x: vjp(vmap(many), x)[1](x)[0],
        "linearized": lambda x: linearize(many, x[0])[1](x[1]),
    }


KINDS = list(transformed(NUMBERS[0], LISTS[0]))
#: Dynamo of torch 2.15 cannot trace all of these, with any back end (docs/torch_compile.md).
NOT_TRACED = ("hessian", "hessians")


def drawn(seed: int) -> dict[str, Function]:
    """Return each transform of drawn functions."""
    draw = random.Random(seed)
    made = {kind: (draw.choice(NUMBERS), draw.choice(LISTS)) for kind in KINDS}
    return {kind: transformed(*made[kind])[kind] for kind in KINDS}


@pytest.mark.long  # `test_transforms.py` has each of them alone, and two of them nested
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("door", ["context", "torch.compile"])
def test_drawn_transforms(seed: int, door: str, tmp_path: Path) -> None:
    functions = drawn(seed)

    def function(x: Tensor) -> dict[str, Tensor]:
        return {kind: one(x) for kind, one in functions.items()}

    x = torch.randn(3, 3, generator=torch.Generator().manual_seed(seed))
    if door == "context":
        compiled = context("pfvm:cpu").compile(
            lambda d: function(d["x"]), {"x": x}, tmp_path / "out"
        )
        found = {kind: value.cpu() for kind, value in compiled({"x": x}).items()}
    else:
        functions |= {kind: torch.compiler.disable(functions[kind]) for kind in NOT_TRACED}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = torch.compile(function, backend="emu2", options={"device": "pfvm:cpu"})
            found = run(x)
    for kind, wanted in function(x).items():
        own = found[kind]
        assert isinstance(own, Tensor)
        torch.testing.assert_close(own, wanted, rtol=1e-3, atol=1e-4, msg=f"{kind} of {seed}")
