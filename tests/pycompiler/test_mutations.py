"""Damaged ONNX files and damaged apps: one diagnostic, in bounded time and memory.

`make test` tries some hundreds, `make test-long` 10,000 of each. A failure names the seed and the
number of the example. `EMU2_MUTATION_SEED` repeats a seed, and `EMU2_MUTATION_EXAMPLES=7:9` tries
only its examples 7 and 8.
"""

from __future__ import annotations

import os
import random
import resource
import secrets
import signal
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from hostile.apps import damaged_app
from hostile.models import damaged, seeds

from pycompiler.app import HostSegment, read_app, write_app
from pycompiler.build import build, load_function, parse_model, settled_model
from pycompiler.errors import InternalError, PycompilerError
from pycompiler.graph.dtypes import numpy_dtype
from pycompiler.runtime.device import Board, find_device

LONG = "EMU2_LONG" in os.environ
SEED = int(os.environ.get("EMU2_MUTATION_SEED", secrets.randbits(32) if LONG else 1))
COUNT = 10_000 if LONG else 150
FIRST, END = map(int, os.environ.get("EMU2_MUTATION_EXAMPLES", f"0:{COUNT}").split(":"))
#: Seconds of the processor, and seconds of the clock for steps that wait.
SECONDS, CLOCK = 10, 120
GIGABYTES = 2
DEVICE = "emu2:mini"
TARGET = find_device(DEVICE).target


class TooLate(BaseException):
    """A step took too long; no handler of the code under test may catch it."""


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TooLate

    before = [(kind, signal.signal(kind, late)) for kind in (signal.SIGALRM, signal.SIGPROF)]
    yield
    within(0, 0)
    for kind, handler in before:
        signal.signal(kind, handler)


def within(seconds: float, clock: float) -> None:
    """Begin to count the time of a step; without seconds, end it."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, clock)


def peak() -> float:
    """Return the most gigabytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def check(number: int, action: Callable[[], object]) -> str:
    """Run ``action``; return the code of its diagnostic. Anything but a diagnostic is a failure."""
    before = peak()
    within(SECONDS, CLOCK)
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
    within(0, 0)
    assert peak() - before < GIGABYTES, f"seed {SEED}, example {number} takes too much memory"
    return found


def examples() -> Iterator[tuple[int, random.Random]]:
    """Yield the numbers of the examples, each with a source of its own."""
    print(f"EMU2_MUTATION_SEED={SEED} EMU2_MUTATION_EXAMPLES={FIRST}:{END}", flush=True)
    for number in range(FIRST, END):
        if LONG and number % 500 == 0:
            print(f"example {number}", flush=True)
        yield number, random.Random(f"{SEED} {number}")


def compiled(model: onnx.ModelProto, folder: Path) -> None:
    build(lambda: model, DEVICE, Board(TARGET), {}, folder)


def test_models(tmp_path: Path) -> None:
    models = seeds()
    for number, model in enumerate(models):
        assert check(number, lambda model=model: compiled(model, tmp_path / "out")) == ""  # type: ignore[misc]
    codes: dict[str, int] = {}
    for number, source in examples():
        data = damaged(source.choice(models), source)

        def action(data: bytes = data) -> None:
            model = parse_model(data, Path("model.onnx"))
            compiled(settled_model(model), tmp_path / "out")

        code = check(number, action)
        codes[code] = codes.get(code, 0) + 1
    # Some examples stay legal, others reach the file, the checker and the shapes.
    print(codes)
    assert END - FIRST < 200 or {"", "P0002", "P0108"} <= codes.keys(), codes


def test_apps(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    apps = []
    for number in (0, 1, 2, 3, 10, 11, 16, 19):
        compiled(seeds()[number], folder)
        apps.append((folder / "model.app").read_bytes())

    def run() -> None:
        function = load_function(folder, Board(TARGET))
        types = function.inputs.items()
        function.run({key: np.zeros(t.shape, numpy_dtype(t.elem)) for key, t in types})

    codes: dict[str, int] = {}
    for number, source in examples():
        (folder / "model.app").write_bytes(damaged_app(source.choice(apps), source))
        code = check(number, run)
        codes[code] = codes.get(code, 0) + 1
    print(codes)
    assert END - FIRST < 200 or {"", "P0501"} <= codes.keys(), codes


def test_loops_of_apps_end(tmp_path: Path) -> None:
    """An app whose digest is right may have got another count for a loop of the host."""
    folder, looping = tmp_path / "out", seeds()[11]
    held = next(tensor for tensor in looping.graph.initializer if tensor.name == "n")
    held.CopyFrom(onnx.numpy_helper.from_array(np.array(200), "n"))  # too long to be unrolled
    compiled(looping, folder)
    app, counts = read_app((folder / "model.app").read_bytes(), "app"), 0
    segments = []
    for segment in app.segments:
        if isinstance(segment, HostSegment):
            model = onnx.load_from_string(segment.model)
            for tensor in model.graph.initializer:
                if tensor.data_type == onnx.TensorProto.INT64 and not tensor.dims:
                    tensor.raw_data = (1 << 62).to_bytes(8, "little")
                    counts += 1
            segment = replace(segment, model=model.SerializeToString())
        segments.append(segment)
    assert counts == 1
    changed = replace(app, segments=tuple(segments))
    (folder / "model.app").write_bytes(write_app(changed))
    with pytest.raises(PycompilerError, match="trips") as refused:
        load_function(folder, Board(TARGET))
    assert refused.value.code == "P0501"
