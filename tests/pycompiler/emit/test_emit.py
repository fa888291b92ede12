"""Concatenation: steps between lines, waits, tags, relocation."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compiling import compiled, model_of, run
from typed_model import typed_model

from pycompiler.app.model import DeviceSegment
from pycompiler.code.lines import (
    BlockOperand,
    Forward,
    Fragment,
    Instruction,
    Line,
    Literal,
    Move,
    PeOperand,
    Special,
    Step,
)
from pycompiler.emit.fragment_cache import Fragments
from pycompiler.emit.program import Code, concatenate
from pycompiler.emit.relocation import Moved, relocate
from pycompiler.errors import PycompilerError
from pycompiler.layers.operators import LAYERS
from pycompiler.machine import Target, load_target


def vector(memory: str, at: int = 0, stride: int = 1) -> PeOperand:
    return PeOperand(memory, tuple(at + c * stride for c in range(4)))


def passa(source: PeOperand | Special, destination: PeOperand | Special) -> Step:
    return Step((Instruction("alu", "lpassa", (source,), (destination,)),))


def code(*lines: Line, **addresses: int) -> Code:
    target = load_target("mini")
    made = concatenate([("n", "node", Fragment(lines))], addresses, target)
    target.assemble(made.text, "test.vsm")
    return made


def body(*lines: Line, **addresses: int) -> list[str]:
    return list(code(*lines, **addresses).lines[1:])


def down(at: int, words: int = 64, l2b: int = 0, l2: int = 0) -> Move:
    return Move(
        "mvp",
        words,
        BlockOperand("dram", at, words, "v"),
        BlockOperand("l2bm", l2, words, l2b=l2b),
    )


def test_local_memories_need_two_steps() -> None:
    first, second = passa(vector("grf0"), vector("lm0")), passa(vector("lm0", 8), vector("grf1"))
    assert body(first, second) == ["lpassa $lr0v $lm0v", "nop/2", "lpassa $lm16v $ls0v"]


def test_other_work_fills_the_distance() -> None:
    work = passa(vector("lm1"), vector("grf0", 8))
    lines = body(passa(vector("grf0"), vector("lm0")), work, passa(vector("lm0"), vector("grf1")))
    assert lines == ["lpassa $lr0v $lm0v", "lpassa $ln0v $lr16v", "nop", "lpassa $lm0v $ls0v"]


def test_registers_count_cycles_of_the_same_word() -> None:
    write = passa(vector("lm0"), vector("grf0"))
    assert "nop" in body(write, passa(vector("grf0"), vector("lm1")))
    assert body(write, passa(vector("grf0", 4), vector("lm1")))[1] == "lpassa $lr8v $ln0v"
    last = PeOperand("grf0", (3, 3, 3, 3))  # written in cycle 3, read from cycle 0 on
    assert "nop/2" in body(write, passa(last, vector("lm1")))


def test_forwarding_needs_no_distance() -> None:
    lines = body(passa(vector("lm0"), Special("nowrite")), passa(Forward("alu"), vector("lm1")))
    assert lines == ["lpassa $lm0v $nowrite", "lpassa $aluf $ln0v"]


def test_an_mv_is_waited_for_where_its_data_is_used() -> None:
    to_l1 = Instruction(
        "l2bm", "l2bmb", (BlockOperand("l2bm", 0, 64),), (BlockOperand("l1bm", 0, 64),)
    )
    lines = body(down(0), passa(vector("lm0"), vector("grf0")), Step((to_l1,)), v=0)
    assert lines == ["mvp/n64i01 $d0 $lc0@.0", "lpassa $lm0v $lr0v", "l2bmb $lc0 $lb0; wait i01"]


def test_moves_of_other_words_overlap_and_all_end_in_time() -> None:
    lines = body(down(0), down(64, l2=64), v=0)
    assert lines == [
        "mvp/n64i01 $d0 $lc0@.0",
        "mvp/n64i02 $d64 $lc64@.0",
        "nop; wait i01",
        "nop; wait i02",
    ]


def test_a_move_waits_for_what_it_overwrites() -> None:
    lines = body(down(0), down(64), v=0)
    assert lines[1] == "nop; wait i01"


def test_tags_come_round() -> None:
    target = load_target("mini")
    lines = body(*(down(64 * i, l2=64 * (i % 32)) for i in range(200)), v=0)
    tags = [int(found.group(1), 16) for line in lines if (found := re.match(r"mvp/n64i(..)", line))]
    assert set(tags) == set(target.mv_tags)
    assert tags[: len(target.mv_tags)] == list(target.mv_tags)


@pytest.mark.parametrize(
    ("offsets", "text"),
    [
        ((4, 5, 6, 7), "$lm8v"),
        ((4, 4, 4, 4), "$lm8"),
        ((0, 3, 6, 9), "$lm0v6"),
        ((3, 2, 1, 0), "$lm[6,4,2,0]"),
        ((0, 0, 1, 1), "$lm[0,0,2,2]"),
    ],
)
def test_addresses_take_the_shortest_form(offsets: tuple[int, ...], text: str) -> None:
    assert body(passa(PeOperand("lm0", offsets), vector("grf0"))) == [f"lpassa {text} $lr0v"]


def test_relocation_moves_every_dram_address() -> None:
    made = code(down(0), down(128, l2=64), v=192)
    assert [place.offset for place in made.relocations] == [0, 128]
    moved = relocate(made.text, made.relocations, 640, load_target("mini"))
    assert re.findall(r"\$d(\d+)", moved) == ["832", "960"]
    assert relocate(made.text, made.relocations, 0, load_target("mini")) == made.text
    assert re.sub(r"\$d\d+", "", moved) == re.sub(r"\$d\d+", "", made.text)


def test_relocation_puts_ranges_elsewhere() -> None:
    made = code(*(down(at, l2=64) for at in (0, 64, 128, 192, 256)), v=64)
    assert re.findall(r"\$d(\d+)", made.text) == ["64", "128", "192", "256", "320"]
    # Words 128 to 255 move to 1024, words from 320 on to 64; all others move by 4096.
    moved = [Moved(320, 384, 64), Moved(128, 256, 1024)]
    text = relocate(made.text, made.relocations, 4096, load_target("mini"), moved)
    assert re.findall(r"\$d(\d+)", text) == ["4160", "1024", "1088", "4352", "64"]
    still = relocate(made.text, made.relocations, 0, load_target("mini"), moved)
    assert re.findall(r"\$d(\d+)", still) == ["64", "1024", "1088", "256", "64"]


def imm(bits: int, value: str | None = None) -> Step:
    """Write ``bits`` to a register, plus the address of ``value`` in blocks of 16 long words."""
    return Step((Instruction("alu", "imm", (Literal(bits, value, 16),), (vector("grf0"),)),))


def test_relocation_moves_literals_that_are_addresses() -> None:
    """Only the literal that names a value moves, by blocks, with what is added to it."""
    made = code(imm(7), imm(3, "v"), down(64), imm(64), imm(0, "w"), v=192, w=4096)
    assert literals(made.text) == [7, 12 + 3, 64, 256]
    found = sorted((place.value, place.offset) for place in made.relocations)
    assert found == [("v", 0), ("v", 64), ("w", 0)]
    target = load_target("mini")
    moved = relocate(made.text, made.relocations, 640, target)
    assert literals(moved) == [7, 52 + 3, 64, 296]
    assert re.findall(r"\$d(\d+)", moved) == ["896"]
    target.assemble(moved, "moved.vsm")
    assert relocate(made.text, made.relocations, 0, target) == made.text
    assert relocate(moved, made.relocations, -640, target) == made.text


def test_relocation_puts_the_ranges_of_literals_elsewhere() -> None:
    made = code(imm(0, "v"), imm(1, "w"), down(0), v=192, w=4096)
    elsewhere = [Moved(4096, 8192, 1024)]
    text = relocate(made.text, made.relocations, 64, load_target("mini"), elsewhere)
    assert literals(text) == [16, 64 + 1]
    assert re.findall(r"\$d(\d+)", text) == ["256"]
    still = relocate(made.text, made.relocations, 0, load_target("mini"), elsewhere)
    assert literals(still) == [12, 64 + 1]


def literals(text: str) -> list[int]:
    return [int(found, 16) for found in re.findall(r'imm ui"0x([0-9A-F]{8})"', text)]


def test_an_mv_by_entries_is_not_relocated() -> None:
    """Its operand names an entry of the address registers. They may name any block of DRAM."""
    source = BlockOperand("dram", 0, 4096, "v", entries=(8, 4))
    by_entries = Move("mvp", 64, source, BlockOperand("l2bm", 64, 64, l2b=0))
    up = Move("mvp", 64, BlockOperand("l2bm", 128, 64, l2b=0), BlockOperand("dram", 0, 64, "w"))
    made = code(up, by_entries, v=192, w=100 * 64)
    assert [place.value for place in made.relocations] == ["w"]
    assert relocate(made.text, made.relocations, 640, load_target("mini")).count("$d7040") == 1
    # The first MV writes to DRAM, so the second one waits, although it names another value.
    assert made.text.index("wait i01") < made.text.index("mvp/n64i02")


def test_nodes_that_share_lines_name_their_own_values() -> None:
    """Code made once for two lookups has the address of each one's table."""
    rng = np.random.default_rng(3)
    tables = {name: rng.standard_normal((600, 24)).astype(np.float32) for name in "vw"}
    index = np.array([599, 0, 3, 17, -1])
    nodes = [("Gather", [name, "i"], f"y{name}") for name in tables]
    wanted = {f"y{name}": table[index] for name, table in tables.items()}
    model = typed_model(nodes, {"i": index}, wanted, tables)
    result, _ = compiled(model, "mini", scheduler="always_from_dram")
    found = run(result, {"i": index}, "mini")
    assert all(np.array_equal(found[name], array) for name, array in wanted.items())
    places = {
        place.value
        for segment in result.app.segments
        if isinstance(segment, DeviceSegment)
        for place in segment.relocations
        if "imm" in segment.code.split("\n")[place.line]
    }
    assert places == {"v", "w"}


def test_code_the_assembler_refuses_is_our_bug(target: Target) -> None:
    with pytest.raises(PycompilerError) as caught:
        target.assemble("fvfrob $lm0v $ln0v\n", "bad.vsm")
    assert caught.value.code == "P0401"
    assert caught.value.exit_code == 3


def test_each_node_is_named_in_the_code() -> None:
    model = model_of([("Add", ["x", "x"], "y"), ("Relu", ["y"], "z")], {"x": (4,)}, ["z"])
    result, report = compiled(model, fuse_elementwise=False)
    comments = [line for line in result.vsm.splitlines() if line.startswith("# ") and ": " in line]
    assert len(comments) == len(report["nodes"])
    assert "# 2: Relu n1_Relu: (y.lm1) -> (z.lm0)" in comments


@pytest.mark.parametrize("scheduler", ["always_from_dram", "reuse_consecutive"])
def test_nodes_that_are_alike_share_a_fragment_and_keep_their_code(scheduler: str) -> None:
    chain = [("Add", ["x", "x"], "a"), ("Relu", ["a"], "b"), ("Add", ["b", "b"], "y")]
    model = model_of(chain, {"x": (40, 8)}, ["y"])
    result, _ = compiled(model, scheduler=scheduler, fuse_elementwise=False)
    target, graph = load_target("mini"), result.graph
    fragments = Fragments(target)
    shared = [(node.name, node.op, fragments.of(node, graph)) for node in graph.nodes]
    adds = [fragment for _, op, fragment in shared if op == "Add"]
    assert adds[0].lines is adds[1].lines
    assert adds[0].names != adds[1].names
    own = [(n.name, n.op, LAYERS[n.op].emit(n, graph, target)) for n in graph.nodes]
    addresses = {name: value.addr for name, value in graph.values.items() if value.addr is not None}
    made = concatenate(shared, addresses, target)
    assert made == concatenate(own, addresses, target)
    target.assemble(made.text, "test.vsm")
    assert {place.value for place in made.relocations} <= graph.values.keys()


def test_code_that_comes_again_keeps_its_distances() -> None:
    again = passa(vector("lm0"), vector("lm0"))  # depends on its own last run
    other = passa(vector("lm1"), vector("grf0"))
    lines = (again, again, again, other, again, again)
    made = concatenate([("n", "n", Fragment(lines, packed=True))], {}, load_target("mini"))
    first, second, far = "lpassa $lm0v $lm0v", "lpassa $ln0v $lr0v", "nop/2"
    assert list(made.lines[1:6]) == [first, far, first, far, first]
    assert list(made.lines[6:]) == [second, "nop", first, far, first]
    assert made.nodes[0].steps == len(lines) + 2 + 2 + 1 + 2
