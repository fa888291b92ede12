"""Linked programs of the installed SDK: `vsmlink`, `assemble3`, and a host program in C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from link_case import FLAGS, PES, PLACEMENT, POOL, STRUCTURE, flags
from link_fault_cases import CASES, ENTRIES
from numpy.typing import NDArray
from sdk_root import SOURCES, done, root, run

Words = NDArray[np.uint64]
RANDOM = np.random.default_rng(5430)
WORDS = RANDOM.integers(0, 2**63, 4 * PES, np.uint64)
REALS = RANDOM.integers(-1000, 1000, 2 * PES).astype(float).view(np.uint64)
EDGES = " (:data_size (4096)) (:data_offset (0))"
OUT, SUM = (32768, 0x1E), (49152, 0x1D)
"""Address and tag of the slots 24 and 32."""


@dataclass(frozen=True)
class Case:
    """A source, what the host sends to which address, and what comes back from where."""

    source: str
    sent: dict[int, Words]
    expected: Words
    place: tuple[int, int] = OUT
    structure: str = ""
    compared: Callable[[Words], Words] = field(default=lambda found: found)


def moved(register: str, size: int) -> Case:
    """Distribute and collect components."""
    source = (
        f"@distribute a from_param 8 size {size} {register}\n"
        f"@collect b to_param 24 size {size} {register}\n"
    )
    return Case(source, {0: WORDS[: size * PES]}, WORDS[: size * PES])


def reduced(operator: str, combine: np.ufunc, kind: str = "u8") -> Case:
    """Combine one value of each PE."""
    data = (REALS if kind == "f8" else WORDS)[:PES]
    expected = combine.reduce(data.view(kind).reshape(-1, 4), axis=0).view(np.uint64)
    source = f"@distribute a from_param 8 size 1 $lr0\n@reduce b to_param 32 $lr0 {operator}\n"
    return Case(source, {0: data}, expected, SUM)


def broadcast(size: int) -> Case:
    """Bring the same words to all PEs."""
    source = (
        f"@broadcast a from_param 40 size {size} $lr16\nlpassa $lr16v $lm0v\n"
        f"@collect b to_param 24 size {size} $lm0\n"
    )
    return Case(source, {20480: WORDS[:64]}, np.repeat(WORDS[3 : 3 + size], PES))


def neighbor(step: int, boundary: str, *, computed: bool) -> Case:
    """Bring the value of the PE before or behind."""
    at = np.arange(PES) + step
    at = at % PES if boundary == "periodic" else at.clip(0, PES - 1)
    made = (
        "@boundary_flags_compute bf0 0 $lr40 left"
        if computed
        else f"@boundary_flags bf0 0 $lr40 {FLAGS}"
    )
    source = (
        f"@distribute a from_param 8 size 1 $lm0\n{POOL}\n{made}\n"
        f"@get_neighbor $lr30 {step:+d} $lm0 bf0 nbuf0 left\n@free left\n"
        "lpassa $lr30 $lm4\n@collect c to_param 24 size 1 $lm4\n"
    )
    sent = {0: WORDS[:PES]} if computed else {65536: flags(True, True), 0: WORDS[:PES]}
    return Case(source, sent, WORDS[at], structure=f"{EDGES} (:boundary (:{boundary}))")


def named(name: str) -> Case:
    """Use flags that lie in a register: here the kernel has brought them there by itself."""
    source = (
        "@distribute a from_param 8 size 1 $lm0\n@distribute f from_param 16 size 1 $lr40\n"
        f"{name} bf9 $lr40\n{POOL}\n@get_neighbor $lr30 -1 $lm0 bf9 nbuf0 left\n@free left\n"
        "lpassa $lr30 $lm4\n@collect c to_param 24 size 1 $lm4\n"
    )
    sent = {16384: flags(True, True), 0: WORDS[:PES]}
    return Case(source, sent, WORDS[(np.arange(PES) - 1).clip(0)])


CASES_THAT_RUN = {
    "round_trip": moved("$lm0", 1),
    "two_components": moved("$ln64", 2),
    "three_components": moved("$lr16", 3),
    "four_components": moved("$lm8", 4),
    "sum": Case(
        "@distribute a from_param 8 size 1 $lm0\n@distribute b from_param 16 size 1 $ln0\n"
        "\tdvadd $lm0 $ln0 $lr0 # a comment\nnop/4\nlpassa $lr0 $lm8\n"
        "@access_pattern any (0)\n@collect c to_param 24 size 1 $lm8\n",
        {16384: REALS[PES:], 0: REALS[:PES]},
        (REALS[:PES].view(float) + REALS[PES:].view(float)).view(np.uint64),
    ),
    "broadcast_1": broadcast(1),
    "broadcast_4": broadcast(4),
    "broadcast_twice": Case(
        "@broadcast a from_param 40 size 2 $lr0\n@broadcast b from_param 48 size 1 $lr4\n"
        "lpassa $lr4 $ln4\nnop/4\nladd $lr2 $ln4 $lm0\nnop/4\n@collect c to_param 24 size 1 $lm0\n",
        {20480: WORDS[:64]},
        np.repeat(WORDS[4:5] + WORDS[61:62], PES),
    ),
    "numbers": Case(
        "@identify 0 $lr0 4096\nlpassa $lr0 $lm0\n@collect c to_param 24 size 1 $lm0\n",
        {69632: np.arange(PES, dtype=np.uint64)},
        np.arange(PES, dtype=np.uint64),
    ),
    "integers_added": reduced("liadd", np.add),
    "bits_and": reduced("lband", np.bitwise_and),
    "bits_or": reduced("lbor", np.bitwise_or),
    "reals_added": reduced("dfadd", np.add, "f8"),
    "largest": reduced("dmax", np.maximum, "f8"),
    "smallest": reduced("dmin", np.minimum, "f8"),
    "flags_computed": Case(
        f"{POOL}\n@boundary_flags_compute bf0 0 $lr40 left\n@free left\n"
        "lpassa $lr40 $lm0\n@collect c to_param 24 size 1 $lm0\n",
        {},
        flags(True, True),
        structure=EDGES,
    ),
    "flags_of_a_middle": Case(
        f"{POOL}\n@boundary_flags_compute bf0 0 $lr40 left\n@free left\n"
        "lpassa $lr40 $lm0\n@collect c to_param 24 size 1 $lm0\n",
        {},
        flags(False, False),
    ),
    "flags_brought": Case(
        f"@boundary_flags bf0 0 $lr40 {FLAGS}\nlpassa $lr40 $lm0\n"
        "@collect c to_param 24 size 1 $lm0\n",
        {65536: flags(True, False)},
        flags(True, False),
    ),
    "left_clamp": neighbor(-1, "clamp", computed=False),
    "right_clamp": neighbor(1, "clamp", computed=True),
    "left_periodic": neighbor(-1, "periodic", computed=True),
    "right_periodic": neighbor(1, "periodic", computed=False),
    "alias": named("@alias"),
    "assign": named("@assign"),
    "raw": Case(
        "nop; wait i10\nmvp/n64i1e $p0@0 $p32768@0\nnop; wait i1e\n", {0: WORDS[:64]}, WORDS[:64]
    ),
}
"""Programs that use every directive."""
QUICK = ("sum", "broadcast_1", "integers_added", "left_clamp")
QUICK_FAULTS = ("E101", "E205", "E220", "E242")


def write(folder: Path, source: str, placement: str, structure: str) -> tuple[Path, ...]:
    """Write the files of a program, and return them with that of the output."""
    paths = tuple(folder / f"k.{end}" for end in ("_vsm", "param", "stparam", "vsm"))
    for path, text in zip(paths, (source, placement, structure), strict=False):
        path.write_text(text)
    return paths


def runs(case: Case, folder: Path) -> None:
    """Link, assemble and run a program."""
    sdk = root()
    structure = STRUCTURE.replace("{more}", case.structure)
    paths = write(folder, case.source, PLACEMENT.replace("{more}", ""), structure)
    done(sdk / "bin" / "vsmlink", *paths)
    done(sdk / "bin" / "assemble3", paths[-1], "--output-file", folder / "k", "--loader")
    program = root() / "linked"
    if not program.exists():
        flags = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{sdk}/include")
        done("gcc", *flags, SOURCES / "linked.c", "-o", program, f"-L{sdk}/lib", "-lmnc2")
    address, tag = case.place
    words = ["k.idma.dat", str(address * 8), str(case.expected.nbytes), str(tag), "out"]
    for number, (place, data) in enumerate(case.sent.items(), 1):
        data.astype("<u8").tofile(folder / f"in{place}")
        # Only the last send of a launch has the tag.
        words += [str(place * 8), str(0x10 if number == len(case.sent) else 0), f"in{place}"]
    done(program, *words, cwd=folder, env={"LD_LIBRARY_PATH": f"{sdk}/lib/emu-lib"})
    assert np.array_equal(np.fromfile(folder / "out", "<u8"), case.expected)


@pytest.mark.parametrize("name", QUICK)
def test_programs(name: str, tmp_path: Path) -> None:
    runs(CASES_THAT_RUN[name], tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES_THAT_RUN)
def test_every_program(name: str, tmp_path: Path) -> None:
    runs(CASES_THAT_RUN[name], tmp_path)


def refused(number: str, source: str, entries: str | None, folder: Path) -> None:
    """Check that `vsmlink` ends with the number of a fault, and writes no file."""
    placement = PLACEMENT.replace("{more}", "")
    if entries is not None:
        placement = ENTRIES.replace("{}", entries)
    paths = write(folder, f"{source}\n", placement, STRUCTURE.replace("{more}", ""))
    result = run(root() / "bin" / "vsmlink", *paths)
    assert (result.returncode, result.stdout) == (1, ""), result.stderr
    assert f':id "{number}"' in result.stderr
    assert not paths[-1].exists()


FIRST = {number: (source, entries) for number, source, entries in reversed(CASES)}


@pytest.mark.parametrize("number", QUICK_FAULTS)
def test_faults(number: str, tmp_path: Path) -> None:
    refused(number, *FIRST[number], tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("number", FIRST)
def test_every_fault(number: str, tmp_path: Path) -> None:
    refused(number, *FIRST[number], tmp_path)
