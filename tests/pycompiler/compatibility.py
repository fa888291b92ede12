"""Freezes what users rely on: ``python tests/pycompiler/compatibility.py``.

It writes a folder for the version of today below ``tests/data/compatibility``, which
``test_compatibility.py`` reads with every later version. A folder of a released version never
changes.

* ``surface.json``: the public names of Python with their parameters, commands with their options,
  options of a compile, columns of a report, and codes of diagnostics
* ``program.vsm`` and ``program.txt``: a program and its dump
* ``machine.zip``: the whole description of a machine, and the saved memories behind the program
* ``model.onnx``, ``arrays.npz``: a model with inputs and results; ``overrides.json``,
  ``layout_spec.json``, ``gemm_layout_spec.json``: what is forced on it
* ``model.app``: its app; ``cache/``: its entry in the cache of compiles
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
from compiling import model_of

import emu2
from emu2.cli import cli as emulator_commands
from emu2.explain import entries as emulator_codes
from pycompiler.build import build
from pycompiler.cache import CompileCache
from pycompiler.cli import commands as compiler_commands
from pycompiler.errors.explain import entries as compiler_codes
from pycompiler.machine import load_target
from pycompiler.options import OPTIONS
from pycompiler.runtime.device import Board
from pycompiler.version import __version__

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests/data/compatibility"
#: The modules whose names are public.
PUBLIC = ("emu2", "emu2_pytest", "pycompiler", "pycompiler.mlsdk")
PROGRAM = """imm f"1.5" $lr0
nop
fvadd $lr0 $lr0 $lm0
d getf $lm0n0c0b0m0p0 1
"""
OVERRIDES = {"h": {"layout": "((4:3, 3:1), (4_PE:1, 2_W:1))", "location": "LM1"}}
LAYOUT_SPEC = [
    {
        "trigger": "FixOutput",
        "op_type": "Tanh",
        "shape": [12, 8],
        "layout": "((12:1), (4_PE:1, 2_W:1))",
    }
]
GEMM_LAYOUT_SPEC = [
    {
        "key": "w",
        "A": "((3:1, 4_MAB:1), (4_PE:1, 2_W:1); B@[L1B])",
        "BT": "((8:1), (4_PE:1, 2_W:1); B@[MAB,L1B,L2B])",
        "C": "((3:1, 4_MAB:1), (4_PE:1, 2_W:1); B@[L1B])",
    }
]


def parameters(value: object) -> list[str] | None:
    """Return the names of a call's parameters; None if it has no signature."""
    try:
        return list(inspect.signature(value).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def python_names() -> dict[str, list[str] | None]:
    """Return all public names, and the public methods of classes, with their parameters."""
    found: dict[str, list[str] | None] = {}
    for module in map(importlib.import_module, PUBLIC):
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            found[f"{module.__name__}.{name}"] = parameters(value)
            if inspect.isclass(value):
                for method in filter(lambda n: not n.startswith("_"), dir(value)):
                    found[f"{module.__name__}.{name}.{method}"] = parameters(getattr(value, method))
    return found


def command_options(name: str, command: click.Command) -> Iterator[tuple[str, list[str]]]:
    """Yield every command below one, with the names of its options and arguments."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from command_options(f"{name} {inner}", found)
    else:
        yield name, sorted(opt for param in command.params for opt in param.opts)


def keys(data: Any, above: str = "") -> Iterator[str]:
    """Yield the names of all fields of a report; those of lists stand below ``[]``."""
    if isinstance(data, dict) and all(isinstance(key, str) for key in data):
        for key, value in data.items():
            yield f"{above}{key}"
            yield from keys(value, f"{above}{key}.")
    elif isinstance(data, list) and data:
        yield from keys(data[0], f"{above}[].")


def surface(report: dict[str, Any]) -> dict[str, Any]:
    """Return what users name: in Python, at the prompt, in options and in reports."""
    return {
        "python": python_names(),
        "commands": dict(
            (
                *command_options("emu2", emulator_commands),
                *command_options("pycompiler", compiler_commands),
            )
        ),
        "options": sorted(OPTIONS),
        "report": sorted(report),
        "nodes": sorted(report["nodes"][0]),
        "codes": sorted((*emulator_codes(), *compiler_codes())),
    }


def model() -> onnx.ModelProto:
    """Return a model with a product, and operators whose layouts are forced."""
    weight = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
    nodes = [("Relu", ["x"], "h"), ("MatMul", ["h", "w"], "p"), ("Tanh", ["p"], "y")]
    return model_of(nodes, {"x": (12, 8)}, ["y"], {"w": weight})


def freeze(folder: Path) -> None:
    """Write the fixtures of today."""
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "machine.zip", "w", zipfile.ZIP_DEFLATED) as kept:
        for path in sorted((ROOT / "isa_specs").glob("m*/*.toml")):
            kept.writestr(
                zipfile.ZipInfo(path.relative_to(ROOT / "isa_specs").as_posix()),
                path.read_bytes(),
                zipfile.ZIP_DEFLATED,
            )
    (folder / "program.vsm").write_text(PROGRAM)
    spec = emu2.Spec.load("mini")
    machine = emu2.Machine(spec)
    with (folder / "program.txt").open("w") as dump:
        machine.run(emu2.assemble(PROGRAM, spec), dump=dump)
    state = folder / "program.state"
    machine.save_state(str(state))
    with zipfile.ZipFile(folder / "machine.zip", "a", zipfile.ZIP_DEFLATED) as kept:
        kept.write(state, state.name)
    state.unlink()
    x = np.random.default_rng(0).standard_normal((12, 8)).astype(np.float32)
    (folder / "overrides.json").write_text(json.dumps(OVERRIDES))
    (folder / "layout_spec.json").write_text(json.dumps(LAYOUT_SPEC))
    (folder / "gemm_layout_spec.json").write_text(json.dumps(GEMM_LAYOUT_SPEC))
    out = folder / "out"
    cache = CompileCache(folder / "cache")
    board = Board(load_target("mini"))
    function = build(model, "emu2:mini", board, {}, out, cache=cache)
    onnx.save(model(), folder / "model.onnx")
    (folder / "model.app").write_bytes((out / "model.app").read_bytes())
    np.savez(folder / "arrays.npz", x=x, y=function.run({"x": x})["y"].values())
    report = json.loads((out / "report.json").read_text())
    text = json.dumps(surface(report), indent=1)
    (folder / "surface.json").write_text(text + "\n")
    for path in sorted(out.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    out.rmdir()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    target = FOLDER / (sys.argv[1] if len(sys.argv) > 1 else __version__)
    if target.exists():
        sys.exit(f"{target} is frozen: what stands there never changes")
    freeze(target)
    print(f"wrote {target}")
