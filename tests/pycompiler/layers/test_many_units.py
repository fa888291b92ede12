"""Machines with more units than masks or memories can serve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pycompiler.errors import PycompilerError
from pycompiler.graph import Level
from pycompiler.layers.scratch import Scratch
from pycompiler.layers.switch.pass_code import move_code
from pycompiler.layers.switch.pass_moves import Moves
from pycompiler.layers.switch.unit_masks import NUMBERS, UnitMasks, choose_units
from pycompiler.machine import load_target


@pytest.mark.parametrize(
    ("level", "count", "what"),
    [
        ("mab", 64, "32 MABs of an L1B, not 64"),
        ("l1b", 65, "64 L1Bs of an L2B, not 65"),
        ("group", 65, "64 L2Bs of the chip, not 65"),
    ],
)
def test_more_units_than_masks_choose_among(
    level: str, count: int, what: str, tmp_path: Path
) -> None:
    head = 'extends = "mini"\n[machine]\nname = "other"\ndoc = "A test."\n'
    (tmp_path / "other.toml").write_text(f"{head}[counts]\n{level} = {count}\n")
    with pytest.raises(PycompilerError) as caught:
        load_target(str(tmp_path))
    assert caught.value.code == "P0606"
    assert what in caught.value.message


def test_a_mask_that_a_word_cannot_hold(tmp_path: Path) -> None:
    """Units behind the 32nd wrote where they must not, unless a comparison chose the units."""
    head = 'extends = "mini"\n[machine]\nname = "wide"\ndoc = "A test."\n'
    (tmp_path / "wide.toml").write_text(f"{head}[counts]\nl1b = 40\n")
    target = load_target(str(tmp_path))
    masks, some = UnitMasks(NUMBERS[Level.L1B], target), 1 << 3 | 1 << 38 | 1 << 39
    assert list(masks.make(1 << 39, 1))
    with pytest.raises(PycompilerError, match=r"P0606.*40 units"):
        list(masks.make(some, 1))
    with pytest.raises(PycompilerError, match=r"P0606.*40 units"):
        choose_units({Level.L1B: some}, [], target)


def test_blocks_that_l1bm_cannot_hold(tmp_path: Path) -> None:
    """Rows that must go together were written past the end of L1BM."""
    text = '[[memory]]\nname = "l1bm"\nwords = 112\n'
    (tmp_path / "odd.toml").write_text(
        f'extends = "what_if/odd"\n[machine]\nname = "tight"\ndoc = "A test."\n{text}'
    )
    target = load_target(str(tmp_path))
    every = np.arange(target.counts["l1b"])
    found = Moves(every, every * 0, (every + 1) % len(every), every)
    places = (Scratch("lm0"), Scratch("lm1"), target)
    with pytest.raises(PycompilerError, match="long words of l1bm") as caught:
        move_code([(found, {})], Level.L1B, *places)
    assert caught.value.code == "P0606"
