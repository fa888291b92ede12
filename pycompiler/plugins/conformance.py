"""The tests that every plug-in must pass; they need pytest.

A plug-in's author derives a class in a test file and says how to open the device::

    class TestChip(PluginConformance):
        @pytest.fixture
        def device(self):
            chip = open_chip()
            yield chip
            chip.close()
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ..errors import PycompilerError
from ..graph.graph import TensorType
from ..partitioning.source import read_source
from ..pfvm.prepare import prepare
from ..pfvm.session import Array, HostSession
from .eager import Eager
from .host import host
from .interface import DeviceContext, Executor
from .mixed import MixedGraph
from .session import Session

_SEED = 20
_TOLERANCE = 1e-4  # relative to the largest result: products may be summed in another order
#: Operators that a chip may take: name, shapes of the operands, attributes.
_OPERATORS: list[tuple[str, list[tuple[int, ...]], dict[str, Any]]] = [
    ("Add", [(5, 7), (5, 7)], {}),
    ("Mul", [(3, 33), (33,)], {}),
    ("Relu", [(2, 3, 5)], {}),
    ("MatMul", [(6, 20), (20, 9)], {}),
    ("Transpose", [(4, 10)], {"perm": [1, 0]}),
    ("Softmax", [(4, 12)], {"axis": -1}),
    ("Conv", [(1, 2, 6, 6), (3, 2, 3, 3)], {}),
]


def one_operator(op: str, shapes: Sequence[Sequence[int]], **attributes: Any) -> onnx.ModelProto:
    """Return a model of one operator on singles; its output is ``y``."""
    names = [f"x{number}" for number in range(len(shapes))]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip(names, shapes, strict=True)
    ]
    node = helper.make_node(op, names, ["y"], **attributes)
    graph = helper.make_graph([node], op, inputs, [onnx.ValueInfoProto(name="y")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    made.ir_version = 10
    return prepare(onnx.shape_inference.infer_shapes(made))


def network(batch: int, widths: Sequence[int], seed: int = _SEED) -> onnx.ModelProto:
    """Return layers of MatMul, Add and Relu with drawn weights: input ``x``, output ``y``."""
    drawn = np.random.default_rng(seed)
    nodes, weights, value = [], [], "x"
    for number, (given, out) in enumerate(pairwise(widths)):
        last = number == len(widths) - 2
        names = [f"w{number}", f"b{number}"]
        for name, shape in zip(names, ((given, out), (out,)), strict=True):
            array = drawn.standard_normal(shape).astype(np.float32) / given**0.5
            weights.append(numpy_helper.from_array(array, name))
        nodes.append(helper.make_node("MatMul", [value, names[0]], [f"m{number}"]))
        value = "y" if last else f"a{number}"
        nodes.append(helper.make_node("Add", [f"m{number}", names[1]], [value]))
        if not last:
            nodes.append(helper.make_node("Relu", [value], [f"r{number}"]))
            value = f"r{number}"
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (batch, width))
        for name, width in (("x", widths[0]), ("y", widths[-1]))
    ]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    made.ir_version = 10
    return made


def _close(found: Array, wanted: Array) -> None:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=_TOLERANCE * scale)


def _drawn(shape: Sequence[int], seed: int = _SEED) -> Array:
    return np.random.default_rng(seed).standard_normal(tuple(shape)).astype(np.float32)


def _refused(code: str) -> pytest.RaisesExc[PycompilerError]:
    return pytest.RaisesExc(PycompilerError, check=lambda problem: problem.code == code)


def _launched(
    session: Session, executor: Executor, model: onnx.ModelProto, arrays: Sequence[Array]
) -> Array:
    """Run a model between two tensors that must keep their values, and return its output."""
    stream, pool = session.stream, session.pool
    kernel = executor.compile(model, {})
    guard = _drawn((40,), 1)
    form = session.form(guard)
    forms = [form, *kernel.inputs, form, *kernel.outputs, form]
    buffers = [pool.allocate(one.size, stream) for one in forms]
    inputs = buffers[1 : 1 + len(arrays)]
    for array, buffer, one in zip(arrays, inputs, kernel.inputs, strict=True):
        session.copy_in(array, buffer, one, stream)
    guards = (buffers[0], buffers[1 + len(arrays)], buffers[-1])
    for buffer in guards:
        session.copy_in(guard, buffer, form, stream)
    session.launch(executor, kernel, inputs, [buffers[-2]], stream)
    found = session.copy_out(buffers[-2], kernel.outputs[0], stream).result()
    for buffer in guards:
        np.testing.assert_array_equal(session.copy_out(buffer, form, stream).result(), guard)
    for array, buffer, one in zip(arrays, inputs, kernel.inputs, strict=True):
        np.testing.assert_array_equal(session.copy_out(buffer, one, stream).result(), array)
    for buffer in buffers:
        pool.free(buffer)
    return found


class PluginConformance:
    """The suite. A class of a test file derives from it and has the fixture ``device``."""

    @pytest.fixture
    def device(self) -> Iterator[DeviceContext]:
        """Open the device, and close it after the test."""
        raise NotImplementedError("give the class a fixture `device`")

    @pytest.fixture
    def session(self, device: DeviceContext) -> Iterator[Session]:
        """Return a session on the device."""
        session = Session(device)
        yield session
        session.close()

    # -- memory ------------------------------------------------------------------------------

    def test_has_a_mode_and_memory(self, device: DeviceContext) -> None:
        """A device has a name, one of the modes, and memory."""
        assert device.name
        assert device.kernels is not None or device.graphs is not None
        resources = device.resources
        assert resources.unit
        assert 1 <= resources.alignment <= resources.capacity

    def test_tensors_come_back(self, session: Session) -> None:
        """Arrays of drawn shapes come back bit by bit, also with other tensors around them."""
        draw = random.Random(_SEED)
        special = np.array([0.0, -0.0, np.inf, -np.inf, 1e-30], np.float32)
        arrays = [special, _drawn(()), _drawn((1, 1, 3))]
        for number in range(5):
            shape = [draw.randint(1, 17) for _ in range(draw.randint(1, 3))]
            arrays.append(_drawn(shape, number))
        forms = [session.form(array) for array in arrays]
        buffers = [session.pool.allocate(form.size) for form in forms]
        for array, buffer, form in zip(arrays, buffers, forms, strict=True):
            assert form.type == TensorType("float", array.shape)
            session.copy_in(array, buffer, form, session.stream)
        for array, buffer, form in zip(arrays, buffers, forms, strict=True):
            found = session.copy_out(buffer, form, session.stream).result()
            assert found.dtype == array.dtype
            assert found.shape == array.shape
            assert found.tobytes() == array.tobytes()

    def test_regions_are_given_back(self, device: DeviceContext) -> None:
        """Sessions one after the other need the memory of one."""
        for _ in range(9):
            Session(device).close()

    def test_out_of_memory(self, device: DeviceContext) -> None:
        """P0821 if the pool is full; freed neighbours become one block again."""
        unit = device.resources.alignment
        session = Session(device, 8 * unit)
        buffers = [session.pool.allocate(unit) for _ in range(8)]
        assert len({buffer.address for buffer in buffers}) == 8
        with _refused("P0821"):
            session.pool.allocate(1)
        for buffer in buffers:
            session.pool.free(buffer)
        assert session.pool.allocate(8 * unit).size == 8 * unit
        session.close()
        with _refused("P0825"):
            session.pool.allocate(unit)

    def test_device_without_room(self, device: DeviceContext) -> None:
        """P0821 if the device itself has no room."""
        with _refused("P0821"):
            device.resources.allocate(device.resources.capacity + device.resources.alignment)

    def test_use_after_free(self, session: Session) -> None:
        """P0823 for any use of a freed buffer, P0824 for a second free, P0825 if it is small."""
        array = _drawn((3, 5))
        form, stream = session.form(array), session.stream
        buffer = session.pool.allocate(form.size, stream)
        session.copy_in(array, buffer, form, stream)
        session.pool.free(buffer)
        with _refused("P0823"):
            session.copy_in(array, buffer, form, stream)
        with _refused("P0823"):
            session.copy_out(buffer, form, stream)
        with _refused("P0824"):
            session.pool.free(buffer)
        large = session.form(_drawn((40, 400)))
        with _refused("P0825"):
            session.copy_out(session.pool.allocate(form.size), large, stream)

    # -- streams -----------------------------------------------------------------------------

    def test_streams_keep_their_order(self, session: Session) -> None:
        """Operations run in order, and behind the events that their stream waits for."""
        first, second = session.new_stream(), session.new_stream()
        done: list[int] = []

        def work(number: int, seconds: float) -> int:
            time.sleep(seconds)
            done.append(number)
            return number

        first.enqueue(lambda: work(0, 0.02))
        first.enqueue(lambda: work(1, 0.01))
        second.wait(first.record())
        assert second.enqueue(lambda: work(2, 0)).result() == 2
        second.synchronize()
        assert done == [0, 1, 2]

    def test_errors_come_out(self, session: Session) -> None:
        """What an operation raises comes out at the end, and the stream goes on."""
        stream = session.new_stream()
        stream.enqueue(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            stream.synchronize()
        assert stream.enqueue(lambda: 5).result() == 5
        stream.synchronize()

    def test_wrong_stream(self, session: Session) -> None:
        """P0822 if two streams use memory in no order, and for a stream of another device."""
        array = _drawn((4, 4))
        form = session.form(array)
        one, two = session.new_stream(), session.new_stream()
        buffer = session.pool.allocate(form.size, one)
        session.copy_in(array, buffer, form, one)
        with _refused("P0822"):
            session.copy_out(buffer, form, two)
        two.wait(one.record())
        np.testing.assert_array_equal(session.copy_out(buffer, form, two).result(), array)
        with _refused("P0822"):
            session.copy_in(array, buffer, form, one)
        two.synchronize()
        session.copy_in(array, buffer, form, one)
        other = host()
        foreign = Session(other, 1 << 10)
        with _refused("P0822"):
            session.copy_out(buffer, form, foreign.stream)
        foreign.close()
        other.close()
        session.pool.free(buffer)
        later = session.pool.allocate(form.size, two)
        assert later.address != session.pool.allocate(form.size, one).address

    # -- kernels -----------------------------------------------------------------------------

    def test_operators(self, session: Session) -> None:
        """The operators that kernel mode takes are right; a refusal says why."""
        executor = session.device.kernels
        if executor is None:
            pytest.skip("no kernel mode")
        taken = 0
        for op, shapes, attributes in _OPERATORS:
            model = one_operator(op, shapes, **attributes)
            [unit] = executor.split(read_source(model))
            reason = executor.refusal(unit)
            if reason is not None:
                assert reason
                continue
            taken += 1
            arrays = [_drawn(shape, number) for number, shape in enumerate(shapes)]
            found = _launched(session, executor, model, arrays)
            keys = [value.name for value in model.graph.input]
            given = dict(zip(keys, arrays, strict=True))
            _close(found, HostSession(model, op).run(given)["y"])
        assert taken

    def test_eager_operators(self, session: Session) -> None:
        """Operators run one by one, on memory that is freed with its tensors."""
        if session.device.kernels is None:
            pytest.skip("no kernel mode")
        eager, array = Eager(session), _drawn((6, 6))
        assert session.kernels is not None
        x = eager.tensor(array)
        for _ in range(3):
            [y] = eager.run("Relu", *eager.run("Add", x, x))
        np.testing.assert_array_equal(y.numpy(), np.maximum(array + array, 0))
        assert session.kernels.compiled == 2
        assert session.kernels.found == 4
        del x, y
        assert session.pool.used == 0

    @pytest.mark.parametrize(("batch", "widths"), [(4, (8, 8)), (7, (30, 50, 10))])
    def test_whole_graph(self, session: Session, batch: int, widths: Sequence[int]) -> None:
        """A network in graph mode gives the results of the host."""
        executor = session.device.graphs
        if executor is None:
            pytest.skip("no graph mode")
        model, x = network(batch, widths), _drawn((batch, widths[0]))
        found = _launched(session, executor, model, [x])
        _close(found, HostSession(model, "network").run({"x": x})["y"])

    @pytest.mark.parametrize("on_host", [(), ("Relu",), ("MatMul", "Add")])
    def test_mixed_graph(self, session: Session, on_host: Sequence[str]) -> None:
        """A network in kernels, some of them on the host, gives the results of the host."""
        if session.device.kernels is None:
            pytest.skip("no kernel mode")
        model = network(5, (12, 20, 9, 3))
        other = host()
        beside = Session(other, 1 << 20)
        graph = MixedGraph(model, session, beside, on_host=on_host)
        wanted = HostSession(model, "network")
        for seed in range(2):
            x = _drawn((5, 12), seed)
            _close(graph.run({"x": x})["y"], wanted.run({"x": x})["y"])
        graph.close()
        assert session.pool.used == beside.pool.used == 0
        beside.close()
        other.close()

    def test_unknown_operators(self, session: Session) -> None:
        """A model that no chip knows is refused with a diagnostic."""
        model = one_operator("Relu", [(3,)])
        model.graph.node[0].op_type = "Frobnicate"
        model.graph.node[0].domain = "nobody"
        model.opset_import.append(helper.make_opsetid("nobody", 1))
        model.graph.output[0].CopyFrom(model.graph.input[0])
        model.graph.output[0].name = "y"
        for executor in (session.device.kernels, session.device.graphs):
            if executor is not None:
                with pytest.raises(PycompilerError):
                    executor.compile(model, {})


__all__ = ["PluginConformance", "network", "one_operator"]
