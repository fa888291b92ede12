"""Export of torch functions to ONNX: names, state that must not change, refused functions."""

from __future__ import annotations

import concurrent.futures
import copy
import sys
from collections.abc import Callable
from typing import Any

import onnx
import pytest
import torch

from pycompiler.errors import PycompilerError
from pycompiler.frontend.export import export
from pycompiler.frontend.import_onnx import import_onnx
from pycompiler.machine import load_target
from pycompiler.pfvm.names import keys, set_keys
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

Tensors = dict[str, torch.Tensor]
HERE = __file__


def run_host(model: onnx.ModelProto, inputs: Tensors) -> Tensors:
    session = HostSession(model, "model")
    found = session.run({k: v.numpy() for k, v in inputs.items()})
    return {k: torch.from_numpy(v) for k, v in found.items()}


def test_names_are_those_of_the_dicts() -> None:
    weight = torch.nn.Parameter(torch.rand(3, 4))

    def function(d: Tensors) -> Tensors:
        h = torch.relu(d["x"] * d["y"] + weight)
        return {
            "x": h,  # also the name of an input
            "again": h,
            "a name, with blanks": h - 1.5,
            "input": d["x"],
            "constant": weight,
            "twice": weight,
            "val_0": h * 2.0,  # a name that torch's exporter uses for its own values
        }

    inputs = {"x": torch.rand(3, 4), "y": torch.rand(4), "un used": torch.rand(2)}
    model = export(function, inputs)
    assert keys(model)[0] == list(inputs)
    assert keys(model)[1] == list(function(inputs))
    assert [value.name for value in model.graph.input] == list(inputs)
    found, wanted = run_host(model, inputs), function(inputs)
    assert list(found) == list(wanted)
    for key, tensor in wanted.items():
        assert torch.allclose(found[key], tensor)


def test_the_model_is_not_changed_by_tracing() -> None:
    torch.manual_seed(3)
    layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    layer.eval()
    layer[0].weight.grad = torch.ones(4, 4)
    before, grad = copy.deepcopy(layer.state_dict()), layer[0].weight.grad.clone()
    inputs = {"x": torch.rand(2, 4, requires_grad=True)}
    given = dict(inputs)
    state = torch.get_rng_state()

    def function(d: Tensors) -> Tensors:
        x = d.pop("x")
        d["y"] = x
        return {"out": layer(x) * torch.rand(2, 4)}

    export(function, inputs)
    assert torch.equal(torch.get_rng_state(), state)
    assert inputs == given
    assert all(torch.equal(before[k], v) for k, v in layer.state_dict().items())
    assert torch.equal(layer[0].weight.grad, grad)
    assert not layer.training
    layer.train()
    export(lambda d: {"out": layer[0](d["x"])}, inputs)
    assert layer.training


def test_modules_and_odd_tensors() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.rand(5))

        def forward(self, d: Tensors) -> Tensors:
            return {"out": d["x"] * self.scale}

    net = Net()
    stretched = {"x": torch.rand(1, 5).expand(3, 5)}
    found = run_host(export(net, stretched), {"x": stretched["x"].contiguous()})
    assert torch.allclose(found["out"], net(stretched)["out"])


def test_lines_of_the_model_are_recorded() -> None:
    def function(d: Tensors) -> Tensors:
        h = d["x"] + 1.0
        return {"out": torch.sin(h)}

    graph = import_onnx(export(function, {"x": torch.rand(3)}), load_target("mini")).graph
    line = function.__code__.co_firstlineno
    assert [node.source for node in graph.nodes] == [f"{HERE}:{line + 1}", f"{HERE}:{line + 2}"]


def test_prints_of_the_function_are_seen(capfd: pytest.CaptureFixture[str]) -> None:
    def function(d: Tensors) -> Tensors:
        print("tracing", tuple(d["x"].shape))
        return {"out": d["x"] + 1}

    export(function, {"x": torch.rand(2)})
    captured = capfd.readouterr()
    assert captured.out == "tracing (2,)\n"
    assert captured.err == ""


buffer = torch.zeros(4)


def branches(d: Tensors) -> Tensors:
    return {"out": d["x"] if d["x"].sum() > 0 else -d["x"]}


def writes_input(d: Tensors) -> Tensors:
    d["x"].add_(1)
    return {"out": d["x"]}


def writes_view(d: Tensors) -> Tensors:
    d["x"][0] = 1.0
    return {"out": d["x"]}


def writes_buffer(d: Tensors) -> Tensors:
    buffer.add_(d["x"])
    return {"out": buffer * 2}


REFUSED: dict[str, tuple[Callable[[Tensors], Any], str]] = {
    "branch on a value": (branches, "P0101"),
    "wrong shapes": (lambda d: {"out": d["x"].reshape(3, 5)}, "P0101"),
    "leaves torch": (lambda d: {"out": torch.from_numpy(d["x"].numpy())}, "P0101"),
    "no ONNX form": (lambda d: {"out": torch.multinomial(d["x"], 3)}, "P0138"),
    "dynamic size": (lambda d: {"out": torch.nonzero(d["x"])}, "P0103"),
    "no dict": (lambda d: d["x"], "P0104"),
    "no tensor": (lambda d: {"out": 3}, "P0104"),
    "no text key": (lambda d: {1: d["x"]}, "P0104"),
    "writes its input": (writes_input, "P0105"),
    "writes a view of its input": (writes_view, "P0105"),
    "writes a buffer": (writes_buffer, "P0115"),
    "empty key": (lambda d: {"": d["x"]}, "P0104"),
    "complex result": (lambda d: {"out": torch.complex(d["x"], d["x"])}, "P0109"),
    "8-bit result": (lambda d: {"out": d["x"].to(torch.float8_e4m3fn)}, "P0135"),
    "no function": (3, "P0704"),  # type: ignore[dict-item]
    "other arguments": (lambda x, y: {"out": x + y}, "P0704"),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    function, code = REFUSED[case]
    with pytest.raises(PycompilerError) as caught:
        export(function, {"x": torch.tensor([1.0, 2.0, 3.0, 4.0])})
    assert caught.value.code == code
    assert "\n" not in caught.value.message
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""
    if code in ("P0101", "P0103", "P0105", "P0138"):
        place = caught.value.place
        assert place is not None
        assert place.file == HERE
        assert function.__code__.co_firstlineno <= (place.line or 0)
    assert buffer.tolist() == [0, 0, 0, 0]


def test_an_exception_of_the_function_is_its_own() -> None:
    def function(d: Tensors) -> Tensors:
        return {"out": d["missing"]}

    with pytest.raises(KeyError, match="missing"):
        export(function, {"x": torch.rand(2)})


def test_inputs_must_be_tensors() -> None:
    wrong: list[tuple[Any, str]] = [
        ({"x": [1.0]}, "P0104"),
        ({1: torch.rand(2)}, "P0104"),
        ({"": torch.rand(2)}, "P0104"),
        ({"x": torch.rand(2).to_sparse()}, "P0109"),
        ({"x": torch.rand(2).to(torch.complex64)}, "P0109"),
        ({"x": torch.rand(2).to(torch.float8_e5m2)}, "P0135"),
    ]
    for inputs, code in wrong:
        with pytest.raises(PycompilerError) as caught:
            export(lambda d: d, inputs)
        assert caught.value.code == code


def test_control_flow_of_torch_is_exported() -> None:
    def function(d: Tensors) -> Tensors:
        total = d["x"].sum()
        return {"out": torch.cond(total > 0, lambda x: x + 1, lambda x: x - 1, (d["x"],))}

    model = export(function, {"x": torch.ones(2)})
    for x in (torch.ones(2), -torch.ones(2)):
        assert torch.equal(run_host(model, {"x": x})["out"], function({"x": x})["out"])


def test_threads_take_turns_and_leave_the_streams(capfd: pytest.CaptureFixture[str]) -> None:
    streams = sys.stdout, sys.stderr
    functions = [lambda d, k=k: {"out": d["x"] * float(k)} for k in range(2)]
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        models = list(threads.map(lambda f: export(f, {"x": torch.ones(2)}), functions))
    assert (sys.stdout, sys.stderr) == streams
    found = [run_host(model, {"x": torch.ones(2)})["out"].tolist() for model in models]
    assert found == [[k, k] for k in range(2)]


def test_export_kwargs() -> None:
    def function(d: Tensors) -> Tensors:
        return {"out": d["x"] + 1}

    inputs = {"x": torch.rand(2)}
    assert export(function, inputs, {"opset_version": 21}).opset_import[0].version == 21
    for extra, code in [
        ({"dynamo": False}, "P0107"),
        ({"dynamic_shapes": ({0: "n"},)}, "P0103"),
        ({"no_such_argument": 1}, "P0704"),
        ({"custom_translation_table": 1}, "P0106"),
        ([1], "P0704"),
    ]:
        with pytest.raises(PycompilerError) as caught:
            export(function, inputs, extra)
        assert caught.value.code == code


# -- ONNX models ------------------------------------------------------------------------------


def test_models_keep_their_names_without_keys() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[2] a) => (float[2] b) { b = Neg(a) }'
    )
    assert keys(model) == (["a"], ["b"])
    set_keys(model, ["b"], ["a"])
    assert keys(model) == (["b"], ["a"])


def test_import_follows_aliases_and_constants() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[2] a) => (float[2] b, float[2] c, float[2] d) {
            k = Constant <value = float[2] {1, 2}> ()
            i = Identity(a)
            j = Identity(i)
            b = Add(j, k)
            c = Identity(k)
            d = Identity(j)
            unused = Neg(b)
        }"""
    )
    imported = import_onnx(model, load_target("mini"))
    assert [node.op for node in imported.graph.nodes] == ["Add"]
    assert imported.graph.nodes[0].inputs == ("a", "k")
    assert imported.graph.outputs == (("b", "b"), ("c", "k"), ("d", "a"))
    assert imported.constants["k"].tolist() == [1, 2]


def test_each_reader_of_a_vector_has_its_own() -> None:
    """A vector ties the layouts of those that read it; numbers and matrices stay shared."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[2, 3] a) => (float[2, 3] c, float[2, 3] v__1)
        <float[3] v = {1, 2, 3}, float n = {4}, float[2, 3] m = {1, 2, 3, 4, 5, 6}> {
            b = Add(a, v)
            c = Mul(b, v)
            d = Mul(c, n)
            e = Add(d, n)
            f = Mul(e, m)
            v__1 = Add(f, m)
        }"""
    )
    imported = import_onnx(model, load_target("mini"))
    read = [node.inputs[1] for node in imported.graph.nodes]
    assert read[:1] + read[2:] == ["v", "n", "n", "m", "m"]
    assert read[1] not in ("v", "v__1")
    assert imported.constants[read[1]].tolist() == [1, 2, 3]


def test_import_inlines_functions_and_sees_into_bodies() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18, "own": 1]>
        g (float[2] a, bool t) => (float[2] b) {
            h = own.twice(a)
            i = Identity(a)
            b = If (t) <then_branch = yes () => (float[2] y) { y = Neg(h) },
                        else_branch = no () => (float[2] n) { n = Abs(i) }>
        }
        <domain: "own", opset_import: ["": 18]>
        twice (x) => (y) { y = Add(x, x) }"""
    )
    graph = import_onnx(model, load_target("mini")).graph
    assert [node.op for node in graph.nodes] == ["Add", "If"]
    assert graph.nodes[1].inputs == ("t", graph.nodes[0].outputs[0], "a")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("g (float[n, 4] a) => (float[n, 4] b) { b = Neg(a) }", "P0103"),
        ("g (float[2] a) => (int64[1, k] b) { b = NonZero(a) }", "P0103"),
        ("g (float[2] a) => (float[2] b) { b = Neg(missing) }", "P0108"),
        ("g (float[2] a) => (float[2] b) { b = NoSuchOperator(a) }", "P0108"),
        ("g (float[2] a, float[3] b) => (float[3] c) { c = Add(a, b) }", "P0112"),
        ("g (seq(float[2]) a) => (seq(float[2]) b) { b = Identity(a) }", "P0132"),
        ("g (string[2] a) => (string[2] b) { b = Identity(a) }", "P0131"),
    ],
)
def test_bad_models(text: str, code: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    with pytest.raises(PycompilerError) as caught:
        import_onnx(model, load_target("mini"))
    assert caught.value.code == code


@pytest.mark.parametrize("constant", [True, False])
def test_sparse_tensors_are_refused_by_name(constant: bool) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[4] a) => (float[4] b) { b = Add(a, w) }'
    )
    values, places = (onnx.helper.make_tensor("w", kind, [1], [2]) for kind in (1, 7))
    sparse = onnx.helper.make_sparse_tensor(values, places, [4])
    if constant:
        model.graph.node.insert(
            0, onnx.helper.make_node("Constant", [], ["w"], sparse_value=sparse)
        )
    else:
        model.graph.sparse_initializer.append(sparse)
    onnx.checker.check_model(model)
    with pytest.raises(PycompilerError, match=r"P0108.*w.*is a sparse tensor"):
        optimise(model)


@pytest.mark.parametrize(
    "function",
    [
        lambda d: {"y": torch.nn.functional.one_hot(d["i"])},
        lambda d: {"y": torch.narrow(d["x"], 0, d["i"][1], 2)},
    ],
    ids=["one_hot", "narrow"],
)
def test_sizes_that_values_decide_are_refused_with_a_remedy(function: Any) -> None:
    sample = {"i": torch.tensor([2, 1, 0]), "x": torch.ones(5)}
    with pytest.raises(PycompilerError, match=r"one_hot\(x, num_classes\)") as caught:
        export(function, sample)
    assert caught.value.code == "P0101"
