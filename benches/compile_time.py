"""Compares the time to compile a model with that of ``torch.compile`` on the same module.

Each compile runs in a process of its own, with empty caches. The numbers are CPU seconds of the
process and of those that it started, and the most memory that the process had. Building the module
and importing libraries do not count, the export does. ``torch.compile`` (inductor) makes C++ for
the CPU, so it needs a C++ compiler. It compiles at the first call: the time of a second call is
subtracted.

    python benches/compile_time.py
    python benches/compile_time.py bert_base --ours
    python benches/compile_time.py bert_base --preset dev --preset O3

With ``--preset`` there is a row for each, with cycles and with the part of the CPU seconds that the
export and the weights take: the app, the files, and what is written to the device.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

Inputs = dict[str, torch.Tensor]
OURS, THEIRS = "pycompiler", "inductor"
#: The spans of a traced compile (docs/profiling.md) that no preset makes shorter.
GIVEN = ("export", "app", "write", "load")


def bert_base() -> tuple[nn.Module, Inputs]:
    """Return BERT-base, and a text of 128 tokens."""
    import transformers

    config = transformers.BertConfig()
    texts = torch.randint(0, config.vocab_size, (1, 128))
    return transformers.BertModel(config), {"input_ids": texts}


def gpt2_small() -> tuple[nn.Module, Inputs]:
    """Return GPT-2 small with its head, and a text of 256 tokens."""
    import transformers

    config = transformers.GPT2Config(use_cache=False)
    texts = torch.randint(0, config.vocab_size, (1, 256))
    return transformers.GPT2LMHeadModel(config), {"input_ids": texts}


def detr(side: int) -> Callable[[], tuple[nn.Module, Inputs]]:
    """Return what makes a DETR of published size (ResNet-50), and a picture with its mask."""

    def make() -> tuple[nn.Module, Inputs]:
        import transformers

        body = transformers.ResNetConfig(out_features=["stage4"])
        module = transformers.DetrForObjectDetection(transformers.DetrConfig(backbone_config=body))
        mask = torch.ones(1, side, side).long()
        return module, {"pixel_values": torch.randn(1, 3, side, side), "pixel_mask": mask}

    return make


def of_pictures(name: str, count: int) -> Callable[[], tuple[nn.Module, Inputs]]:
    """Return what makes a network of torchvision, and ``count`` pictures."""

    def make() -> tuple[nn.Module, Inputs]:
        import torchvision

        return getattr(torchvision.models, name)(), {"x": torch.randn(count, 3, 224, 224)}

    return make


def resnet50() -> tuple[nn.Module, Inputs]:
    """Return ResNet-50, and eight pictures with their classes."""
    module, pictures = of_pictures("resnet50", 8)()
    return module, {**pictures, "t": torch.randint(0, 1000, (8,))}


@dataclass(frozen=True)
class Case:
    """A model, and the most CPU seconds that its compile may take on one machine.

    On that machine, inductor took ``theirs``. Other machines differ by what inductor takes there.
    With ``trains`` a training step is compiled; inductor compiles forward and backward of it.
    """

    make: Callable[[], tuple[nn.Module, Inputs]]
    seconds: float
    theirs: float | None = None
    trains: bool = False


#: The models by name.
CASES: Mapping[str, Case] = {
    "bert_base": Case(bert_base, 52, 26),
    "gpt2_small": Case(gpt2_small, 56, 28),
    "resnet50": Case(of_pictures("resnet50", 1), 66, 33),
    "resnet50_16": Case(of_pictures("resnet50", 16), 58, 29),
    "efficientnet_b0": Case(of_pictures("efficientnet_b0", 1), 100, 50),
    "vit_b_16": Case(of_pictures("vit_b_16", 1), 44, 22),
    "swin_t": Case(of_pictures("swin_t", 1), 240, 120),
    "detr_256": Case(detr(256), 142, 71),
    "resnet50_step": Case(resnet50, 600, trains=True),
}


def cpu_seconds() -> float:
    """Return the CPU time of this process and of the processes that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def compile_here(name: str, compiler: str, preset: str | None) -> dict[str, float]:
    """Compile a model in this process; return its CPU seconds and the peak of memory in MiB.

    For ours, also its cycles and the seconds that are ``given``.
    """
    torch.manual_seed(0)
    case = CASES[name]
    module, inputs = case.make()
    module.train(case.trains)
    with torch.set_grad_enabled(case.trains):
        if compiler == OURS:
            found = _ours(module, inputs, case.trains, preset)
        else:
            found = {"seconds": _theirs(module, inputs, case.trains)}
    return {**found, "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _results(module: Callable[..., Any], inputs: Inputs, trains: bool = False) -> Inputs:
    if trains:
        loss = nn.functional.cross_entropy(module(inputs["x"]), inputs["t"])
        loss.backward()  # type: ignore[no-untyped-call]
        return {"loss": loss}
    found = module(*inputs.values()) if "x" in inputs else module(**inputs)
    return {"y": found if isinstance(found, torch.Tensor) else found[0]}


def _ours(module: nn.Module, inputs: Inputs, trains: bool, preset: str | None) -> dict[str, float]:
    from pycompiler.mlsdk import Context, MNCoreSGD, MNDevice

    context = Context(MNDevice("emu2"))
    optimizer = MNCoreSGD(module.parameters(), lr=0.1, momentum=0.9) if trains else None
    if optimizer is not None:
        context.registry.register("model", module)
        context.registry.register("optimizer", optimizer)

    def step(given: Inputs) -> Inputs:
        if optimizer is None:
            return _results(module, given)
        optimizer.zero_grad()
        found = _results(module, given, trains)
        optimizer.step()
        return found

    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"float_dtype": "mixed", "trace_compile": f"{folder}/trace"}
        if preset is not None:
            options["option_json"] = preset
        began = cpu_seconds()
        context.compile(step, inputs, Path(folder) / "out", options=options)
        seconds = cpu_seconds() - began
        report = json.loads((Path(folder) / "out/report.json").read_text())
        with (Path(folder) / "trace/compile_trace.csv").open() as table:
            rows = [row for row in csv.DictReader(table) if row["pass"] in GIVEN]
        given = sum(float(row["cpu_seconds"]) for row in rows if not row["step"])
        return {"seconds": seconds, "cycles": report["cycles"], "given": given}


def _theirs(module: nn.Module, inputs: Inputs, trains: bool) -> float:
    import torch._dynamo
    import torch._inductor.compile_fx  # imports do not count

    compiled = torch.compile(module)
    began = cpu_seconds()
    _results(compiled, inputs, trains)
    compiled_at = cpu_seconds()
    _results(compiled, inputs, trains)
    return 2 * compiled_at - began - cpu_seconds()


def compile_apart(name: str, compiler: str, preset: str | None = None) -> dict[str, float] | str:
    """Compile a model in a new process without caches; return its numbers, or why there are none.

    The threads of inductor are one: it would not wait for worker processes, whose time would be
    lost.
    """
    with tempfile.TemporaryDirectory() as cache:
        found = subprocess.run(
            [
                *(sys.executable, __file__, name, "--here", compiler),
                *(() if preset is None else ("--preset", preset)),
            ],
            env={
                **os.environ,
                "TORCHINDUCTOR_CACHE_DIR": cache,
                "TORCHINDUCTOR_COMPILE_THREADS": "1",
            },
            capture_output=True,
            text=True,
        )
    if found.returncode:
        return (found.stderr.strip().splitlines() or ["no message"])[-1]
    numbers: dict[str, float] = json.loads(found.stdout.splitlines()[-1])
    return numbers


def row(name: str, compilers: tuple[str, ...], presets: Sequence[str] = ()) -> dict[str, Any]:
    """Return the numbers of each compiler for a model, and how many times longer ours takes.

    ``presets`` are compiled by ours too.
    """
    found = {compiler: compile_apart(name, compiler) for compiler in compilers}
    found |= {preset: compile_apart(name, OURS, preset) for preset in presets}
    ours, theirs = found[OURS], found.get(THEIRS)
    ratio = None
    if isinstance(ours, dict) and isinstance(theirs, dict):
        ratio = ours["seconds"] / theirs["seconds"]
    return {"name": name, "ratio": ratio, **found}


def scale_of(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return how many times longer inductor takes here than on the machine of the targets."""
    known = [
        made[THEIRS]["seconds"] / theirs
        for made in rows
        if (theirs := CASES[made["name"]].theirs) is not None and made["ratio"] is not None
    ]
    return sum(known) / len(known) if known else None


def shown(made: Mapping[str, Any], scale: float | None) -> str:
    """Return a row as text; ``scale`` is that of :func:`scale_of`."""
    parts = [f"{made['name']:12}"]
    for compiler in (OURS, THEIRS):
        one = made.get(compiler)
        if isinstance(one, dict):
            parts.append(f"{compiler} {one['seconds']:7.1f} CPU s, {one['mib']:6.0f} MiB")
        elif one is not None:
            parts.append(f"{compiler} failed: {one}")
    for preset in [one for one in made if one not in ("name", "ratio", OURS, THEIRS)]:
        parts.append(_of_preset(preset, made[preset], made.get(THEIRS)))
    if made["ratio"] is not None:
        parts.append(f"{made['ratio']:.2f} times as long")
    if scale is not None and isinstance(ours := made[OURS], dict):
        case = CASES[made["name"]]
        most = case.seconds * (scale_of([made]) or scale)
        met = "met" if ours["seconds"] <= most else "NOT met"
        parts.append(f"target {case.seconds:g} s there, {most:.0f} s here: {met}")
    return "; ".join(parts)


def _of_preset(
    name: str, made: dict[str, float] | str, theirs: dict[str, float] | str | None
) -> str:
    if isinstance(made, str):
        return f"{name} failed: {made}"
    rest = made["seconds"] - made["given"]
    text = f"{name} {made['seconds']:.1f} CPU s ({made['given']:.1f} for export and weights)"
    if isinstance(theirs, dict):
        text += f", the rest {rest / theirs['seconds']:.2f} times {THEIRS}"
    return f"{text}, {made['cycles']:,.0f} cycles"


def main() -> None:
    """Print a row for each model that is named, or for all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", help=", ".join(CASES))
    parser.add_argument("--ours", action="store_true", help="leave torch.compile out")
    parser.add_argument("--preset", action="append", default=[], help="a row of its own, see above")
    parser.add_argument("--here", choices=(OURS, THEIRS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = given.models or list(CASES)
    if unknown := [name for name in names if name not in CASES]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(CASES)}")
    rows: list[Mapping[str, Any]] = []
    # Those that tell how fast this machine is come first.
    for name in sorted(names, key=lambda name: CASES[name].theirs is None):
        if given.here:
            print(json.dumps(compile_here(name, given.here, next(iter(given.preset), None))))
        else:
            compilers = (OURS,) if given.ours else (OURS, THEIRS)
            rows.append(row(name, compilers, given.preset))
            print(shown(rows[-1], scale_of(rows)), flush=True)


if __name__ == "__main__":
    main()
