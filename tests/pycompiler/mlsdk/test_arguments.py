"""What compile takes: options, arguments, inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from compiling import context, report_of

from pycompiler.errors import PycompilerError
from pycompiler.options import OPTIONS

Tensors = dict[str, torch.Tensor]


def refused(options: Any, tmp_path: Path) -> PycompilerError:
    with pytest.raises(PycompilerError) as caught:
        context("pfvm:cpu").compile(lambda d: d, {"x": torch.ones(2)}, tmp_path, options=options)
    return caught.value


def test_unknown_options_name_the_legal_ones(tmp_path: Path) -> None:
    problem = refused({"flaot_dtype": "float"}, tmp_path / "out")
    assert problem.code == "P0701"
    assert all(key in problem.help for key in OPTIONS)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("float_dtype", "half"),
        ("float_dtype", None),
        ("strict", 1),
        ("scheduler", "best"),
        ("sram_budget", 2),
        ("num_threads", 0),
        ("backprop", "yes"),
        ("envs", 3),
        ("option_json", 3),
    ],
)
def test_illegal_values_name_the_legal_ones(tmp_path: Path, key: str, value: object) -> None:
    problem = refused({key: value}, tmp_path / "out")
    assert problem.code == "P0702"
    assert OPTIONS[key].legal in problem.help


def test_options_without_effect_are_noted(tmp_path: Path) -> None:
    options = {"float_dtype": "mixed", "simulation_mode": "fake", "envs": {"A": "1"}}
    context("emu2:mini").compile(
        lambda d: {"out": d["x"] * 2.0},
        {"x": torch.ones(2)},
        tmp_path / "out",
        options=options,
        num_compiler_threads=4,
        training=False,
        io_spec_constraints={},
        optimizers=[],
        export_kwargs={},
        quiet=True,
    )
    report = report_of(tmp_path / "out")
    notes = " ".join(report["notes"])
    for name in ("simulation_mode", "envs", "num_compiler_threads", "training"):
        assert f"`{name}` has no effect yet" in notes
    assert "float_dtype" not in notes
    assert report["options"] == options


@pytest.mark.parametrize(
    "wrong",
    [
        {"options": ["float"]},
        {"options": "float"},
        {"cache_options": "folder"},
        {"num_compiler_threads": "many"},
        {"io_spec_constraints": [1]},
        {"export_kwargs": [1]},
    ],
)
def test_arguments_of_other_types(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(PycompilerError) as caught:
        context("pfvm:cpu").compile(lambda d: d, {"x": torch.ones(2)}, tmp_path / "out", **wrong)
    assert caught.value.code == "P0704"
    assert next(iter(wrong)) in caught.value.message


def test_inputs_must_be_a_dict_of_tensors(tmp_path: Path) -> None:
    for inputs in ([torch.ones(2)], None, {"x": 1.0}):
        with pytest.raises(PycompilerError) as caught:
            context("pfvm:cpu").compile(lambda d: d, inputs, tmp_path / "out")
        assert caught.value.code == "P0104"


def test_optimizers_are_refused(tmp_path: Path) -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    with pytest.raises(PycompilerError) as caught:
        context().compile(
            lambda d: {"out": d["x"] * parameter},
            {"x": torch.ones(2)},
            tmp_path / "out",
            optimizers=[torch.optim.SGD([parameter], 0.1)],
        )
    assert caught.value.code == "P0703"
