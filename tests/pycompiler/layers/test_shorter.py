"""Shorter programs give the same results: choices without masks, products within sums."""

from __future__ import annotations

import numpy as np
import pytest

from pycompiler.code.lines import Fragment, PeOperand
from pycompiler.code.nest import expand
from pycompiler.emit.program import concatenate
from pycompiler.layers.functions.program import ONES, ZERO, Input, Program, Row, neg
from pycompiler.layers.functions.reals import Reals
from pycompiler.layers.functions.shorter import with_products_in_sums, without_masks
from pycompiler.layers.pipeline_code import pipeline, pipeline_code
from pycompiler.machine import load_target

TARGET = load_target("mini")
#: Bits at which comparisons change: zeros, the smallest numbers, one, infinities, NaNs; both signs.
EDGES = [0, 1, 0x7FFFFF, 0x800000, 0x800001, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000]
SINGLES = np.array([sign | bits for sign in (0, 1 << 31) for bits in EDGES], np.uint64)
#: Every pair of these, as the words of a long word.
PAIRS = (SINGLES[:, None] << np.uint64(32) | SINGLES[None, :]).reshape(-1)


def outcome(program: Program, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Run a program of two inputs on one PE."""
    words = x.size
    addresses = {"x": 0, "y": 0, "out": 0}
    rows = [
        [
            PeOperand(home, tuple(range(at, at + TARGET.cycles)), name)
            for at in range(0, words, TARGET.cycles)
        ]
        for name, home in (("x", "lm0"), ("y", "lm1"), ("out", "lm0"))
    ]
    found = pipeline(program, ("lm0", "lm1"), "lm0", TARGET)
    assert found is not None
    *operands, result = (values.__getitem__ for values in rows)
    nest = pipeline_code(found, operands, result, len(rows[2]), TARGET)
    code = concatenate([("n", "n", Fragment(tuple(expand(nest))))], addresses, TARGET)
    machine = TARGET.new_machine()
    place = {"group": 0, "l2b": 0, "l1b": 0, "mab": 0, "pe": 0}
    machine.write("lm0", x, addr=0, **place)
    machine.write("lm1", y, addr=0, **place)
    machine.run(TARGET.assemble(code.text, "shorter.vsm"))
    return np.asarray(machine.read("lm0", addr=0, count=words, **place)).reshape(-1)


@pytest.mark.parametrize("value_first", [True, False])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("other", ["zero", "y"])
@pytest.mark.parametrize("test", ["fmin", "fmax", "imin", "uimax"])
def test_choices(test: str, other: str, inverse: bool, value_first: bool) -> None:
    program = Program()
    x, y = Input(0), Input(1)
    mask: Row = program.mask(program.flags(test, x, ZERO if other == "zero" else y))
    if inverse:
        mask = program.alu("lnot", mask)
    program.finish(program.alu("land", *((y, mask) if value_first else (mask, y))))
    short = without_masks(program)
    assert len(short.operations) < len(program.operations)
    if not inverse or (other == "zero" and test in ("fmin", "fmax")):
        assert len(short.operations) == 2
    # Each edge meets each other one in both words.
    y_bits = np.random.default_rng(1).permutation(PAIRS)
    assert np.array_equal(outcome(short, PAIRS, y_bits), outcome(program, PAIRS, y_bits))


def test_masks_that_others_read_stay() -> None:
    program = Program()
    mask = program.mask(program.flags("fmin", Input(0), Input(1)))
    program.finish(program.alu("lxor", program.alu("land", Input(1), mask), mask))
    short = without_masks(program)
    y = np.random.default_rng(2).permutation(PAIRS)
    assert np.array_equal(outcome(short, PAIRS, y), outcome(program, PAIRS, y))


@pytest.mark.parametrize(
    ("build", "instructions"),
    [
        (lambda r, x, y: r.add(r.mul(x, y), y), ["fvfma"]),
        (lambda r, x, y: r.sub(y, r.mul(x, y)), ["fvfma"]),
        (lambda r, x, y: r.sub(r.mul(x, y), y), ["fvfma"]),
        (lambda r, x, y: r.add(r.mul(x, x), r.mul(y, y)), ["fvfma", "fvmul"]),
        (lambda r, x, y: r.add(r.mul(neg(x), y), r.mul(neg(x), y)), ["fvadd", "fvmul"]),
        (lambda r, x, y: r.mul(r.add(x, y), y), ["fvadd", "fvmul"]),
    ],
)
def test_products_in_sums(build, instructions: list[str]) -> None:  # type: ignore[no-untyped-def]
    program = Program()
    program.finish(build(Reals(program, wide=False), Input(0), Input(1)))
    short = with_products_in_sums(program)
    assert sorted(one.mnemonic for one in short.operations) == instructions
    rng = np.random.default_rng(3)
    x, y = (rng.uniform(-4, 4, 64).astype(np.float32) for _ in "xy")
    got, wanted = (
        outcome(one, x.view(np.uint64), y.view(np.uint64)).view(np.float32)
        for one in (short, program)
    )
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=4e-6)


def test_a_mask_alone_stays() -> None:
    program = Program()
    program.finish(program.keep(program.flags("fmin", Input(0), Input(1)), ONES))
    assert without_masks(program).operations == program.operations
