"""The names of models: which are understood, and which give a diagnostic."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from pycompiler.errors import PycompilerError
from pycompiler.models import __main__ as command
from pycompiler.models import libraries
from pycompiler.models.__main__ import main
from pycompiler.models.catalogue import CATALOGUE, Entry
from pycompiler.models.libraries import check_name
from pycompiler.models.names import LIBRARIES, choose, find
from pycompiler.models.processes import Task
from pycompiler.models.row import Row

FOUND = (
    ("torchvision:resnet18", CATALOGUE["torchvision:resnet18"], 64),
    ("torchvision:resnet18@96", CATALOGUE["torchvision:resnet18"], 96),
    ("torchvision:resnet34@9999", Entry("torchvision", "resnet34"), 9999),
    ("timm:eva02_tiny_patch14_224", CATALOGUE["timm:eva02_tiny_patch14_224"], 56),
    ("transformers:models.vit.modeling_vit.ViTModel@1",
     Entry("transformers", "models.vit.modeling_vit.ViTModel"), 1),
    ("my.own.module:make", Entry("my.own.module", "make"), 64),
)  # fmt: skip


@pytest.mark.parametrize(("name", "like", "size"), FOUND)
def test_names(name: str, like: Entry, size: int) -> None:
    entry = find(name)
    assert entry.size == size
    assert (entry.name, entry.settings, entry.cut) == (like.name, like.settings, like.cut)


@pytest.mark.parametrize(
    "name",
    ["", "resnet18", ":", "timm:", ":mlp", "a:b:c", "timm:x@", "timm:x@0", "timm:x@-1",
     "timm:x@64.5", "timm:x@10000", "timm:x y", "../x:y", "tïmm:x", "own:nothing", "own:F",
     "own:mlp:x"],
)  # fmt: skip
def test_bad_names(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PycompilerError) as caught:
        find(name)
    assert caught.value.code == "P0007"
    assert main([name]) == 2
    assert capsys.readouterr().err.startswith("error[P0007]: ")


def test_a_near_name_is_proposed() -> None:
    with pytest.raises(PycompilerError, match="did you mean `own:resnet20`"):
        find("own:resnet2")
    with pytest.raises(PycompilerError, match="did you mean `torchvision:resnet18`"):
        find("torchvision.resnet18")


def test_choice() -> None:
    assert choose([], None) == list(CATALOGUE.values())
    assert [e.name for e in choose(["timm:a", "own:mlp"], None)] == ["timm:a", "own:mlp"]
    vision = choose([], "torchvision:*")
    assert {entry.library for entry in vision} == {"torchvision"}
    assert {e.name for e in choose([], "resnet18")} == {"torchvision:resnet18", "timm:seresnet18"}
    with pytest.raises(PycompilerError, match="no model fits"):
        choose([], "nothing like it")


#: Options, and what the diagnostic says of them.
WRONG_OPTIONS = (
    (["--mode", "half"], "argument --mode: invalid choice: 'half' (choose from 'float', 'mixed'"),
    (["--jobs", "0"], "argument --jobs: `0` is no whole number from 1 on"),
    (["--batch", "0"], "argument --batch: `0` is no whole number from 1 on"),
    (["--batch", "-1"], "argument --batch: `-1` is no whole number from 1 on"),
    (["--batch=-1"], "argument --batch: `-1` is no whole number from 1 on"),
    (["--batch", "x"], "argument --batch: `x` is no whole number from 1 on"),
    (["--batch", "1.5"], "argument --batch: `1.5` is no whole number from 1 on"),
    (["--batch"], "argument --batch: expected one argument"),
    (["--time-limit", "-1"], "argument --time-limit: `-1` is no number above 0"),
    (["--time-limit", "nan"], "argument --time-limit: `nan` is no number above 0"),
    (["--memory-limit", "0"], "argument --memory-limit: `0` is no number above 0"),
    (["--memory-limit", "much"], "argument --memory-limit: `much` is no number above 0"),
    (["--no-such-option"], "unrecognized arguments: --no-such-option"),
)


@pytest.mark.parametrize(("arguments", "problem"), WRONG_OPTIONS)
def test_bad_options(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["own:mlp", *arguments]) == 2
    refused(capsys, "P0007", problem)


#: Names of models that no library has, and parts of what the diagnostic says of them.
UNKNOWN = (
    ("torchvision:resnet81", "there is no model `torchvision:resnet81`: torchvision.models.list_",
     "did you mean `torchvision:resnet18`?"),
    ("timm:vit_tiny_patch16_242", "timm.list_models() has no such name",
     "did you mean `timm:vit_tiny_patch16_224`?"),
    ("transformers:BertModle", "transformers has no such model class",
     "did you mean `transformers:BertModel`?"),
    ("transformers:BertConfig", "transformers has no such model class", ""),
    ("torchvison:resnet18", "`torchvison` is neither a Python module nor one of the libraries own,",
     "did you mean `torchvision:resnet18`?"),
    ("foo:bar", "there is no model `foo:bar`: `foo` is neither a Python module nor one of", ""),
    ("foo.bar:make", "`foo` is neither a Python module nor one of", ""),
    (".foo:make", "`` is neither a Python module nor one of", ""),
    ("torchvision:resnet18@0", "the size in `torchvision:resnet18@0` is no whole number of pixels",
     "from 1 to 9999"),
    ("torchvision:resnet18@-3", "the size in `torchvision:resnet18@-3` is no whole number", ""),
    ("torchvision:resnet18@10000", "is no whole number of pixels from 1 to 9999", ""),
    ("torchvision:resnet18@", "the size in `torchvision:resnet18@` is no whole number", ""),
)  # fmt: skip


@pytest.mark.parametrize(("name", "problem", "remedy"), UNKNOWN)
def test_unknown_models(
    name: str,
    problem: str,
    remedy: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrong name is refused before any model runs, and nothing is written."""
    library = name.partition(":")[0]
    if library in LIBRARIES[1:]:
        pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.setattr(command, "run_all", lambda *_: pytest.fail("a model ran"))
    out = tmp_path / "rows.json"
    assert main(["own:mlp", name, "--json", str(out)]) == 2
    refused(capsys, "P0007", problem, remedy)
    assert not out.exists()


@pytest.mark.parametrize(
    "name",
    ["torchvision:resnet34", "timm:vit_small_patch16_224@32", "transformers:BertForMaskedLM",
     "transformers:models.vit.modeling_vit.ViTModel", "json:dumps", "pycompiler.no_such:f"],
)  # fmt: skip
def test_other_models_are_not_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules are not even loaded: that is left to the model's process."""
    library = name.partition(":")[0]
    if library in LIBRARIES[1:]:
        pytest.importorskip(library, reason=f"{library} is not installed")
    ran: list[str] = []

    def run_all(tasks: Sequence[Task], settings: object, finished: Callable[[Row], None]) -> None:
        for entry, batch, modes in tasks:
            ran.append(entry.name)
            finished(Row(entry.name, batch, modes[0], code="P0007", reason="no such function"))

    monkeypatch.setattr(command, "run_all", run_all)
    assert main([name]) == 2
    assert ran == [name.partition("@")[0]]


def test_a_library_that_fails_is_left_to_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(libraries, "_library", fails)
    check_name(Entry("torchvision", "resnet34"))


def refused(capsys: pytest.CaptureFixture[str], code: str, *parts: str) -> None:
    """Look for one line that says what is wrong; the lines of help and explanation follow it."""
    said = capsys.readouterr()
    line, *rest = said.err.splitlines()
    assert line.startswith(f"error[{code}]: ")
    assert all(part in line for part in parts), line
    assert [text.split(":")[0].strip() for text in rest] == ["help", "more"]
    assert said.out == ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--keep"], "P0007"), (["--device", "pfvm:cpu"], "P0007"), (["--device", "no"], "P0601")],
)
def test_refused_options(
    arguments: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) != 0
    assert capsys.readouterr().err.startswith(f"error[{code}]")


def test_a_reader_may_stop_early() -> None:
    command_line = [sys.executable, "-m", "pycompiler.models", "--list"]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # The pipe is closed before the command writes, as a reader that has ended would close it.
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_the_catalogue_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(CATALOGUE)
    assert len(listed) >= 60
    assert sum(entry.quick for entry in CATALOGUE.values()) >= 10
    assert {entry.library for entry in CATALOGUE.values()} == set(LIBRARIES)


def test_batch_norms_get_the_statistics_of_a_batch() -> None:
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Dropout(0.5)]
    model = torch.nn.Sequential(*layers).eval()
    with torch.no_grad():
        layers[0].weight.mul_(100)
    batch = (torch.randn(16, 3, 12, 12),)
    assert float(model(*batch).std()) > 10
    libraries._take_statistics(model, batch)
    assert not any(module.training for module in model.modules())
    assert layers[1].momentum == 0.1
    normal = model(*batch)
    torch.testing.assert_close(normal.mean((0, 2, 3)), torch.zeros(8), rtol=0, atol=1e-3)
    torch.testing.assert_close(normal.std((0, 2, 3)), torch.ones(8), rtol=1e-2, atol=0)
