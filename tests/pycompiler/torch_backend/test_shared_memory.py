"""Strides and shared memory of the results of ``torch.compile``, and gradients given directly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from compiling import sampled
from dynamo import CLOSE, compiled

F = torch.nn.functional
_ATEN = torch.ops.aten


def written(x: torch.Tensor) -> Any:
    x.add_(1)
    return x, x.view(-1), x * 2


def views(x: torch.Tensor) -> Any:
    y = x + 1
    return y, y.view(-1), y[1:], y.mT, *y.split(1, 1), y[:, :1].expand(2, 5, 4)


FUNCTIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "views of a result": views,
    "views of an input that is written": written,
    "views of an input": lambda x: (x * 2, x[1:], x.permute(2, 0, 1)),
    "a part alone": lambda x: (x * 2)[:, 1:],
    "windows": lambda x: (lambda y: (y.unfold(2, 2, 1), y))(x * 2),
    "bits": lambda x: (lambda y: (y.view(torch.int32), y))(x * 2),
    "one result twice": lambda x: (lambda y: (y, y))(x * 2),
    "axes in another order": lambda x: (torch.sort(x.mT, 1)[0], F.layer_norm(x.mT, (3,))),
    "memory by strides": lambda x: torch.as_strided((x[0, :1] + 1).expand(3, 4), (2, 2), (1, 2)),
    "memory of a kernel": lambda x: torch.as_strided(torch.roll(x.mT, -1, 0), (3, 2), (2, 5), 1),
    "memory of a diagonal": lambda x: torch.as_strided(torch.diagonal(x[0] + 1), (2,), (5,)),
}


def results(function: Callable[[torch.Tensor], Any], x: torch.Tensor) -> list[torch.Tensor]:
    found = function(x)
    return [x, *(found if isinstance(found, tuple) else (found,))]


def memories(tensors: list[torch.Tensor]) -> list[int]:
    """Return the same number for tensors in the same memory."""
    numbers: dict[int, int] = {}
    places = [tensor.untyped_storage().data_ptr() for tensor in tensors]
    return [numbers.setdefault(place, len(numbers)) for place in places]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_memory_is_torchs(name: str) -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    wanted = results(FUNCTIONS[name], x.clone())
    found = results(compiled(FUNCTIONS[name]), x.clone())
    assert memories(found) == memories(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.stride()) == (other.dtype, other.stride())
        torch.testing.assert_close(one, other, **CLOSE)


def test_sizes_that_change_keep_their_memory() -> None:
    run = compiled(lambda x: (lambda y: (y, y[1:], y.mT))(x + 1))
    for rows in (3, 5):
        first, part, turned = run(torch.zeros(rows, 2))
        first.fill_(7.0)
        assert part.tolist() == [[7.0, 7.0]] * (rows - 1)
        assert turned.shape == (2, rows)
        assert turned.unique().tolist() == [7.0]


PICTURE = torch.arange(60.0).reshape(1, 2, 5, 6).sin()
POOLED, PLACES = _ATEN.max_pool2d_with_indices(PICTURE, [2, 2])
_WINDOWS = [2, 2], [2, 2], [0, 0], [1, 1], False
WAYS_BACK: dict[str, tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]] = {
    "its own indices": (
        lambda g, x, i: _ATEN.max_pool2d_with_indices_backward(g, x, *_WINDOWS, i),
        (POOLED.cos(), PICTURE, PLACES),
    ),
    "foreign indices": (
        lambda g, x, i: _ATEN.max_pool2d_with_indices_backward(g, x, *_WINDOWS, i),
        (POOLED.cos(), PICTURE, PLACES.flip(-1) // 2),
    ),
    "threshold of integers": (
        lambda g, x: _ATEN.threshold_backward(g, x, 0),
        (torch.tensor([5, -3, 7]), torch.tensor([1, -1, 0])),
    ),
    "nearest in doubles": (
        lambda g: _ATEN.upsample_nearest2d_backward(g, [4, 6], [1, 2, 2, 3]),
        (PICTURE[:, :, :4].double() / 3,),
    ),
    "bilinear in doubles": (
        lambda g: _ATEN.upsample_bilinear2d_backward(g, [5, 6], [1, 2, 3, 4], False),
        (PICTURE.double() / 3,),
    ),
    "averages in doubles": (
        lambda g, x: _ATEN.avg_pool2d_backward(g, x, [3, 3], [2, 2], [1, 1], False, False, None),
        (PICTURE[..., :3, :3].double() / 3, PICTURE.double()),
    ),
    "rows of an embedding": (
        lambda g, i: _ATEN.embedding_dense_backward(g, i, 5, 2, False),
        (PICTURE[0, 0], torch.tensor([1, 4, 2, 1, 0])),
    ),
    "rows of an embedding by how often they are read": (
        lambda g, i: _ATEN.embedding_dense_backward(g, i, 5, -1, True),
        (PICTURE[0, 0].double(), torch.tensor([1, 4, 2, 1, 1])),
    ),
    "softmax of doubles": (
        lambda g, y: _ATEN._softmax_backward_data(g, y, 1, torch.float64),
        (PICTURE.double(), PICTURE.double().softmax(1)),
    ),
    "log_softmax": (
        lambda g, y: _ATEN._log_softmax_backward_data(g, y, -1, torch.float32),
        (PICTURE, PICTURE.log_softmax(-1)),
    ),
    "a layer's normalization": (
        lambda g, x, m, r: _ATEN.native_layer_norm_backward(
            g, x, [6], m, r, None, None, [True, False, False]
        )[0],
        (PICTURE.cos(), PICTURE, PICTURE.mean(-1, True), 1 / PICTURE.std(-1, keepdim=True)),
    ),
    "the places of a grid": (
        lambda g, x, p: _ATEN.grid_sampler_2d_backward(g, x, p, 0, 1, False, [True, True])[1],
        (PICTURE[..., :3], PICTURE, PICTURE[0].reshape(1, 5, 6, 2)[:, :, :3] * 0.9),
    ),
    "adaptive maxima": (
        lambda g, x, i: _ATEN.adaptive_max_pool2d_backward(g, x, i),
        (POOLED.cos(), PICTURE, PLACES),
    ),
    "bicubic in doubles": (
        lambda g: _ATEN.upsample_bicubic2d_backward(g, [5, 6], [1, 2, 3, 4], True),
        (PICTURE.double() / 3,),
    ),
    "a list to the nearest": (
        lambda g: _ATEN.upsample_nearest1d_backward(g, [6], [2, 5, 4]),
        (PICTURE[0],),
    ),
    "gelu of doubles": (
        lambda g, x: _ATEN.gelu_backward(g, x, approximate="tanh"),
        (PICTURE.double().cos(), PICTURE.double()),
    ),
    "leaky relu from its result": (
        lambda g, y: _ATEN.leaky_relu_backward(g, y, 0.1, True),
        (PICTURE.cos(), PICTURE),
    ),
    "elu from its result": (
        lambda g, y: _ATEN.elu_backward(g, 1.5, 1.0, 0.5, True, y),
        (PICTURE.cos(), PICTURE),
    ),
    "adaptive averages in doubles": (
        lambda g, x: _ATEN._adaptive_avg_pool2d_backward(g, x),
        (PICTURE[..., :3, :4].double() / 3, PICTURE.double()),
    ),
}


@pytest.mark.parametrize("name", sampled([*WAYS_BACK]))
def test_ways_back(name: str) -> None:
    function, given = WAYS_BACK[name]
    wanted, found = function(*given), compiled(function)(*given)
    assert found.dtype is wanted.dtype
    close = {"rtol": 1e-11, "atol": 1e-12} if wanted.dtype is torch.float64 else CLOSE
    torch.testing.assert_close(found, wanted, **close)
