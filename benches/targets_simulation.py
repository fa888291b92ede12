"""Node simulation and the scheduler that searches: rows for `make bench`.

Words of DRAM count above the compulsory ones: each input and constant that the device reads, once,
and each value that must lie in DRAM, once, in their layouts. Both programs of a compile are
emitted, so its report has the cycles and words of both. Nothing runs on the emulator.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
from targets_layers import Row, encoder, with_biases
from torch import nn
from torch.nn.functional import cross_entropy

from pycompiler.executors import Processes
from pycompiler.graph.graph import Location, MNGraph, Side
from pycompiler.graph.text import parse_graph
from pycompiler.layers.base import layout_of
from pycompiler.layers.dram_transfer_plan import plan_transfer
from pycompiler.layers.split_concat import CONCAT, SPLIT
from pycompiler.machine import Target, load_target
from pycompiler.mlsdk import CacheOptions, Context, MNCoreSGD, MNDevice
from pycompiler.models.libraries import build_model
from pycompiler.models.names import find
from pycompiler.simulation.graph_costs import simulate_graph
from pycompiler.simulation.run import SECONDS

Tensors = dict[str, torch.Tensor]
Function = Callable[[Tensors], Tensors]
Made = tuple[Context, Function, Tensors]

CLASSES = 10
#: Share of LM; most words over those of `spill_opt`, where these exceed the compulsory ones by far.
SHARE, MOST, FAR = 0.25, 0.75, 1.5
#: Times that a cached compile must be faster, and two workers than one; error of estimates.
FASTER, TWICE, ERROR = 10.0, 1.7, 0.1


def _training(model: nn.Module, x: torch.Tensor, machine: str) -> Made:
    optimizer = MNCoreSGD(model.parameters(), lr=0.1, momentum=0.9)
    context = Context(MNDevice(f"emu2:{machine}"))
    context.registry.register("model0", model)
    context.registry.register("optimizer0", optimizer)

    def step(d: Tensors) -> Tensors:
        optimizer.zero_grad()
        loss = cross_entropy(model(d["x"]), d["t"])
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    return context, step, {"x": x, "t": torch.randint(CLASSES, (len(x),))}


def of_perceptron(layers: int, batch: int, width: int, machine: str) -> Made:
    """Return a training step of an MLP."""
    parts: list[nn.Module] = []
    for _ in range(layers - 1):
        parts += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*parts, nn.Linear(width, CLASSES))
    return _training(model, torch.randn(batch, width), machine)


def of_encoder(machine: str) -> Made:
    """Return an encoder layer 768/12/3072 and 4 x 256 tokens."""
    case = encoder(768, 12, 4, 256, 0)
    module = with_biases(case.make())
    context = Context(MNDevice(f"emu2:{machine}"))
    return context, lambda d: {"y": module(d["x"])}, {"x": torch.randn(case.shape)}


def of_resnet(machine: str) -> Made:
    """Return a training step of ResNet-18 and 8 pictures of 32 x 32."""
    import torchvision

    model = torchvision.models.resnet18(num_classes=CLASSES).train()
    return _training(model, torch.randn(8, 3, 32, 32), machine)


#: Names, functions, and options. Merging the 4,426 nodes of ResNet-18 takes half an hour and 13 GB,
#: and changes no words.
CASES: tuple[tuple[str, Callable[[str], Made], dict[str, str]], ...] = (
    ("training step of 8 layers 1024, batch 256", lambda m: of_perceptron(8, 256, 1024, m), {}),
    ("encoder layer 768/12/3072, 4x256 tokens", of_encoder, {}),
    ("training step of ResNet-18, 8x32x32", of_resnet, {"emit": "concat"}),
)


def rows(machine: str = "mncore2") -> Iterator[Row]:
    """Yield a row for each target."""
    for name, make, options in CASES:
        torch.manual_seed(0)
        yield words_row(name, make(machine), simulation_mode="fake", **options)
    torch.manual_seed(0)
    yield cached_row("encoder layer 768/12/3072", of_encoder(machine))
    torch.manual_seed(0)
    graph = _graph(of_encoder(machine))
    yield error_row("encoder layer 768/12/3072", graph, load_target(machine))
    made = build_model(find("torchvision:resnet50"), 1)
    context = Context(MNDevice(f"emu2:{machine}"))
    graph = _graph((context, made.function, dict(made.inputs)))
    yield workers_row("ResNet-50", graph, load_target(machine))


def compulsory(graph: MNGraph, target: Target) -> int:
    """Return the words of DRAM that every schedule of a graph with layouts moves."""
    made = {n: node for node in graph.nodes for n in node.outputs}
    plain = [n for n in graph.nodes if n.side is Side.DEVICE and n.op not in (SPLIT, CONCAT)]
    wanted = {name for node in plain for name in node.inputs if name}
    coded = {node.name for node in plain}
    moved = {name for name in wanted if name not in made or made[name].name not in coded}
    for node in plain:
        moved |= {n for n in node.outputs if n and graph.values[n].location is Location.DRAM}
    words = (plan_transfer(layout_of(graph.values[n]), target).mv_words for n in moved)
    return sum(words) * target.groups


def _compiled(made: Made, folder: Path, **more: Any) -> dict[str, Any]:
    """Compile in ``folder`` and return the report."""
    context, function, inputs = made
    cache = more.pop("cache", None)
    options = {"float_dtype": "mixed", **more}
    context.compile(function, inputs, folder, options=options, cache_options=cache, quiet=True)
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return found


def _graph(made: Made) -> MNGraph:
    """Return the graph with its layouts before it is scheduled."""
    with tempfile.TemporaryDirectory() as folder:
        _compiled(made, Path(folder) / "out", emit="concat")
        return parse_graph((Path(folder) / "out" / "layout.slices.txt").read_text())


def words_row(name: str, made: Made, **options: Any) -> Row:
    """Return the words above the compulsory ones, over those of ``spill_opt``."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"scheduler": "auto_recompute_sa", "sram_budget": SHARE, **options}
        report = _compiled(made, Path(folder) / "out", **options)
        graph = parse_graph((Path(folder) / "out" / "layout.slices.txt").read_text())
    both = next(row for row in report["passes"] if row["pass"] == "emit")["spill_opt"]
    least = compulsory(graph, made[0].device.device.target)
    ours = sum(report["dram_words"].values())
    bound, value = both["dram_words"] - least, ours - least
    far = both["dram_words"] > FAR * least
    ratio = value / bound if bound else 1.0
    cycles = f"{report['cycles']} cycles for {both['cycles']}"
    return {
        "name": f"words of auto_recompute_sa: {name}",
        "value": value,
        "unit": f"long words above {least} ({cycles})",
        "bound": bound,
        "ratio": ratio,
        "target": f"at most {MOST if far else 1}",
        "met": ratio <= (MOST if far else 1) and report["cycles"] <= both["cycles"],
    }


def cached_row(name: str, made: Made, **options: Any) -> Row:
    """Return the seconds of a compile without and with the cache, without export and ONNX."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        cache = CacheOptions(Path(folder) / "cache")
        for number in range(2):
            start = time.perf_counter()
            report = _compiled(made, Path(folder) / f"out{number}", cache=cache, **options)
            outside = sum(
                row["seconds"] for row in report["passes"] if row["pass"] in ("export", "pfvm")
            )
            seconds.append(time.perf_counter() - start - outside)
    ratio = seconds[0] / seconds[1]
    return {
        "name": f"second compile with the cache: {name}",
        "value": seconds[1],
        "unit": "s",
        "bound": seconds[0],
        "ratio": ratio,
        "target": f"at least {FASTER:g} times faster",
        "met": ratio >= FASTER,
    }


def error_row(name: str, graph: MNGraph, target: Target) -> Row:
    """Return the median error of estimated cycles of nodes."""
    real, guessed = (simulate_graph(graph, target, mode) for mode in ("fast", "fake"))
    # Equal nodes count once, and views, which issue no lines, not at all.
    different = {settings[0][1]: node for node, settings in real.nodes.items()}
    cycles = [(real.own(node).cycles, guessed.own(node).cycles) for node in different.values()]
    errors = [abs(guess - own) / own for own, guess in cycles if own]
    value = median(errors)
    return {
        "name": f"estimates of {len(errors)} different nodes: {name}",
        "value": value,
        "unit": "of the cycles, median error",
        "bound": ERROR,
        "ratio": value / ERROR,
        "target": "at most 1",
        "met": value <= ERROR,
    }


def workers_row(name: str, graph: MNGraph, target: Target, mode: str = "best") -> Row:
    """Return the seconds of a simulation on one and on two worker processes.

    They are CPU time of the compiler itself and of the busier worker. So other work on the machine
    does not change them, and nothing counts as done at once but the work of the two workers.
    """
    seconds, walls, found = [], [], []
    for count in (1, 2):
        with Processes(count, SECONDS) as workers:
            for _ in range(2 * count):  # all have loaded the compiler before the clock starts
                workers.submit(exec, "import pycompiler.simulation.task").result()
            before, own, start = _used(workers, count), time.process_time(), time.perf_counter()
            found.append(simulate_graph(graph, target, mode, workers).outcomes)
            walls.append(time.perf_counter() - start)
            own = time.process_time() - own
            after = _used(workers, count)
            seconds.append(own + max(after[process] - before[process] for process in before))
    assert found[0] == found[1]
    ratio = seconds[0] / seconds[1]
    return {
        "name": f"`{mode}` simulation of {name}, two workers",
        "value": seconds[1],
        "unit": f"s of CPU time for {len(found[0])} simulations (elapsed: {walls[0]:.1f} s with "
        f"one worker, {walls[1]:.1f} s with two)",
        "bound": seconds[0],
        "ratio": ratio,
        "target": f"at least {TWICE} times faster than one",
        "met": ratio >= TWICE,
    }


def _used(workers: Processes, count: int) -> dict[int, float]:
    """Return the CPU time that each of ``count`` workers has used, by process."""
    found: dict[int, float] = {}
    asked = "(__import__('os').getpid(), __import__('time').process_time())"
    while len(found) < count:
        calls = [workers.submit(eval, asked) for _ in range(8 * count)]
        found |= dict(call.result() for call in calls)
    return found


if __name__ == "__main__":
    for row in rows():
        print(f"{row['name']}: {row['value']} {row['unit']}, {row['bound']}, {row['ratio']:.3g}")
