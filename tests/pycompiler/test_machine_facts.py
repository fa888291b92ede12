"""No fact of a machine stands in the compiler: other machines work without a change to it."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import numpy as np
import pytest
from compiling import compiled, model_of, random_inputs, run

import pycompiler
from pycompiler.machine import load_target
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction

SOURCE = Path(pycompiler.__file__).parent

# Machines unlike MN-Core 2: counts that are no powers of two, other memories.
MACHINES = {
    "odd": """
        [counts]
        group = 3
        l2b = 1
        l1b = 4
        mab = 6

        [ports]
        reduce_inputs = 2
        """,
    "wide": """
        [counts]
        group = 2
        l2b = 3
        l1b = 2
        mab = 2

        [ports]
        reduce_inputs = 2
        """,
    "tight": """
        [[memory]]
        name = "l2bm"
        words = 512

        [[memory]]
        name = "l1bm"
        words = 128

        [[memory]]
        name = "lm0"
        words = 64

        [[memory]]
        name = "lm1"
        words = 64

        [[memory]]
        name = "grf0"
        words = 8

        [[memory]]
        name = "grf1"
        words = 16
        """,
}

NODES = [
    ("Mul", ["x", "y"], "p"),
    ("Add", ["p", "z"], "s"),
    ("Relu", ["s"], "r"),
    ("Sub", ["c", "y"], "o"),
]
SHAPES = {"x": (12, 35), "y": (35,), "z": (12, 1), "c": (12, 1)}


def reference(d: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"r": np.maximum(d["x"] * d["y"] + d["z"], 0), "o": d["c"] - d["y"]}


@pytest.mark.parametrize("name", ["mini", "mncore2", *MACHINES])
def test_other_machines(name: str, tmp_path: Path) -> None:
    machine = name
    if name in MACHINES:
        lines = [line.strip() for line in MACHINES[name].splitlines()]
        head = ['extends = "mini"', "[machine]", f'name = "{name}"', 'doc = "A test."']
        (tmp_path / "topology.toml").write_text("\n".join([*head, *lines]))
        machine = str(tmp_path)
    target = load_target(machine)
    assert target.name == name
    model = model_of(NODES, SHAPES, ["r", "o"])
    result, report = compiled(model, machine)
    assert report["host_fallback"] == []
    inputs = random_inputs(SHAPES, 9)
    found = run(result, inputs, machine)
    for key, wanted in reference(inputs).items():
        assert np.allclose(found[key], wanted, rtol=1e-6, atol=1e-4)


def test_a_large_layout_uses_the_counts(tmp_path: Path) -> None:
    text = 'extends = "mini"\n[machine]\nname = "m"\ndoc = "A test."\n[counts]\nmab = 8\n'
    (tmp_path / "topology.toml").write_text(text)
    model = model_of([("Relu", ["x"], "y")], {"x": (4096,)}, ["y"])
    layouts = {}
    for machine in ("mini", str(tmp_path)):
        result, _ = compiled(model, machine)
        layouts[machine] = str(result.graph.values["y"].layout)
        function = DeviceFunction(result.app, Board(load_target(machine)))
        x = np.arange(4096, dtype=np.float32)
        assert np.array_equal(function.run({"x": x})["y"].values(), x)
    assert "4_MAB:1" in layouts["mini"]
    assert "8_MAB:1" in layouts[str(tmp_path)]


#: Counts and sizes of MN-Core 2, in words of 32 or 64 bits, that small code has no other use for.
FACTS = {"16", "128", "256", "512", "2048", "4096", "8192", "32768", "0x1000", "0x800"}


def test_no_size_is_written_in_the_source() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        if {"generated", "demo", "errors"} & set(path.relative_to(SOURCE).parts):
            continue
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            if token.type == tokenize.NUMBER and token.string in FACTS:
                found.append((path.name, token.start[0], token.line.strip()))
    allowed = re.compile(r"MNDtype\.|lru_cache|hexdigest|1 << 16|words >> |bits|# not a size")
    assert [row for row in found if not allowed.search(row[2])] == []
