"""The common parts of plug-ins, and the three plug-ins of ours."""

from __future__ import annotations

import os
import runpy
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from made_up_chip import Chip

from pycompiler.errors import PycompilerError
from pycompiler.pfvm.session import HostSession
from pycompiler.plugins import (
    Eager,
    Form,
    Kernel,
    KernelCache,
    MixedGraph,
    Session,
    TaskPool,
    open_device,
    plugins,
)
from pycompiler.plugins.conformance import network, one_operator

EXAMPLES = Path(__file__).parents[3] / "examples"
GRAPHS = 60 if os.environ.get("EMU2_LONG") else 3
MOST_CYCLES = 3  # kernel mode against graph mode


@pytest.mark.parametrize(("batch", "widths"), [(16, (64, 64, 32)), (7, (30, 50, 10))])
def test_cycles_of_kernel_mode(batch: int, widths: tuple[int, ...]) -> None:
    model = network(batch, widths)
    kernels = open_device("emu2-kernel", device="emu2:mini")
    graphs = open_device("emu2-graph", device="emu2:mini")
    side, host = Session(kernels), Session(open_device("host"))
    graph = MixedGraph(model, side, host)
    assert graphs.graphs is not None
    whole = graphs.graphs.compile(model, {}).cycles
    assert whole is not None
    assert graph.reasons == {}
    # No tensor changes its layout on the way, or its transfer would be missing in the cycles.
    assert graph.moves == 0
    assert 0 < graph.cycles <= MOST_CYCLES * whole
    x = np.random.default_rng(0).standard_normal((batch, widths[0])).astype(np.float32)
    graph.run({"x": x})
    assert kernels.executor.cycles == graph.cycles  # type: ignore[attr-defined]


def test_kernels_whose_values_share_memory() -> None:
    """In a large graph, memory of an input is used again: a launch copies it first."""
    device = open_device("emu2-graph", device="emu2:mini")
    session, model = Session(device), network(512, (16, 128, 8))
    assert device.graphs is not None
    kernel = device.graphs.compile(model, {})
    assert kernel.copied  # type: ignore[attr-defined]
    [buffer], [result] = (
        [session.pool.allocate(form.size) for form in forms]
        for forms in (kernel.inputs, kernel.outputs)
    )
    wanted = HostSession(model, "network")
    x = np.random.default_rng(0).standard_normal((512, 16)).astype(np.float32)
    session.copy_in(x, buffer, kernel.inputs[0], session.stream)
    for _ in range(2):
        session.launch(device.graphs, kernel, [buffer], [result], session.stream)
        found = session.copy_out(result, kernel.outputs[0], session.stream).result()
        np.testing.assert_allclose(found, wanted.run({"x": x})["y"], 1e-4, 1e-4)
    # An output that is an input, and one that stands twice, are copied too.
    text = """<ir_version: 10, opset_import: ["": 20]> g (float[3,5] x)
        => (float[3,5] y, float[3,5] z, float[3,5] x2) {
        y = Relu(x) z = Identity(y) x2 = Identity(x)
    }"""
    chip = onnx.parser.parse_model(text)
    kernel = device.graphs.compile(chip, {})
    assert len(kernel.copied) == 2  # type: ignore[attr-defined]
    buffers = [session.pool.allocate(form.size) for form in (*kernel.inputs, *kernel.outputs)]
    session.copy_in(x[:3, :5], buffers[0], kernel.inputs[0], session.stream)
    session.launch(device.graphs, kernel, buffers[:1], buffers[1:], session.stream)
    wants = (np.maximum(x[:3, :5], 0), np.maximum(x[:3, :5], 0), x[:3, :5])
    for at, form, want in zip(buffers[1:], kernel.outputs, wants, strict=True):
        found = session.copy_out(at, form, session.stream).result()
        np.testing.assert_array_equal(found, want)


def test_host_kernels_run_beside_each_other() -> None:
    """Branches on the host are tasks of their own, and calls from threads do not mix."""
    text = """<ir_version: 10, opset_import: ["": 20]>
    g (float[3,5] x) => (float[3,5] y, float[3,5] x2) {
        a = Sin(x)
        b = Cos(x)
        c = Mul(a, b)
        y = Relu(c)
        x2 = Identity(x)
    }"""
    model = onnx.parser.parse_model(text)
    chip, host = Session(Chip()), Session(open_device("host"))
    graph = MixedGraph(model, chip, host)
    assert set(graph.reasons) == {"a", "b"}
    arrays = [np.random.default_rng(seed).random((3, 5), np.float32) for seed in range(6)]
    found: dict[int, Any] = {}

    def call(number: int) -> None:
        found[number] = graph.run({"x": arrays[number]})

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(arrays))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, x in enumerate(arrays):
        np.testing.assert_allclose(found[number]["y"], np.maximum(np.sin(x) * np.cos(x), 0), 1e-5)
        np.testing.assert_array_equal(found[number]["x2"], x)
    with pytest.raises(PycompilerError, match="P0828"):
        graph.run({"x": arrays[0][:2]})


def test_failures_end_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a kernel comes out, and the memory of the call is free again."""
    chip, host = Session(Chip()), Session(open_device("host"))
    graph = MixedGraph(network(2, (4, 3)), chip, host)
    used = chip.pool.used

    def broken(*_: object) -> None:
        raise OSError("the chip is on fire")

    monkeypatch.setattr(chip.device.kernels, "launch", broken)
    with pytest.raises(OSError, match="on fire"):
        graph.run({"x": np.zeros((2, 4), np.float32)})
    assert chip.pool.used == used


def test_random_graphs() -> None:
    """Drawn graphs on the emulator, with drawn operators on the host, give the host's results."""
    drawn = np.random.default_rng(3)
    side = Session(open_device("emu2-kernel", device="emu2:mini"))
    host = Session(open_device("host"))
    for _ in range(GRAPHS):
        shape = tuple(int(n) for n in drawn.integers(1, 9, 2))
        lines, values = [], ["x"]
        for number in range(int(drawn.integers(2, 6))):
            op = str(drawn.choice(["Add", "Mul", "Relu", "Sin", "Neg", "Sub"]))
            count = 1 if op in ("Relu", "Sin", "Neg") else 2
            operands = ", ".join(str(drawn.choice(values)) for _ in range(count))
            values.append(f"v{number}")
            lines.append(f"v{number} = {op}({operands})")
        type = f"float[{shape[0]},{shape[1]}]"
        text = (
            f'<ir_version: 10, opset_import: ["": 20]> g ({type} x) => ({type} {values[-1]}) '
            f"{{ {' '.join(lines)} }}"
        )
        model = onnx.parser.parse_model(text)
        on_host = [op for op in ("Add", "Mul", "Sin") if drawn.random() < 0.4]
        graph = MixedGraph(model, side, host, on_host=on_host)
        x = drawn.standard_normal(shape).astype(np.float32)
        wanted = HostSession(model, "graph").run({"x": x})[values[-1]]
        np.testing.assert_allclose(
            graph.run({"x": x})[values[-1]], wanted, 1e-4, 1e-4, err_msg=text
        )
        graph.close()
    assert side.pool.used == 0


class TestTasks:
    def test_order(self) -> None:
        pool = TaskPool(2)
        done: list[int] = []

        def work(number: int) -> int:
            time.sleep(0.002 * (5 - number % 5))
            done.append(number)
            return number

        tasks: list[Future[Any]] = []
        before = [[], [0], [0], [1, 2], [], [3, 4], [5, 5, 0]]
        for number, those in enumerate(before):
            tasks.append(pool.submit(lambda n=number: work(n), [tasks[i] for i in those]))
        assert [task.result() for task in tasks] == list(range(7))
        pool.close()
        for number, those in enumerate(before):
            assert all(done.index(i) < done.index(number) for i in those)

    def test_many_waiting_tasks_need_one_thread(self) -> None:
        pool = TaskPool(1)
        task = pool.submit(lambda: 0)
        for _ in range(300):
            task = pool.submit(lambda: 1, [task])
        assert task.result(10) == 1
        pool.close()

    def test_a_failure_ends_those_after_it(self) -> None:
        pool = TaskPool(2)
        failed = pool.submit(lambda: 1 // 0)
        ran: list[int] = []
        later = pool.submit(lambda: ran.append(1), [pool.submit(lambda: 0, [failed])])
        with pytest.raises(ZeroDivisionError):
            later.result()
        assert ran == []
        pool.close()


class Counting(Chip):
    """Counts compiles, which take a while."""

    def __init__(self) -> None:
        super().__init__()
        self.compiles = 0
        assert self.kernels is not None
        compile = self.kernels.compile

        def counted(model: onnx.ModelProto, given: dict[str, Form]) -> Kernel:
            self.compiles += 1
            time.sleep(0.02)
            return compile(model, given)

        self.kernels.compile = counted  # type: ignore[method-assign, assignment]


class TestKernelCache:
    def test_threads_compile_once(self) -> None:
        chip = Counting()
        assert chip.kernels is not None
        cache = KernelCache(chip.kernels)
        model = one_operator("Add", [(2, 2), (2, 2)])
        renamed = onnx.ModelProto()
        renamed.CopyFrom(model)
        renamed.graph.node[0].name = "other"
        renamed.graph.node[0].output[0] = renamed.graph.output[0].name = "z"
        pool = TaskPool(4)
        tasks = [pool.submit(lambda m=m: cache.kernel(m)) for m in (model, renamed) * 4]
        assert len({task.result() for task in tasks}) == 1
        pool.close()
        assert (chip.compiles, cache.compiled, cache.found) == (1, 1, 7)

    def test_what_differs_is_another_kernel(self) -> None:
        chip = Counting()
        assert chip.kernels is not None
        cache = KernelCache(chip.kernels, most=3)
        models = [
            one_operator("Add", [(2, 2), (2, 2)]),
            one_operator("Add", [(2, 3), (2, 3)]),
            one_operator("Mul", [(2, 2), (2, 2)]),
        ]
        same = onnx.ModelProto()
        same.CopyFrom(models[0])
        same.graph.node[0].input[1] = same.graph.node[0].input[0]
        for model in (*models, same, models[0]):
            cache.kernel(model)
        assert chip.compiles == 5  # the first was the oldest of four

    def test_failures_are_not_kept(self) -> None:
        chip = Counting()
        assert chip.kernels is not None
        cache = KernelCache(chip.kernels)
        for _ in range(2):
            with pytest.raises(PycompilerError, match="P0828"):
                cache.kernel(one_operator("Sin", [(2,)]))
        assert chip.compiles == 2


def test_eager_mistakes() -> None:
    chip = Session(Chip())
    eager, other = Eager(chip), Eager(Session(Chip()))
    x = eager.tensor(np.ones((2, 3), np.float32))
    for operands, code in (((x, other.tensor(x.numpy())), "P0822"), ((x, x), "P0828")):
        with pytest.raises(PycompilerError, match=code):
            eager.run("MatMul", *operands)
    with pytest.raises(PycompilerError, match="P0828"):
        eager.tensor(np.ones(3, np.int64))
    graphs = open_device("emu2-graph", device="emu2:mini")
    with pytest.raises(PycompilerError, match="P0828"):
        Eager(Session(graphs))


class TestNames:
    def test_entry_points(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A package of somebody else announces a chip, and cannot take our names."""
        for package, names in (
            ("one", "chip host broken wrong"),
            ("two", "twice"),
            ("three", "twice"),
        ):
            folder = tmp_path / f"{package}-1.0.dist-info"
            folder.mkdir()
            (folder / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n"
            )
            target = {"broken": "nowhere:chip", "wrong": "builtins:dict"}
            rows = [f"{n} = {target.get(n, 'made_up_chip:Chip')}" for n in names.split()]
            text = "\n".join(["[pycompiler.plugins]", *rows])
            (folder / "entry_points.txt").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        assert {"chip", "emu2-graph", "emu2-kernel", "host"} <= set(plugins())
        assert type(open_device("chip")).__name__ == "Chip"
        assert type(open_device("host")).__name__ == "HostContext"
        for name in ("twice", "broken", "wrong", "unknown"):
            with pytest.raises(PycompilerError, match="P0827"):
                open_device(name)

    def test_devices(self) -> None:
        for name in ("pfvm:cpu", "nothing"):
            with pytest.raises(PycompilerError, match="P0601"):
                open_device("emu2-kernel", device=name)


def test_example(capsys: pytest.CaptureFixture[str]) -> None:
    path = EXAMPLES / "plugin_modes.py"
    assert len(path.read_text().splitlines()) < 40
    runpy.run_path(str(path), run_name="__main__")
    assert "kernel mode takes" in capsys.readouterr().out
