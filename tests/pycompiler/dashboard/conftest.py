"""A browser and a site of compiles, which the tests of the dashboard share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_browser import Browser, opened
from dashboard_folders import LARGE, write_folders, write_large

from pycompiler.dashboard.collect import find
from pycompiler.dashboard.files import read_files
from pycompiler.dashboard.site import write_site

#: Files of other commands, as small as they can be.
SWEEP = {
    "model": "m",
    "machine": "mini",
    "rows": [
        {"values": {"a": a, "b": b}, "status": "ok", "cycles": 100 * a + b, "factor": 2.0 * a,
         "words": {"dram": 10 * a}}
        for a in (1, 2, 4) for b in (3, 5)
    ] + [{"values": {"a": 8, "b": 3}, "status": "P0601: impossible"}],
}  # fmt: skip
MEMORY = {
    "model": "m",
    "lower_bound": 96,
    "tensors": [
        {"name": "x", "kind": "activation", "size": 64, "start": 0, "end": 3},
        {"name": "dx", "kind": "gradient", "size": 32, "start": 2, "end": 4},
    ],
    "strategies": [
        {"name": "no reuse", "size": 128, "offsets": {"x": 0, "dx": 96}},
        {"name": "best packing", "size": 96, "offsets": {"x": 0, "dx": 64}},
    ],
}
GAP = {
    **{"model": "m", "machine": "mini", "by": "module", "cycles": 90, "bound": 30},
    **{"steps": {"lines": 40, "latency": 20}},
    "rows": [{"name": "all", "cycles": 90, "bound": 30.0, "lines": 40.0, "latency": 20.0}],
}
NUMBERS = {
    "function": "f",
    "checks": [
        {"run": 0, "number": 0, "node": "n", "op": "Add", "value": "v", "shape": [2, 3],
         "dtype": "float32", "checked": True, "failed": [], "not_finite": 0, "least": -1.0,
         "largest": 2.0, "mean": 0.5},
        {"run": 0, "number": 1, "node": "bad", "op": "Mul", "value": "w", "shape": [],
         "dtype": "float32", "checked": True, "failed": ["w is not finite"], "not_finite": 1,
         "least": None, "largest": None, "mean": None},
    ],
}  # fmt: skip
FILES = {"sweep": SWEEP, "memory": MEMORY, "gap": GAP, "numbers": NUMBERS}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with opened() as found:
        yield found


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("compiles")
    write_folders(root)
    write_large(root / "large", LARGE, whole=True, steps_of_node=8)
    return root


@pytest.fixture(scope="session")
def site(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    paths = []
    for name, content in FILES.items():
        paths.append(folders.parent / f"{name}_{folders.name}.json")
        paths[-1].write_text(json.dumps(content))
    write_site(out, find([folders]), read_files(paths))
    return out
