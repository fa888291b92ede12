"""The arguments of compile: options, other settings, inputs."""

from __future__ import annotations

import copy
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import context, report_of

from pycompiler.errors import OptionWarning, PycompilerError
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


def test_options_without_effect_are_one_warning(tmp_path: Path) -> None:
    options = {"float_dtype": "mixed", "envs": {"A": "1"}}

    def compile_(**arguments: Any) -> None:
        context("emu2:mini").compile(
            lambda d: {"out": d["x"] * 2.0},
            {"x": torch.ones(2)},
            tmp_path / "out",
            io_spec_constraints={},
            optimizers=[],
            export_kwargs={},
            quiet=True,
            **arguments,
        )

    with pytest.warns(OptionWarning) as caught:
        compile_(options=options, num_compiler_threads=4, training=False)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    assert "`envs` (" in message
    assert "float_dtype" not in message
    report = report_of(tmp_path / "out")
    assert message in report["notes"]
    assert report["options"] == {**options, "num_threads": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_(options={"simulation_mode": "fake", "backprop": False}, num_compiler_threads=-1)
    with pytest.raises(PycompilerError, match="backprop") as refusal:
        compile_(options={"backprop": True})
    assert refusal.value.code == "P0704"


@pytest.mark.parametrize(
    "wrong",
    [
        {"options": ["float"]},
        {"options": "float"},
        {"cache_options": "folder"},
        {"num_compiler_threads": "many"},
        {"training": "yes"},
        {"io_spec_constraints": [1]},
        {"export_kwargs": [1]},
        {"export_kwargs": {"use_fx2onxx": True}},
    ],
)
def test_arguments_of_other_types(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(PycompilerError) as caught:
        context("pfvm:cpu").compile(lambda d: d, {"x": torch.ones(2)}, tmp_path / "out", **wrong)
    assert caught.value.code == "P0704"
    assert next(iter(wrong)) in caught.value.message


def test_a_folder_is_a_path(tmp_path: Path) -> None:
    shared = context("pfvm:cpu")
    for wrong in (None, 3, b"out"):
        with pytest.raises(PycompilerError, match=r"P0704.*`codegen_dir`"):
            shared.compile(lambda d: d, {"x": torch.ones(2)}, wrong)  # type: ignore[arg-type]
        with pytest.raises(PycompilerError, match=r"P0704.*`codegen_dir`"):
            shared.load_codegen_dir(wrong)  # type: ignore[arg-type]


def test_inputs_must_be_a_dict_of_tensors(tmp_path: Path) -> None:
    for inputs in ([torch.ones(2)], None, {"x": 1.0}):
        with pytest.raises(PycompilerError) as caught:
            context("pfvm:cpu").compile(lambda d: d, inputs, tmp_path / "out")
        assert caught.value.code == "P0104"


def test_what_the_exporter_gets(tmp_path: Path) -> None:
    """MLSDK's own arguments change nothing, those of torch's exporter reach it."""

    def opset(**given: Any) -> int:
        sample = {"x": torch.ones(2)}
        context("pfvm:cpu").compile(
            lambda d: {"y": d["x"] * 2}, sample, tmp_path / "out", export_kwargs=given
        )
        return next(o.version for o in onnx.load(tmp_path / "out/model.onnx").opset_import)

    assert opset(use_fx2onnx=True, verbose=True) == opset(use_fx2onnx=False)
    assert opset(opset_version=19) == 19
    with pytest.raises(PycompilerError, match="P0107"):
        opset(dynamo=True)


@pytest.mark.parametrize(
    ("given", "others"),
    [
        (np.arange(3, dtype=np.float32), [np.ones(3, np.float32), np.arange(3), np.zeros(4)]),
        (np.array([1, np.nan, 2]), [np.array([1, np.nan, 3])]),
        (np.float32(2), [np.float32(3), 2]),
        (2, [3, 2.0, True, None]),
        (0.0, [-0.0, 1.0, "0"]),
        (math.nan, [0.0]),
    ],
)
def test_constants_must_be_repeated(tmp_path: Path, given: Any, others: list[Any]) -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    function = lambda x, c: torch.as_tensor(c) * x  # noqa: E731
    run = context("pfvm:cpu").compile_automap(function, (x, given), None, tmp_path / "out")
    wanted, again = function(x, given), copy.copy(given)
    assert torch.equal(run(x, again).cpu().nan_to_num(7), wanted.nan_to_num(7))
    if isinstance(given, np.ndarray):
        given += 1  # the compiled function keeps what it was given
        others = [given.copy(), *others]
    for other in others:
        with pytest.raises(PycompilerError, match="at compile time") as caught:
            run(x, other)
        assert caught.value.code == "P0603"
