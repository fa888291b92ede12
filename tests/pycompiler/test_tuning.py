"""The search for the best options: what it tries, what it keeps, and how it ends."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from compiling import LONG, compiled, model_of, run
from random_models import random_model

from pycompiler.build import build
from pycompiler.cache import CompileCache
from pycompiler.errors import OptionWarning, PycompilerError
from pycompiler.executors import DIED, TIME
from pycompiler.machine import load_target
from pycompiler.options import OPTIONS, decisive, parse_options, with_preset
from pycompiler.presets.read import FIND_BEST, same_bits
from pycompiler.runtime.device import Board
from pycompiler.tuning import candidates
from pycompiler.tuning.candidates import Candidates
from pycompiler.tuning.search import DONE, INTERRUPTED

#: The presets and the layout planners that are tried in `make test`; in `make test-long` all.
FEW_PRESETS, FEW_PLANNERS = ("O0", "O3"), ("lpz", "first_arrival", "lpz:rows")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FIND_BEST, raising=False)
    if not LONG:
        monkeypatch.setattr(candidates, "same_bits", lambda: FEW_PRESETS)
        monkeypatch.setattr(candidates, "PLANNERS", dict.fromkeys(FEW_PLANNERS))


@pytest.fixture
def pool() -> Iterator[Executor]:
    """Provide an executor that computes in this process."""
    with ThreadPoolExecutor(1) as pool:
        yield pool


def small() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    rng = np.random.default_rng(3)
    weight = rng.standard_normal((24, 20)).astype(np.float32) / 5
    nodes = [("MatMul", ["x", "w"], "p"), ("Relu", ["p"], "r"), ("Transpose", ["r"], "y")]
    model = model_of(nodes, {"x": (10, 24)}, ["y"], {"w": weight})
    return model, {"x": rng.standard_normal((10, 24)).astype(np.float32)}


def tuned(
    model: onnx.ModelProto, folder: Path, cache: CompileCache | None = None, **options: Any
) -> tuple[Any, dict[str, Any]]:
    board = Board(load_target("mini"))
    function = build(lambda: model, "emu2:mini", board, options, folder, cache=cache)
    return function, json.loads((folder / "report.json").read_text())


def test_the_best_of_all_is_kept(tmp_path: Path, pool: Executor) -> None:
    model, inputs = small()
    function, report = tuned(model, tmp_path / "out", tune="all", executor=pool)
    tuning = report["tuning"]
    assert tuning["stopped"] == DONE
    rows = {row["name"]: row for row in tuning["tried"]}
    assert len(rows) == len(tuning["tried"]) > len(candidates.PLANNERS)
    made = [row for row in rows.values() if row["status"] == "ok"]
    best = rows[tuning["best"]]
    assert best["cycles"] == report["cycles"] == min(row["cycles"] for row in made)
    assert len(made) > 1
    # Each row is what a compile with its options says; others would have been dearer.
    for row in tuning["tried"][:: 1 if LONG else 3]:
        _, alone = compiled(model, **row["options"])
        if row in made:
            assert (row["cycles"], row["steps"]) == (alone["cycles"], alone["steps"]), row["name"]
        else:
            assert row["status"] == (
                f"not near the best: estimated at {alone['estimated_cycles']} cycles"
            )
            assert alone["cycles"] > best["cycles"]
    wanted = np.maximum(inputs["x"] @ onnx.numpy_helper.to_array(model.graph.initializer[0]), 0).T
    assert np.allclose(function.run(inputs)["y"].values(), wanted, rtol=1e-5, atol=1e-5)
    log = (tmp_path / "out" / "out.txt").read_text()
    assert "options tried" in log
    assert all(row["name"] in log for row in tuning["tried"])


def test_presets_keep_the_bits(tmp_path: Path, pool: Executor) -> None:
    for seed in range(9 if LONG else 2):
        model, inputs = random_model(random.Random(seed))
        plain = run(compiled(model)[0], inputs)
        function, report = tuned(model, tmp_path / str(seed), tune="presets", executor=pool)
        assert all("layout_planner" not in row["options"] for row in report["tuning"]["tried"])
        for name, held in function.run(inputs).items():
            assert np.array_equal(held.values(), plain[name], equal_nan=True)


def test_options_that_are_given_stay(tmp_path: Path, pool: Executor) -> None:
    model, _ = small()
    fixed = {"layout_planner": "first_arrival", "emit": "concat"}
    _, report = tuned(model, tmp_path / "out", tune="all", executor=pool, **fixed)
    for row in report["tuning"]["tried"]:
        assert not row["options"].keys() & fixed.keys()
    asked = {"option_json": "O1", "float_dtype": "mixed"}
    made = Candidates(with_preset(asked), asked.keys(), parse_options(asked))
    first = made.as_asked()
    assert first.options.scheduler == "reuse_consecutive"
    others = made.presets()
    # What a preset of the caller says may change, what the caller says may not.
    assert {one.options.float_dtype for one in others} == {"mixed"}
    assert len({one.options.scheduler for one in others}) > 1
    keys = [repr(decisive(one.options)) for one in (first, *others)]
    assert len(set(keys)) == len(keys) <= len(same_bits()) + 1


class Slow(Executor):
    """An executor whose first task ends, and whose others never do."""

    def __init__(self, then: Any = None):
        self.given, self.then = 0, then

    def submit(self, function: Any, /, *arguments: Any, **facts: Any) -> Future[Any]:
        self.given += 1
        future: Future[Any] = Future()
        if self.given == 1:
            future.set_result(function(*arguments, **facts))
        elif self.then is not None:
            self.then(future)
        return future


def test_the_time_is_over(tmp_path: Path) -> None:
    model, _ = small()
    _, report = tuned(model, tmp_path / "out", tune="all", executor=Slow(), search_seconds=0.1)
    tuning = report["tuning"]
    assert tuning["stopped"] == TIME
    assert tuning["best"] == "as asked"
    assert {row["status"] for row in tuning["tried"][1:]} == {TIME}
    assert report["cycles"] == compiled(model)[1]["cycles"]
    assert report["search"]["time_limited"]
    assert TIME in report["search"]["reason"]
    (row,) = report["search"]["found"]
    assert (row["search"], row["cycles"]) == ("options", report["cycles"])
    log = (tmp_path / "out/out.txt").read_text()
    assert f"options: {row['cycles']} cycles\nthe result depends on time: " in log


def test_a_limit_that_is_not_reached_changes_nothing(tmp_path: Path, pool: Executor) -> None:
    model, _ = small()
    found = [
        tuned(model, tmp_path / "out", tune="presets", executor=pool, **limit)[1]
        for limit in ({}, {"search_seconds": 3600.0})
    ]
    assert [report["search"]["time_limited"] for report in found] == [False, False]
    assert [report["search"]["seconds"] for report in found] == [None, 3600.0]
    assert found[0]["cycles"] == found[1]["cycles"]
    cycles = [row["cycles"] for row in found[0]["search"]["found"]]
    assert cycles == sorted(set(cycles), reverse=True)
    assert cycles[-1] == found[0]["cycles"]


def test_names_of_earlier_versions_still_work(tmp_path: Path) -> None:
    for old in ("tune_seconds", "sa_seconds"):
        assert parse_options({old: 4}).search_seconds == 4
        assert parse_options({old: 4, "search_seconds": 5}).search_seconds == 5
        with pytest.warns(OptionWarning, match=f"`{old}` is `search_seconds`"):
            _, report = tuned(small()[0], tmp_path / "out", **{old: 7})
        assert report["search"]["seconds"] == 7
        with pytest.raises(PycompilerError, match="search_seconds"):
            parse_options({old: 0})


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_the_best_so_far(tmp_path: Path) -> None:
    model, _ = small()
    main = threading.main_thread().ident
    assert main is not None

    def stop(_: Future[Any]) -> None:
        threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT)).start()

    start = time.monotonic()
    slow = Slow()
    slow.then = lambda future: stop(future) if slow.given == 2 else None
    cache = CompileCache(tmp_path / "cache")
    _, report = tuned(model, tmp_path / "out", cache, tune="all", executor=slow)
    assert not cache.folder.exists()
    assert time.monotonic() - start < 60
    assert report["status"] == "ok"
    assert report["tuning"]["stopped"] == INTERRUPTED
    assert report["cycles"] == compiled(model)[1]["cycles"]
    assert any("interrupted" in note for note in report["notes"])
    assert INTERRUPTED in report["search"]["reason"]


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_before_anything_is_there(tmp_path: Path) -> None:
    class Never(Slow):
        def submit(self, *_: Any, **__: Any) -> Future[Any]:
            signal.raise_signal(signal.SIGINT)
            return Future()

    with pytest.raises(KeyboardInterrupt):
        tuned(small()[0], tmp_path / "out", tune="all", executor=Never())
    report = json.loads((tmp_path / "out.failed" / "report.json").read_text())
    assert report["status"] == "interrupted"
    assert report["tuning"]["tried"][0]["status"] == "not tried"


def test_workers_that_fail(tmp_path: Path) -> None:
    """A worker that died, raised or returned nonsense costs its own row."""
    from concurrent.futures import BrokenExecutor

    ends = [
        lambda f: f.set_exception(BrokenExecutor("gone")),
        lambda f: f.set_exception(ValueError("odd")),
        lambda f: f.set_result(None),
        lambda f: f.set_result(12),
    ]
    slow = Slow()
    slow.then = lambda future: ends[slow.given % len(ends)](future)
    _, report = tuned(small()[0], tmp_path / "out", tune="all", executor=slow)
    said = {row["status"] for row in report["tuning"]["tried"][1:]}
    assert {DIED, "ValueError: odd", "None", "12"} >= said
    assert DIED in said
    assert report["tuning"]["best"] == "as asked"


def test_what_cannot_be_compiled_has_its_diagnostic(tmp_path: Path, pool: Executor) -> None:
    model = model_of([("Sin", ["x"], "y")], {"x": (4,)}, ["y"])
    with pytest.raises(PycompilerError) as caught:
        tuned(model, tmp_path / "out", tune="all", executor=pool, strict=True)
    assert caught.value.code == "P0303"
    report = json.loads((tmp_path / "out.failed" / "report.json").read_text())
    assert all(row["status"].startswith("P0303") for row in report["tuning"]["tried"])


def test_the_environment_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, wanted in (("1", "all"), ("true", "all"), ("0", "off"), ("", "off")):
        assert parse_options({"envs": {FIND_BEST: value}}).tune == wanted
        monkeypatch.setenv(FIND_BEST, value)
        assert parse_options({}).tune == wanted
    monkeypatch.setenv(FIND_BEST, "1")
    assert parse_options({"tune": "presets"}).tune == "presets"
    assert parse_options({"envs": {FIND_BEST: "0"}}).tune == "off"
    _, report = tuned(small()[0], tmp_path / "out", search_seconds=0.01, executor=Slow())
    assert report["environment"]["used"] == {FIND_BEST: "1"}
    assert report["tuning"]["tried"]
    _, report = tuned(small()[0], tmp_path / "out", tune="off")
    assert FIND_BEST in report["environment"]["ignored"]
    assert report["tuning"] == {}


def test_a_cache_keeps_what_was_tried(tmp_path: Path, pool: Executor) -> None:
    cache = CompileCache(tmp_path / "cache")
    reports = [
        tuned(small()[0], tmp_path / "out", cache, tune="presets", executor=pool)[1]
        for _ in range(2)
    ]
    assert [report["cache"]["app"] for report in reports] == ["miss", "hit"]
    assert reports[0]["tuning"] == reports[1]["tuning"] != {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tune", "best"),
        ("search_seconds", 0),
        ("search_seconds", -1.0),
        ("search_seconds", float("inf")),
        ("search_seconds", True),
        ("executor", "gpu"),
        ("executor", 4),
    ],
)
def test_what_is_refused(name: str, value: Any) -> None:
    assert name in OPTIONS
    with pytest.raises(PycompilerError) as caught:
        parse_options({name: value})
    assert caught.value.code == "P0702"
