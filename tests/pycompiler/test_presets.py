"""Presets: how they are found, what they switch, and that none of them changes a bit."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compiling import compiled, context, model_of, report_of, run
from random_models import random_model

from pycompiler.cache import cache_key
from pycompiler.errors import PycompilerError
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.presets.read import (
    FOLDER,
    OWN,
    environment_facts,
    names,
    read_preset,
    same_bits,
)
from pycompiler.presets.variables import KNOWN

PAGE = OWN.parents[1] / "docs" / "compiler" / "presets.md"


def test_every_preset_is_legal_and_on_the_page() -> None:
    assert names() == ["O0", "O1", "O2", "O3", "O4", "debug", "dev"]
    page = PAGE.read_text()
    for name in names():
        preset = read_preset(name)
        assert preset.doc
        chosen = parse_options({"option_json": name})
        for key, value in preset.options.items():
            assert getattr(chosen, key) == value
        shown = ", ".join(f"`{key}={value}`" for key, value in preset.options.items())
        assert f"| `{name}` | {shown} |" in page


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a preset `mine` and another `O1`, named by the environment."""
    (tmp_path / "mine.json").write_text('{"float_dtype": "mixed", "sram_budget": 0.5}')
    (tmp_path / "O1.json").write_text('{"doc": "another one", "scheduler": "spill_opt"}')
    monkeypatch.setenv(FOLDER, str(tmp_path))
    return tmp_path


def test_a_preset_is_found_by_name_or_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ("mine", "mine.json", folder / "mine.json", str(folder / "mine.json")):
        assert parse_options({"option_json": given}).float_dtype == "mixed"
    # The folder wins over the package.
    assert parse_options({"option_json": "O1"}).scheduler == "spill_opt"
    assert parse_options({"option_json": "O0"}).scheduler == "always_from_dram"
    # The environment of the compile wins over that of the process.
    monkeypatch.setenv(FOLDER, "/nowhere")
    assert parse_options({"option_json": "O1"}).scheduler == "reuse_consecutive"
    own = {"option_json": "O1", "envs": {FOLDER: str(folder)}}
    assert parse_options(own).scheduler == "spill_opt"
    # A path of another installation means the preset of this name.
    assert parse_options({"option_json": "/other/presets/O2.json"}).scheduler == "spill_opt"


def test_options_that_are_given_win() -> None:
    given = parse_options({"option_json": "O3", "scheduler": "always_from_dram"})
    assert (given.scheduler, given.emit) == ("always_from_dram", "l1merge")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "no such file"),
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "no dict"),
        ('"O1"', "no dict"),
        ('{"option_json": "O1"}', "another preset"),
    ],
)
def test_what_is_no_preset_is_refused(text: str | None, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(PycompilerError) as caught:
        parse_options({"option_json": path})
    assert caught.value.code == "P0706"
    assert reason in caught.value.message


@pytest.mark.parametrize(("text", "code"), [('{"x": 1}', "P0701"), ('{"emit": "x"}', "P0702")])
def test_options_of_a_preset_are_checked(text: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text)
    with pytest.raises(PycompilerError) as caught:
        parse_options({"option_json": path})
    assert caught.value.code == code


def test_the_cache_key_is_that_of_the_options() -> None:
    model, target = model_of([("Relu", ["x"], "y")], {"x": (4,)}, ["y"]), load_target("mini")

    def key(options: dict[str, Any]) -> str:
        return cache_key(model, target, parse_options(options))

    keys = {name: key({"option_json": name}) for name in names()}
    for name, found in keys.items():
        assert found == key(dict(read_preset(name).options))
    levels = ("O0", "O1", "O2", "O3", "O4")
    assert len({keys[name] for name in levels}) == len(levels)


@pytest.mark.parametrize("seed", range(4))
def test_all_presets_give_the_same_bits(seed: int) -> None:
    model, inputs = random_model(random.Random(1000 + seed))
    mode = ("float", "mixed")[seed % 2]
    results, cycles = {}, {}
    for name in same_bits():
        made, report = compiled(model, option_json=name, float_dtype=mode)
        results[name], cycles[name] = run(made, inputs), report["cycles"]
    for name, found in results.items():
        for key, wanted in results["O0"].items():
            assert np.array_equal(wanted, found[key], equal_nan=True), (name, key)
    assert cycles["O4"] <= cycles["O3"] <= min(cycles["O1"], cycles["O2"])


def test_the_report_lists_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEGEN_DUMP_VSM", "1")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / "own.json").write_text(json.dumps({"emit": "concat"}))

    def compile_with(out: str, **options: Any) -> dict[str, Any]:
        x = {"x": torch.ones(4)}
        with pytest.warns() as caught:
            context("emu2:mini").compile(
                lambda d: {"y": -d["x"]}, x, tmp_path / out, options={"envs": {"A": "1"}, **options}
            )
        assert any("A" in str(warning.message) for warning in caught)
        found: dict[str, Any] = report_of(tmp_path / out)["environment"]
        return found

    ignored = ["A", "CODEGEN_DUMP_VSM"]
    found = compile_with("one", option_json="own")
    assert found == {"used": {FOLDER: str(tmp_path)}, "ignored": ignored}
    assert compile_with("two") == {"used": {}, "ignored": [*ignored, FOLDER]}


@pytest.mark.parametrize("name", ["CODEGEN_SA_STEP", "MNCORE_FOO", "MLSDK_DEVICES", "PFVM_X"])
@pytest.mark.parametrize("given", ["process", "envs"])
def test_an_unknown_variable_is_refused(
    name: str, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if given == "process":
        monkeypatch.setenv(name, "1")
    options = {"envs": {name: "1"}} if given == "envs" else {}
    with pytest.raises(PycompilerError, match="P0710") as caught:
        context("pfvm:cpu").compile(
            lambda d: {"y": -d["x"]}, {"x": torch.ones(4)}, tmp_path, options=options
        )
    assert name in caught.value.message
    assert ("`CODEGEN_SA_STEPS`?" in caught.value.help) == (name == "CODEGEN_SA_STEP")


def test_the_page_lists_every_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All may be set. None of those without effect is called used, and the device is neither."""
    page = (Path(__file__).parents[2] / "docs" / "mlsdk_environment.md").read_text()
    assert {name for name in re.findall(r"`([A-Z0-9_]+)`", page) if name[-1] != "_"} == KNOWN
    for name in KNOWN:
        monkeypatch.setenv(name, "0")
    facts = environment_facts(None, preset=False)
    assert facts == {"used": {}, "ignored": sorted(KNOWN - {"MLSDK_DEVICE"})}
