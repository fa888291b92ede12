"""`pycompiler dashboard` without a browser: what it finds, writes and refuses."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from dashboard_folders import EVIL, write_folders

from emu2.profiling import Slots
from pycompiler.app.writer import write_app
from pycompiler.dashboard.collect import Sources, find, read_compile
from pycompiler.dashboard.details import place_nodes
from pycompiler.dashboard.drawing import draw
from pycompiler.dashboard.lives import lives, sizes
from pycompiler.dashboard.passes import pass_changes
from pycompiler.dashboard.serve import make_server
from pycompiler.errors import PycompilerError
from pycompiler.machine import load_target
from pycompiler.model_commands import commands
from pycompiler.profile.programs import read_program


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("compiles")
    write_folders(root)
    return root


@pytest.fixture(scope="module")
def site(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    done = CliRunner().invoke(commands, ["dashboard", str(folders), "-o", str(out)])
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    assert "4 compiles in" in done.stdout
    return out


def data(site: Path, key: str) -> Any:
    """Read a piece of data as the browser does."""
    text = (site / "data" / f"{key}.js").read_text()
    first, second = json.loads(f"[{text.strip().removeprefix('dashboard.take(')[:-2]}]")
    assert first == key
    return json.loads(second)


def test_all_compiles_are_found_also_the_failed_one(folders: Path) -> None:
    names = ["<b>evil", "bad.failed", "one", "other"]
    assert [path.name for path in find([folders])] == names
    # A folder that was never written leads to the report of its failure.
    assert [path.name for path in find([folders / "one", folders / "bad"])] == ["one", "bad.failed"]
    assert len(find([folders, folders / "one"])) == 4


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_folder_without_a_compile_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(PycompilerError, match="codegen_dir") as found:
        find([tmp_path / name])
    assert found.value.code == "P0004"


def test_a_codegen_dir_is_not_overwritten(folders: Path) -> None:
    arguments = ["dashboard", str(folders), "-o", str(folders / "one")]
    found = CliRunner().invoke(commands, arguments).exception
    assert isinstance(found, PycompilerError)
    assert found.code == "P0003"


DAMAGED = [
    "",
    "[]",
    "{",
    '{"nodes": [1]}',
    '{"nodes": [{"steps": "a"}]}',
    '{"nodes": [{"dram_words": {"read": "b"}}]}',
    '{"passes": {}}',
    '{"passes": [3]}',
    "[" * 5000,
]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_report_is_listed_as_damaged(text: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "report.json").write_text(text)
    arguments = ["dashboard", str(tmp_path / "in"), "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(commands, arguments)
    assert done.exit_code == 0, done.exception
    assert "report.json" in done.stderr
    assert data(tmp_path / "out", "index")[0]["status"] == "damaged"


def test_damaged_graphs_and_programs_leave_the_rest(folders: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("report.json", "l3ir.txt"):
        (folder / name).write_bytes((folders / "one" / name).read_bytes())
    app = read_compile(folders / "one", "one").app
    assert app is not None
    (segment,) = app.segments
    broken = replace(app, segments=(replace(segment, code="fly $lm0\n"),))
    (folder / "model.app").write_bytes(write_app(broken))
    arguments = ["dashboard", str(folder), "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(commands, arguments)
    assert done.exit_code == 0, done.exception
    assert "model.app: error[A" in done.stderr
    assert "graph" in data(tmp_path / "out", "index")[0]["parts"]
    (folder / "l3ir.txt").write_text("graph\n")
    done = CliRunner().invoke(commands, arguments)
    assert done.exit_code == 0, done.exception
    parts = data(tmp_path / "out", "index")[0]["parts"]
    assert parts == ["log", "nodes"]


def test_figures_are_those_of_the_report(folders: Path, site: Path) -> None:
    for number, found in enumerate(data(site, "index")):
        report = json.loads((Path(found["folder"]) / "report.json").read_text())
        assert found["cycles"] == report["cycles"]
        assert found["status"] == report["status"]
        if report["status"] == "ok":
            rows = data(site, f"{number}/nodes")
            assert sum(row["cycles"] for row in rows) == report["cycles"]
            assert [row["node"] for row in rows] == [row["node"] for row in report["nodes"]]
    assert data(site, "index")[1]["error"]["code"] == "P0303"


def test_code_of_all_nodes_is_the_program(folders: Path, site: Path) -> None:
    text = (folders / "one" / "model.vsm").read_text().split("\n")
    lines = [line for node in data(site, "2/nodes-0") for line in node["code"]]
    assert any(line[6] for line in lines)  # nodes share lines
    assert {line[0]: line[1] for line in lines} == {
        k: line for k, line in enumerate(text, 1) if line and not line.startswith("#")
    }
    report = json.loads((folders / "one" / "report.json").read_text())
    assert sum(line[4] + line[5] for line in lines) == report["cycles"]


def test_nodes_have_the_settings_that_were_simulated(
    folders: Path, site: Path, tmp_path: Path
) -> None:
    found = json.loads((folders / "one" / "simulation_result.json").read_text())
    rows, nodes = data(site, "2/nodes"), data(site, "2/nodes-0")
    shown = {row["node"]: facts for row, facts in zip(rows, nodes, strict=True)}
    known = {name: settings for name, settings in found["nodes"].items() if name in shown}
    assert len(known) >= 4
    matched = 0
    for name, settings in known.items():
        assert [one["setting"] for one in shown[name]["simulated"]] == list(settings)
        for one, key in zip(shown[name]["simulated"], settings.values(), strict=True):
            assert one["cycles"] == found["outcomes"][key].get("cycles", 0)
            assert (one["refused"] is None) == (one["cycles"] > 0)
        matched += shown[name]["chosen"] in settings
    assert matched >= len(known) / 2
    assert all(facts["simulated"] == [] for facts in data(site, "3/nodes-0"))
    broken = tmp_path / "in"
    shutil.copytree(folders / "one", broken)
    (broken / "simulation_result.json").write_text('{"nodes": {"a": {"b": "c"}}, "outcomes": {}}')
    arguments = ["dashboard", str(broken), "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(commands, arguments)
    assert done.exit_code == 0, done.exception
    assert "simulation_result.json: KeyError" in done.stderr
    assert data(tmp_path / "out", "0/nodes-0")[0]["simulated"] == []


def test_slots_of_lines_add_up_to_those_of_the_report(folders: Path, site: Path) -> None:
    # Nodes that share lines have instructions in lines of others, so this one is not merged.
    report = json.loads((folders / "other" / "report.json").read_text())
    for row, node in zip(report["nodes"], data(site, "3/nodes-0"), strict=True):
        counted = Counter(slot for line in node["code"] for slot in line[2] if slot != "mv")
        assert counted == row["busy_steps"], row["node"]


def test_slots_are_those_that_the_assembler_counts() -> None:
    slots = Slots(load_target("mini").spec)
    text = "l1bmd $lb0 $ln0v; l2bmb $lc640 $lb896; fvadd $lm0v $ln8v $lr0v; wait i01  # a; mvp"
    assert slots.of(text) == ["l1bm", "l2bm", "mau"]
    assert slots.of("mvp/n64i04 $d1600 $lc1536@.0") == ["mv"]
    assert slots.of("nop/2") == []


def test_events_add_up_to_the_cycles(folders: Path) -> None:
    found = read_compile(folders / "other", "other")
    assert found.app is not None
    assert found.target is not None
    program = read_program(found.app, found.target)
    assert program.cycles == found.report["cycles"]
    own = {track.name: k for k, track in enumerate(program.tracks)}
    steps = sum(e[2] for e in program.events if e[0] == own["PE: steps"])
    waits = sum(e[2] for e in program.events if e[0] == own["PE: waits"])
    assert steps == found.report["steps"] * found.target.cycles
    assert steps + waits == program.cycles
    names = {node.name for node in found.graph.nodes} if found.graph else set()
    assert {event[4] for event in program.events} <= names


@pytest.mark.parametrize("name", ["one", "other", "<b>evil"])
def test_values_that_live_at_once_have_own_words(folders: Path, name: str) -> None:
    found = read_compile(folders / name, name)
    assert found.graph is not None
    assert found.target is not None
    own, most = lives(found.graph, found.target), sizes(found.target)
    in_place = {
        frozenset((node.inputs[node.inplace], node.outputs[0]))
        for node in found.graph.nodes
        if node.inplace is not None
    }
    assert {life.memory for life in own} == {"LM0", "LM1", "DRAM"}
    for k, one in enumerate(own):
        assert one.addr + one.words <= most[one.memory]
        for other in own[:k]:
            apart = one.addr + one.words <= other.addr or other.addr + other.words <= one.addr
            later = one.start >= other.stop or other.start >= one.stop
            same = frozenset((one.value, other.value)) in in_place
            assert one.memory != other.memory or apart or later or same, (one, other)


def test_values_flow_downwards_and_boxes_do_not_overlap(folders: Path) -> None:
    graph = read_compile(folders / "one", "one").graph
    assert graph is not None
    drawing = draw(graph)
    for one, other, name in drawing.edges:
        assert drawing.places[one][1] < drawing.places[other][1]
        assert name in graph.nodes[one].outputs
        assert name in graph.nodes[other].inputs
    places = sorted((row, column) for column, row in drawing.places)
    for (row, column), (next_row, next_column) in pairwise(places):
        assert row != next_row or next_column - column > 0.999


def test_passes_show_what_differs(folders: Path) -> None:
    report = json.loads((folders / "one" / "report.json").read_text())
    found = {one.name: one for one in pass_changes(folders / "one", report["passes"])}
    assert found["dtype"].before == "side"
    before = (folders / "one" / "layout.side.txt").read_text()
    after = (folders / "one" / "layout.dtype.txt").read_text()
    for change in found["dtype"].changes:
        assert all(line in before and line not in after for line in change.removed)
        assert all(line in after and line not in before for line in change.added)
    assert found["time_slice"].total == 0


def test_slices_share_the_row_of_their_node(folders: Path) -> None:
    graph = read_compile(folders / "one", "one").graph
    assert graph is not None
    (relu,) = (node for node in graph.nodes if node.op == "Relu")
    sliced = replace(relu, name=f"{relu.name}.t3", slice=3)
    rows = [{"op": "Relu", "node": relu.name}]
    assert place_nodes(replace(graph, nodes=(relu, sliced)), rows) == [0, 0]
    assert place_nodes(replace(graph, nodes=(replace(sliced, slice=None),)), rows) == [None]


def test_only_python_files_are_quoted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("\n".join(f"line {k}" for k in range(1, 30)))
    (tmp_path / "secret").write_text("key\n")
    sources = Sources()
    assert sources.around(f"{tmp_path}/a.py:10") == [(k, f"line {k}") for k in range(6, 15)]
    for place in (
        f"{tmp_path}/secret:1",
        f"{tmp_path}/a.py:99",
        "x.py",
        None,
        f"{tmp_path}/b.py:1",
    ):
        assert sources.around(place) == []


@pytest.fixture
def server(folders: Path, site: Path, tmp_path: Path) -> Iterator[tuple[str, int]]:
    netron = tmp_path / "netron"
    netron.mkdir()
    page = '<meta name="version" content="9"><meta name="date" content="2001-01-01">'
    (netron / "index.html").write_text(page)
    compiles = [read_compile(path, path.name) for path in find([folders])]
    with make_server(site, compiles, 0, netron) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        try:
            yield "127.0.0.1", found.server_address[1]
        finally:
            found.shutdown()
            thread.join()


def get(server: tuple[str, int], path: str, host: str = "") -> tuple[int, bytes, Any]:
    connection = http.client.HTTPConnection(*server, timeout=10)
    headers = {"Host": host} if host else {}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


def test_the_server_gives_pages_and_models_and_nothing_else(
    server: tuple[str, int], folders: Path
) -> None:
    assert b"dashboard.css" in get(server, "/")[1]
    assert b"/netron/2/model.onnx/" in get(server, "/data/served.js")[1]
    status, page, headers = get(server, "/netron/2/model.onnx/")
    assert status == 200
    assert b'content="data/model.onnx"' in page
    assert b"2001-01-01" not in page
    assert "connect-src 'self'" in headers["Content-Security-Policy"]
    model = (folders / "one" / "model.onnx").read_bytes()
    assert get(server, "/netron/2/model.onnx/data/model.onnx")[1] == model
    refused = (
        *("/netron/9/model.onnx/", "/netron/2/report.json/", "/netron/2/model.onnx/data/l3ir.txt"),
        *("/netron/2/model.onnx/../../x", "/netron/2/model.onnx/%2e%2e", "/../report.json"),
    )
    for path in refused:
        assert get(server, path)[0] == 404, path
    assert get(server, "/", host="elsewhere.example:80")[0] == 403


def test_a_taken_port_is_refused(server: tuple[str, int], site: Path) -> None:
    with pytest.raises(PycompilerError) as found:
        make_server(site, [], server[1], None)
    assert found.value.code == "P0003"


def test_hostile_names_stay_inside_of_strings(site: Path) -> None:
    assert EVIL in json.dumps(data(site, "0/graph"))
    for path in site.glob("*.html"):
        assert "<img" not in path.read_text()
