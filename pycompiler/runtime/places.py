"""Lists the position of every element in DRAM, for readers of apps that do not know layouts."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np

from ..app.model import App, AppPlace
from ..machine import Target
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
    taken, owners = image.taken, image.owners
    if taken.size:
        first, corner = int(taken[0]), taken.reshape(image.shape)
        axes = [np.array([first])]
        for axis in range(corner.ndim):
            along = tuple(slice(None) if own == axis else 0 for own in range(corner.ndim))
            axes[axis:] = [corner[along] - (first if axis else 0)]
        copies, made = np.flatnonzero(owners == 0) - first, np.full_like(owners, -1)
        total = reduce(np.add.outer, axes).reshape(-1)
        words = total[:, None] + copies
        inside = min(words.min(), *(own.min() for own in axes)) >= 0 and words.max() < made.size
        if inside and np.array_equal(total, taken):
            made[words] = np.arange(taken.size)[:, None]
            if np.array_equal(made, owners):
                sums = tuple(tuple(own.tolist()) for own in axes)
                return AppPlace(image.alike, sums, tuple(copies.tolist()))
    return AppPlace(image.alike, (), (), tuple(taken.tolist()), tuple((owners + 1).tolist()))
