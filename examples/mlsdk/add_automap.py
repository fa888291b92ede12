"""Adds four tensors that come in a tuple, a named tuple, a list and a dataclass."""

import tempfile
from dataclasses import dataclass
from typing import NamedTuple

import torch
from mlsdk import Context, MNDevice, register_pytree_dataclass, register_pytree_namedtuple


@register_pytree_namedtuple
class Second(NamedTuple):
    tensor: torch.Tensor


@register_pytree_dataclass
@dataclass
class Fourth:
    tensor: torch.Tensor


@register_pytree_dataclass
@dataclass
class Result:
    total: torch.Tensor
    parts: list


def add(first, second, *, third, fourth):
    front, back = first[0] + second.tensor, third[0] + fourth.tensor
    return Result(front + back, [front, back])


def arguments(value):
    one = torch.full((3, 4), value)
    return ((one,), Second(one)), {"third": [one], "fourth": Fourth(one)}


def main():
    context = Context(MNDevice("mncore2:auto"))
    Context.switch_context(context)
    args, kwargs = arguments(0.0)
    compiled = context.compile_automap(
        add, args, kwargs, tempfile.mkdtemp(), options={"float_dtype": "float"}
    )
    args, kwargs = arguments(1.0)
    result = compiled(*args, **kwargs)
    assert isinstance(result, Result)
    assert torch.allclose(result.total.cpu(), torch.full((3, 4), 4.0))
    assert torch.allclose(result.parts[1].cpu(), torch.full((3, 4), 2.0))
    print("total", result.total.cpu().unique().tolist())


if __name__ == "__main__":
    main()
