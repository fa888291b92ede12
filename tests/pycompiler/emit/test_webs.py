"""Webs: which accesses to transfer memories need common words."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st

from emu2._core import Ready
from pycompiler.code.lines import BlockOperand, Instruction, Line, Move, Operand, PeOperand, Step
from pycompiler.emit.other_blocks import OtherBlocks
from pycompiler.emit.ports import rules_of
from pycompiler.emit.ready import Addressed
from pycompiler.emit.units import Kind
from pycompiler.emit.webs import Web, webs_of
from pycompiler.machine import Target, load_target

TARGET = load_target("mncore2")
PE = PeOperand("lm0", (0, 1, 2, 3))
UNITS = [(g, n) for g in range(TARGET.groups) for n in range(TARGET.l2bs_per_group)]


def block(memory: str, at: int, words: int = 64) -> BlockOperand:
    return BlockOperand(memory, at, words)


def line(mnemonic: str, source: Operand, destination: Operand) -> Line:
    return Step((Instruction("l1bm", mnemonic, (source,), (destination,)),))


def up(at: int, words: int = 64) -> Line:
    """All PEs fill words of L1BM."""
    return line("l1bmd", PE, block("l1bm", at, words))


def down(at: int, words: int = 64) -> Line:
    """All PEs read words of L1BM."""
    return line("l1bmd", block("l1bm", at, words), PE)


def filled(l1b: int, at: int) -> Line:
    """Words of L2BM 0 come to one L1B."""
    return line(f"l2bmb@{l1b}", block("l2bm", 0), block("l1bm", at))


def ready(lines: Sequence[Line], target: Target = TARGET) -> list[Ready]:
    """Return lines at their addresses; the time of an MV, which may have any length, is nothing."""
    made = Addressed({"x": 0}, target)
    return [
        Ready.of_move(rules_of(target), line, {}, "mv", ([], 0, 0))
        if isinstance(line, Move)
        else made.ready(line)
        for line in lines
    ]


def of(memory: str, lines: Sequence[Line], target: Target = TARGET) -> list[int | None]:
    """Return the number of each line's web of a memory, in the order of their first lines."""
    found: dict[Web, int] = {}
    out: list[int | None] = []
    for webs in webs_of(ready(lines, target), target):
        own = [web for one in webs for web in one if web.memory == memory]
        out.append(found.setdefault(own[0], len(found)) if own else None)
    return out


@pytest.mark.parametrize(
    ("lines", "webs"),
    [
        pytest.param([up(0), down(0), up(0), down(0)], [0, 0, 1, 1], id="one after the other"),
        pytest.param([up(0), up(64), down(64), down(0)], [0, 1, 1, 0], id="side by side"),
        pytest.param([up(0), up(64), down(0, 128)], [0, 0, 0], id="read together"),
        pytest.param([up(0, 128), down(0), down(64)], [0, 0, 0], id="filled together"),
        pytest.param([up(0), down(0), down(0)], [0, 0, 0], id="read twice"),
        pytest.param([up(0), up(0), down(0)], [0, 0, 0], id="filled twice"),
        pytest.param([down(0), up(0)], [None, None], id="left by an earlier node"),
        pytest.param([up(0), down(64), up(0)], [None] * 3, id="other words left"),
        pytest.param(
            [up(0), down(0), filled(1, 0), down(0)], [0, 0, 0, 0], id="other L1Bs keep theirs"
        ),
        pytest.param(
            [filled(0, 0), filled(1, 0), down(0), filled(1, 0), filled(0, 0), down(0)],
            [0, 0, 0, 1, 1, 1],
            id="the same L1Bs again",
        ),
        pytest.param(
            [filled(0, 0), down(0), filled(1, 0), down(0), filled(0, 0), down(0)],
            [0] * 6,
            id="one L1B after the other",
        ),
        pytest.param(
            [filled(0, 0), down(0), up(0), down(0), filled(0, 0), down(0)],
            [0, 0, 1, 1, 1, 1],
            id="all L1Bs after one",
        ),
    ],
)
def test_webs_of_l1bm(lines: Sequence[Line], webs: Sequence[int | None]) -> None:
    words = [line("l2bmd", block("l1bm", 4096), block("l2bm", 0))]  # what `filled` reads
    assert of("l1bm", [up(4096), *words, *lines])[2:] == [
        web if web is None else web + 1 for web in webs
    ]


def test_words_of_one_l1b_fill_all_of_l2bm() -> None:
    """A transfer up names the L1B that it reads. Its words come to every L2B."""

    def raised(l1b: int) -> Line:
        return line(f"l2bm@{l1b}", block("l1bm", 0), block("l2bm", 0))

    lowered = line("l2bmd", block("l2bm", 0), block("l1bm", 4096))
    assert of("l2bm", [raised(3), lowered, raised(4), lowered]) == [0, 0, 1, 1]


def test_a_line_with_two_blocks_has_a_web_for_each() -> None:
    both = Step(
        (
            Instruction("l2bm", "l2bmd", (block("l1bm", 0),), (block("l2bm", 0),)),
            Instruction("l1bm", "l1bmd", (PE,), (block("l1bm", 64),)),
        )
    )
    _, found, _ = webs_of(ready([up(0), both, down(64)]), TARGET)
    assert [[web.memory for web in one] for one in found] == [["l1bm", "l2bm"], ["l1bm"]]
    first, second = found[0][0], found[1][0]
    assert (first.low, first.high, first.count) == (0, 64, 2)
    assert (second.low, second.high, second.count) == (64, 128, 2)


def test_words_of_a_value_have_no_web() -> None:
    named = line("l1bmd", PE, BlockOperand("l1bm", 0, 64, value="x"))
    assert of("l1bm", [named, down(0)]) == [None, None]


def test_a_node_that_needs_most_of_a_memory_at_once_has_no_webs_there() -> None:
    """Its webs would find no place one after the other."""
    words = TARGET.words("l1bm")
    blocks = OtherBlocks(TARGET, words)
    for size, memories in ((words // 2, {"l1bm"}), (words // 2 + 64, set())):
        lines = [up(at) for at in range(0, size, 64)] + [down(at) for at in range(0, size, 64)]
        assert blocks.use(ready(lines), Kind.TRANSFER).memories == memories


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(200))
def test_all_data_flows_inside_of_webs(seed: int) -> None:
    """A slow reference follows each word of each unit from its last write to its reads."""
    draw = random.Random(seed)
    lines: list[Line] = [_move("l2bm", 0, 4, None)]
    for _ in range(draw.randint(2, 40)):
        at = draw.randrange(4)
        words = draw.randint(1, 4 - at)
        unit = draw.choice([None, None, *UNITS[:3]])
        if draw.random() < 0.5:
            lines.append(_move("l2bm", at, words, unit))
        else:
            lines.append(_read("l2bm", at, words, unit))
    webs = of("l2bm", lines)
    assert None not in webs
    wrote: dict[tuple[int, tuple[int, int]], int] = {}
    for number, one in enumerate(lines):
        assert isinstance(one, Move)
        written = one.destination.memory == "l2bm"
        own = one.destination if written else one.source
        for word in range(own.offset // 64, (own.offset + own.words) // 64):
            for unit in UNITS:
                if own.group is not None and (own.group, own.l2b) != unit:
                    continue
                if written:
                    wrote[word, unit] = number
                else:
                    assert webs[number] == webs[wrote[word, unit]], f"seed {seed}"


def _move(memory: str, at: int, words: int, unit: tuple[int, int] | None) -> Move:
    group, l2b = unit or (None, None)
    there = BlockOperand(memory, 64 * at, 64 * words, group=group, l2b=l2b)
    return Move("mvb", 64 * words, BlockOperand("dram", 0, 64 * words), there)


def _read(memory: str, at: int, words: int, unit: tuple[int, int] | None) -> Move:
    group, l2b = unit or (None, None)
    there = BlockOperand(memory, 64 * at, 64 * words, group=group, l2b=l2b)
    return Move("mvp", 64 * words, there, BlockOperand("dram", 0, 64 * words))
