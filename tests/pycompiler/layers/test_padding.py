"""Which words of a value are padding, against a list of all elements."""

from __future__ import annotations

import random
from itertools import product

import onnx
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from random_layouts import some_layout

from pycompiler.code.nest import expand, stages
from pycompiler.graph import Level, Location, MNDtype, MNValue, TensorType
from pycompiler.graph.digits import Part, parts
from pycompiler.layers.padding import _padded, fill_padding, no_bits
from pycompiler.layers.switch.unit_masks import NUMBERS
from pycompiler.machine import load_target

SIZES = (1, 2, 3, 5, 7, 12, 33)


def reference(found: list[list[Part]], axis: int, size: int) -> dict[int, set[tuple[int, int]]]:
    """Return the words that may be padding, by the lowest part of the index that units add."""
    most = sum((p.size - 1) * p.lo for p in found[axis] if p.level in NUMBERS)
    local = [
        (number, p)
        for number, rest in enumerate(found)
        for p in rest
        if p.level in (Level.ADDR, Level.W)
    ]
    packed = any(p.level is Level.W for _, p in local)
    out: dict[int, set[tuple[int, int]]] = {}
    for digits in product(*(range(p.size) for _, p in local)):
        index = at = word = 0
        for digit, (number, p) in zip(digits, local, strict=True):
            index += digit * p.lo if number == axis else 0
            at += digit * p.stride if p.level is Level.ADDR else 0
            word += digit * p.stride if p.level is Level.W else 0
        if size - index <= most:
            words = {(at, word)} if packed else {(at, 0), (at, 1)}
            out.setdefault(max(size - index, 0), set()).update(words)
    return out


@given(st.integers(0, 2**32 - 1), st.sampled_from(["mini", "mncore2"]))
@settings(max_examples=tried(40, 1200))
def test_padding_is_that_of_the_reference(seed: int, machine: str) -> None:
    rng, target = random.Random(seed), load_target(machine)
    dtype = rng.choice((MNDtype.FLOAT, MNDtype.HALF, MNDtype.LONG))
    shape = tuple(rng.choice(SIZES) for _ in range(rng.randrange(1, 4)))
    layout = some_layout(rng, shape, dtype, target)
    value = MNValue(
        "x", TensorType(onnx.TensorProto.FLOAT, shape), dtype, layout=layout, location=Location.LM0
    )
    found = parts(layout, layout.padded_shape)
    for axis, size in enumerate(shape):
        wanted = reference(found, axis, size)
        assert _padded(found, axis, size) == {k: sorted(v) for k, v in wanted.items()}
        odd = any(p.stride & (p.stride - 1) for p in found[axis] if p.level in NUMBERS)
        assert no_bits(value, [axis]) == (odd and bool(wanted))
    axes = rng.sample(range(len(shape)), rng.randrange(1, len(shape) + 1))
    for bits in (0, 0x3F800000, 0x3F8000003F800000):
        lines = list(expand(fill_padding(value, axes, bits, target)))
        assert stages(fill_padding(value, axes, bits, target), target) == stages(lines, target)
