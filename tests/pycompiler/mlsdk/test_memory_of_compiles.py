"""Searches compile many functions in one process: what is no longer used is no longer there."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from compiling import context, sampled
from torch import nn

from pycompiler.errors import PycompilerError
from pycompiler.mlsdk import CacheOptions, Context, MNCoreSGD, trace_scope

Tensors = dict[str, torch.Tensor]
SAMPLE = {"x": torch.ones(4, 8)}
#: How much of the memory after 5 compiles may be added in 45 more.
GROWTH = 0.01


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))


def infer(shared: Context, folder: Path) -> list[Any]:
    own = model()
    compiled = shared.compile(lambda d: {"y": own(d["x"])}, SAMPLE, folder, quiet=True)
    return [own, compiled, compiled.function, compiled(SAMPLE)["y"]]


def train(shared: Context, folder: Path) -> list[Any]:
    own = model()
    optimizer = MNCoreSGD(own.parameters(), 0.1, 0.9)
    shared.registry.register("model", own)
    shared.registry.register("optimizer", optimizer)

    def step(d: Tensors) -> Tensors:
        optimizer.zero_grad()
        loss = own(d["x"]).square().mean()
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    compiled = shared.compile(step, SAMPLE, folder, quiet=True)
    compiled(SAMPLE)
    shared.synchronize()
    return [own, optimizer, compiled, compiled.function]


def automap(shared: Context, folder: Path) -> list[Any]:
    own = model()
    compiled = shared.compile_automap(lambda x: own(x), (SAMPLE["x"],), {}, folder, quiet=True)
    return [own, compiled, compiled.compiled, compiled(SAMPLE["x"])]


def traced(shared: Context, folder: Path) -> list[Any]:
    with trace_scope(folder / "trace.pb"):
        return infer(shared, folder / "out")


def cached(shared: Context, folder: Path) -> list[Any]:
    own = model()
    options = CacheOptions(folder / "cache")
    compiled = shared.compile(lambda d: {"y": own(d["x"])}, SAMPLE, folder, cache_options=options)
    return [own, compiled, compiled.function]


def refused(shared: Context, folder: Path) -> list[Any]:
    """A trial that cannot be compiled, as searches have many."""
    own = model()
    with pytest.raises(PycompilerError):
        shared.compile(lambda d: {"y": own(d["x"]).nonzero()}, SAMPLE, folder, quiet=True)
    return [own]


KINDS: dict[str, Callable[[Context, Path], list[Any]]] = {
    own.__name__: own for own in (infer, train, automap, traced, cached, refused)
}


@pytest.mark.parametrize(
    ("kind", "device"), sampled([*product(KINDS, ["emu2:mini", "pfvm:cpu"])], every=5)
)
def test_nothing_keeps_what_a_compile_made(kind: str, device: str, tmp_path: Path) -> None:
    """The context too, though nobody called `invalidate`."""
    shared = context(device)
    kept = KINDS[kind](shared, tmp_path)
    seen = {type(one).__name__: weakref.ref(one) for one in (shared, *kept)}
    if shared._board is not None:
        seen["board"] = weakref.ref(shared._board)
    del shared, kept
    gc.collect()
    assert [name for name, own in seen.items() if own() is not None] == []


def resident() -> int:
    """Return the kilobytes that this process has in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def trials(device: str, folder: Path, count: int) -> Iterator[int]:
    for number in range(count):
        (infer, train)[number % 2](context(device), folder)
        gc.collect()
        yield resident()


@pytest.mark.long
@pytest.mark.parametrize("device", ["pfvm:cpu", "emu2:mini"])
def test_memory_after_fifty_compiles_is_that_after_five(device: str, tmp_path: Path) -> None:
    sizes = list(trials(device, tmp_path, 50))
    assert min(sizes[-5:]) < max(sizes[:5]) * (1 + GROWTH)
