"""The gradient of a convolution's weights, from its pixels and the gradients of its result."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import compiled, run
from gradient_models import Case, gradient_model, wanted_gradient
from nest_counts import check_counts

from pycompiler.graph.graph import Side
from pycompiler.machine import load_target
from pycompiler.pfvm.windows import WEIGHT_GRADIENT

CASES: dict[str, Case] = {
    "3x3": (2, 16, 16, (8, 8), (3, 3), 1, 1, 1),
    "odd channels": (3, 5, 7, (8, 8), (3, 3), 1, 1, 1),
    "odd places": (2, 4, 17, (7, 9), (3, 3), 1, 1, 1),
    "stride 2": (2, 16, 20, (6, 6), (3, 3), 2, 1, 1),
    "stride 2, odd places": (2, 3, 16, (9, 7), (3, 3), 2, 1, 1),
    "5x5": (1, 4, 8, (6, 6), (5, 5), 1, 1, 2),
    "some taps at once": (1, 64, 16, (6, 6), (3, 3), 1, 1, 1),
    "1x1": (4, 16, 24, (4, 4), (1, 1), 1, 1, 0),
    "1x1, stride 2": (2, 16, 16, (8, 8), (1, 1), 2, 1, 0),
    "dilation": (2, 8, 8, (8, 8), (3, 3), 1, 2, 2),
    "one axis": (3, 6, 20, (12,), (3,), 1, 1, 1),
    "one picture": (1, 20, 33, (8, 4), (3, 1), 1, 1, 0),
    "strides of few channels": (2, 3, 16, (9, 12), (5, 5), 2, 1, 2),
    "patches": (2, 2, 12, (8, 12), (4, 4), 4, 1, 0),
    "many columns": (2, 16, 80, (4, 4), (3, 3), 1, 1, 1),
}
#: Cases whose result exceeds LM of the small machine: they are products over places instead.
LARGE = ("stride 2", "5x5", "some taps at once")
#: The case whose taps exceed half of LM for one picture.
SEVERAL = "some taps at once"


#: Cases that take longer. The modes take turns for the others; the rest runs in `make test-long`.
LONGER = ("5x5", SEVERAL)
TURNS = {name: ("float", "mixed")[number % 2] for number, name in enumerate(CASES)}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(
            name, kind, marks=() if TURNS[name] == kind and name not in LONGER else pytest.mark.long
        )
        for name in CASES
        for kind in ("float", "mixed")
    ],
)
def test_results(name: str, kind: str) -> None:
    """Whole numbers of few bits have exact products and sums in every precision."""
    case = CASES[name]
    model, shapes = gradient_model(case)
    result, _ = compiled(model, float_dtype=kind)
    check_counts(result.graph, load_target("mini"))
    rng = np.random.default_rng(list(CASES).index(name))
    data = {key: rng.integers(-7, 8, shape).astype(np.float32) for key, shape in shapes.items()}
    wanted = wanted_gradient(data["x"], data["g"], case)
    assert (run(result, data)["y"] == wanted).all()
    assert any(node.op == WEIGHT_GRADIENT for node in result.graph.nodes) == (name not in LARGE)
    products = {node.origin or node.name for node in result.graph.nodes if node.op == "MatMul"}
    assert (len(products) > 1) == (name == SEVERAL)


#: Cases of published networks on the whole machine, and how many gradients in tiles give each: with
#: none, products over places do.
PUBLISHED: dict[str, tuple[Case, int]] = {
    "many channels, few places": ((8, 256, 512, (7, 7), (1, 1), 1, 1, 0), 0),
    "groups of channels": ((2, 128, 32, (28, 28), (3, 3), 1, 1, 1), 2),
    "columns of many places": ((2, 256, 128, (28, 28), (1, 1), 1, 1, 0), 1),
    "the first layer": ((2, 3, 16, (32, 32), (7, 7), 2, 1, 3), 1),
    "results without room": ((4, 1024, 1600, (4, 5), (1, 1), 1, 1, 0), 0),
}


#: The case that takes longer.
LONG = ("columns of many places", "many channels, few places")


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.long if one in LONG else ()) for one in PUBLISHED]
)
def test_published_sizes_run_on_the_device(name: str) -> None:
    case, tiled = PUBLISHED[name]
    model, shapes = gradient_model(case)
    result, _ = compiled(model, "mncore2", float_dtype="mixed")
    check_counts(result.graph, load_target("mncore2"))
    assert not [node.name for node in result.graph.nodes if node.side is Side.HOST]
    gradients = {
        node.origin or node.name for node in result.graph.nodes if node.op == WEIGHT_GRADIENT
    }
    assert len(gradients) == tiled
    rng = np.random.default_rng(list(PUBLISHED).index(name))
    data = {key: rng.integers(-3, 4, shape).astype(np.float32) for key, shape in shapes.items()}
    assert (run(result, data, "mncore2")["y"] == wanted_gradient(data["x"], data["g"], case)).all()
