"""`emu2 link`: what linked programs compute, and which instructions they have."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import link_case
import numpy as np
import pytest
from link_case import FLAGS, PES, POOL, Run, flags, linked

import emu2
from emu2.debug.session import open_session
from emu2.link import origins

RANDOM = np.random.default_rng(54)
WORDS = RANDOM.integers(0, 2**63, 4 * PES, np.uint64)
DOUBLES = RANDOM.integers(-1000, 1000, 4 * PES).astype(float)


def instructions(text: str) -> list[str]:
    """Return the instructions of an assembly, without comments."""
    code = (line.split("#", 1)[0].strip() for line in text.splitlines())
    return [line for line in code if line]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("register", ["$lm0", "$ln64", "$lr16"])
def test_round_trip(size: int, register: str) -> None:
    """Every component of every PE comes back, and no other register is written."""
    text = linked(
        f"@distribute a from_param 8 size {size} {register}\n"
        f"@collect b to_param 24 size {size} {register}\n"
    )
    run = Run({0: WORDS[: size * PES]})
    memory, number = {"m": "lm0", "n": "lm1", "r": "grf0"}[register[2]], int(register[3:]) // 2
    run.device.debug_write(memory, (1, 1, 5, 7, 2), number + size, np.array([77], np.uint64))
    run.run(text)
    assert np.array_equal(run.words(32768, size * PES, 0x1E), WORDS[: size * PES])
    if size < 4:
        assert run.device.debug_read(memory, (1, 1, 5, 7, 2), number + size)[0] == 77


def test_sum_of_two_arrays() -> None:
    text = linked(
        "@distribute a from_param 8 size 1 $lm0\n@distribute b from_param 16 size 1 $ln0\n"
        "\tdvadd $lm0 $ln0 $lr0\nnop/4\nlpassa $lr0 $lm8\n@collect c to_param 24 size 1 $lm8\n"
    )
    run = Run({0: DOUBLES[:PES], 16384: DOUBLES[PES : 2 * PES]}).run(text)
    assert np.array_equal(
        run.words(32768, tag=0x1E, dtype="f8"), DOUBLES[:PES] + DOUBLES[PES : 2 * PES]
    )


def test_instructions_of_a_sum() -> None:
    """The host is waited for once, and the second transfer begins with a short pause."""
    code = instructions(
        linked(
            "@distribute a from_param 8 size 1 $lm0\n@distribute b from_param 16 size 1 $ln0\n"
            "lpassa $lm0 $ln8\n@collect c to_param 24 size 1 $ln8\n"
        )
    )
    assert code[:3] == ["nop; wait i10", "nop/3", "mvp/n512 $p0@0 $lc0@0.0"]
    assert code.count("nop; wait i10") == 1
    assert code[10:13] == ["nop/2", "nop; wait i3f", "nop/5"]
    at = code.index("l1bmd $lb0 $lm0v/1000")
    assert code[at + 1 : at + 3] == ["nop/4", "mvp/n512 $p16384@0 $lc0@0.0"]
    assert code[-6:] == [
        "nop; wait i3f",
        "mvp/n512 $lc0@3.0 $p35840@0",
        "mvp/n512i1e $lc0@3.1 $p36352@0",
        "nop/3",
        "nop; wait i1e",
        "nop/4",
    ]
    assert code[code.index("lpassa $lm0 $ln8") - 1] == "nop/24"


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_broadcast(size: int) -> None:
    text = linked(
        f"@broadcast a from_param 40 size {size} $lr16\nlpassa $lr16v $lm0v\n"
        f"@collect b to_param 24 size {size} $lm0\n"
    )
    run = Run({20480: WORDS[:64]}).run(text)
    expected = np.repeat(WORDS[3 : 3 + size], PES)
    assert np.array_equal(run.words(32768, size * PES, 0x1E), expected)


def test_sections_stay() -> None:
    """A second broadcast of a section moves nothing from the PDM, until the kernel writes there."""
    twice = "@broadcast a from_param 40 size 1 $lr0\n@broadcast b from_param 40 size 1 $lr2\n"
    assert linked(twice).count("mvb/n64") == 1
    other = " (:slot 56 :addr 20480 :recv_wait_tag #x1c)"
    between = twice.replace("\n", "\n@reduce r to_param 56 $lr4 liadd\n", 1)
    assert linked(between, other).count("mvb/n64") == 2


@pytest.mark.parametrize(
    ("operator", "dtype", "combine"),
    [
        ("liadd", "u8", np.add),
        ("lband", "u8", np.bitwise_and),
        ("lbor", "u8", np.bitwise_or),
        ("dfadd", "f8", np.add),
        ("dmax", "f8", np.maximum),
        ("dmin", "f8", np.minimum),
    ],
)
def test_reduce(operator: str, dtype: str, combine: np.ufunc) -> None:
    text = linked(
        f"@distribute a from_param 8 size 1 $lr0\n@reduce b to_param 32 $lr0 {operator}\n"
    )
    data = DOUBLES[:PES] if dtype == "f8" else WORDS[:PES]
    results = Run({0: data}).run(text).words(49152, 4, 0x1D, dtype)
    assert np.array_equal(results, combine.reduce(data.reshape(-1, 4), axis=0))


def test_all_operators_assemble() -> None:
    kinds = [("dfh", ("fadd", "max", "min")), ("lis", ("iadd", "band", "and", "bor", "or"))]
    names = [kind + name for letters, group in kinds for kind in letters for name in group]
    assert len(names) == 24
    for name in names:
        text = linked(f"@reduce b to_param 32 $lr0 {name}\n")
        assert emu2.assemble(text, link_case.SPEC, policy="check").warnings == []


def test_identify() -> None:
    text = linked("@identify 0 $lr0 4096\nlpassa $lr0 $lm0\n@collect c to_param 24 size 1 $lm0\n")
    run = Run({69632: np.arange(PES, dtype=np.uint64)}).run(text)
    assert np.array_equal(run.words(32768, tag=0x1E), np.arange(PES))


EDGES = {
    (False, False): ("57b42dea", ""),
    (True, True): ("75c77b0f", " (:data_size (4096)) (:data_offset (0))"),
    (True, False): ("1dde0372", " (:data_size (8192)) (:data_offset (0))"),
    (False, True): ("e9cfee97", " (:data_size (8192)) (:data_offset (4096))"),
}


@pytest.mark.parametrize("edges", EDGES, ids=str)
def test_computed_flags(edges: tuple[bool, bool]) -> None:
    """The computed words are those of the rule, and the rule's are those of the known files."""
    digest, structure = EDGES[edges]
    expected = flags(*edges)
    assert hashlib.sha256(expected.astype("<u8").tobytes()).hexdigest()[:8] == digest
    text = linked(
        f"{POOL}\n@boundary_flags_compute bf0 0 $lr40 left\n@free left\n"
        "lpassa $lr40 $lm0\n@collect c to_param 24 size 1 $lm0\n",
        structure=structure,
    )
    assert np.array_equal(Run({0: WORDS[:8]}).run(text).words(32768, tag=0x1E), expected)


@pytest.mark.parametrize("boundary", ["", " (:boundary (:clamp))", " (:boundary (:periodic))"])
@pytest.mark.parametrize("step", [-1, 1])
@pytest.mark.parametrize("computed", [False, True])
def test_neighbors(step: int, boundary: str, computed: bool) -> None:
    structure = " (:data_size (4096)) (:data_offset (0))" + boundary
    source = (
        "@boundary_flags_compute bf0 0 $lr40 left"
        if computed
        else f"@boundary_flags bf0 0 $lr40 {FLAGS}"
    )
    text = linked(
        f"@distribute a from_param 8 size 1 $lm0\n{POOL}\n{source}\n"
        f"@get_neighbor $lr30 {step:+d} $lm0 bf0 nbuf0 left\n@free left\n"
        "lpassa $lr30 $lm4\n@collect c to_param 24 size 1 $lm4\n",
        structure=structure,
    )
    run = Run({0: WORDS[:PES], 65536: flags(True, True)}).run(text)
    at = np.arange(PES) + step
    at = at % PES if "periodic" in boundary else at.clip(0, PES - 1)
    assert np.array_equal(run.words(32768, tag=0x1E), WORDS[at])


def test_alias_keeps_flags() -> None:
    """A kernel may use flags that an earlier kernel left in a register."""
    first = linked(f"@boundary_flags bf0 0 $lr40 {FLAGS}\n@distribute a from_param 8 size 1 $lm0\n")
    for name in ("@alias", "@assign"):
        second = linked(
            f"{name} bf9 $lr40\n{POOL}\n@get_neighbor $lr30 -1 $lm0 bf9 nbuf0 left\n@free left\n"
            "lpassa $lr30 $lm4\n@collect c to_param 24 size 1 $lm4\n"
        )
        run = Run({0: WORDS[:PES], 65536: flags(True, True)}).run(first).run(second)
        assert np.array_equal(run.words(32768, tag=0x1E), WORDS[(np.arange(PES) - 1).clip(0)])


def test_neighbors_leave_other_registers() -> None:
    """Nothing changes outside of the pool, the target and the register of flags."""
    text = linked(f"@alias f $lr40\n{POOL}\n@get_neighbor $lr30 +1 $lm0 f nbuf0 left\n@free left\n")
    run = Run({0: WORDS[:8]})
    place = (2, 0, 3, 9, 1)
    filled = {name: WORDS[: 200 if name[0] == "g" else 2000] for name in ("lm0", "lm1", "grf0")}
    for name, words in filled.items():
        run.device.debug_write(name, place, 0, words)
    run.run(text)
    for name, words in filled.items():
        now = run.device.debug_read(name, place, 0, len(words))
        lent = {"grf0": {15, 100, 101, *range(102, 111)}, "lm1": {0}}.get(name, set())
        changed = set(np.flatnonzero(now != words).tolist())
        assert changed <= lent, name


def test_map_and_comments() -> None:
    text = linked(
        "# title\n@distribute a from_param 8 size 2 $lm0\nnop # mine\n"
        "@access_pattern any (0)\n@collect c to_param 24 size 3 $lm0\n"
    )
    maps = re.findall(r"^# (\(:pdm .*\))$", text, re.MULTILINE)
    assert maps == [
        '(:pdm :directive "@distribute" :id "a" :slot 8 :place :pdm0 :addr 0 :size 8192'
        " :access :read)",
        '(:pdm :directive "@collect" :id "c" :slot 24 :place :pdm0 :addr 32768 :size 12288'
        " :access :write)",
    ]
    assert "# @access_pattern any (0)\n" in text
    places = origins(text)
    lines = text.splitlines()
    assert len(places) == len(lines)
    found = {line: place for line, place in zip(lines, places, strict=True)}
    assert found["nop # mine"] == ("k._vsm", 3)
    assert found["# title"] == ("k._vsm", 1)
    assert found["l1bmd $lb0 $lm0v/1100"] == ("k._vsm", 2)
    assert found["l1bmd $lm0v $lb0"] == ("k._vsm", 5)


def test_tools_show_the_source(tmp_path: Path) -> None:
    """Profile, debugger, sanitizer and packed kernels name the line of the `._vsm`."""
    source = "@distribute a from_param 8 size 1 $lm0\nlpassa $lm8 $ln0\nd get $ln0n0c0b0m0p0 1\n"
    path = tmp_path / "k.vsm"
    path.write_text(linked(source))
    command = [sys.executable, "-m", "emu2.cli"]

    def printed(*arguments: str, text: str | None = None) -> str:
        done = subprocess.run(
            [*command, *arguments], input=text, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    assert re.search(
        r"lpassa \$lm8 \$ln0 +# k\._vsm:2$", printed("profile", str(path)), re.MULTILINE
    )
    shown = printed("debug", str(path), text="break line 100\nto position 1\nwhere\n")
    assert "[k._vsm:1]" in shown
    assert "= from k._vsm:3" in printed("run", str(path), "--sanitize")
    program = emu2.assemble(linked(source), link_case.SPEC, filename="k.vsm")
    text = emu2.unpack(emu2.pack(program))
    found = dict(zip(text.splitlines(), origins(text), strict=True))
    assert found["lpassa $lm8 $ln0"] == ("k._vsm", 2)
    assert found["l1bmd $lb0 $lm0v/1000"] == ("k._vsm", 1)
    assert text.count("#line") == 2
    plain = emu2.assemble("\n# title\nnop\nnop\n\nnop\n", link_case.SPEC, filename="a/p.vsm")
    packed = emu2.unpack(emu2.pack(plain))
    assert packed == '#line 3 "a/p.vsm"\nnop\nnop\n#line 6 "a/p.vsm"\nnop\n'


def test_breakpoints_in_the_source(tmp_path: Path) -> None:
    """A line of the `._vsm` leads to the first line that comes from it, or from the next one."""
    path = tmp_path / "k.vsm"
    path.write_text(linked("@distribute a from_param 8 size 1 $lm0\n\nlpassa $lm0 $ln0\n"))
    session = open_session(str(path), "mncore2")
    lines = path.read_text().splitlines()
    for wanted, expected in (
        (1, "nop; wait i10"),
        (2, "lpassa $lm0 $ln0"),
        (3, "lpassa $lm0 $ln0"),
    ):
        added = session.add_at("/elsewhere/k._vsm", "", wanted)
        position = session.run.at_line(added["line"])
        assert lines[session.run.line_of(position) - 1] == expected
    assert session.origin(session.run.line) == ("k._vsm", 1)
    for name, line in (("other._vsm", 1), ("k._vsm", 9)):
        with pytest.raises(emu2.EmulatorError, match="D0003"):
            session.add_at(name, "", line)
