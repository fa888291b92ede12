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
from pycompiler.models.page import COMMAND, cycle_table, page, reason_lines
from pycompiler.models.row import MODES, Row, exit_code

GOOD = Row(
    "own:mlp", 1, "float", error=2e-7, matched=True, steps=5, cycles=30, bound=12, operators=4
)
SHARES = {"products": 0.5, "switches": 0.2, "transfers": 0.1, "elementwise": 0.0, "waits": 0.2}
TIMED = replace(GOOD, mau=12, dram=7, vector=5, shares=SHARES)
HOST = replace(GOOD, name="timm:x", host={"Conv": 2, "Abs": 1}, host_reasons={"Conv": "why"})
WRONG = replace(GOOD, name="own:lenet5", batch=3, mode="mixed", error=0.5, matched=False)
REFUSED = Row("transformers:X", 1, "mixed", code="P0101", reason="a | b", seconds=1.5)
BUG = Row("transformers:Y", 1, "float", code="P0901", reason="internal error")
ABSENT = Row("me.x:z", 1, "float", code="P0007", reason="`me.x` has no function `z`")
LATE = Row("me.x:y", 1, "float", code="time", reason="it took longer than 1 s")


@pytest.mark.parametrize(
    ("rows", "code"),
    [([], 0), ([GOOD, HOST], 0), ([GOOD, WRONG], 1), ([REFUSED], 1), ([LATE, BUG, GOOD], 3),
     ([LATE, ABSENT, GOOD], 2)],
)  # fmt: skip
def test_exit_codes(rows: list[Row], code: int) -> None:
    assert exit_code(rows) == code


def test_rows_survive_json() -> None:
    for row in (GOOD, TIMED, HOST, WRONG, REFUSED, BUG, LATE):
        assert Row.read(json.loads(json.dumps(row.data()))) == row
    infinite = replace(GOOD, error=float("inf"))
    assert Row.read(json.loads(json.dumps(infinite.data()))) == infinite


def changed(**fields: Any) -> str:
    """Return a file with a good row and one in which these fields differ; None leaves one out."""
    data = {name: value for name, value in {**GOOD.data(), **fields}.items() if value is not None}
    return json.dumps([GOOD.data(), data])


#: Files that are no rows of an earlier run, and what the diagnostic says of them.
NO_ROWS = (
    (changed(batch=None), "entry 2 has no field `batch`, as rows of another version may"),
    (changed(new=1), "entry 2 has the field `new`, which rows have not"),
    (changed(steps="5"), "entry 2 has '5' as `steps`"),
    (changed(steps=5.5), "entry 2 has 5.5 as `steps`"),
    (changed(batch=True), "entry 2 has True as `batch`"),
    (changed(matched=1), "entry 2 has 1 as `matched`"),
    (changed(name=3), "entry 2 has 3 as `name`"),
    (changed(error="0"), "entry 2 has '0' as `error`"),
    (changed(host=3), "entry 2 has 3 as `host`"),
    (changed(host={"Conv": "2"}), "entry 2 has {'Conv': '2'} as `host`"),
    (changed(shares={"waits": "0.5"}), "entry 2 has {'waits': '0.5'} as `shares`"),
    (changed(host_reasons={"Conv": []}), "entry 2 has {'Conv': []} as `host_reasons`"),
    ("[1, 2]", "entry 1 is no row"),
    ("[[]]", "entry 1 is no row"),
    ("[null]", "entry 1 is no row"),
    ("[{}]", "entry 1 has no field `name`"),
    ("{}", "it is no list"),
    ('""', "it is no list"),
    ("5", "it is no list"),
    ("null", "it is no list"),
    ("", "it is no JSON (Expecting value"),
    ("nonsense", "it is no JSON (Expecting value"),
    ("[" * 100_000, "it is nested too deeply"),
    ("\xff", "it is no JSON ("),
)


@pytest.mark.parametrize(("text", "reason"), NO_ROWS, ids=[reason for _, reason in NO_ROWS])
def test_files_without_rows_are_refused(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are not overwritten: they may be files of something else."""
    file = tmp_path / "rows.json"
    file.write_bytes(text.encode("latin-1"))
    assert main(["own:mlp", "--json", str(file), "--keep"]) == 1
    line, *rest = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error[P0009]: `{file}` has no rows of an earlier run: {reason}")
    assert rest[0].startswith("  help: name another file, or leave out --keep")
    assert len(rest) == 2
    assert file.read_bytes() == text.encode("latin-1")


@pytest.mark.parametrize("name", [".", "a" * 300, "file/rows.json"])
def test_files_that_cannot_be_read(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["own:mlp", "--json", str(tmp_path / name), "--keep"]) == 1
    assert capsys.readouterr().err.startswith("error[P0001]")


def test_kept_rows_do_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    file, out = tmp_path / "rows.json", tmp_path / "page.md"
    file.write_text(json.dumps([GOOD.data()]))
    assert main(["own:mlp", "--json", str(file), "--keep", "--markdown", str(out)]) == 0
    assert "matched" in capsys.readouterr().out
    assert "| mlp | 784-256-128-10 with softmax | 1 | matched | 0 | 2e-07 | 5 | 30 | 2.5 |" in (
        out.read_text()
    )


def test_a_model_runs_with_the_batches_of_its_entry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the command line names one."""
    monkeypatch.setenv("COLUMNS", "200")  # narrow tables break names
    file = tmp_path / "rows.json"
    lenet = replace(GOOD, name="own:lenet5")
    file.write_text(json.dumps([replace(lenet, batch=batch).data() for batch in (1, 3, 7)]))
    kept = ["own:lenet5", "--json", str(file), "--keep"]
    for options, batches in ((["--batch", "7"], [7]), ([], [1, 3])):
        assert main([*kept, *options]) == 0
        shown = re.findall(r"own:lenet5\W+(\d+)\W+matched", capsys.readouterr().out)
        assert [int(batch) for batch in shown] == batches


def test_the_page_of_some_rows() -> None:
    text = page([GOOD, HOST, WRONG, REFUSED, BUG, LATE], {"torch": "9.9", "timm": "1.2"})
    assert COMMAND in text
    assert "This run had torch 9.9, timm 1.2," in text
    compile_and_match = "models compile, 1 of them wholly for the device, and 2 match torch.\n"
    assert f"\n* In `float` with batch 1, 2 of 4 {compile_and_match}" in text
    assert "\n* In `mixed` with batch 1, 0 of 1 models compile, 0 of them" in text
    assert "\n* In `mixed` with batch 3, 1 of 1 models compile, 1 of them" in text
    assert "| x |  | 1 | matched | 2 Conv, 1 Abs |" in text
    assert "| own:lenet5 | 3 | mixed | differs | the error is 0.5 |" in text
    assert "| transformers:X | 1 | mixed | P0101 | a \\| b |" in text
    not_run = re.findall("^  Not run: (`own:[^,]*`), (`own:[^,]*`), ", text, re.M)
    assert not_run == [
        ("`own:residual_mlp`", "`own:bigram`"),  # float
        ("`own:mlp`", "`own:residual_mlp`"),  # mixed, batch 1
        ("`own:resnet20`", "`own:unet`"),  # mixed, batch 3: only models that run with it
    ]
    rows = [GOOD, replace(GOOD, batch=3), WRONG, HOST, BUG]
    assert page(rows[::-1], {}) == page(rows, {})
    sections = re.findall(r"\*\*(.*)\*\*", text)
    assert sections == ["own", "timm", "transformers", "me.x", "own", "transformers"]
    assert reason_lines([GOOD, REFUSED]) == ["transformers:X batch 1 mixed: P0101: a | b"]


def test_the_page_says_where_the_cycles_go() -> None:
    """Only models with a program have a row, and only those without host operators a factor."""
    hosted, mixed = replace(TIMED, name="timm:x", host={"Abs": 1}), replace(TIMED, mode="mixed")
    text = page([TIMED, hosted, BUG, mixed, WRONG], {})
    head, *sections = text.split("## Where the cycles go in ")
    assert [section.split()[0] for section in sections] == ["`float`", "`mixed`"]
    rows = [line for line in sections[0].splitlines() if line.startswith("|")]
    assert rows == [
        "| model | batch | MAU bound | DRAM bound | vector bound | cycles | x bound | products | "
        "switches | transfers | elementwise | waits |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| own:mlp | 1 | 12 | 7 | 5 | 30 | 2.5 | 50 % | 20 % | 10 % | 0 % | 20 % |",
        "| timm:x | 1 | 12 | 7 | 5 | 30 | - | 50 % | 20 % | 10 % | 0 % | 20 % |",
    ]
    assert "| MAU bound, DRAM bound, vector bound | the times" in head
    assert "Where the cycles go" not in page([BUG], {})
    assert (cycle_table([TIMED, BUG]).row_count, cycle_table([BUG]).row_count) == (1, 0)


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
    """It has a row for each model and batch, or says that it was not run."""
    text = (Path(pycompiler.__file__).parents[1] / "docs" / "models.md").read_text()
    assert COMMAND in text
    for mode in MODES:
        left: set[tuple[str, str]] = set()
        for batch, line in re.findall(
            rf"^\* In `{mode}` with batch (\d+), .*\n(?:  Not run: (.*))?", text, re.M
        ):
            left |= {(name, batch) for name in re.findall(r"`(.*?)`", line)}
        section = text.split(f"## Models in `{mode}`")[1].split("\n## ")[0]
        found = []
        for part in section.split("\n**")[1:]:
            library, _, rest = part.partition("**")
            rows = re.findall(r"^\| ([\w.]+) \| [^|]* \| (\d+) \|", rest, re.M)
            found += [(f"{library}:{name}", batch) for name, batch in rows]
        wanted = [(name, str(b)) for name, entry in CATALOGUE.items() for b in entry.batches]
        assert found == [pair for pair in wanted if pair not in left]
