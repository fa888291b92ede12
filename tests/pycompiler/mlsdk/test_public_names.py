"""`import mlsdk` in plain Python: every public name, its parameters, a text that explains it."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from public_names import NAMES, REFUSED, REGISTRY

from pycompiler import mlsdk
from pycompiler.mlsdk.install import PACKAGES, install

ROOT = Path(__file__).parents[3]

#: Prints, for each module, the parameters of its names, and whether each has a docstring.
WALK = """
import importlib, inspect, json, sys
from functools import reduce

def shown(call):
    found = []
    for own in inspect.signature(call).parameters.values():
        if own.kind is own.KEYWORD_ONLY and "*" not in found:
            found.append("*")
        stars = {own.VAR_POSITIONAL: "*", own.VAR_KEYWORD: "**"}.get(own.kind, "")
        found.append(stars + own.name + ("" if own.default is own.empty else "="))
    return " ".join(name for name in found if name != "self")

found = {}
for module, names in json.load(sys.stdin).items():
    loaded = importlib.import_module(module)
    found[module] = {}
    for name, wanted in names.items():
        own = reduce(getattr, name.split("."), loaded)
        signature = None if wanted is None else shown(own)
        found[module][name] = [signature, bool(getattr(own, "__doc__", ""))]
print(json.dumps(found))
"""


def plain_python(code: str, site: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", code],
        input=given,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "MLSDK_DEVICE": "emu2:mini"},
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert install(folder) == [folder / name for name in PACKAGES]
    return folder


def test_every_name_with_its_parameters(site: Path) -> None:
    done = plain_python(WALK, site, json.dumps(NAMES))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for module, names in NAMES.items():
        assert {name: own[0] for name, own in found[module].items()} == names, module
        assert [name for name, own in found[module].items() if not own[1]] == [], module
    for name, wanted in REGISTRY.items():
        method = getattr(mlsdk.Context(mlsdk.MNDevice("pfvm:cpu")).registry, name)
        assert list(inspect.signature(method).parameters) == wanted.split()
        assert method.__doc__


def test_a_script_in_plain_python(site: Path, tmp_path: Path) -> None:
    """The names are those of the compiler, and what is refused says why."""
    code = (
        "import mlsdk, mlsdk.storage, fx2onnx, torch, pycompiler.mlsdk as ours\n"
        "names = set(ours.__all__) - {'storage'}\n"
        "assert all(getattr(mlsdk, name) is getattr(ours, name) for name in names)\n"
        "context = mlsdk.Context(mlsdk.MNDevice('mncore2:auto'))\n"
        "f = context.compile(lambda d: {'y': d['x'] + 1}, {'x': torch.zeros(3, 4)}, 'out')\n"
        "print(f({'x': torch.ones(3, 4)})['y'].cpu().unique().tolist())\n"
        f"for code in {list(REFUSED)!r}:\n"
        "    try: exec(code)\n"
        "    except mlsdk.PycompilerError as problem: print(problem)\n"
    )
    done = plain_python(f"import os; os.chdir({str(tmp_path)!r})\n{code}", site)
    assert done.returncode == 0, done.stderr
    first, *refused = done.stdout.splitlines()
    assert first == "[2.0]"
    assert len(refused) == len(REFUSED)
    for line, wanted in zip(refused, REFUSED.values(), strict=True):
        assert line.startswith(wanted)


def test_masks_and_caches_of_decoders() -> None:
    from pycompiler.mlsdk.experimental.llm.attention_mask import (
        prepare_4d_causal_attention_mask_with_cache_position as prepare,
    )
    from pycompiler.mlsdk.experimental.llm.kv_cache import kv_cache_to_legacy, kv_cache_to_tensor

    mask = torch.tensor([[0, 1, 1, 1, 0], [1, 1, 1, 1, 0]])
    least = torch.finfo(torch.float16).min
    allowed = prepare(mask, torch.tensor([[1, 2], [3, 4]]), torch.float16)
    assert allowed.dtype == torch.float16
    assert allowed.unique().tolist() == [least, 0]
    assert (allowed == 0).int().tolist() == [
        [[[0, 1, 0, 0, 0], [0, 1, 1, 0, 0]]],
        [[[1, 1, 1, 1, 0], [1, 1, 1, 1, 0]]],
    ]
    for_all = prepare(mask, torch.tensor([1, 2]), torch.float32)
    assert torch.equal(for_all[0] == 0, allowed[0] == 0)

    padded = prepare(mask[:1, :4], mask[:1, :4].cumsum(1), torch.float32)[0, 0] == 0
    assert padded.int().tolist() == [[0] * 4, [0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]]

    layers = tuple((torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)) for _ in range(3))
    kept = kv_cache_to_tensor(layers)
    assert kept.shape == (3, 2, 1, 2, 5, 4)
    for pair, again in zip(layers, kv_cache_to_legacy(kept), strict=True):
        assert all(map(torch.equal, pair, again))
    ragged = [layers[0], (layers[0][0], layers[0][1][..., 1:])]
    for wrong in (kept, 3, [layers[0][0]], [("a", "b")], [], ragged):
        with pytest.raises(mlsdk.PycompilerError, match="P0704"):
            kv_cache_to_tensor(wrong)
    for unfit in (kept[0], layers, kept.numpy()):
        with pytest.raises(mlsdk.PycompilerError, match="P0704"):
            kv_cache_to_legacy(unfit)  # type: ignore[arg-type]
    cache = pytest.importorskip("transformers").DynamicCache()
    for number, (key, value) in enumerate(layers):
        cache.update(key, value, number)
    assert torch.equal(kv_cache_to_tensor(cache), kept)


def test_stages_of_a_llama() -> None:
    """Of three layers in two parts: a prompt, and then a token with its caches."""
    from pycompiler.mlsdk.experimental.llm.kv_cache import kv_cache_to_tensor
    from pycompiler.mlsdk.experimental.llm.modeling_staged_llama import split_llama

    library = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2}
    config = library.LlamaConfig(vocab_size=32, num_hidden_layers=3, **sizes)
    model = library.LlamaForCausalLM(config).eval()
    stages: list[Any] = split_llama(model, 4)
    assert {id(p) for s in stages for p in s.parameters()} == {id(p) for p in model.parameters()}
    tokens, positions = torch.tensor([[3, 14, 15, 9]]), torch.arange(4)[None]
    whole, kept = model(tokens, use_cache=True), [None, None]
    for begin, end in ((0, 3), (3, 4)):
        mask = torch.full((1, 1, end - begin, end), -1e9).triu(1 + begin)
        found = stages[0](input_ids=tokens[:, begin:end], position_ids=positions[:, begin:end])
        for number in (1, 2):
            given = {k.removesuffix("_out"): v for k, v in found.items() if "past" not in k}
            more = {"attention_mask": mask, "position_ids": positions[:, begin:end]}
            found = stages[number](**given, **more, past_key_values=kept[number - 1])
            kept[number - 1] = found["past_key_values_out"]
        logits = stages[3](hidden_states=found["hidden_states_out"])["logits"]
        assert torch.allclose(logits, whole.logits[:, begin:end], atol=1e-5)
    caches = kv_cache_to_tensor([*(kept[0] or ()), *(kept[1] or ())])
    assert torch.allclose(caches, kv_cache_to_tensor(whole["cache"]), atol=1e-5)
    for wrong in ((model, 2), (model, 6), (model.model, 4), (torch.nn.Linear(2, 2), 3)):
        with pytest.raises(mlsdk.PycompilerError, match="P0704"):
            split_llama(*wrong)


def test_the_linter() -> None:
    from pycompiler.mlsdk.linter import LintLevel, lint

    sample = {"x": torch.ones(3)}
    assert lint(lambda d: {"y": d["x"] + 1}, sample) == []

    def branches(d: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"y": d["x"] if d["x"].sum() > 0 else -d["x"]}

    (found,) = lint(branches, sample)
    line = inspect.getsourcelines(branches)[1] + 1
    assert (found.level, found.place) == (LintLevel.ERROR, f"{__file__}:{line}")
    assert found.code is not None
    assert found.code.startswith("P01")
    for given in (None, [torch.ones(3)]):
        assert [one.code for one in lint(torch.nn.Linear(3, 2), given)] == ["P0104"]  # type: ignore[arg-type]
