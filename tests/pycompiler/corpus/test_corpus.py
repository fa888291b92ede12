"""A dozen programs of the corpus are as recorded; names and comments change no record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pycompiler.graph.graph import MNGraph
from pycompiler.graph.text import parse_graph, print_graph

from .changes import first_difference, table
from .programs import PROGRAMS
from .record import Record, canonical_code, canonical_graph, read_records, record

QUICK = [name for name, program in PROGRAMS.items() if program.quick]
#: Those that take seconds. `test_odd_counts.py` has networks on the odd machine.
LONGER = ("network/stencil/float", "odd/gru", "drawn/product/0")


def test_records_are_those_of_programs() -> None:
    assert set(read_records()) == set(PROGRAMS)
    assert len(QUICK) == 12


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long if n in LONGER else ()) for n in QUICK]
)
def test_programs_are_as_recorded(name: str) -> None:
    kept, found = read_records()[name], record(name)
    assert first_difference(kept, found) == "", "see `make corpus`"
    assert kept == found


REST = (
    "type=float[2] num_lw=? padded_shape=? layout=? layout_kind=? "
    "dtype=Unknown gene=[,] loc=? addr=?"
)
DUMP = f"""graph g target=mini stage=IMPORTED
input x
output y = b

Relu(x) -> (a) node="first" on=MNCore source="net.py:1"
  in0 name=x {REST}
  out0 name=a {REST}

Neg(a) -> (b) node="second" on=MNCore attributes={{"code": "f a b"}} source="net.py:2"
  in0 name=a {REST}
  out0 name=b {REST}
"""


def test_names_and_sources_change_no_record() -> None:
    graph: MNGraph = parse_graph(DUMP)
    assert print_graph(graph) == DUMP
    other = DUMP.replace("a)", "inner)").replace("(a", "(inner").replace("=a ", "=inner ")
    other = other.replace("f a b", "f inner b").replace("net.py", "torch.py")
    other = other.replace('"first"', '"layer.0"')
    assert other != DUMP
    assert canonical_graph(other) == canonical_graph(DUMP)
    assert canonical_graph(DUMP.replace("Neg", "Abs")) != canonical_graph(DUMP)
    assert canonical_graph(DUMP.replace("float[2]", "float[3]")) != canonical_graph(DUMP)


def test_comments_change_no_record() -> None:
    assert canonical_code("# Relu a\nnop # wait\n\nladd $lm0 $ln0 $lr0\n") == (
        "nop\nladd $lm0 $ln0 $lr0"
    )


OLD = Record("m", "t", {"dtype": "1", "layout": "2"}, 100, 25, 8)
DIFFERENT = [
    (OLD, ""),
    (replace(OLD, model="n", text="u"), "model"),
    (replace(OLD, text="u"), "text"),
    (replace(OLD, text="u", dumps={"dtype": "1", "layout": "3"}), "layout"),
    (replace(OLD, dumps={"dtype": "1"}), "layout"),
    (replace(OLD, dumps={"dtype": "1", "layout": "2", "order": "4"}), "order"),
    (Record("m", refused="P0301"), "compiled -> P0301"),
]


@pytest.mark.parametrize(("new", "where"), DIFFERENT)
def test_the_first_difference_is_named(new: Record, where: str) -> None:
    assert first_difference(OLD, new) == where


def test_the_table_has_rows_of_what_differs_and_sums() -> None:
    slower = replace(OLD, text="u", cycles=103, dram_words=6)
    lines = list(table({"a": OLD, "b": OLD}, {"a": slower, "b": OLD, "c": OLD}))
    assert lines[1].split() == ["a", "text", "100", "103", "+3.00", "%", "-2"]
    assert lines[2].split() == ["c", "new", "100"]
    assert lines[3:] == [
        "3 programs, 2 differ, of which 1 in their text",
        "cycles in sum: 200 before, 203 after (+1.50 %)",
        "the largest growth of a program: +3.00 %",
    ]
