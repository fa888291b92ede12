"""The options `--dim` and `--shape` of commands that read a model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from .pfvm.sizes import parsed_sizes


def takes_sizes(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the two options; it gets what they say as the argument ``sizes``."""

    @click.option(
        "--dim",
        "dims",
        multiple=True,
        metavar="NAME=SIZE",
        help="the size of a dimension that the model names",
    )
    @click.option(
        "--shape",
        "shapes",
        multiple=True,
        metavar="INPUT=1x3x224x224",
        help="the shape of an input, also of one with a default, which is a constant otherwise",
    )
    @wraps(command)
    def with_sizes(dims: tuple[str, ...], shapes: tuple[str, ...], **others: Any) -> Any:
        return command(sizes=parsed_sizes(dims, shapes, ("pycompiler", *sys.argv[1:])), **others)

    return with_sizes
