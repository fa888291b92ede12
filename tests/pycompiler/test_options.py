"""The table of options: each declaration takes effect everywhere and in the cache key."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from compiling import model_of

import pycompiler
from pycompiler import cli, document_options, model_commands, options
from pycompiler.cache import cache_key
from pycompiler.errors import PycompilerError
from pycompiler.machine import load_target
from pycompiler.options import OPTIONS, Options, decisive, parse_options

MODEL = model_of([("Relu", ["x"], "y")], {"x": (4,)}, ["y"])


def key(found: Options) -> str:
    return cache_key(MODEL, load_target("mini"), found)


#: For every field of `Options`, a value other than its default.
OTHER: dict[str, Any] = {
    "float_dtype": "mixed",
    "gemm_precision": "half",
    "compare_float": False,
    "fuse_elementwise": False,
    "skip_rewrites": frozenset({"sum_products"}),
    "strict": True,
    "scheduler": "always_from_dram",
    "update": "immediate",
    "time_slice": "off",
    "layout_planner": "first_arrival",
    "layout_spec": ("entry",),
    "gemm_layout_spec": ("entry",),
    "sram_budget": 0.5,
    "emit": "concat",
    "tune": "all",
    "search_seconds": 5.0,
    "overrides": {"x": {"location": "DRAM"}},
    "out_onnx": Path("lowered.onnx"),
    "trace_compile": Path("traced"),
    "option_json": "O1.json",
    "envs": {"A": "1"},
    "simulation_mode": "best",
    "sa_expected_run_iters": 3,
    "sa_seed": 2,
    "num_threads": 2,
    "executor": "threads",
    "backprop": True,
    "io_layouts": {"x": "((4_PE:1))"},
    "ineffective": ("`envs`",),
    "renamed": ("`sa_seconds` is `search_seconds`",),
}
#: The fields that do not change the artefact.
FREE = {
    *("out_onnx", "trace_compile", "option_json", "envs"),
    *("num_threads", "executor", "backprop", "ineffective", "renamed"),
}


def test_every_field_is_in_the_key_unless_declared_otherwise() -> None:
    assert set(OTHER) == {one.name for one in fields(Options)}
    plain = Options()
    assert parse_options({}) == parse_options(None) == plain
    for name, value in OTHER.items():
        changed = replace(plain, **{name: value})
        assert changed != plain
        assert (key(changed) == key(plain)) == (name in FREE), name
    assert set(decisive(plain)) == set(OTHER) - FREE


def test_a_new_option_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class More(Options):
        unroll: int = options.option(1, options._COUNT, "how often loops are unrolled")

    declared = next(one for one in fields(More) if one.name == "unroll")
    monkeypatch.setitem(OPTIONS, "unroll", declared.metadata["option"])
    monkeypatch.setattr(options, "Options", More)
    assert parse_options({"unroll": 4}).unroll == 4  # type: ignore[attr-defined]
    for wrong, code in (({"unroll": 0}, "P0702"), ({"unrol": 4}, "P0701")):
        with pytest.raises(PycompilerError) as caught:
            parse_options(wrong)
        assert caught.value.code == code
        assert "count" in caught.value.help or "unroll" in caught.value.help
    assert key(parse_options({"unroll": 4})) != key(parse_options({}))
    assert "| `unroll` | a count of at least 1 | `1` | how often" in document_options.page()
    assert "unroll (a count of at least 1, default 1)" in model_commands._option_help()


def test_the_page_is_what_the_table_says() -> None:
    page = Path(pycompiler.__file__).parent.parent / "docs" / "options.md"
    assert page.read_text() == document_options.page(), "run `make manual`"


def test_the_command_lists_every_option() -> None:
    shown = CliRunner().invoke(cli.commands, ["compile", "--help"]).output
    for name, known in OPTIONS.items():
        assert f"  {name} (" in shown
        assert known.doc.split()[0] in shown


def test_defaults_are_legal() -> None:
    for known in OPTIONS.values():
        assert known.optional or known.accepts(known.default)
