"""The text form of graphs: printed graphs are read back as equal graphs."""

from __future__ import annotations

import pytest
from compiling import compiled, model_of
from hypothesis import given
from hypothesis import strategies as st
from random_layouts import layouts

from pycompiler.errors import PycompilerError
from pycompiler.graph import (
    Level,
    Location,
    MNDtype,
    MNGraph,
    MNNode,
    MNValue,
    Side,
    Stage,
    SubAxis,
    TensorType,
    parse_graph,
    print_graph,
)
from pycompiler.graph.plan import OnePass, Resident, SharedSums, Streamed

names = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_.]{0,8}", fullmatch=True), st.text(max_size=6)
)
optional_text = st.one_of(st.none(), st.text(max_size=8))
values = st.builds(
    MNValue,
    names.filter(bool),
    st.builds(
        TensorType,
        st.sampled_from(["float", "int64", "bool"]),
        st.lists(st.integers(0, 9), max_size=4).map(tuple),
    ),
    st.sampled_from(MNDtype),
    st.sampled_from(Location),
    st.none(),
    st.one_of(st.none(), st.integers(0, 99)),
    st.tuples(st.from_regex(r"[A-Za-z]{0,3}", fullmatch=True), st.just("")),
    st.one_of(st.none(), st.integers(0, 1 << 40)),
)


attribute = st.one_of(
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=4),
    st.lists(st.integers(), max_size=3).map(tuple),
    st.lists(st.text(max_size=3), max_size=3).map(tuple),
)
attributes = st.dictionaries(st.text(max_size=4), attribute, max_size=3).map(
    lambda found: tuple(found.items())
)


digits = st.lists(
    st.builds(SubAxis, st.integers(2, 9), st.sampled_from(Level), st.integers(0, 64)), max_size=3
).map(tuple)
plans = st.one_of(
    st.builds(Resident),
    st.builds(OnePass, st.sampled_from(Level)),
    st.builds(Streamed, st.one_of(st.none(), st.integers(0, 3)), digits, digits),
    st.builds(
        SharedSums,
        st.integers(1, 4),
        st.booleans(),
        st.booleans(),
        st.lists(st.sampled_from(Level), max_size=3).map(tuple),
    ),
)


@st.composite
def graphs(draw: st.DrawFn) -> MNGraph:
    found = {value.name: value for value in draw(st.lists(values, min_size=1, max_size=6))}
    for name, value in found.items():
        if draw(st.booleans()):
            layout = draw(layouts)
            shape = TensorType("float", layout.padded_shape)
            found[name] = MNValue(
                name, shape, value.dtype, value.location, layout, 4, value.gene, value.addr
            )
    known = st.sampled_from(sorted(found))
    some = st.lists(known, max_size=3).map(tuple)
    node = st.builds(
        MNNode,
        st.text(max_size=6),
        names.filter(bool),
        st.lists(st.one_of(known, st.just("")), max_size=3).map(tuple),
        some,
        attributes,
        st.sampled_from(Side),
        optional_text,
        optional_text,
        st.one_of(st.none(), st.integers(0, 9)),
        st.one_of(st.none(), st.integers(0, 2)),
        st.one_of(st.none(), st.integers(0, 5)),
        st.one_of(st.none(), plans),
    )
    return MNGraph(
        draw(names.filter(bool)),
        "mncore2",
        draw(st.sampled_from(Stage)),
        draw(some),
        tuple((f"k{i}", name) for i, name in enumerate(draw(some))),
        {name: "0123456789abcdef" for name in draw(some)},
        tuple(draw(st.lists(node, max_size=4))),
        found,
    )


@given(graphs())
def test_round_trip(graph: MNGraph) -> None:
    assert parse_graph(print_graph(graph)) == graph


def test_a_compiled_graph_reads_back() -> None:
    model = model_of(
        [("Mul", ["x", "y"], "p"), ("Relu", ["p"], "r"), ("Sin", ["r"], "s")],
        {"x": (6, 5), "y": (5,)},
        ["r", "s"],
    )
    with pytest.warns(UserWarning, match="Sin"):
        result, _ = compiled(model, "mncore2")
    text = print_graph(result.graph)
    assert parse_graph(text) == result.graph
    for record in ("MNCoreDownload(", "MNCoreUpload(", "in0 name=", "PadLayout{(6,5)/"):
        assert record in text
    for field in ("num_lw=4", "padded_shape=(", "layout_kind=MNCore", "dtype=Float", "gene=[,]"):
        assert field in text
    assert "loc=LM0" in text
    assert "loc=DRAM" in text


def test_lm_addresses_are_words_of_32_bits() -> None:
    value = MNValue("v", TensorType("double", (2,)), MNDtype.DOUBLE, Location.LM1, addr=8)
    text = print_graph(MNGraph("g", "mini", values={"v": value}))
    assert "addr=16" in text
    assert parse_graph(text).values["v"].addr == 8


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "graph NAME"),
        ("graph g target=t stage=NEVER", "line 1: a stage"),
        ("graph g target=t stage=IMPORTED\n  in0 name=", "line 2: a name"),
        ("graph g target=t stage=IMPORTED\nAdd(x, y -> (z)", "line 2: `,`"),
        ("graph g target=t stage=IMPORTED\nAdd(x) -> (z) colour=3", "line 2: a node property"),
        *(
            (
                f"graph g target=t stage=IMPORTED\nAdd(x) -> (z) plan={plan}",
                "no plan; the schedules are Resident ()",
            )
            for plan in (
                '"Resident"',
                '{"Rotated": {}}',
                '{"Resident": {}, "WholeSums": {}}',
                '{"Resident": {"order": 3}}',
                '{"Streamed": {"along": 0}}',
                '{"Streamed": {"along": 0, "columns": 2, "rows": "()"}}',
                '{"Streamed": {"along": 0, "columns": "(2_LM:1)", "rows": "()"}}',
                '{"Streamed": {"along": 0, "columns": ["MAB"], "rows": "()"}}',
                '{"SharedSums": {"parts": true}}',
                '{"OnePass": {"level": "LM"}}',
                '{"OnePass": {"level": []}}',
            )
        ),
        (
            "graph g target=t stage=IMPORTED\n"
            "  value name=v type=float[2] num_lw=? padded_shape=(3) layout=PadLayout{((2:1))} "
            "layout_kind=MNCore dtype=Float gene=[,] loc=? addr=?",
            "padded_shape",
        ),
        (
            "graph g target=t stage=IMPORTED\n"
            "  value name=v type=float[2] num_lw=? padded_shape=? layout=? "
            "layout_kind=? dtype=Flot gene=[,] loc=? addr=?",
            "Flot",
        ),
    ],
)
def test_bad_texts(text: str, reason: str) -> None:
    with pytest.raises(PycompilerError) as caught:
        parse_graph(text)
    assert caught.value.code == "P0203"
    assert reason in caught.value.message


def test_two_records_of_one_value_must_agree() -> None:
    model = model_of(
        [("Mul", ["x", "y"], "p"), ("Add", ["p", "x"], "r")], {"x": (4,), "y": (4,)}, ["r"]
    )
    text = print_graph(compiled(model)[0].graph)
    record = "name=x.lm0 type=float[4] num_lw=4"
    assert text.count(record) > 1
    damaged = text.replace(record, record.replace("num_lw=4", "num_lw=8"), 1)
    with pytest.raises(PycompilerError, match="two different records"):
        parse_graph(damaged)
