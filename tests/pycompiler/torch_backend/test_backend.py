"""``torch.compile`` with the back end `emu2`, against torch alone."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import torch
from dynamo import CLOSE, OPTIONS, compiled
from forked import Forks
from torch import nn

import pycompiler
from pycompiler.torch_backend import emu2, explain
from pycompiler.torch_backend.partition import Parts

F = torch.nn.functional
ROOT = Path(__file__).parents[3]


class Pictures(nn.Module):
    """A convolution with running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.out = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


class Tokens(nn.Module):
    """An embedding and a layer with attention."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 12)
        self.layer = nn.TransformerEncoderLayer(12, 3, 20, dropout=0.0, batch_first=True)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.layer(self.words(tokens)) @ self.words.weight.T


@pytest.mark.long
def test_attention_without_gradients() -> None:
    model, tokens = Tokens().eval(), torch.randint(0, 11, (2, 7))
    parts: list[Parts] = []
    with torch.no_grad():
        found = compiled(model, parts)(tokens)
        torch.testing.assert_close(found, model(tokens), **CLOSE)
    assert [len(own.pieces) for own in parts] == [1]
    assert parts[0].in_torch == []


def test_a_training_loop_changes_parameters_and_statistics() -> None:
    ours, theirs = Pictures(), Pictures()
    theirs.load_state_dict(ours.state_dict())
    run = compiled(ours)
    x, classes = torch.randn(3, 3, 7, 6), torch.tensor([0, 4, 2])
    optimizers = [
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) for model in (ours, theirs)
    ]
    for _ in range(3):
        for model, optimizer in zip((run, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            F.cross_entropy(model(x), classes).backward()
            optimizer.step()
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, msg=name, **CLOSE)


def test_changes_in_place_are_seen_and_sizes_compile_anew() -> None:
    model = nn.Linear(5, 3)
    parts: list[Parts] = []
    run = compiled(model, parts)
    with torch.no_grad():
        for rows in (4, 4, 7, 2, 4):
            x = torch.randn(rows, 5)
            torch.testing.assert_close(run(x), model(x), **CLOSE)
            model.weight.data.mul_(-1.5)  # torch's version counter does not see this
            model.bias[0] = float(rows)
    # torch traces for 4 rows, then for any number, of which the back end compiles 7, 2 and 4.
    assert [sum(len(piece.reports) for piece in own.pieces) for own in parts] == [1, 3]
    report = pycompiler.last_report()
    (piece,) = report.parts
    assert report.cycles == piece.cycles == parts[1].pieces[0].reports[2].facts["cycles"]
    assert report.slices == piece.slices != []
    assert str(report).startswith("torch.compile for emu2:mini: ")


def test_a_parameter_that_did_not_change_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from pycompiler.runtime.proxy import TensorProxy

    loaded: list[tuple[int, ...]] = []
    plain = TensorProxy.load_from

    def load_from(self: TensorProxy, value: Any, clone: bool = False) -> None:
        loaded.append(tuple(value.shape))
        plain(self, value, clone)

    monkeypatch.setattr(TensorProxy, "load_from", load_from)
    model = nn.Linear(5, 3)
    run = compiled(model)
    with torch.no_grad():
        for _ in range(3):
            run(torch.randn(4, 5))
    assert loaded.count((3, 5)) == loaded.count((3,)) == 1
    assert loaded.count((4, 5)) == 3


def test_minus_zero_is_a_change() -> None:
    run = compiled(lambda x: torch.where(1 / x > 0, x + 1, x - 1))
    for x in (torch.zeros(3), -torch.zeros(3), torch.zeros(3)):
        assert torch.equal(run(x), torch.where(1 / x > 0, x + 1, x - 1))


def odd(x: torch.Tensor) -> torch.Tensor:
    """A function with a break of the graph, and an operator that ONNX lacks."""
    y = x * 2 + 1
    if y.sum().item() > 0:
        y = torch.special.bessel_j0(y)
    return y - F.dropout(torch.ones(4), 0.0, training=True)


def test_what_the_device_lacks_stays_in_torch() -> None:
    x = torch.rand(4)
    found = explain(odd, options=OPTIONS)(x)
    kept = {name for graph in found.graphs for name, _ in graph.in_torch}
    assert "aten.special_bessel_j0.default" in kept
    assert len(found.graphs) == 2
    assert "P0138" in str(found)
    assert "aten.bessel" in str(found) or "bessel_j0" in str(found)
    torch.testing.assert_close(compiled(odd)(x), odd(x), **CLOSE)


def test_random_numbers_are_torchs() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x * 3, 0.5) + x

    x = torch.randn(6, 5)
    torch.manual_seed(1)
    wanted = noisy(x)
    parts: list[Parts] = []
    run = compiled(noisy, parts)
    torch.manual_seed(1)
    torch.testing.assert_close(run(x), wanted, **CLOSE)
    assert {"its random numbers are torch's"} == {why for _, why in parts[0].in_torch}


def test_dtypes_that_the_device_lacks_stay_in_torch() -> None:
    parts: list[Parts] = []
    x = torch.randn(4, dtype=torch.complex64)
    assert torch.equal(compiled(lambda x: x * x + 1, parts)(x), x * x + 1)
    assert parts[0].pieces == []
    assert {why for _, why in parts[0].in_torch} == {"a tensor of its is sparse or complex"}


def test_doubles_run_on_the_device() -> None:
    parts: list[Parts] = []
    x = torch.randn(4, dtype=torch.float64)
    torch.testing.assert_close(
        compiled(lambda x: torch.exp(x) + 1, parts)(x), torch.exp(x) + 1, rtol=1e-13, atol=0
    )
    assert len(parts[0].pieces) == 1


def test_strides_are_those_of_the_trace() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = (x * 2).permute(1, 0)
        return torch.as_strided(y, (3, 2), (2, 1)) + 1

    x = torch.randn(3, 2)
    torch.testing.assert_close(compiled(function)(x), function(x), **CLOSE)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"sheduler": "spill_opt"}, "P0701"),
        ({"float_dtype": "double"}, "P0702"),
        ({"device": "gpu"}, "P0601"),
        ({"device": 3}, "P0704"),
        ({"cache_dir": 3}, "P0704"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], code: str) -> None:
    with pytest.raises(Exception, match=code):
        compiled(lambda x: x + 1, **options)(torch.ones(3))


def test_compiles_are_kept_for_other_processes(tmp_path: Path) -> None:
    states = []
    for _ in range(2):
        torch._dynamo.reset()
        parts: list[Parts] = []
        run = compiled(lambda x: x @ x.T + 1, parts, cache_dir=tmp_path, codegen_dir=tmp_path / "o")
        run(torch.randn(3, 5))
        states += [piece.reports[0].facts["cache"] for own in parts for piece in own.pieces]
    assert "miss" in states[0].values()
    assert "hit" in states[1].values()
    assert list(tmp_path.glob("o/piece*/model.vsm"))


def test_torch_finds_the_back_end() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    value = project["entry-points"]["torch_dynamo_backends"]["emu2"]
    assert EntryPoint("emu2", value, "torch_dynamo_backends").load() is emu2
    assert "emu2" in torch.compiler.list_backends()  # of the package that is installed


@pytest.mark.long
def test_the_example_trains(forks: Forks) -> None:
    example = ROOT / "examples" / "torch_compile.py"
    done = forks.text(f"import runpy; runpy.run_path({str(example)!r}, run_name='__main__')")
    assert done.returncode == 0, done.stderr
    shown = done.stdout
    losses = [float(line.split()[-1]) for line in shown.splitlines() if line.startswith("step")]
    assert len(losses) == 3
    assert losses[2] < losses[0]
    assert "(backward)" in shown
