"""Compiled models are clean under sanitized runs, and an output that is not written is found."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from compiling import compiled, model_of, tried
from random_functions import random_function
from random_models import random_model
from sanitizing import every_call_sanitized, findings

from pycompiler.frontend.export import export
from pycompiler.machine import load_target
from pycompiler.model_commands import commands
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction
from pycompiler.runtime.held_tensor import Held
from pycompiler.runtime.sanitized import undefined_outputs


def check(model, inputs, title: str, **options) -> None:
    result, _ = compiled(model, "mini", **options)
    plain = DeviceFunction(result.app, Board(load_target("mini")))
    expected = {name: held.values() for name, held in plain.run(inputs).items()}
    board = Board(load_target("mini"))
    board.findings = []
    outputs = DeviceFunction(result.app, board).run(inputs)
    assert findings(board, outputs) == [], title
    for name, held in outputs.items():
        np.testing.assert_array_equal(held.values(), expected[name], title)


@pytest.mark.parametrize("mode", ["float", "mixed"])
def test_random_models_are_clean(mode: str) -> None:
    options = {} if mode == "float" else {"float_dtype": "mixed"}
    for seed in range(tried(4)):
        model, inputs = random_model(random.Random(seed))
        check(model, inputs, f"model {seed} {mode}", **options)


def test_random_functions_are_clean() -> None:
    for seed in range(tried(1)):
        function, inputs = random_function(random.Random(seed))
        arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
        check(export(function, inputs), arrays, f"function {seed}")


def test_products_of_computed_values_are_clean() -> None:
    # The last rows of the second factor are padding, which nothing writes.
    draw = random.Random(5)
    for case in range(tried(3)):
        rows, inner, columns = (draw.randint(2, 11) for _ in range(3))
        shapes = {"x": (rows, inner), "y": (columns, inner)}
        nodes = [
            *(("Exp", ["x"], "a"), ("Exp", ["y"], "b"), ("Transpose", ["b"], "t")),
            ("MatMul", ["a", "t"], "z"),
        ]
        values = np.random.default_rng(case)
        inputs = {name: values.random(shape, np.float32) for name, shape in shapes.items()}
        for mode in ("float", "mixed"):
            model = model_of(nodes, shapes, ["z"])
            check(model, inputs, f"{rows} x {inner} x {columns} {mode}", float_dtype=mode)


def test_products_whose_last_terms_are_masked_are_clean() -> None:
    # The second block of 16 terms has two halves: the words behind them are cleared by `land`.
    shapes = {"x": (5, 18), "y": (9, 18)}
    nodes = [
        *(("Exp", ["x"], "a"), ("Exp", ["y"], "b"), ("Transpose", ["b"], "t")),
        ("MatMul", ["a", "t"], "z"),
    ]
    values = np.random.default_rng(3)
    inputs = {name: values.random(shape, np.float32) for name, shape in shapes.items()}
    check(model_of(nodes, shapes, ["z"]), inputs, "18 terms", float_dtype="mixed")


def test_elements_that_nothing_has_written_are_found() -> None:
    target = load_target("mini")
    model = model_of([("Relu", ["x"], "y")], {"x": (5, 7)}, ["y"])
    result, _ = compiled(model, "mini")
    board = Board(target)
    board.findings = []
    function = DeviceFunction(result.app, board)
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    outputs = function.run({"x": x})
    place = outputs["y"].place
    assert place is not None
    assert not place.undefined().any()
    # Another tensor of this order, in a room that nothing has written.
    other = place.moved(board.allocate(place.image.dram_words))
    assert other.undefined().shape == (5, 7)
    assert other.undefined().all()
    (found,) = undefined_outputs({"y": Held(place.type, place=other)})
    assert found.code == "P0610"
    assert "35 elements" in str(found)
    other.write(x)
    assert not other.undefined().any()


@pytest.mark.skipif("EMU2_SANITIZE" in os.environ, reason="the setting itself finds it, too")
def test_the_setting_of_the_tests_finds_what_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = model_of([("Relu", ["x"], "y")], {"x": (5, 7)}, ["y"])
    app = compiled(model, "mini")[0].app
    target, x = load_target("mini"), np.ones((5, 7), np.float32)
    with monkeypatch.context() as patch, every_call_sanitized(patch):
        DeviceFunction(app, Board(target)).run({"x": x})
    facts = target.assemble("nop\n", "empty.vsm").report()
    (segment,) = app.segments
    cost = {"steps": facts["steps"], "cycles": facts["cycles"]}
    empty = replace(segment, code="nop\n", relocations=(), **cost)
    idle = replace(app, segments=[empty])
    with (
        monkeypatch.context() as patch,
        pytest.raises(AssertionError, match="P0610"),
        every_call_sanitized(patch),
    ):
        DeviceFunction(idle, Board(target)).run({"x": x})


def test_the_command(tmp_path: Path) -> None:
    model = model_of([("Relu", ["x"], "y")], {"x": (5, 7)}, ["y"])
    onnx.save(model, tmp_path / "model.onnx")
    np.savez(tmp_path / "in.npz", x=np.ones((5, 7), np.float32))
    folder = str(tmp_path / "out")

    def call(*arguments: str):
        return CliRunner().invoke(commands, arguments)

    device = ("--device", "emu2:mini")
    assert call("compile", str(tmp_path / "model.onnx"), "-o", folder, *device).exit_code == 0
    run = ("run", folder, "-i", str(tmp_path / "in.npz"))
    done = call(*run, *device, "--sanitize")
    # Both streams: the first versions of click keep no other record of stderr.
    assert (done.exit_code, done.output) == (0, call(*run, *device).stdout)
    assert call(*run, "--device", "pfvm:cpu", "--sanitize").exit_code == 2
