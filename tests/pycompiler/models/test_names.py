"""The names of models: which are understood, and which give a diagnostic."""

from __future__ import annotations

import pytest

from pycompiler.errors import PycompilerError
from pycompiler.models.__main__ import main
from pycompiler.models.catalogue import CATALOGUE, Entry
from pycompiler.models.names import LIBRARIES, choose, find

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


@pytest.mark.parametrize(
    "arguments",
    [["--mode", "half"], ["--jobs", "0"], ["--time-limit", "-1"], ["--time-limit", "nan"],
     ["--batch", "x"], ["--memory-limit", "0"], ["--no-such-option"]],
)  # fmt: skip
def test_bad_options(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--keep"], "P0007"), (["--device", "pfvm:cpu"], "P0007"), (["--device", "no"], "P0601")],
)
def test_refused_options(
    arguments: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) != 0
    assert capsys.readouterr().err.startswith(f"error[{code}]")


def test_the_catalogue_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(CATALOGUE)
    assert len(listed) >= 60
    assert sum(entry.quick for entry in CATALOGUE.values()) >= 10
    assert {entry.library for entry in CATALOGUE.values()} == set(LIBRARIES)
