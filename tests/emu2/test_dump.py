"""The text of `d get`: lines of real dumps, their order and their forms."""

from __future__ import annotations

import pytest

import emu2

UNIT = "n0c0b0m0p0"


def dump(text: str, spec: str = "mini") -> list[str]:
    """Run `text` and return its dump lines."""
    loaded = emu2.Spec.load(spec)
    return emu2.Machine(loaded).run(emu2.assemble(text, loaded)).dump


@pytest.mark.parametrize(
    ("setup", "get", "line"),
    [
        (
            f"d set $lm0{UNIT} 1 0042004200000042",
            f"d get $lm0{UNIT} 1",
            "DEBUG-LM0(n0c0b0m0p0,0):(f:2.00268e-307, i:{{0x42,0x42},{0x0,0x42}},"
            " v:0x42004200000042) #d get $lm0n0c0b0m0p0 1",
        ),
        (
            "d set $ls0n0c0b0m0p1 1 40C401F04284401F",
            "d geth $ls0n0c0b0m0p1 1",
            "DEBUG-GREG1(n0c0b0m0p1,0):(2.76562, 0, 5.03125, 2.12109)"
            " (0x40c4, 0x01f0, 0x4284, 0x401f) #d geth $ls0n0c0b0m0p1 1",
        ),
        (
            "d set $lc0n0c0 1 0123456701234567\nmvp/n64 $lc0@0.0 $d0@0",
            "d getd $d0n0 1",
            "DEBUG-DRAM(n0,0):(3.5127e-303) (0x0123456701234567) #d getd $d0n0 1",
        ),
        (
            "d set $lc0n0c0 1 0123456701234567\nmvp/n64 $lc0@0.0 $p0@0",
            "d getd $p0n0 1",
            "DEBUG-PDM(n0,0):(3.5127e-303) (0x0123456701234567) #d getd $p0n0 1",
        ),
        (
            "d set $lb5n0c0b1 1 3F800000C0490FDB",
            "d getf $lb5n0c0b1 1",
            "DEBUG-L1BM(n0c0b1,5):(1, -3.14159) (0x3f800000, 0xc0490fdb) #d getf $lb5n0c0b1 1",
        ),
        (
            "d set $lc7n0c0 1 3E00803E7E00FE01",
            "d geth $lc7n0c0 1",
            "DEBUG-L2BM(n0c0,7):(1, -0, inf, -inf) (0x3e00, 0x803e, 0x7e00, 0xfe01)"
            " #d geth $lc7n0c0 1",
        ),
        (
            f"d set $ln2{UNIT} 1 0000000000000019",
            f"d getd $ln2{UNIT} 1",
            "DEBUG-LM1(n0c0b0m0p0,2):(0) (0x0000000000000019) #d getd $ln2n0c0b0m0p0 1",
        ),
    ],
)
def test_lines(setup: str, get: str, line: str) -> None:
    assert dump(f"{setup}\n{get}\n") == [line]


def test_the_echo_is_tidied() -> None:
    (line,) = dump("  d\tgetd   $t" + UNIT + "  1   # comment\n")
    assert line.endswith(f" #d getd $lt{UNIT} 1")


def test_t_register_lists_cycles() -> None:
    text = f"d set $lt{UNIT} 4 " + "".join(f"{k:016X}" for k in (5, 6, 7, 8))
    lines = dump(f"{text}\nd get $lt{UNIT} 4\n")
    assert [line.split(":")[0] for line in lines] == [f"DEBUG-TREG({UNIT},{k})" for k in range(4)]
    assert [line.split("v:")[1][:3] for line in lines] == ["0x5", "0x6", "0x7", "0x8"]


def test_units_are_outermost() -> None:
    lines = dump("d get $lm0n0b1 2\n", "mncore2")
    places = [line[len("DEBUG-LM0(") : line.index(")")] for line in lines]
    expected = [
        f"n0c{c}b1m{m}p{p},{addr}"
        for c in range(2)
        for m in range(16)
        for p in range(4)
        for addr in (0, 2)
    ]
    assert places == expected


def test_a_word_shows_the_bits_from_it_on() -> None:
    words = "".join(f"{value:016X}" for value in (0x11111111_22222222, 0x33333333_44444444))
    lines = dump(f"d set $lm0{UNIT} 2 {words}\nd get $m1{UNIT} 2\n")
    assert [line.split("v:")[1].split(")")[0] for line in lines] == [
        "0x2222222233333333",
        "0x3333333344444444",
    ]
    assert [line.split(",")[1].split(")")[0] for line in lines] == ["1", "2"]


def test_lines_before_a_run_time_error_are_kept() -> None:
    """The assembler refuses statements past the end, so no program stops in the middle."""
    with pytest.raises(emu2.AssembleError):
        dump(f"d get $lm0{UNIT} 1\nd get $lm1022{UNIT} 2\n")
