"""The options of ``Context.compile`` and of the command line.

A field of :class:`Options` is the one declaration of an option. The checks, the cache key, the help
of ``pycompiler compile`` and ``docs/options.md`` are made from these fields. To add an option, add
a field, and read it where it acts.
"""

# The fields of a dataclass are made by a function: `option`.
# ruff: noqa: RUF009

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from emu2.near import did_you_mean

from .emit.segments import EMITS, MERGED
from .errors import error
from .executors import CLUSTER, EXECUTORS, PROCESSES
from .layers.products.roles import PRECISIONS
from .layout_spec import (
    LayoutSpec,
    OperandSpec,
    ProductSpec,
    read_gemm_layout_spec,
    read_layout_spec,
)
from .pfvm.update_order import IMMEDIATE, LAST
from .planners.dtype import product_precisions
from .planners.layout import PLANNERS
from .planners.rewrites import FUSIONS, REWRITES
from .presets.read import FIND_BEST, FOLDER, SA_STEPS, names, read_preset, variable, wants_best
from .scheduler.annealing.scheduler import NAME
from .scheduler.schedulers import SCHEDULERS
from .simulation.settings import MODES

#: The scheduler that searches.
ANNEALED = NAME

#: Options that scripts give by the names of earlier versions. The new name wins.
RENAMED = {"tune_seconds": "search_seconds", "sa_seconds": "search_seconds"}

#: The values of the option `tune`.
OFF, PRESETS, ALL = "off", "presets", "all"


@dataclass(frozen=True)
class Option:
    """What is known of an option.

    An option that ``decides`` can change what a compile makes, so it is part of the cache key.
    """

    default: Any
    legal: str
    accepts: Callable[[Any], bool]
    doc: str
    decides: bool
    read: Callable[[Any], Any]

    @property
    def optional(self) -> bool:
        """Whether None stands for the default."""
        return self.default in (None, (), {})


_Values = tuple[str, Callable[[Any], bool]]
_OPTION = "option"
_DECIDES_NOTHING = {"decides": False}


def option(
    default: Any,
    values: _Values,
    doc: str,
    *,
    decides: bool = True,
    read: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """Declare an option as a field of :class:`Options`.

    ``values`` names the legal values and checks one. ``read`` makes of a legal value what the
    passes read.
    """
    facts = Option(default, *values, doc, decides, read)
    metadata = {_OPTION: facts, **(_DECIDES_NOTHING if not decides else {})}
    return field(default_factory=lambda: default, metadata=metadata)


def _one_of(*names: str) -> _Values:
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


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not _is_bool(value) and 0 < value < float("inf")


def _is_executor(value: Any) -> bool:
    known = isinstance(value, str) and (value in EXECUTORS or value.startswith(CLUSTER))
    return known or isinstance(value, Executor)


def _names_of(value: Any) -> frozenset[str]:
    return frozenset(filter(None, value.split(",") if isinstance(value, str) else value))


def _are_rewrites(value: Any) -> bool:
    known = {row.name for row in REWRITES if not row.needed}
    given = isinstance(value, str | tuple | list | frozenset | set)
    return given and all(isinstance(one, str) and one in known for one in _names_of(value))


def _is_environment(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(k, str) for k in value)


def _is_overrides(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str)
        and isinstance(facts, Mapping)
        and all(isinstance(k, str) and isinstance(v, str) for k, v in facts.items())
        for name, facts in value.items()
    )


def _copied(value: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    return {name: dict(facts) for name, facts in value.items()}


_FLAG: _Values = "True or False", _is_bool
_PATH: _Values = "a path", _is_path
_COUNT: _Values = "a count of at least 1", _is_count
_SHARE: _Values = "a number from 0 to 1", _is_share
_SECONDS: _Values = "a number of seconds above 0", _is_seconds
_EXECUTOR: _Values = (
    f"{', '.join(map(repr, EXECUTORS))}, '{CLUSTER}HOST:PORT' or a concurrent.futures.Executor",
    _is_executor,
)
_REWRITES: _Values = (
    f"some of {', '.join(row.name for row in REWRITES if not row.needed)}, with commas",
    _are_rewrites,
)
_ENVIRONMENT: _Values = "a dict of environment variables", _is_environment
_OVERRIDES: _Values = "a dict of value name to decisions", _is_overrides


@dataclass(frozen=True)
class Options:
    """Checked options, as the passes read them. Every field but those at the end is an option."""

    float_dtype: str = option(
        "float",
        _one_of("float", "mixed"),
        "dtype of float32 values on the device: `mixed` keeps those around matrix products in Half",
    )
    gemm_precision: str = option(
        "auto",
        _one_of("auto", *PRECISIONS),
        "one precision for all matrix products; `auto` follows `float_dtype`",
    )
    compare_float: bool = option(
        True,
        _FLAG,
        "plan a small model in `float` too if `mixed` is asked for, and take the program with "
        "fewer cycles",
    )
    fuse_elementwise: bool = option(
        True,
        _FLAG,
        "join chains of elementwise operators, and products with the sums that read them; without "
        "it, each stays an operator of its own",
    )
    skip_rewrites: frozenset[str] = option(
        (),
        _REWRITES,
        "rewrites to leave out; `pycompiler rewrites` says what each does",
        read=_names_of,
    )
    strict: bool = option(
        False, _FLAG, "make it an error (P0303) if an operator must run on the host"
    )
    scheduler: str = option(
        "spill_opt",
        _one_of(*SCHEDULERS, ANNEALED),
        "which values stay in LM between operators; `auto_recompute_sa` searches",
    )
    update: str = option(
        LAST,
        _one_of(LAST, IMMEDIATE),
        "when a training step computes new values: where the function does, which is behind the "
        "backward pass, or each as soon as its gradient exists, so that its memory is free again",
    )
    time_slice: str = option(
        "auto",
        _one_of("auto", "fit", "off"),
        "cut values that are too large into time slices: where that is faster too, only where they "
        "do not fit, or never",
    )
    layout_planner: str = option(
        "lpz",
        _one_of(*PLANNERS),
        "how layouts are chosen: by estimated steps, or the first that fits; "
        "`lpz:` and a family gives the largest values that family, if they can have it",
    )
    layout_spec: tuple[OperandSpec, ...] = option(
        (), _PATH, "file (JSON) of forced layouts by operator and shape", read=read_layout_spec
    )
    gemm_layout_spec: tuple[ProductSpec, ...] = option(
        (), _PATH, "file (JSON) of forced layouts of matrix products", read=read_gemm_layout_spec
    )
    sram_budget: float = option(1.0, _SHARE, "fraction of LM that a compile may use", read=float)
    emit: str = option(
        MERGED,
        _one_of(*EMITS),
        "how nodes become one program: one after the other, or merged, so that lines of one node "
        "fill the steps in which another waits or leaves slots unused",
    )
    tune: str = option(
        OFF,
        _one_of(OFF, PRESETS, ALL),
        "compile with several options and keep the program with the fewest cycles: those of the "
        "presets, or strategy families too, which may change the order of sums",
    )
    search_seconds: float | None = option(
        None,
        _SECONDS,
        "seconds for all searches together: `tune` beside its first compile, and "
        "`auto_recompute_sa`, which goes on for half of them; then the best so far is taken. With "
        "them, two compiles may differ",
        read=float,
    )
    overrides: Mapping[str, Mapping[str, str]] = option(
        {}, _OVERRIDES, "decisions of the planners for single values, by name", read=_copied
    )
    out_onnx: Path | None = option(
        None,
        _PATH,
        "write the model, with its composites written out, to this file",
        decides=False,
        read=Path,
    )
    trace_compile: Path | None = option(
        None,
        _PATH,
        "write what the compile takes, by pass, step and operator, to files in this folder",
        decides=False,
        read=Path,
    )
    option_json: Any = option(
        None,
        _PATH,
        f"preset of options: {', '.join(f'`{name}`' for name in names())}, or a JSON file; options "
        "that are given too win over it",
        decides=False,
    )
    envs: Mapping[str, Any] | None = option(
        None,
        _ENVIRONMENT,
        f"environment of a compile; `{FOLDER}` is the folder of presets, `{FIND_BEST}` is the same "
        f"as `tune=all`, `{SA_STEPS}` stands for `sa_expected_run_iters`, and no pass reads others",
        decides=False,
    )
    simulation_mode: str | None = option(
        None,
        _one_of(*MODES),
        "simulate every node, from an estimate (`fake`) to all its settings (`full`); "
        "`auto_recompute_sa` takes `default` if none is given",
    )
    sa_expected_run_iters: int | None = option(
        None,
        _COUNT,
        "plans that `auto_recompute_sa` tries; without it, a number that follows from the model",
    )
    sa_seed: int = option(1, _COUNT, "seed of `auto_recompute_sa`")
    num_threads: int | None = option(
        None, _COUNT, "how many simulations run at once", decides=False
    )
    executor: Any = option(
        PROCESSES,
        _EXECUTOR,
        "what runs the compiles of `tune`, and simulations if there are several at once: "
        "processes, threads, a Dask cluster",
        decides=False,
    )
    backprop: bool = option(
        False,
        _FLAG,
        "let the compiler add the backward pass, for the argument `optimizers`",
        decides=False,
    )

    #: layouts of inputs and outputs that ``io_spec_constraints`` asks for
    io_layouts: Mapping[str, str] = field(default_factory=dict)
    #: what was given and changes nothing, each with the reason
    ineffective: tuple[str, ...] = field(default=(), metadata=_DECIDES_NOTHING)
    #: what was given by a name of an earlier version
    renamed: tuple[str, ...] = field(default=(), metadata=_DECIDES_NOTHING)

    @property
    def precisions(self) -> frozenset[str]:
        """The precisions in which products may compute."""
        return product_precisions(self.float_dtype, self.gemm_precision, self.overrides)

    @property
    def skipped(self) -> frozenset[str]:
        """The rewrites that are left out."""
        return frozenset(self.skip_rewrites) | (frozenset() if self.fuse_elementwise else FUSIONS)

    @property
    def layout_specs(self) -> tuple[LayoutSpec, ...]:
        """The entries of both files of forced layouts."""
        return (*self.layout_spec, *self.gemm_layout_spec)


#: The options by name, in the order of their declaration.
OPTIONS: dict[str, Option] = {
    one.name: one.metadata[_OPTION] for one in fields(Options) if _OPTION in one.metadata
}


def parse_options(options: Mapping[str, Any] | None) -> Options:
    """Check ``options``.

    P0701 for an unknown key, P0702 for a value that is not legal; P0001 and P0310 for a file of
    forced layouts that cannot be read, P0001 and P0706 for a preset.
    """
    given = _with_steps(with_preset(dict(options or {})))
    values: dict[str, Any] = {}
    ineffective: list[str] = []
    old = {key: value for key, value in given.items() if key in RENAMED}
    given = {RENAMED[key]: value for key, value in old.items()} | {
        key: value for key, value in given.items() if key not in old
    }
    for key, value in given.items():
        if key not in OPTIONS:
            near = did_you_mean(key, OPTIONS)
            raise error("P0701", key=key, near=near, legal=", ".join(OPTIONS))
        known = OPTIONS[key]
        if value is None and known.optional:
            continue
        if not known.accepts(value):
            raise error("P0702", key=key, value=repr(value), legal=known.legal)
        if key == "envs" and (others := sorted(value.keys() - {FOLDER, FIND_BEST, SA_STEPS})):
            ineffective.append(f"`envs` (no pass reads {', '.join(others)})")
        values[key] = known.read(value)
    if "tune" not in values and wants_best(values.get("envs")):
        values["tune"] = ALL
    renamed = tuple(f"`{key}` is `{RENAMED[key]}`" for key in old)
    return Options(**values, ineffective=tuple(ineffective), renamed=renamed)


def with_preset(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options with those of the preset that they name; given ones win."""
    name, environment = given.get("option_json"), given.get("envs")
    if name is None or not _is_path(name):
        return given
    preset = read_preset(name, environment if _is_environment(environment) else None)
    return {**preset.options, **given}


def _with_steps(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options with the number of plans that the environment names, if none is given."""
    name, environment = "sa_expected_run_iters", given.get("envs")
    wanted = variable(SA_STEPS, environment if _is_environment(environment) else None)
    if given.get("scheduler") != ANNEALED or given.get(name) is not None or wanted is None:
        return given
    text = str(wanted)
    return {**given, name: int(text) if text.isascii() and text.isdecimal() else wanted}


def decisive(options: Options) -> dict[str, Any]:
    """Return every field that may change what a compile makes: what the cache key must cover.

    A field is one of them unless its declaration says that it is not.
    """
    return {
        one.name: getattr(options, one.name)
        for one in fields(options)
        if one.metadata.get("decides", True)
    }
