"""Bodies of control flow: passes keep their outputs apart and do not change results."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from compiling import compiled, run, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from node_suite.cases import cases_of
from onnx import TensorProto, helper, numpy_helper

from pycompiler.pfvm.names import graphs
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.prepare import prepare
from pycompiler.pfvm.session import HostSession

Arrays = dict[str, np.ndarray]

_STEPS, _WIDTH = 3, 2
_UNARY = ("Identity", "Neg", "Relu", "Tanh")
_BINARY = ("Add", "Mul", "Max")
#: Values of the main graph that bodies read: an input, a result, a constant, a copied input.
_OUTER = ("outer", "made", "fixed", "copied")


def _info(name: str, shape: Sequence[int] = (_WIDTH,), elem: int = TensorProto.FLOAT) -> object:
    return helper.make_tensor_value_info(name, elem, list(shape))


class _Drawn:
    """Draws bodies; names are unique in the whole model, as ONNX wants them."""

    def __init__(self, seed: int, *, direct: bool):
        self.random, self.direct, self.count = random.Random(seed), direct, 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def nodes(self, known: list[str], depth: int) -> list[onnx.NodeProto]:
        """Return some nodes and add their results to ``known``."""
        out = []
        for _ in range(self.random.randint(1, 5)):
            made, kind = self.name(), self.random.random()
            if kind < 0.15:
                value = np.full(_WIDTH, self.random.choice((1.0, 2.0)), np.float32)
                tensor = numpy_helper.from_array(value)
                out.append(helper.make_node("Constant", [], [made], value=tensor))
            elif kind < 0.3 and depth:
                out.append(self.branches(known, made, depth - 1))
            elif kind < 0.6:
                out.append(
                    helper.make_node(self.random.choice(_UNARY), self.some(known, 1), [made])
                )
            else:
                op = self.random.choice(_BINARY)
                out.append(helper.make_node(op, self.some(known, 2), [made]))
            known.append(made)
        return out

    def some(self, known: Sequence[str], count: int) -> list[str]:
        return [self.random.choice(known) for _ in range(count)]

    def branches(self, known: Sequence[str], made: str, depth: int) -> onnx.NodeProto:
        """Return an If with two results, of which one may be unused."""
        bodies = [self.body([], list(known), 2, depth) for _ in range(2)]
        condition = self.random.choice(("flag", "true"))
        return helper.make_node(
            "If",
            [condition],
            self.random.sample([made, self.name()], 2),
            then_branch=bodies[0],
            else_branch=bodies[1],
        )

    def body(
        self, inputs: Sequence[str], known: list[str], count: int, depth: int = 1
    ) -> onnx.GraphProto:
        """A body whose outputs may repeat, be its inputs, or come from outside."""
        known = [*inputs, *known]
        nodes = self.nodes(known, depth)
        made = [name for node in nodes for name in node.output]
        outputs = []
        for _ in range(count):
            source = self.random.choice(known[-4:] if self.random.random() < 0.5 else known)
            if not self.direct or source not in made or source in outputs:
                copy = self.name()
                nodes.append(helper.make_node("Identity", [source], [copy]))
                source = copy
            outputs.append(source)
        given = [_info(name) for name in inputs]
        return helper.make_graph(nodes, self.name(), given, [_info(n) for n in outputs])


def drawn_model(seed: int, op: str, *, direct: bool) -> onnx.ModelProto:
    """A model with one node of control flow, ``op``."""
    draw = _Drawn(seed, direct=direct)
    known = list(_OUTER)
    outs = ["y0", "y1", "y2", "y3"]
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(outs, (_WIDTH,))
    if op == "If":
        bodies = [draw.body([], list(known), 4) for _ in range(2)]
        node = helper.make_node(op, ["flag"], outs, then_branch=bodies[0], else_branch=bodies[1])
    elif op == "Loop":
        body = draw.body([draw.name(), draw.name()], known, 4)
        body.input.insert(0, _info("turn", (), TensorProto.INT64))
        body.input.insert(1, _info("go", (), TensorProto.BOOL))
        body.output.insert(0, _info("on", (), TensorProto.BOOL))
        body.node.append(helper.make_node("Identity", ["go"], ["on"]))
        node = helper.make_node(op, ["steps", "true", "outer", "made"], outs, body=body)
        shapes |= dict.fromkeys(outs[2:], (_STEPS, _WIDTH))
    else:
        body = draw.body([draw.name() for _ in range(3)], known, 4)
        node = helper.make_node(op, ["outer", "made", "rows"], outs, body=body, num_scan_inputs=1)
        shapes |= dict.fromkeys(outs[2:], (_STEPS, _WIDTH))
    before = [
        helper.make_node("Neg", ["outer"], ["made"]),
        helper.make_node("Identity", ["outer"], ["copied"]),
    ]
    after = [helper.make_node("Neg", [name], [f"z{name}"]) for name in outs]
    graph = helper.make_graph(
        [*before, node, *after],
        "g",
        [_info("outer"), _info("rows", (_STEPS, _WIDTH)), _info("flag", (), TensorProto.BOOL)],
        [_info(name, shapes[name[-2:]]) for name in (*outs, "zy0", "zy1", "zy2", "zy3")],
        [
            numpy_helper.from_array(np.array([3.0, -1.0], np.float32), "fixed"),
            numpy_helper.from_array(np.array(True), "true"),
            numpy_helper.from_array(np.array(_STEPS), "steps"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def inputs_of(seed: int, *, flag: bool) -> Arrays:
    rng = np.random.default_rng(seed)
    return {
        "outer": rng.standard_normal(_WIDTH).astype(np.float32),
        "rows": rng.standard_normal((_STEPS, _WIDTH)).astype(np.float32),
        "flag": np.array(flag),
    }


def on_device(model: onnx.ModelProto, given: Arrays) -> Arrays:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(compiled(model)[0], given)


def check(found: Arrays, wanted: Arrays, exact: bool) -> None:
    for name, values in wanted.items():
        assert found[name].shape == values.shape, name
        # onnxruntime rounds a Tanh by the place of the element in a vector of the host.
        close = 2.0**-23 if values.dtype.kind == "f" else 0.0
        tolerance = close if exact else 1e-5
        np.testing.assert_allclose(found[name], values, rtol=tolerance, atol=tolerance)


def made_apart(model: onnx.ModelProto) -> bool:
    """Whether every output of a body is made by a node of its own."""
    for body in list(graphs(model.graph))[1:]:
        made = {name for node in body.node for name in node.output}
        outputs = [value.name for value in body.output]
        if len(set(outputs)) < len(outputs) or not made.issuperset(outputs):
            return False
    return True


@settings(max_examples=tried(30, 600))
@given(st.integers(0, 2**32), st.sampled_from(["Scan", "Loop", "If"]), st.booleans(), st.booleans())
def test_optimised_bodies_compute_the_same(seed: int, op: str, direct: bool, flag: bool) -> None:
    """The oracle is onnxruntime on the model before any pass."""
    model, given = drawn_model(seed, op, direct=direct), inputs_of(seed, flag=flag)
    wanted = HostSession(model, "the model").run(given)
    optimised = optimise(model)
    assert made_apart(optimised)
    check(HostSession(optimised, "optimised").run(given), wanted, exact=True)


@settings(max_examples=tried(6, 120))
@given(st.integers(0, 2**32), st.sampled_from(["Scan", "Loop", "If"]), st.booleans())
def test_bodies_on_the_device(seed: int, op: str, flag: bool) -> None:
    model, given = drawn_model(seed, op, direct=True), inputs_of(seed, flag=flag)
    wanted = HostSession(model, "the model").run(given)
    check(on_device(optimise(model), given), wanted, exact=False)
    check(on_device(model, given), wanted, exact=False)


def shared_outputs(kind: str) -> onnx.ModelProto:
    """Return a Scan that adds up; onnxruntime itself confuses its outputs."""
    outputs = {"repeated": ["sum", "sum"], "inputs": ["sum", "row"]}
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "row"], ["sum"])],
        "body",
        [_info("state"), _info("row")],
        [_info(name) for name in outputs[kind]],
    )
    graph = helper.make_graph(
        [helper.make_node("Scan", ["outer", "rows"], ["y", "z"], body=body, num_scan_inputs=1)],
        "g",
        [_info("outer"), _info("rows", (_STEPS, _WIDTH))],
        [_info("y"), _info("z", (_STEPS, _WIDTH))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize("kind", ["repeated", "inputs"])
def test_outputs_that_share_a_value(kind: str) -> None:
    model, given = shared_outputs(kind), inputs_of(1, flag=True)
    del given["flag"]
    sums = given["outer"] + np.cumsum(given["rows"], 0)
    wanted = {"y": sums[-1], "z": sums if kind == "repeated" else given["rows"]}
    prepared = prepare(model)
    assert made_apart(prepared)
    check(HostSession(prepared, "prepared").run(given), wanted, exact=False)
    check(on_device(model, given), wanted, exact=False)
    check(on_device(optimise(model), given), wanted, exact=False)


SCANS = [case for case in cases_of("scan") if case.name.startswith(("test_scan_", "test_scan9"))]


@pytest.mark.parametrize("case", SCANS, ids=lambda case: case.name)
def test_scans_of_onnx(case: object) -> None:
    """ONNX's own tests of Scan, optimised and not, on the host and with the device."""
    model: onnx.ModelProto = case.model  # type: ignore[attr-defined]
    names = [value.name for value in model.graph.input]
    optimised = optimise(model)
    for arrays, results in case.data_sets:  # type: ignore[attr-defined]
        inputs = {name: np.asarray(value) for name, value in zip(names, arrays, strict=True)}
        outputs = [value.name for value in model.graph.output]
        wanted = {name: np.asarray(v) for name, v in zip(outputs, results, strict=True)}
        host = HostSession(optimised, "optimised").run(inputs)
        check(host, wanted, exact=False)
        check(on_device(optimised, inputs), wanted, exact=False)
        check(on_device(model, inputs), wanted, exact=False)


def test_there_are_scans() -> None:
    assert len(SCANS) >= 4
