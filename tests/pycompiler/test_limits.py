"""Small models that ask for much, and models that contradict themselves: refused at once."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pycompiler.build import build, host_function, parse_model
from pycompiler.errors import HostFallbackWarning, PycompilerError
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.well_formed import check_model
from pycompiler.runtime.device import Board, find_device

#: A refusal comes within these seconds of the processor, and takes no more memory.
SECONDS, GIGABYTES = 5, 1
MUCH = 10**10
node = helper.make_node
Typed = Mapping[str, tuple[int, Sequence[int]]]
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model_of(
    nodes: Sequence[Any],
    inputs: Typed,
    outputs: Typed,
    data: Mapping[str, Any] | None = None,
    functions: Sequence[Any] = (),
    opset: int = 18,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, e, s) for n, (e, s) in inputs.items()],
        [helper.make_tensor_value_info(n, e, s) for n, (e, s) in outputs.items()],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in (data or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("f", 1)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    made.functions.extend(functions)
    return made


X, Y = {"x": (FLOAT, (4,))}, {"y": (FLOAT, (1,))}


def total(op: str, *inputs: str, given: Typed = X, to: Typed = Y, **data: Any) -> onnx.ModelProto:
    """Return the sum of what one operator makes."""
    nodes = [node(op, inputs, ["z"]), node("Cast", ["z"], ["f"], to=FLOAT)]
    nodes += [node("ReduceSum", ["f"], ["t"], keepdims=0), node("Add", ["t", "one"], ["y"])]
    return model_of(nodes, given, to, {**data, "one": np.ones(1, np.float32)})


def bomb(depth: int = 24, calls: int = 2) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    functions = [
        helper.make_function("f", "F0", ["a"], ["b"], [node("Relu", ["a"], ["b"])], opsets)
    ]
    for level in range(1, depth + 1):
        names = ["a", *(f"c{place}" for place in range(1, calls)), "b"]
        inner = [node(f"F{level - 1}", [a], [b], domain="f") for a, b in pairwise(names)]
        functions.append(helper.make_function("f", f"F{level}", ["a"], ["b"], inner, opsets))
    return model_of(
        [node(f"F{depth}", ["x"], ["y"], domain="f")], X, {"y": (FLOAT, (4,))}, None, functions
    )


def circle() -> onnx.ModelProto:
    opsets = [helper.make_opsetid("f", 1)]
    inner = [node("F", ["a"], ["b"], domain="f")]
    function = helper.make_function("f", "F", ["a"], ["b"], inner, opsets)
    call = node("F", ["x"], ["y"], domain="f")
    return model_of([call], X, {"y": (FLOAT, (4,))}, None, [function])


def loop() -> onnx.ModelProto:
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Identity", ["c"], ["d"]), node("Identity", ["s"], ["t"])],
        "body",
        [info("i", INT64, ()), info("c", BOOL, ()), info("s", FLOAT, (4,))],
        [info("d", BOOL, ()), info("t", FLOAT, (4,))],
    )
    data = {"n": np.array(1 << 62), "c": np.array(True)}
    return model_of(
        [node("Loop", ["n", "c", "x"], ["y"], body=body)], X, {"y": (FLOAT, (4,))}, data
    )


def looped(nodes: Sequence[Any], name: str) -> onnx.GraphProto:
    """Return the body of a loop that keeps its condition."""
    info = helper.make_tensor_value_info
    kept = node("Identity", [f"{name}c"], [f"{name}d"])
    given = [info(f"{name}i", INT64, ()), info(f"{name}c", BOOL, ()), info(f"{name}s", FLOAT, (4,))]
    made = [info(f"{name}d", BOOL, ()), info(f"{name}t", FLOAT, (4,))]
    return helper.make_graph([kept, *nodes], name, given, made)


def nested(outer: int, inner: int) -> onnx.ModelProto:
    body = looped([node("Relu", ["bs"], ["bt"])], "b")
    body = looped([node("Loop", ["n", "", "as"], ["at"], body=body)], "a")
    made = node("Loop", ["m", "", "x"], ["y"], body=body)
    return model_of([made], X, {"y": (FLOAT, (4,))}, {"m": np.array(outer), "n": np.array(inner)})


def endless() -> onnx.ModelProto:
    body = looped([node("Relu", ["bs"], ["bt"])], "b")
    made = node("Loop", ["", "c", "x"], ["y"], body=body)
    return model_of([made], X, {"y": (FLOAT, (4,))}, {"c": np.array(True)})


def reference() -> onnx.ModelProto:
    made = node("LeakyRelu", ["x"], ["y"], alpha=0.5)
    made.attribute[0].ref_attr_name = "a"
    return model_of([made], X, {"y": (FLOAT, (4,))})


SPLIT = node("Split", ["x"], ["y"], num_outputs=10**9)


def relu(shape: Sequence[int], opset: int = 18) -> onnx.ModelProto:
    typed = (FLOAT, shape)
    return model_of([node("Relu", ["x"], ["y"])], {"x": typed}, {"y": typed}, opset=opset)


def two(op: str, data: Any, shapes: Sequence[Sequence[int]], **attributes: Any) -> onnx.ModelProto:
    names = ["y", "z"][: len(shapes)]
    made = node(op, ["x", "p"], names, **attributes)
    outputs = {name: (FLOAT, shape) for name, shape in zip(names, shapes, strict=True)}
    return model_of([made], X, outputs, {"p": data})


ints = np.array
HALF_FULL = {"d": ints(1 << 29), "v": np.array([0, 1], np.float32)}
TABLE: dict[str, tuple[str, Any]] = {
    "10^12 elements": ("P0120", lambda: relu((10**6, 10**6))),
    "rows of 2^62": ("P0120", lambda: relu((1 << 62, 4))),
    "more than the DRAM": ("P0302", lambda: relu((1 << 24,))),
    "Pad": ("P0120", lambda: total("Pad", "x", "p", p=ints([0, MUCH]))),
    "Expand": ("P0120", lambda: total("Expand", "s", "p", p=ints([MUCH]), s=np.ones(1, "f4"))),
    "ConstantOfShape": ("P0120", lambda: total("ConstantOfShape", "p", p=ints([MUCH]))),
    "ConstantOfShape that the host could make": (
        "P0302",
        lambda: total("ConstantOfShape", "p", p=ints([1 << 29])),
    ),
    "Range": ("P0120", lambda: total("Range", "a", "b", "c", a=ints(0), b=ints(MUCH), c=ints(1))),
    "Tile": ("P0120", lambda: total("Tile", "x", "p", p=ints([MUCH]))),
    "Tile of a constant": (
        "P0302",
        lambda: total("Tile", "k", "p", k=np.ones(4, "f4"), p=ints([1 << 27])),
    ),
    "OneHot": (
        "P0120",
        lambda: total("OneHot", "i", "d", "v", i=ints([1]), **HALF_FULL | {"d": ints(MUCH)}),
    ),
    "OneHot that the host could make": (
        "P0302",
        lambda: total("OneHot", "i", "d", "v", given={**X, "i": (INT64, (1,))}, **HALF_FULL),
    ),
    "function bomb": ("P0120", bomb),
    "functions that call each other 1,000 deep": ("P0108", lambda: bomb(1000, 1)),
    "function that calls itself": ("P0108", circle),
    "Loop in a Loop": ("P0120", lambda: nested(1 << 16, 1 << 16)),
    "Loop without an end": ("P0108", endless),
    "no elements, with long axes": ("P0120", lambda: relu((1 << 62, 4, 0))),
    "parts": ("P0112", lambda: model_of([SPLIT], X, {"y": (FLOAT, (4,))})),
    "attribute of no function": ("P0108", reference),
    "Loop": ("P0120", loop),
    "unknown opset": ("P0108", lambda: relu((4,), 999)),
    "negative Pad": ("P0112", lambda: two("Pad", ints([-3, -3]), [(2,)])),
    "negative Split": ("P0112", lambda: two("Split", ints([5, -1]), [(5,), (1,)])),
    "axes that are no list": ("P0112", lambda: two("ReduceSum", ints(0), [(1,)])),
    "axes that leave another shape": (
        "P0112",
        lambda: two("ReduceSum", ints([0]), [(1,)], keepdims=0),
    ),
}


def peak() -> float:
    """Return the most gigabytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def refusal(model: onnx.ModelProto, folder: Path, device: str = "emu2:mini") -> PycompilerError:
    board = Board(find_device(device).target)
    with pytest.raises(PycompilerError) as found:
        build(lambda: model, device, board, {}, folder)
    return found.value


@pytest.mark.parametrize("name", TABLE)
def test_refused_at_once(name: str, tmp_path: Path) -> None:
    code, make = TABLE[name]
    model = make()
    seconds, gigabytes = time.process_time(), peak()
    problem = refusal(model, tmp_path / "out")
    assert (problem.code, problem.exit_code) == (code, 1), problem
    assert time.process_time() - seconds < SECONDS
    assert peak() - gigabytes < GIGABYTES


def summed(count: int, length: int) -> onnx.ModelProto:
    names = [f"x{number}" for number in range(count)]
    typed = (FLOAT, (length,))
    return model_of([node("Sum", names, ["y"])], dict.fromkeys(names, typed), {"y": typed})


#: By machine: models whose inputs or results fit DRAM one by one, but not together.
TOGETHER = {
    "inputs of mini": ("emu2:mini", lambda: summed(9, 1 << 18)),
    "inputs": ("emu2:mncore2", lambda: summed(5, 1 << 30)),
    "results": (
        "emu2:mncore2",
        lambda: model_of(
            [node(op, ["x"], [op]) for op in ("Relu", "Neg", "Exp", "Tanh", "Abs")],
            {"x": (FLOAT, (1 << 30,))},
            {op: (FLOAT, (1 << 30,)) for op in ("Relu", "Neg", "Exp", "Tanh", "Abs")},
        ),
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_refused_together(name: str, tmp_path: Path) -> None:
    """Planning the time slices of such values took minutes."""
    device, make = TOGETHER[name]
    seconds, gigabytes = time.process_time(), peak()
    problem = refusal(make(), tmp_path / "out", device)
    assert (problem.code, problem.exit_code) == ("P0302", 1), problem
    assert time.process_time() - seconds < SECONDS
    assert peak() - gigabytes < GIGABYTES


def test_a_bound_that_a_condition_cuts_short() -> None:
    """Exporters write a loop of a condition with the largest count there is."""
    nodes = [
        node("Add", ["s", "s"], ["t"]),
        node("ReduceMax", ["t"], ["most"], keepdims=0),
        node("Less", ["most", "hundred"], ["d"]),
    ]
    info = helper.make_tensor_value_info
    given = [info("i", INT64, ()), info("c", BOOL, ()), info("s", FLOAT, (4,))]
    made = [info("d", BOOL, ()), info("t", FLOAT, (4,))]
    body = helper.make_graph(nodes, "body", given, made)
    data = {"n": np.array((1 << 63) - 1), "c": np.array(True), "hundred": np.array(100, np.float32)}
    model = model_of(
        [node("Loop", ["n", "c", "x"], ["y"], body=body)], X, {"y": (FLOAT, (4,))}, data
    )
    check_model(model)
    (found,) = host_function(optimise(model)).run({"x": np.ones(4, np.float32)}).values()
    assert np.array_equal(found.values(), np.full(4, 128))


def changed(change: Any) -> onnx.ModelProto:
    made = two("Add", np.ones(4, np.float32), [(4,)])
    change(made)
    return made


def data_type(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].data_type = 99


def raw_data(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].raw_data += b"1234"


def twice(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(model.graph.initializer[0])


def notes(model: onnx.ModelProto) -> None:
    model.metadata_props.add(key="pycompiler.input_keys", value='["a", "b"]')


@pytest.mark.parametrize("change", [data_type, raw_data, twice, notes])
def test_contradictions(change: Any, tmp_path: Path) -> None:
    assert refusal(changed(change), tmp_path / "out").code == "P0108"


def test_negative_dimensions_do_not_reach_shape_inference(tmp_path: Path) -> None:
    """onnx's inference of a Slice ends the process for them."""
    given: Typed = {"x": (FLOAT, (-1, 4))}
    data = {"a": np.array([0, 1]), "b": np.array([2, 3])}
    model = model_of([node("Slice", ["x", "a", "b"], ["y"])], given, {"y": (FLOAT, (2, 2))}, data)
    assert refusal(model, tmp_path / "out").code == "P0113"


def test_names_that_are_no_text(tmp_path: Path) -> None:
    for old, new in ((b"Add", b"A\xffd"), (b"\x01x", b"\x01\xff"), (b"\x01g", b"\x01\xfe")):
        data = changed(lambda _: None).SerializeToString().replace(old, new)
        model = parse_model(data, Path("model.onnx"))
        problem = refusal(model, tmp_path / "out")
        assert problem.code == "P0108"
        assert "not UTF-8" in problem.message


def test_nodes_of_one_name(tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], ["z"], name="n"), node("Relu", ["z"], ["y"], name="n")]
    model = model_of(nodes, X, {"y": (FLOAT, (4,))})
    device = "emu2:mini"
    build(lambda: model, device, Board(find_device(device).target), {}, tmp_path / "out")


def test_an_empty_picture_is_no_fault(tmp_path: Path) -> None:
    data = {"s": np.array([1, 1, 6, 8])}
    ports: list[Typed] = [{"x": (FLOAT, (1, 1, 0, 4))}, {"y": (FLOAT, (1, 1, 6, 8))}]
    model = model_of([node("Resize", ["x", "", "", "s"], ["y"])], *ports, data)
    device = "emu2:mini"
    with pytest.warns(HostFallbackWarning):
        build(lambda: model, device, Board(find_device(device).target), {}, tmp_path / "out")


def test_complex_ports_are_named(tmp_path: Path) -> None:
    kind = TensorProto.COMPLEX64
    model = model_of([node("Identity", ["x"], ["y"])], {"x": (kind, (4,))}, {"y": (kind, (4,))})
    assert refusal(model, tmp_path / "out").code == "P0109"


@pytest.mark.parametrize("elem", ["FLOAT8E4M3FN", "FLOAT8E5M2", "INT4", "UINT4", "FLOAT4E2M1"])
def test_small_element_types_are_named(elem: str, tmp_path: Path) -> None:
    kind = TensorProto.DataType.Value(elem)
    nodes = [node("Cast", ["x"], ["y"], to=kind)]
    problem = refusal(model_of(nodes, X, {"y": (kind, (4,))}, opset=23), tmp_path / "out")
    assert problem.code == ("P0135" if elem.startswith("FLOAT8") else "P0136")
    assert elem.lower() in str(problem)
