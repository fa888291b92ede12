"""`pycompiler profile`: groups add up, products have their work, the picture has its points."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from compiling import compiled, context, model_of

from pycompiler.machine import load_target
from pycompiler.model_commands import commands
from pycompiler.profile.nodes import VIEWS, changes, grouped
from pycompiler.profile.roofline import roofline
from pycompiler.report.bound import peak

MATRIX = np.linspace(-1, 1, 24 * 10, dtype=np.float32).reshape(24, 10)


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    nodes = [("MatMul", ["x", "w"], "h"), ("Relu", ["h"], "r"), ("MatMul", ["r", "v"], "y")]
    constants = {"w": MATRIX, "v": MATRIX[:10]}
    model = model_of(nodes, {"x": (9, 24)}, ["y"], constants)
    return compiled(model, "mini")[1]


def test_work_is_that_of_the_shapes(facts: dict[str, Any]) -> None:
    products = [row for row in facts["nodes"] if row["op"] in ("MatMul", "Gemm")]
    assert [row["multiply_adds"] for row in products] == [9 * 24 * 10, 9 * 10 * 10]
    assert sum(row["multiply_adds"] for row in facts["nodes"]) == facts["bound"]["multiply_adds"]
    # Singles: two to a long word.
    assert products[0]["operand_words"] == (9 * 24 + 24 * 10 + 9 * 10) / 2


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "line"])
def test_groups_add_up(facts: dict[str, Any], view: Any) -> None:
    groups = grouped(facts["nodes"], view)
    assert sum(group.cycles for group in groups) == facts["cycles"]
    assert sum(group.steps for group in groups) == facts["steps"]
    assert sum(group.nodes for group in groups) == len(facts["nodes"])
    assert [group.cycles for group in groups] == sorted((g.cycles for g in groups), reverse=True)


def _row(name: str, cycles: int, adds: int = 0, words: int = 1) -> dict[str, Any]:
    moved = {"read": 0, "written": 0}
    return {
        **{"node": name, "op": "MatMul", "source": None, "steps": cycles // 4, "cycles": cycles},
        **{"wait_cycles": 0, "dram_words": moved, "busy_steps": {"mau": cycles // 8}},
        **{"multiply_adds": adds, "operand_words": words},
    }


def test_changes_come_in_the_order_of_their_size() -> None:
    before = grouped([_row("a", 100), _row("b", 400), _row("c", 40)], "node")
    after = grouped([_row("a", 120), _row("b", 40), _row("d", 200)], "node")
    names = [name.split()[0] for name, _, _ in changes(before, after)]
    assert names == ["b", "d", "c", "a"]


def _circles(text: str) -> Iterator[tuple[float, float]]:
    for found in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}circle"):
        yield float(found.attrib["cx"]), float(found.attrib["cy"])


def test_points_of_the_picture_lie_where_their_numbers_are() -> None:
    target = load_target("mncore2")
    top = peak(target, "half")
    rows = [
        _row("at the peak", 1000, top * 1000, top),
        _row("a tenth", 1000, top * 100, top),
        _row("a hundredth", 1000, top * 10, top // 10),
        _row("no product", 1000),
    ]
    text = roofline(rows, target, "a < b")
    points = list(_circles(text))
    assert len(points) == 3
    (_, y), (x10, y10), (x100, y100) = points
    assert x10 == pytest.approx(x100, abs=0.2)
    assert y100 - y10 == pytest.approx(y10 - y, abs=0.2)
    line = re.search(r'y1="([\d.]+)" x2="[\d.]+" y2="\1" stroke="\w+"', text.split("half")[0])
    assert line is not None
    levels = [float(v) for v in re.findall(r'y1="([\d.]+)" x2="[\d.]+" y2="\1" stroke="\w+"', text)]
    assert min(levels) == pytest.approx(y, abs=0.2)
    assert "a &lt; b" in text


def test_the_command(tmp_path: Path) -> None:
    import torch

    matrix = torch.from_numpy(MATRIX)
    sample = {"x": torch.randn(9, 24)}
    for name, mode in (("one", "float"), ("two", "mixed")):
        context().compile(
            lambda d: {"y": torch.relu(d["x"] @ matrix)},
            sample,
            tmp_path / name,
            options={"float_dtype": mode},
        )
    run = CliRunner().invoke
    picture = tmp_path / "picture.svg"
    plain = run(
        commands, ["profile", str(tmp_path / "one"), "--by", "operator", "--draw", str(picture)]
    )
    assert plain.exit_code == 0, plain.output
    assert "MatMul" in plain.output
    assert "bound:" in plain.output
    assert list(_circles(picture.read_text()))
    compared = ["profile", str(tmp_path / "one"), "--compare", str(tmp_path / "two"), "--top", "3"]
    assert "before" in run(commands, compared).output
    report = json.loads((tmp_path / "one" / "report.json").read_text())
    text = (tmp_path / "one" / "model.vsm").read_text().split("\n")
    out = tmp_path / "lines.json"
    done = run(commands, ["profile", str(tmp_path / "one"), "--by", "line", "--json", str(out)])
    assert done.exit_code == 0, done.exception
    rows = json.loads(out.read_text())
    for total in ("steps", "cycles"):
        assert sum(row[total] for row in rows) == report[total]
    words = report["dram_words"]
    assert sum(row["words"] for row in rows) == words["read"] + words["written"]
    slots = Counter(slot for row in rows for slot in row["busy"])
    assert set(slots) == {slot for row in report["nodes"] for slot in row["busy_steps"]}
    products = [row for row in rows if "mau" in row["busy"]]
    assert products
    for row in products:
        number, _, line = row["name"].partition(": ")
        assert text[int(number) - 1].startswith(line.split("  #")[0])
    for damaged in ({**report, "nodes": []}, {"nodes": 3}, {**report, "nodes": [{}]}, [], None):
        text = "{" if damaged is None else json.dumps(damaged)
        (tmp_path / "one" / "report.json").write_text(text)
        problem = run(commands, ["profile", str(tmp_path / "one")]).exception
        assert "P0004" in str(problem), text
