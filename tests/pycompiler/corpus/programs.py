"""The table of the corpus: a name, a model, a machine and options for each program."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx
from operator_catalogue import ROWS
from operator_rows import Row

from . import networks
from .networks import training_step

#: Machines that differ from `mncore2` in one number of its timing.
FAST_DRAM = "what_if/wide_dram"
SLOW_MOVES = str(Path(__file__).parent / "machines" / "slow_moves.toml")
MODES = ("float", "mixed")


@dataclass(frozen=True)
class Program:
    """A compile: the function that builds its model, the machine, and options.

    `make test` compiles those that are ``quick``. Those that are ``optimised`` go through the
    optimiser of ONNX models first, as the models of users do.
    """

    name: str
    build: Callable[[], onnx.ModelProto]
    machine: str = "mncore2"
    options: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False
    optimised: bool = False


def _catalogue() -> Iterator[Program]:
    """Each operator once in each mode; rows of one operator differ in dtypes only."""
    rows: dict[str, Row] = {}
    for row in ROWS:
        rows.setdefault(row.op, row)
    for op, row in sorted(rows.items()):
        for mode in MODES:
            build = partial(_operator, row)
            yield Program(f"operator/{op}/{mode}", build, options={"float_dtype": mode})


def _operator(row: Row) -> onnx.ModelProto:
    return row.model(row.sample(random.Random(row.op)))


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "perceptron": partial(networks.perceptron, 32, (784, 256, 128, 10)),
    "four_layers": partial(networks.perceptron, 256, (1024, 1024, 1024, 1024, 1024)),
    "residual_perceptron": partial(networks.residual_perceptron, 48, 100, 3),
    "cnn": partial(networks.small_cnn, 8, 16, 28),
    "bottleneck": partial(networks.bottleneck, 2, 64, 14),
    "inverted_bottleneck": partial(networks.inverted_bottleneck, 1, 24, 14, 3),
    "pyramid": partial(networks.pyramid, 1, 16, 20),
    "encoder": partial(networks.encoder, 1, 64, 128, 4, 2),
    "language_model": partial(networks.language_model, 40, 96, 4, 300),
    "gru": partial(networks.recurrent, "GRU", 5, 3, 24, 20),
    "lstm": partial(networks.recurrent, "LSTM", 4, 2, 20, 16),
    "embedding": partial(networks.embedding, 500, 96, 33),
    "stencil": partial(networks.stencil, 30, 46, 2),
}

#: Encoder layers of the sizes that people use: batch, tokens, width, heads.
_LARGE = ((4, 256, 768, 12), (2, 197, 768, 12), (4, 128, 512, 8), (8, 49, 384, 6), (16, 64, 256, 4))

_TRAINED = ("perceptron_sgd", "perceptron_adamw", "cnn_sgd", "bottleneck_sgd", "encoder_adam")

_DRAWN: dict[str, Callable[[int], onnx.ModelProto]] = {
    "encoder": networks.drawn_encoder,
    "convolutions": networks.drawn_convolutions,
    "product": networks.drawn_product,
}
#: Models that are compiled for other machines too: those of other timing get the larger ones.
_ELSEWHERE = {
    "mini": ("perceptron", "residual_perceptron", "embedding", "gru", "pyramid"),
    "what_if/odd": ("residual_perceptron", "embedding", "gru", "stencil", "pyramid"),
    FAST_DRAM: ("perceptron", "four_layers", "cnn", "bottleneck", "encoder", "language_model"),
    SLOW_MOVES: ("perceptron", "four_layers", "cnn", "bottleneck", "encoder", "language_model"),
}
_QUICK = {
    "operator/MatMul/mixed",
    "operator/Conv/float",
    "operator/Softmax/mixed",
    "operator/Gather/float",
    "operator/Resize/mixed",
    "operator/CumSum/float",
    "network/embedding/mixed",
    "network/stencil/float",
    "training/perceptron_sgd/mixed",
    "drawn/product/0",
    "mini/residual_perceptron",
    "odd/gru",
}


def _all() -> Iterator[Program]:
    yield from _catalogue()
    for name, build in NETWORKS.items():
        for mode in MODES:
            yield Program(f"network/{name}/{mode}", build, options={"float_dtype": mode})
    for name in _TRAINED:
        step, mixed = partial(training_step, name), {"float_dtype": "mixed"}
        yield Program(f"training/{name}/mixed", step, options=mixed)
    for sizes in _LARGE:
        name, layer = "x".join(map(str, sizes)), partial(networks.encoder, *sizes)
        mixed = {"float_dtype": "mixed"}
        yield Program(f"large/encoder/{name}", layer, options=mixed, optimised=True)
    for kind, draw in _DRAWN.items():
        for number in range(8):
            mode = {"float_dtype": "float" if number == 7 else "mixed"}
            yield Program(f"drawn/{kind}/{number}", partial(draw, number), options=mode)
    for machine, models in _ELSEWHERE.items():
        mixed = {"float_dtype": "mixed"}
        for name in models:
            yield Program(f"{Path(machine).stem}/{name}", NETWORKS[name], machine, mixed)


PROGRAMS: Mapping[str, Program] = {
    one.name: replace(one, quick=one.name in _QUICK) for one in _all()
}
