"""Lists the position of every element in DRAM, for readers of apps that do not know layouts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..app.model import App, AppPlace
from ..machine import IntArray, Target
from .image import DramImage, dram_image


def with_places(app: App, target: Target) -> App:
    """Return the app with the element positions of every value in DRAM."""
    values = {
        name: value
        if value.layout is None
        else replace(
            value, place=place_of(dram_image(value.layout, value.shape, value.dtype, target))
        )
        for name, value in app.values.items()
    }
    return replace(app, values=values)


def place_of(image: DramImage) -> AppPlace:
    """Return the positions of the elements of an image, as sums over the axes if possible."""
    taken, owners = image.taken.reshape(image.shape), image.owners
    first = int(taken.flat[0]) if taken.size else 0
    axes: list[IntArray] = []
    for axis in range(taken.ndim):
        ends = [0] * taken.ndim
        along: list[int | slice] = [*ends[:axis], slice(None), *ends[axis + 1 :]]
        axes.append(taken[tuple(along)] - first if taken.size else np.zeros(0, np.int64))
    if axes:
        axes[0] = axes[0] + first
    else:
        axes.append(np.array([first]))
    copies = np.flatnonzero(owners == 0) - first if taken.size else np.zeros(0, np.int64)
    if all((words >= 0).all() for words in axes) and _is(taken, owners, axes, copies):
        numbers = tuple(tuple(words.tolist()) for words in axes)
        return AppPlace(image.alike, numbers, tuple(copies.tolist()))
    flat, whose = taken.reshape(-1), owners + 1
    return AppPlace(image.alike, (), (), tuple(flat.tolist()), tuple(whose.tolist()))


def _is(taken: IntArray, owners: IntArray, axes: list[IntArray], copies: IntArray) -> bool:
    """Whether the sums over the axes, and the copies behind them, are exactly the image."""
    total = np.zeros((1,) * taken.ndim, np.int64)
    for axis, words in enumerate(axes[: taken.ndim]):
        shape = [1] * taken.ndim
        shape[axis] = -1
        total = total + words.reshape(shape)
    if not taken.ndim:
        total = axes[0].reshape(())
    if not np.array_equal(np.broadcast_to(total, taken.shape), taken):
        return False
    flat = taken.reshape(-1)
    made = np.full_like(owners, -1)
    for copy in copies:
        at = flat + copy
        if at.size and (at.min() < 0 or at.max() >= owners.size):
            return False
        made[at] = np.arange(flat.size)
    return np.array_equal(made, owners)
