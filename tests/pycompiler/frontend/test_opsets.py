"""Models of every opset: converted models compute the same, others run on the host by name."""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import operator_moving
import operator_picks
import operator_pointwise
import operator_sums
import pytest
from compiling import LONG, compiled, run, sampled
from node_suite.cases import cases_of
from onnx import TensorProto, helper, numpy_helper
from onnx.version_converter import convert_version
from operator_rows import Row

from pycompiler.errors import PycompilerError
from pycompiler.pfvm.composites import COMPOSITES
from pycompiler.pfvm.opsets import NEWEST, OLDEST, converted, opset_of
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

Arrays = Mapping[str, np.ndarray]
#: The oldest opset that onnxruntime runs.
FIRST = 7
#: The newest opset of onnxruntime, which is older than onnx's newest.
LAST = 22


def on_device(model: onnx.ModelProto, given: Arrays) -> tuple[Arrays, list[dict[str, Any]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result, report = compiled(model)
        return run(result, given), report["host_fallback"]


def compare(model: onnx.ModelProto, given: Arrays) -> list[dict[str, Any]]:
    """Compare with onnxruntime on the original model; return the operators on the host.

    The model is compiled as it is and optimised; the returned operators are those of the latter.
    """
    wanted = HostSession(model, "the model").run(given)
    rows: list[dict[str, Any]] = []
    simpler = optimise(model)
    # A compile converts the model too.
    same = simpler.SerializeToString() == converted(model).SerializeToString()
    for one in (model,) if same else (model, simpler):
        found, rows = on_device(one, given)
        for name, values in wanted.items():
            assert found[name].shape == values.shape
            np.testing.assert_allclose(
                found[name].astype(np.float64), values, rtol=1e-3, atol=1e-2, equal_nan=True
            )
    return rows


def at(model: onnx.ModelProto, version: int) -> onnx.ModelProto | None:
    """Return the model at another opset, if onnx can convert it."""
    try:
        made = convert_version(model, version)
        made.ir_version = 8
        onnx.checker.check_model(made)
    except Exception:  # the converter's errors have no common base class
        return None
    return made


ROWS: dict[str, Row] = {}
for row in (
    *operator_pointwise.ROWS,
    *operator_moving.ROWS,
    *operator_sums.ROWS,
    *operator_picks.ROWS,
):
    ROWS.setdefault(row.op, row)


@pytest.mark.parametrize("op", sampled([*ROWS], every=3))
def test_operator_at_older_and_newer_opsets(op: str) -> None:
    """Test every operator at the oldest possible opset, at 13, and at the newest.

    In `make test` a third of the operators take these opsets in turns.
    """
    row = ROWS[op]
    sample = row.sample(random.Random(1))
    model = row.model(sample)
    made = {version: at(model, version) for version in range(FIRST, OLDEST)}
    known = [version for version, one in made.items() if one is not None]
    made[LAST] = at(model, LAST) if row.opset <= LAST and row.host is None else None
    chosen = [v for v in sorted({*known[:1], *({13} & set(known)), LAST}) if made[v] is not None]
    if not LONG and chosen:
        chosen = [chosen[list(ROWS).index(op) % len(chosen)]]
    for version in chosen:
        assert compare(made[version], sample.given) == [], version


#: Forms that newer opsets lack: opset, operator, inputs, attributes, shape of the result.
_Old = tuple[int, str, Mapping[str, Any], dict[str, Any], tuple[int, ...]]
X = np.random.default_rng(3).standard_normal((2, 4, 6)).astype(np.float32)
IMAGE = np.random.default_rng(4).standard_normal((1, 2, 4, 4)).astype(np.float32)
_C = np.array([0.5, 2.0], np.float32)
OLD: list[_Old] = [
    (7, "Clip", {"x": X}, {"min": -0.5, "max": 0.5}, (2, 4, 6)),
    (10, "Clip", {"x": X}, {"min": 0.0}, (2, 4, 6)),
    (11, "Clip", {"x": X, "c": np.float32(-0.5)}, {}, (2, 4, 6)),
    (7, "Softmax", {"x": X}, {"axis": 1}, (2, 4, 6)),
    (11, "Softmax", {"x": X}, {}, (2, 4, 6)),
    (12, "LogSoftmax", {"x": X}, {"axis": 0}, (2, 4, 6)),
    (12, "Hardmax", {"x": X}, {"axis": 1}, (2, 4, 6)),
    (13, "Hardmax", {"x": X}, {"axis": 1}, (2, 4, 6)),
    (9, "Slice", {"x": X}, {"starts": [1, -3], "ends": [4, 6], "axes": [1, 2]}, (2, 3, 3)),
    (10, "Pad", {"x": X}, {"pads": [0, 1, 0, 0, 0, 2], "value": 1.5}, (2, 5, 8)),
    (7, "Squeeze", {"x": X[:1]}, {"axes": [0]}, (4, 6)),
    (11, "Squeeze", {"x": X[:1]}, {"axes": [-3]}, (4, 6)),
    (7, "Unsqueeze", {"x": X}, {"axes": [0, 2]}, (1, 2, 1, 4, 6)),
    (7, "ReduceSum", {"x": X}, {"axes": [1], "keepdims": 0}, (2, 6)),
    (12, "ReduceSum", {"x": X}, {"axes": [-1]}, (2, 4, 1)),
    (7, "ReduceMean", {"x": X}, {"axes": [2], "keepdims": 0}, (2, 4)),
    (17, "ReduceMean", {"x": X}, {"axes": [-2]}, (2, 1, 6)),
    (11, "ReduceMax", {"x": X}, {"axes": [0]}, (1, 4, 6)),
    (17, "ReduceL2", {"x": X}, {"axes": [1]}, (2, 1, 6)),
    (12, "ReduceLogSumExp", {"x": X}, {}, (1, 1, 1)),
    (10, "Dropout", {"x": X}, {"ratio": 0.5}, (2, 4, 6)),
    (12, "Dropout", {"x": X}, {}, (2, 4, 6)),
    (7, "BatchNormalization", {"x": IMAGE, **dict.fromkeys("sbmv", _C)}, {}, IMAGE.shape),
    (9, "BatchNormalization", {"x": IMAGE, **dict.fromkeys("sbmv", _C)}, {}, IMAGE.shape),
    (14, "BatchNormalization", {"x": IMAGE, **dict.fromkeys("sbmv", _C)}, {}, IMAGE.shape),
    (9, "Upsample", {"x": IMAGE, "s": np.float32([1, 1, 2, 2])}, {"mode": "nearest"}, (1, 2, 8, 8)),
    (10, "Resize", {"x": IMAGE, "s": np.float32([1, 1, 2, 2])}, {"mode": "nearest"}, (1, 2, 8, 8)),
    (7, "Gemm", {"x": X[0], "b": X[1].T.copy(), "c": np.float32([1, 2, 3, 4])}, {}, (4, 4)),
    (8, "Flatten", {"x": X}, {"axis": 2}, (8, 6)),
    (7, "Pow", {"x": np.abs(X), "e": np.float32(0.5)}, {}, (2, 4, 6)),
    (7, "Gather", {"x": X, "i": np.int64([3, 0])}, {"axis": 1}, (2, 2, 6)),
    (7, "Cast", {"x": X}, {"to": TensorProto.INT32}, (2, 4, 6)),
    (11, "ArgMax", {"x": X}, {"axis": 2, "keepdims": 0}, (2, 4)),
    (17, "DFT", {"x": X.reshape(2, 4, 3, 2)}, {"axis": 2}, (2, 4, 3, 2)),
    (11, "DepthToSpace", {"x": IMAGE.repeat(2, 1)}, {"blocksize": 2}, (1, 1, 8, 8)),
]


#: Operators whose older form no passes read.
NOT_CONVERTED = {(12, "Hardmax")}


def old_model(row: _Old) -> onnx.ModelProto:
    version, op, operands, attributes, shape = row
    kinds = {"Cast": TensorProto.INT32, "ArgMax": TensorProto.INT64}
    graph = helper.make_graph(
        [helper.make_node(op, list(operands), ["y"], name="node", **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, operands["x"].shape)],
        [helper.make_tensor_value_info("y", kinds.get(op, TensorProto.FLOAT), shape)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in operands.items() if n != "x"],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


@pytest.mark.parametrize("row", OLD, ids=lambda row: f"{row[1]}-{row[0]}-{OLD.index(row)}")
def test_forms_of_older_opsets(row: _Old) -> None:
    rows = compare(old_model(row), {"x": row[2]["x"]})
    assert bool(rows) == (row[:2] in NOT_CONVERTED), rows


GATHERS = [
    case
    for case in cases_of("gather", "gatherelements", "gathernd")
    if case.name.startswith(("test_gather_", "test_gathernd"))
]


@pytest.mark.parametrize("case", sampled(GATHERS, every=3), ids=lambda case: case.name)
def test_gathers_of_onnx(case: Any) -> None:
    """In these cases of opset 13, indices are inputs, and some count from the end."""
    names = [value.name for value in case.model.graph.input]
    for arrays, (wanted,) in case.data_sets:
        given = dict(zip(names, map(np.asarray, arrays), strict=True))
        found, _ = on_device(optimise(case.model), given)
        (name,) = (value.name for value in case.model.graph.output)
        np.testing.assert_array_equal(found[name], wanted)


def test_what_cannot_be_converted_runs_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator of another form is named with its opset and computed by the model's rules."""

    def refuse(*_: object) -> onnx.ModelProto:
        raise RuntimeError("no adapter")

    monkeypatch.setattr("onnx.version_converter.convert_version", refuse)
    for row in (OLD[0], OLD[3]):
        rows = compare(old_model(row), {"x": row[2]["x"]})
        assert [found["op"] for found in rows] == [f"{row[1]} of opset {row[0]}"]


def test_conversion_keeps_names_and_lines() -> None:
    model = old_model(OLD[3])
    model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.stack_trace", value="here")
    model.metadata_props.add(key="pycompiler.input_keys", value='["x"]')
    made = converted(model)
    assert opset_of(made) == OLDEST
    assert [item.key for item in made.metadata_props] == ["pycompiler.input_keys"]
    assert any(node.metadata_props for node in made.graph.node)
    assert opset_of(model) == OLD[3][0]


def test_group_normalization_before_opset_21_is_refused() -> None:
    """onnx has withdrawn that form, in which scale and shift have one element per group."""
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=3)
    sizes = {"x": (2, 6, 4), "s": (3,), "b": (3,), "y": (2, 6, 4)}
    infos = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in sizes.items()}
    graph = helper.make_graph([node], "g", [infos[name] for name in "xsb"], [infos["y"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    for read in (optimise, compiled):
        with pytest.raises(PycompilerError) as caught:
            read(model)
        assert caught.value.code == "P0108"
        assert "GroupNormalization" in caught.value.message


def test_no_operator_changes_between_the_opsets_of_the_layers() -> None:
    """Only element types and attributes were added; this fails when a newer onnx needs a check."""
    assert onnx.defs.onnx_opset_version() <= NEWEST
    for op in {*ROWS, *COMPOSITES}:
        if onnx.defs.has(op, OLDEST):
            old, new = (onnx.defs.get_schema(op, version) for version in (OLDEST, NEWEST))
            added = ["axis"] if op == "DFT" else []  # an attribute before
            assert [i.name for i in old.inputs] + added == [i.name for i in new.inputs], op
            for name, attribute in old.attributes.items():
                if name in added:
                    continue
                assert attribute.type == new.attributes[name].type, op
                default = new.attributes[name].default_value
                if (op, name) == ("GridSample", "mode"):
                    assert (attribute.default_value.s, default.s) == (b"bilinear", b"linear")
                    continue  # only the names of modes have changed
                assert attribute.default_value == default, op


@pytest.mark.parametrize(
    "mode", sampled([{}, {"mode": "bilinear"}, {"mode": "nearest"}, {"mode": "bicubic"}], first=1)
)
def test_grid_sample_knows_the_older_names_of_modes(mode: dict[str, str]) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1, 2, 4, 5), dtype=np.float32)
    grid = rng.uniform(-1, 1, (1, 3, 2, 2)).astype(np.float32)
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], **mode)
    infos = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in {"x": x.shape, "grid": grid.shape, "y": (1, 2, 3, 2)}.items()
    }
    graph = helper.make_graph([node], "g", [infos["x"], infos["grid"]], [infos["y"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    inputs = {"x": x, "grid": grid}
    wanted = HostSession(model, "the model").run(inputs)["y"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a part that runs on the host warns
        result, _ = compiled(model)
    np.testing.assert_allclose(run(result, inputs)["y"], wanted, rtol=1e-5, atol=1e-5)


def test_unknown_operators_are_refused() -> None:
    node = helper.make_node("NoSuchOperator", ["x"], ["y"])
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g", [info("x", TensorProto.FLOAT, (2,))], [info("y", TensorProto.FLOAT, (2,))]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=8)
    with pytest.raises(PycompilerError) as caught:
        optimise(model)
    assert caught.value.code == "P0108"
