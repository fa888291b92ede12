"""Damaged ONNX files and damaged apps: one diagnostic, in bounded time and memory.

`make test` tries some hundreds, `make test-long` 10,000 of each. A failure names the seed and the
number of the example; `EMU2_MUTATION_SEED` repeats a seed.
"""

from __future__ import annotations

import os
import random
import resource
import secrets
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from hostile.apps import damaged_app
from hostile.models import damaged, seeds

from pycompiler.build import build, load_function, parse_model
from pycompiler.errors import InternalError, PycompilerError
from pycompiler.graph.dtypes import numpy_dtype
from pycompiler.runtime.device import Board, find_device

LONG = "EMU2_LONG" in os.environ
SEED = int(os.environ.get("EMU2_MUTATION_SEED", secrets.randbits(32) if LONG else 1))
COUNT = 10_000 if LONG else 250
SECONDS = 10
GIGABYTES = 2
DEVICE = "emu2:mini"
TARGET = find_device(DEVICE).target


class TooLate(BaseException):
    """A step took too long; no handler of the code under test may catch it."""


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TooLate

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def peak() -> float:
    """Return the most gigabytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def check(number: int, action: Callable[[], object]) -> str:
    """Run ``action``; return the code of its diagnostic. Anything but a diagnostic is a failure."""
    before = peak()
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            action()
        found = ""
    except InternalError as problem:
        pytest.fail(f"seed {SEED}, example {number}: {problem}")
    except PycompilerError as problem:
        found = problem.code
    except (Exception, TooLate) as problem:
        pytest.fail(f"seed {SEED}, example {number}: {problem!r}")
    signal.alarm(0)
    assert peak() - before < GIGABYTES, f"seed {SEED}, example {number} takes too much memory"
    return found


def compiled(model: onnx.ModelProto, folder: Path) -> None:
    build(lambda: model, DEVICE, Board(TARGET), {}, folder)


def test_models(tmp_path: Path) -> None:
    models, source = seeds(), random.Random(SEED)
    print(f"EMU2_MUTATION_SEED={SEED}")
    for number, model in enumerate(models):
        assert check(number, lambda model=model: compiled(model, tmp_path / "out")) == ""  # type: ignore[misc]
    codes: dict[str, int] = {}
    for number in range(COUNT):
        data = damaged(source.choice(models), source)

        def action(data: bytes = data) -> None:
            compiled(parse_model(data, Path("model.onnx")), tmp_path / "out")

        code = check(number, action)
        codes[code] = codes.get(code, 0) + 1
    # Some examples stay legal, others reach the file, the checker and the shapes.
    assert {"", "P0002", "P0108"} <= codes.keys(), codes


def test_apps(tmp_path: Path) -> None:
    folder, source = tmp_path / "out", random.Random(SEED)
    print(f"EMU2_MUTATION_SEED={SEED}")
    apps = []
    for number in (0, 1, 2, 3, 10, 11, 16):
        compiled(seeds()[number], folder)
        apps.append((folder / "model.app").read_bytes())

    def run() -> None:
        function = load_function(folder, Board(TARGET))
        types = function.inputs.items()
        function.run({key: np.zeros(t.shape, numpy_dtype(t.elem)) for key, t in types})

    codes: dict[str, int] = {}
    for number in range(COUNT):
        (folder / "model.app").write_bytes(damaged_app(source.choice(apps), source))
        code = check(number, run)
        codes[code] = codes.get(code, 0) + 1
    assert {"", "P0501"} <= codes.keys(), codes
