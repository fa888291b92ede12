"""The rows as files, table and page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import pycompiler
from pycompiler.models.__main__ import main
from pycompiler.models.catalogue import CATALOGUE
from pycompiler.models.measure import largest_difference
from pycompiler.models.page import COMMAND, page, reason_lines
from pycompiler.models.row import MODES, Row, exit_code

GOOD = Row("own:mlp", "float", error=2e-7, matched=True, steps=5, cycles=30, bound=12, operators=4)
HOST = replace(GOOD, name="timm:x", host={"Conv": 2, "Abs": 1}, host_reasons={"Conv": "why"})
WRONG = replace(GOOD, name="own:lenet5", mode="mixed", error=0.5, matched=False)
REFUSED = Row("transformers:X", "mixed", code="P0101", reason="a | b", seconds=1.5)
BUG = Row("transformers:Y", "float", code="P0901", reason="internal error")
LATE = Row("me.x:y", "float", code="time", reason="it took longer than 1 s")


@pytest.mark.parametrize(
    ("rows", "code"),
    [([], 0), ([GOOD, HOST], 0), ([GOOD, WRONG], 1), ([REFUSED], 1), ([LATE, BUG, GOOD], 3)],
)
def test_exit_codes(rows: list[Row], code: int) -> None:
    assert exit_code(rows) == code


def test_rows_survive_json() -> None:
    for row in (GOOD, HOST, WRONG, REFUSED, BUG, LATE):
        assert Row.read(json.loads(json.dumps(row.data()))) == row
    infinite = replace(GOOD, error=float("inf"))
    assert Row.read(json.loads(json.dumps(infinite.data()))) == infinite


@pytest.mark.parametrize(
    "changed", [{"steps": "5"}, {"name": 3}, {"error": None}, {"host": 3}, {"new": 1}]
)
def test_other_data_is_refused(
    changed: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises((ValueError, TypeError)):
        Row.read({**GOOD.data(), **changed})
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([{**GOOD.data(), **changed}]))
    assert main(["own:mlp", "--json", str(file), "--keep"]) == 1
    assert capsys.readouterr().err.startswith("error[P0001]")


def test_kept_rows_do_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    file, out = tmp_path / "rows.json", tmp_path / "page.md"
    file.write_text(json.dumps([GOOD.data()]))
    assert main(["own:mlp", "--json", str(file), "--keep", "--markdown", str(out)]) == 0
    assert "matched" in capsys.readouterr().out
    assert "| mlp | 784-256-128-10 with softmax | matched | 0 | 2e-07 | 5 | 30 | 2.5 |" in (
        out.read_text()
    )


def test_the_page_of_some_rows() -> None:
    text = page([GOOD, HOST, WRONG, REFUSED, BUG, LATE], {"torch": "9.9", "timm": "1.2"}, 3)
    assert COMMAND in text
    assert "batch 3, torch 9.9, timm 1.2," in text
    assert "In `float`, 2 of 4 models compile, 1 of them wholly for the device, and 2 match" in text
    assert "In `mixed`, 1 of 2 models compile, 1 of them wholly for the device, and 0 match" in text
    assert "| x |  | matched | 2 Conv, 1 Abs |" in text
    assert "| own:lenet5 | mixed | differs | the error is 0.5 |" in text
    assert "| transformers:X | mixed | P0101 | a \\| b |" in text
    assert "Not run in `float`: `own:residual_mlp`, " in text
    assert page([BUG, HOST, WRONG, GOOD], {}, 1) == page([GOOD, WRONG, HOST, BUG], {}, 1)
    sections = re.findall(r"\*\*(.*)\*\*", text)
    assert sections == ["own", "timm", "transformers", "me.x", "own", "transformers"]
    assert reason_lines([GOOD, REFUSED]) == ["transformers:X mixed: P0101: a | b"]


ONE = torch.tensor([1.0, -4.0])
NAN = torch.tensor([1.0, float("nan")])


@pytest.mark.parametrize(
    ("found", "wanted", "difference"),
    [
        ({"y": ONE}, {"y": ONE}, 0.0),
        ({"y": ONE + 1}, {"y": ONE}, 0.25),
        ({"y": ONE, "z": ONE * 2}, {"y": ONE, "z": ONE}, 1.0),
        ({"y": ONE}, {"z": ONE}, float("inf")),
        ({"y": ONE}, {"y": ONE[None]}, float("inf")),
        ({"y": ONE}, {"y": ONE.double()}, float("inf")),
        ({"y": ONE}, {"y": NAN}, float("inf")),
        ({"y": NAN}, {"y": ONE}, float("inf")),
        ({"y": ONE.int()}, {"y": ONE.int()}, 0.0),
        ({"y": ONE.int() + 1}, {"y": ONE.int()}, float("inf")),
        ({"y": ONE * 0}, {"y": ONE * 0}, 0.0),
        ({"y": ONE}, {"y": ONE * 0}, float("inf")),
        ({"y": ONE[:0]}, {"y": ONE[:0]}, 0.0),
    ],
)
def test_differences(
    found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor], difference: float
) -> None:
    assert largest_difference(found, wanted) == difference


def test_the_committed_page_is_about_the_catalogue() -> None:
    """It has a row for each model, or says that it was not run."""
    text = (Path(pycompiler.__file__).parents[1] / "docs" / "models.md").read_text()
    assert COMMAND in text
    for mode in MODES:
        section = text.split(f"## Models in `{mode}`")[1].split("\n## ")[0]
        left = text.split(f"Not run in `{mode}`: ")[1:]
        missing = set(re.findall(r"`(.*?)`", left[0].split(".\n")[0])) if left else set()
        found = []
        for part in section.split("\n**")[1:]:
            library, _, rest = part.partition("**")
            found += [f"{library}:{name}" for name in re.findall(r"^\| ([\w.]+) \|", rest, re.M)]
        names = [name for name in found if not name.endswith(":model")]
        assert names == [name for name in CATALOGUE if name not in missing]
