"""The pictures of the pages: drawings are what the script makes, and no file is left over."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from pictures.__main__ import DRAWN, FOLDER, PRINTED, made
from pictures.chip import LEVELS, chip, size
from pictures.pipeline import drawn as forms

import emu2
from pycompiler.graph import parse_graph

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", DRAWN)
def test_drawings_are_what_the_script_makes(name: str) -> None:
    text = (FOLDER / f"{name}").read_text(encoding="utf-8")
    assert text == DRAWN[name](), "make pictures"


def words(picture: str) -> str:
    """Return the letters of a picture, without what a library decides about its form."""
    texts = [one for one in ElementTree.fromstring(picture).iter() if one.tag.endswith("text")]
    return re.sub(r"\s", "", "".join("".join(one.itertext()) for one in texts))


@pytest.mark.parametrize("name", ["conformance.svg", "language_server.svg", "sanitizer.svg"])
def test_terminals_show_what_commands_print(name: str) -> None:
    pytest.importorskip("rich")
    shown = words((FOLDER / name).read_text(encoding="utf-8"))
    assert len(shown) > 100
    assert shown == words(PRINTED[name]()), "make pictures"


def test_pages_show_all_pictures_and_no_others() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "editors").rglob("*.md")]
    shown = {
        (page.parent / place).resolve()
        for page in pages
        for place in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    files = {path for end in ("svg", "png") for path in (ROOT / "docs").rglob(f"*.{end}")}
    assert shown == files
    assert {path.name for path in files} == set(made())


def test_pictures_ask_no_network_and_run_nothing() -> None:
    for path in FOLDER.glob("*.svg"):
        for element in ElementTree.fromstring(path.read_text(encoding="utf-8")).iter():
            assert not element.tag.endswith(("script", "image", "foreignObject")), path
            text = " ".join([*element.attrib.values(), element.text or ""])
            assert not re.search(r"url\(http|@import|src:", text), path


@pytest.mark.parametrize("name", ["mncore2", "mini"])
def test_the_chip_has_the_counts_and_sizes_of_the_spec(name: str) -> None:
    spec, text = emu2.Spec.load(name), chip(name)
    inner = len(re.findall('class="chosen"', text))
    assert inner == len(LEVELS)
    machine = emu2.Machine(spec)
    assert f"{machine.read('lm0', count=1).size:,} PEs" in text
    amount, unit = size(spec, "lm0").split()
    longs = int(amount) * 1024 // 8
    assert unit == "KiB"
    assert machine.read("lm0", count=longs).shape[-1] == longs
    with pytest.raises(emu2.EmulatorError, match="reach past"):
        machine.read("lm0", count=longs + 1)


def test_a_node_keeps_its_column_in_all_forms_of_a_convolution() -> None:
    """Its boxes stand below each other; what a pass adds is marked in the row of that pass."""
    head = "graph g target=mini stage={}\ninput x\ninput w\noutput y = y\n\n"
    value = "  {} name={} type=float[4,8] num_lw={n} padded_shape={p} layout={l} layout_kind={k} "
    value += "dtype=Float gene=[,] loc={m} addr={a}\n"
    known = {"n": "1", "p": "(4,8)", "l": "PadLayout{(4,8)/((4_PE:1), (4_MAB:1, 2_W:1))}"}
    told = {**known, "k": "MNCore", "m": "LM0", "a": "4"}
    nodes = [
        f'Conv(x, w) -> (y) node="c" on=MNCore attributes={{}} segment=0\n'
        f"{value.format('in0', 'x', **told)}{value.format('in1', 'w', **told)}"
        f"{value.format('out0', 'y', **told)}\n"
    ]
    graph = parse_graph(head.format("ADDRESSED") + "".join(nodes))
    text = forms([graph] * 5, "nop\nhmfma $lx $aluf\n")
    boxes = re.findall(r'<rect class="box" x="(\d+)" y="(\d+)" width="118"', text)
    assert len({x for x, _ in boxes}) == 1
    assert len({y for _, y in boxes}) == len(boxes) == 6
    assert "hmfma $lx $aluf" in text


def half(number: float) -> int:
    """Return the bits of a half of the machine: six bits of exponent, nine of mantissa."""
    mantissa, exponent = math.frexp(number)
    return (exponent + 30) << 9 | round((2 * mantissa - 1) * 512)


def test_a_pe_gets_the_rows_of_the_product_that_the_picture_gives_it() -> None:
    """Row r of the matrix is r + 1 everywhere, and the vector is ones: a sum names its row."""
    spec = emu2.Spec.load("mini")
    facts, pes = spec.products["h"], spec.counts["pe"]
    rows, columns = facts["rows"], facts["columns"]
    machine = emu2.Machine(spec)
    words = [half(row + 1) * 0x0001000100010001 for row in range(rows)]
    machine.write("lm0", np.array([*words, half(1) * 0x0001000100010001], np.uint64))
    step = spec.counts["cycle"]
    lines = []
    for row in range(0, rows, step):
        lines += [f"hbfn/9 $lm{2 * row}v $ln0v", "nop/4", f"hmwrite $ln0v $lx{row}", "nop/4"]
    lines += [f"hbfn/9 $lm{2 * rows} $ls0", "nop/4", "hmfma $lx $ls0 $llr0 $llr16"]
    machine.run(emu2.assemble("\n".join(lines), spec))
    sums = machine.read("grf0", addr=8, count=2)[0, 0, 0, 0]
    found = sums.astype(">u8").view(">f4").reshape(pes, -1) / columns - 1
    # The picture: the first PE has the first quarter of the rows, and so on.
    each = rows // pes
    assert found.tolist() == [[pe * each + k for k in range(each)] for pe in range(pes)]
