"""The option dictionary of ``Context.compile`` and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import error
from .layers.products.roles import PRECISIONS
from .layout_spec import LayoutSpec, read_gemm_layout_spec, read_layout_spec


@dataclass(frozen=True)
class Option:
    """One key: how its value is checked, what is legal, whether it has an effect yet."""

    legal: str
    accepts: Callable[[Any], bool]
    default: Any
    effective: bool = False


def _one_of(*names: str) -> tuple[str, Callable[[Any], bool]]:
    shown = " or ".join((", ".join(map(repr, names[:-1])), repr(names[-1])))
    return shown, lambda value: isinstance(value, str) and value in names


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_path(value: Any) -> bool:
    return isinstance(value, str) or hasattr(value, "__fspath__")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not _is_bool(value) and 0 <= value <= 1


def _is_environment(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(k, str) for k in value)


def _is_overrides(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str)
        and isinstance(facts, Mapping)
        and all(isinstance(k, str) and isinstance(v, str) for k, v in facts.items())
        for name, facts in value.items()
    )


OPTIONS: dict[str, Option] = {
    "float_dtype": Option(*_one_of("float", "mixed"), "float", True),
    "gemm_precision": Option(*_one_of("auto", *PRECISIONS), "auto", True),
    "strict": Option("True or False", _is_bool, False, True),
    "option_json": Option("a path", _is_path, None),
    "backprop": Option("True or False", _is_bool, False),
    "envs": Option("a dict of environment variables", _is_environment, None),
    "scheduler": Option(
        *_one_of("always_from_dram", "reuse_consecutive", "spill_opt", "auto_recompute_sa"),
        "reuse_consecutive",
        True,
    ),
    "simulation_mode": Option(*_one_of("fake", "default", "fast", "best", "full"), "default"),
    "time_slice": Option(*_one_of("auto", "fit", "off"), "auto", True),
    "layout_planner": Option(*_one_of("lpz", "first_arrival"), "lpz", True),
    "layout_spec": Option("a path", _is_path, None, True),
    "gemm_layout_spec": Option("a path", _is_path, None, True),
    "sram_budget": Option("a number from 0 to 1", _is_share, 1.0, True),
    "overrides": Option("a dict of value name to decisions", _is_overrides, None, True),
    "sa_expected_run_iters": Option("a count of at least 1", _is_count, None),
    "out_onnx": Option("a path", _is_path, None, True),
    "num_threads": Option("a count of at least 1", _is_count, None),
}


@dataclass(frozen=True)
class Options:
    """Checked options. ``given`` is what the caller wrote; ``notes`` says what has no effect."""

    float_dtype: str = "float"
    gemm_precision: str = "auto"
    strict: bool = False
    scheduler: str = "reuse_consecutive"
    sram_budget: float = 1.0
    time_slice: str = "auto"
    layout_planner: str = "lpz"
    layout_specs: tuple[LayoutSpec, ...] = ()
    overrides: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: layouts of inputs and outputs that ``io_spec_constraints`` asks for
    io_layouts: Mapping[str, str] = field(default_factory=dict)
    out_onnx: Path | None = None
    given: tuple[tuple[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


def parse_options(options: Mapping[str, Any] | None) -> Options:
    """Check ``options``. P0701 for an unknown key, P0702 for a value that is not legal.

    P0310 for a file of forced layouts that is none.
    """
    given = dict(options or {})
    notes: list[str] = []
    for key, value in given.items():
        if key not in OPTIONS:
            raise error("P0701", key=key, legal=", ".join(OPTIONS))
        option = OPTIONS[key]
        unset = value is None and option.default is None
        if not unset and not option.accepts(value):
            raise error("P0702", key=key, value=repr(value), legal=option.legal)
        if not option.effective and value != option.default:
            notes.append(f"option `{key}` has no effect yet")

    def chosen(key: str) -> Any:
        return given.get(key, OPTIONS[key].default)

    scheduler = chosen("scheduler")
    if scheduler == "auto_recompute_sa":
        notes.append("scheduler `auto_recompute_sa` is not there yet: `spill_opt` takes its place")
        scheduler = "spill_opt"
    specs: list[LayoutSpec] = []
    if chosen("layout_spec") is not None:
        specs += read_layout_spec(chosen("layout_spec"))
    if chosen("gemm_layout_spec") is not None:
        specs += read_gemm_layout_spec(chosen("gemm_layout_spec"))
    return Options(
        chosen("float_dtype"),
        chosen("gemm_precision"),
        chosen("strict"),
        scheduler,
        float(chosen("sram_budget")),
        chosen("time_slice"),
        chosen("layout_planner"),
        tuple(specs),
        {name: dict(facts) for name, facts in (chosen("overrides") or {}).items()},
        out_onnx=None if chosen("out_onnx") is None else Path(chosen("out_onnx")),
        given=tuple(given.items()),
        notes=tuple(notes),
    )
