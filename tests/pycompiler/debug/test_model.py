"""Compiled models under the debugger: elements where layouts say, notes of lines."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from compiling import sampled

from emu2.debug.commands import Commands
from emu2.debug.dap_requests import Requests
from emu2.debug.session import Session
from emu2.errors import EmulatorError
from pycompiler.app.reader import read_app
from pycompiler.debug.model import open_model
from pycompiler.errors import PycompilerError
from pycompiler.graph.text import parse_graph
from pycompiler.machine import load_target
from pycompiler.mlsdk import Context, MNDevice
from pycompiler.report.codegen_dir import MODEL_APP, read_file
from pycompiler.runtime.device import Board

ROOT = Path(__file__).parents[3]


def opened(folder: Path, inputs: dict[str, torch.Tensor]) -> Session:
    app = read_app(read_file(folder, MODEL_APP), "model.app")
    arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
    return open_model(folder, app, Board(load_target("mini")), arrays)


def element(session: Session, name: str, index: tuple[int, ...]) -> float:
    found = session.evaluate(f"value {name} [{', '.join(map(str, index))}]")
    return float(found.text)


@pytest.mark.parametrize("seed", sampled(range(3), every=3))
def test_elements_have_their_values_when_they_are_there(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    rows, inner, columns = rng.randint(1, 9), rng.randint(2, 40), rng.randint(1, 20)
    inputs = {
        "x": torch.randn(rows, inner),
        "y": torch.randn(rows, inner),
        "w": torch.randn(inner, columns),
    }
    context = Context(MNDevice("emu2:mini"))
    context.compile(
        lambda i: {"out": torch.relu(i["x"] * i["y"]) @ i["w"]},
        inputs,
        str(tmp_path / "out"),
        options={"fuse_elementwise": False, "emit": "concat"},
    )
    session = opened(tmp_path / "out", inputs)
    product = inputs["x"] * inputs["y"]
    out = torch.relu(product) @ inputs["w"]
    for name, tensor in inputs.items():
        for index in itertools.product(*map(range, tensor.shape)):
            np.testing.assert_allclose(element(session, name, index), tensor[index], rtol=1e-5)
    # The product is in LM when its consumer begins.
    relu = next(line for line in session.lines if ": Relu" in line)
    session.run.add(f"line {session.lines.index(relu) + 1}")
    session.run.run()
    value = relu.partition("(")[2].partition(")")[0]
    for index in itertools.product(*map(range, product.shape)):
        np.testing.assert_allclose(element(session, value, index), product[index], rtol=1e-5)
    assert "Relu node_relu" in session.note(session.run.line)
    assert f"{Path(__file__).name}:" in session.note(session.run.line)
    session.run.run()
    for index in itertools.product(*map(range, out.shape)):
        np.testing.assert_allclose(element(session, "out", index), out[index], rtol=1e-3, atol=1e-4)
    for wrong in ("value nix [0]", "value x [0]", f"value x [{rows}, 0]"):
        with pytest.raises(EmulatorError) as caught:
            session.evaluate(wrong)
        assert caught.value.code == "D0001"
    assert Commands(session).do("watch value out [0, 0]").startswith("value out [0, 0] = ")
    whole(session, "out", out.numpy())


@pytest.mark.parametrize("emit", ["concat", "l1merge"])
def test_a_value_is_shown_while_its_words_hold_it(emit: str, tmp_path: Path) -> None:
    """At any line a value is the same as at any other, or a reason says why it is not there."""
    rng = random.Random(f"{emit}7")
    inputs = {"x": torch.randn(6, 8), "w": torch.randn(8, 8)}
    Context(MNDevice("emu2:mini")).compile(
        lambda i: {"y": torch.softmax(torch.relu(i["x"] @ i["w"]) @ i["w"], 1) + i["x"]},
        inputs,
        str(tmp_path / "out"),
        options={"emit": emit},
    )
    session = opened(tmp_path / "out", inputs)
    graph = parse_graph((tmp_path / "out" / "l3ir.txt").read_text())
    names = [name for name, value in graph.values.items() if value.addr is not None]
    places = [0, *sorted(rng.sample(range(session.run.statements), 25)), session.run.statements]
    found: dict[str, str] = {}
    reasons: dict[str, list[str]] = {name: [] for name in names}
    for place in [*places, *reversed(places)]:
        session.run.go(place)
        for name in names:
            session.watches = [f"value {name}"]
            ((_, text),) = session.watched()
            if text.startswith(f"`{name}`: "):
                reasons[name].append(text.split()[1])
            else:
                assert found.setdefault(name, text) == text, (name, place)
    made = {out for node in graph.nodes for out in node.outputs}
    with pytest.raises(EmulatorError) as caught:
        session.evaluate("value y")
    assert caught.value.code == "D0007"
    for name, own in reasons.items():
        # Back at the start it is not computed again, and what is made is not there at first.
        assert own[:1] == own[-1:] == (["not"] if name in made else [])
    assert {"not", "its"} == {reason for own in reasons.values() for reason in own}
    assert {"x", "w", "y"} <= set(found)
    assert len(found) > len(names) * 3 // 4


def whole(session: Session, name: str, wanted: np.ndarray) -> None:
    """Compare whole tensors and parts of them with what they should be."""
    rows = len(wanted)
    parts = {
        "": wanted,
        " [:]": wanted,
        f" [{rows - 1}, :]": wanted[-1],
        " [:, 0:1]": wanted[:, :1],
    }
    for part, own in parts.items():
        found = session.evaluate(f"value {name}{part}")
        assert found.text.split("\n")[0] == f"float{list(own.shape)}"
        listed = [float(word["text"]) for word in found.words]
        np.testing.assert_allclose(listed, own.reshape(-1)[: len(listed)], rtol=1e-3, atol=1e-4)
        assert len(listed) == min(64, own.size)
        assert Commands(session).do(f"print value {name}{part}") == found.text
    assert found.words[-1]["addr"] == f"{rows - 1}, 0"
    for wrong in (f"[{rows}, :]", "[:, :, :]", "[::2]", "[0:1:1, 0]"):
        with pytest.raises(EmulatorError) as caught:
            session.evaluate(f"value {name} {wrong}")
        assert caught.value.code == "D0001"


def test_an_editor_sees_the_line_of_the_model_and_tensors(tmp_path: Path) -> None:
    inputs = {"x": torch.arange(12.0).reshape(3, 4)}
    context = Context(MNDevice("emu2:mini"))
    context.compile(lambda i: {"y": torch.relu(i["x"])}, inputs, str(tmp_path / "out"))
    session = opened(tmp_path / "out", inputs)
    requests = Requests(lambda _: session)
    requests.answer("launch", {})
    session.run.go(session.run.at_line(next(
        number for number, line in enumerate(session.lines, 1) if ": Relu" in line
    )))  # fmt: skip
    (here, model) = requests.answer("stackTrace", {})[0]["stackFrames"]
    assert here["name"].startswith("Relu node_relu")
    assert Path(model["source"]["path"]) == Path(__file__)
    source = Path(__file__).read_text().splitlines()[model["line"] - 1]
    assert "torch.relu" in source
    found, _ = requests.answer("evaluate", {"expression": "value x", "context": "watch"})
    assert found["result"].startswith("float[3, 4]\n[[ 0.  1.  2.  3.]")
    below, _ = requests.answer("variables", {"variablesReference": found["variablesReference"]})
    assert below["variables"][7] == {"name": "x[1, 3]", "value": "7.0", "variablesReference": 0}


def test_a_model_that_the_host_runs_in_part_is_refused(tmp_path: Path) -> None:
    inputs = {"x": torch.arange(16.0).reshape(4, 4)}
    context = Context(MNDevice("emu2:mini"))
    with pytest.warns(UserWarning, match="host"):
        context.compile(
            lambda i: {"out": i["x"] * torch.nonzero(i["x"]).sum()},
            inputs,
            str(tmp_path / "out"),
        )
    with pytest.raises(PycompilerError) as caught:
        opened(tmp_path / "out", inputs)
    assert caught.value.code == "P0611"


def test_the_command(tmp_path: Path) -> None:
    inputs = {"x": torch.arange(12.0).reshape(3, 4)}
    context = Context(MNDevice("emu2:mini"))
    context.compile(lambda i: {"y": i["x"] + 1}, inputs, str(tmp_path / "out"))
    np.savez(tmp_path / "in.npz", x=inputs["x"].numpy())
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pycompiler.command", "debug", str(tmp_path / "out")),
            *("--batch", "-i", str(tmp_path / "in.npz")),
        ],
        input="run\nprint value y [2, 1]\n",
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith(" = 10")
