"""ONNX files as they lie around: open sizes, false shapes, old versions, other domains."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from pycompiler.build import build, host_function, load_function, settled_model
from pycompiler.errors import PycompilerError, ShapeWarning
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.sizes import Sizes, parsed_sizes
from pycompiler.runtime.device import Board, find_device

DEVICE = "emu2:mini"
NONE = "no type"
#: A size, a name, or None for a size that the file leaves open.
Shape = Sequence[Any] | None
RELU = [helper.make_node("Relu", ["x"], ["y"])]
ADD = [helper.make_node("Add", ["x", "w"], ["y"])]
WEIGHT = {"w": np.array([1, 2, 3], np.float32)}


def info(name: str, shape: Shape | str, elem: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    if shape == NONE:
        return onnx.ValueInfoProto(name=name)
    return helper.make_tensor_value_info(name, elem, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Shape],
    outputs: Mapping[str, Shape | str],
    constants: Mapping[str, np.ndarray] | None = None,
    opsets: Sequence[tuple[str, int]] = (("", 18),),
    inner: Mapping[str, Shape] | None = None,
    ir_version: int = 8,
) -> onnx.ModelProto:
    """A model; below version 4 of the format its constants are inputs too."""
    held = constants or {}
    given = dict(inputs) | {n: a.shape for n, a in held.items() if ir_version < 4}
    graph = helper.make_graph(
        nodes,
        "g",
        [info(name, shape) for name, shape in given.items()],
        [info(name, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
        value_info=[info(name, shape) for name, shape in (inner or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid(*one) for one in opsets])
    made.ir_version = ir_version
    return made


def compiled(made: onnx.ModelProto, folder: Path) -> Any:
    board = Board(find_device(DEVICE).target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        build(lambda: made, DEVICE, board, {}, folder)
    return load_function(folder, board)


def check(
    made: onnx.ModelProto, wanted: Callable[..., Any], folder: Path | None = None
) -> list[str]:
    """Compare a call of a settled model with ``wanted``; return the inputs.

    With a ``folder`` it is compiled for the emulator, else it runs on the host.
    """
    function = host_function(optimise(made)) if folder is None else compiled(made, folder)
    draw = np.random.default_rng(5)
    given = {n: draw.standard_normal(t.shape).astype("f4") for n, t in function.inputs.items()}
    found = [output.values() for output in function.run(given).values()]
    results = wanted(**given)
    for one, other in zip(found, results if isinstance(results, list) else [results], strict=True):
        assert one.shape == other.shape
        assert np.allclose(one, other, atol=1e-5)
    return list(function.inputs)


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


OPEN = {
    "named": (("n", 3), ["n=2"], [], "--dim n=1"),
    "one named twice": (("n", "n"), ["n=2"], [], "--dim n=1"),
    "two names": (("n", "m"), ["n=2"], ["x=2x3"], "--dim n=1 --dim m=16"),
    "no name": ((None, 3), [], ["x=2x3"], "--shape x=1x3"),
    "a picture": ((None, 3, "h", "w"), [], ["x=1x3x4x4"], "--shape x=1x3x224x224"),
    "a pair": (("n", 3, "h", 8), ["n=1", "h=4"], [], "--dim n=1 --dim h=224"),
    "below 0": ((-1, 3), [], ["x=2x3"], "--shape x=1x3"),
    "any shape": (None, [], ["x=5"], "--shape x=1x3x224x224"),
}


@pytest.mark.parametrize("kind", OPEN)
def test_open_sizes_are_named_and_given(kind: str) -> None:
    shape, dims, shapes, remedy = OPEN[kind]
    result = None if shape is None else [n if isinstance(n, str) else None for n in shape]
    made = model(RELU, {"x": shape}, {"y": result})
    typed = ["pycompiler", "compile", "model.onnx", "-o", "out"]
    with pytest.raises(PycompilerError) as caught:
        settled_model(made, parsed_sizes([], [], typed))
    assert caught.value.code == "P0139"
    assert "`x`" in caught.value.message
    assert caught.value.help.endswith(f" pycompiler compile model.onnx -o out {remedy}")
    # What the refusal proposes is accepted.
    words = remedy.split()
    proposed = [words[at + 1] for at, word in enumerate(words) if word == "--dim"]
    pictures = [words[at + 1] for at, word in enumerate(words) if word == "--shape"]
    settled_model(made, parsed_sizes(proposed, pictures, typed))
    found = settled_model(made, parsed_sizes(dims, shapes, typed))
    assert check(found, relu) == ["x"]


def test_arguments_in_python_are_the_options() -> None:
    made = model(RELU, {"x": ("n", None)}, {"y": None})
    with pytest.raises(PycompilerError, match=re.escape("shapes={'x': [1, 16]}")) as caught:
        settled_model(made)
    assert caught.value.code == "P0139"
    assert settled_model(made, Sizes(shapes={"x": (2, 3)})) == settled_model(
        made, parsed_sizes([], ["x=2x3"])
    )


WRONG = {
    "no number": (["n"], []),
    "below 0": (["n=-1"], []),
    "no such name": (["k=2"], []),
    "no such input": ([], ["z=2x3"]),
    "another rank": ([], ["x=2x3x4"]),
    "two sizes of one name": (["n=3"], ["x=2x3"]),
    "no shape": ([], ["x=2y3"]),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("typed", [True, False])
def test_wrong_sizes(kind: str, typed: bool) -> None:
    made, (dims, shapes) = model(RELU, {"x": ("n", 3)}, {"y": None}), WRONG[kind]
    with pytest.raises(PycompilerError) as caught:
        settled_model(made, parsed_sizes(dims, shapes, ["pycompiler"] if typed else None))
    assert caught.value.code == "P0704"


@pytest.mark.parametrize(
    ("dims", "shapes"), [([("n", 1)], {}), ({"n": "2"}, {}), ({}, {"x": 3}), ({}, {"x": (2, -3)})]
)
def test_wrong_arguments(dims: Any, shapes: Any) -> None:
    with pytest.raises(PycompilerError) as caught:
        Sizes(dims, shapes)
    assert caught.value.code == "P0704"


HINTS: dict[str, tuple[Shape | str, dict[str, Shape], bool]] = {
    "a right one": ((2, 3), {"a": (2, 3)}, False),
    "names": (("k", "j"), {"a": ("k", None)}, False),
    "no shape": (None, {}, False),
    "no type": (NONE, {}, False),
    "below 0": ((-1, 3), {"a": (-1, -1)}, False),
    "another size": ((5, 3), {}, True),
    "another rank": ((2, 3, 1), {}, True),
    "an inner value": ((2, 3), {"a": (7, 3)}, True),
    "both": ((4, 3), {"a": (4, 3)}, True),
}


@pytest.mark.parametrize("kind", HINTS)
def test_what_follows_wins_over_what_is_declared(kind: str) -> None:
    shape, inner, is_false = HINTS[kind]
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    made = model(nodes, {"x": (2, 3)}, {"y": shape}, inner=inner)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        settled = settled_model(made)
    assert [one.category for one in found] == [ShapeWarning] * is_false
    check(settled, lambda x: relu(-x))


def test_hints_count_where_nothing_follows(tmp_path: Path) -> None:
    """Values decide how many elements NonZero finds; the declared size is the only one known."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["a"]),
        helper.make_node("Cast", ["a"], ["b"], to=TensorProto.FLOAT),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    settled = settled_model(model(nodes, {"x": (4,)}, {"y": (1, 4)}))
    check(settled, lambda x: -np.arange(4, dtype="f4")[None], tmp_path / "out")


@pytest.mark.parametrize("opset", [7, 9, 13, 18])
def test_constants_that_are_inputs_too(opset: int) -> None:
    """So wrote version 3 of the format. Who names one gives it."""
    made = model(ADD, {"x": (2, 3)}, {"y": (2, 3)}, WEIGHT, [("", opset)], ir_version=3)
    plain = settled_model(made)
    assert check(plain, lambda x: x + WEIGHT["w"]) == ["x"]
    asked = settled_model(made, Sizes(shapes={"w": (3,)}))
    assert check(asked, lambda x, w: x + w) == ["x", "w"]


@pytest.mark.parametrize("opsets", [[18, 18], [13, 18], [11, 13, 18]])
@pytest.mark.parametrize("names", [("", "", ""), ("", "ai.onnx", "")])
def test_the_last_import_of_an_opset_counts(opsets: list[int], names: tuple[str, ...]) -> None:
    """ReduceMax reads its axes as an input from opset 18 on."""
    nodes = [helper.make_node("ReduceMax", ["x", "axes"], ["y"], keepdims=0)]
    imports = list(zip(names, opsets, strict=False))
    constants = {"axes": np.array([0])}
    made = model(nodes, {"x": (2, 3)}, {"y": (3,)}, constants, imports)
    check(settled_model(made), lambda x: x.max(0))


@pytest.mark.parametrize("opset", [1, 6, 7, 9])
@pytest.mark.parametrize("shape", [(2, 3), (1, 3, 4), (2, 3, 2, 2)])
@pytest.mark.parametrize("count", [1, 3])
def test_slopes_along_channels(opset: int, shape: tuple[int, ...], count: int) -> None:
    """Before opset 7 a list of slopes lay along the second axis; later it is broadcast."""
    slope, wide = np.array([0.5, 2, 3], np.float32)[:count], (-1, *[1] * (len(shape) - 2))
    held = {"s": slope if opset < 7 else slope.reshape(wide)}
    nodes = [helper.make_node("PRelu", ["x", "s"], ["y"])]
    made = model(nodes, {"x": shape}, {"y": shape}, held, [("", opset)], ir_version=3)
    check(settled_model(made), lambda x: np.where(x < 0, x * slope.reshape(wide), x))


@pytest.mark.parametrize("opset", [11, 18, 21, 22])
@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
def test_last_windows_in_the_padding_are_left_out(op: str, opset: int) -> None:
    """onnx's inference counts them before opset 22, unlike onnxruntime and torch."""
    facts = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1}
    nodes = [helper.make_node(op, ["x"], ["y"], **facts)]
    made = model(nodes, {"x": (1, 1, 7, 7)}, {"y": None}, opsets=[("", opset)])
    check(settled_model(made), on_onnxruntime(made))


@pytest.mark.parametrize("bounds", [{"min": -1.0}, {"max": 1.0}, {"min": -1.0, "max": 1.0}])
def test_bounds_of_old_clips_have_the_type_of_the_input(bounds: dict[str, float]) -> None:
    """onnx's converter makes singles of the attributes."""
    nodes = [helper.make_node("Clip", ["x"], ["y"], **bounds)]
    made = model(nodes, {"x": (5,)}, {"y": None}, opsets=[("", 6)])
    for given in (made.graph.input[0], made.graph.output[0]):
        given.type.tensor_type.elem_type = TensorProto.FLOAT16
    x = np.array([-2, -1, 0.5, 1, 3], np.float16)
    found = host_function(optimise(settled_model(made))).run({"x": x})["y"].values()
    assert found.dtype == x.dtype
    assert found.tolist() == np.clip(x, bounds.get("min"), bounds.get("max")).tolist()


@pytest.mark.parametrize("host", [True, False])
@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_padding_of_pools_with_gaps(mode: str, host: bool, tmp_path: Path) -> None:
    """onnxruntime pads them as if they had no gaps, and makes fewer results."""
    facts = {"kernel_shape": [2], "dilations": [3], "auto_pad": mode}
    nodes = [helper.make_node("MaxPool", ["x"], ["y"], **facts)]
    made = model(nodes, {"x": (1, 1, 7)}, {"y": None}, opsets=[("", 12)])
    before = 1 if mode == "SAME_UPPER" else 2

    def wanted(x: np.ndarray) -> np.ndarray:
        wide = np.pad(x, ((0, 0), (0, 0), (before, 3 - before)), constant_values=-np.inf)
        return np.maximum(wide[..., :7], wide[..., 3:])

    check(settled_model(made), wanted, None if host else tmp_path / "out")


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "NOTSET"])
@pytest.mark.parametrize(("kernel", "stride", "size"), [(2, 3, 6), (1, 3, 6), (3, 2, 5), (1, 2, 3)])
def test_places_of_deconvolutions(
    mode: str, kernel: int, stride: int, size: int, tmp_path: Path
) -> None:
    """A kernel below the stride leaves gaps, and none of them before the first place."""
    facts = {"strides": [stride], "auto_pad": mode, "output_shape": [size]}
    nodes = [helper.make_node("ConvTranspose", ["x", "w"], ["y"], **facts)]
    weights = {"w": np.arange(1, kernel + 1, dtype=np.float32).reshape(1, 1, -1)}
    made = model(nodes, {"x": (1, 1, 2)}, {"y": None}, weights)
    check(settled_model(made), on_onnxruntime(made), tmp_path / "out")


def on_onnxruntime(made: onnx.ModelProto) -> Callable[..., Any]:
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return lambda **given: session.run(None, given)


def learner(op: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, ["x"], ["s"], domain="ai.onnx.ml", **attributes)


LEARNERS = {
    "Scaler": learner("Scaler", offset=[0.0, 1.0], scale=[1.0, 2.0]),
    "Normalizer": learner("Normalizer", norm="L2"),
    "Imputer": learner("Imputer", imputed_value_floats=[1.0, 2.0]),
    "Binarizer": learner("Binarizer", threshold=0.5),
    "LinearRegressor": learner(
        "LinearRegressor", coefficients=[1.0, 2.0, 3.0, 4.0], intercepts=[1.0, -1.0], targets=2
    ),
    "SVMRegressor": learner(
        "SVMRegressor",
        coefficients=[1.0, -2.0],
        kernel_type="LINEAR",
        kernel_params=[0.0, 0.0, 0.0],
        n_supports=1,
        rho=[0.5],
        support_vectors=[1.0, 2.0],
    ),
    "Gelu": helper.make_node("Gelu", ["x"], ["s"], domain="com.microsoft"),
}


@pytest.mark.parametrize("op", LEARNERS)
@pytest.mark.parametrize("place", ["before", "last"])
def test_operators_of_other_domains_run_on_the_host(op: str, place: str, tmp_path: Path) -> None:
    """onnx has no types for their results: the host runtime tells them."""
    node = onnx.NodeProto()
    node.CopyFrom(LEARNERS[op])
    nodes = [node, helper.make_node("Relu", ["s"], ["y"])]
    if place == "last":
        node.input[0], node.output[0] = "a", "y"
        nodes = [helper.make_node("Neg", ["x"], ["a"]), node]
    opsets = [("", 18), (node.domain, 3 if node.domain == "ai.onnx.ml" else 1)]
    made = model(nodes, {"x": ("n", 2)}, {"y": ("n", None)}, opsets=opsets)
    settled = settled_model(made, Sizes({"n": 3}))
    check(settled, on_onnxruntime(made), tmp_path / "out")
    report = (tmp_path / "out" / "report.json").read_text()
    assert f'"op": "{node.domain}.{op}"' in report


def test_an_operator_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    nodes = [helper.make_node("Frob", ["x"], ["s"], domain="nobody"), *RELU]
    nodes[1] = helper.make_node("Relu", ["s"], ["y"])
    made = model(nodes, {"x": (2, 3)}, {"y": (2, 3)}, opsets=[("", 18), ("nobody", 1)])
    with pytest.raises(PycompilerError, match="Frob") as caught:
        compiled(settled_model(made), tmp_path / "out")
    assert caught.value.code == "P0602"


def test_contradictions_name_the_operator() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    made = model(nodes, {"x": (2, 3)}, {"y": None}, {"w": np.zeros((4, 5), np.float32)})
    onnx.checker.check_model(settle_shape(made))
    with pytest.raises(PycompilerError, match="MatMul `product` cannot compute `y`") as caught:
        settled_model(made)
    assert caught.value.code == "P0112"


def settle_shape(made: onnx.ModelProto) -> onnx.ModelProto:
    """The model with some shape of its result: onnx's checker wants one."""
    out = onnx.ModelProto()
    out.CopyFrom(made)
    out.graph.output[0].CopyFrom(info("y", (2, 5)))
    return out


#: Calls whose results onnx does not infer: only constants decide on their shapes.
UNTOLD = {
    "Compress": ("float[3] x", "Compress(x, some)", 18),
    "GatherND": ("float[2,3] x", "GatherND(x, one)", 14),
    "GroupNormalization": ("float[1,2,3] x", "GroupNormalization<num_groups=2>(x, ones, ones)", 21),
    "Range": ("float[1] x", "Range(first, last, step)", 18),
}
HELD = "bool[3] some = {1, 0, 1}, int64[2] one = {1, 2}, float[2] ones = {1, 2}"
HELD += ", int16 first = {1}, int16 last = {7}, int16 step = {2}"


@pytest.mark.parametrize("op", UNTOLD)
def test_types_that_onnx_does_not_infer(op: str) -> None:
    given, call, opset = UNTOLD[op]
    head = f'<ir_version: 8, opset_import: ["" : {opset}]> g ({given}) => (float y) <{HELD}>'
    made = onnx.parser.parse_model(f"{head} {{ y = {call} }}")
    made.graph.output[0].ClearField("type")
    check(settled_model(made), on_onnxruntime(made))
