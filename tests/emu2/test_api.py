"""The Python package `emu2`: spec, programs, machines, index maps."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import click
import numpy as np
import pytest

import emu2
from emu2.cli import cli


@pytest.fixture(params=["mini", "mncore2"])
def spec(request: pytest.FixtureRequest) -> emu2.Spec:
    return emu2.Spec.load(request.param)


def test_it_loads_few_modules() -> None:
    """Modules that take milliseconds to load and that most programs never use."""
    slow = {"pkgutil", "pathlib", "importlib.metadata", "importlib.util", "inspect", "click"}
    code = "import sys; before = set(sys.modules); import emu2; assert emu2.__version__\n"
    code += f"print(sorted({slow} & (set(sys.modules) - before)))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_a_run_loads_no_tool(tmp_path: Path) -> None:
    (tmp_path / "one.vsm").write_text("nop\n")
    code = "import sys; from emu2.cli import cli\n"
    code += "try: cli(['run', 'one.vsm'])\n"
    code += "finally: print(*sorted(name for name in sys.modules if name.startswith('emu2.')))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    needed = {
        "_built",
        "_core",
        "cli",
        "console",
        "errors",
        "file_roles",
        "lazy_group",
        "sanitizing",
        "streams",
        "words_cli",
    }
    assert {name.removeprefix("emu2.") for name in done.stdout.split()} == needed
    assert set(cli.list_commands(click.Context(cli))) >= {"app", "bench", "dap", "lsp", "profile"}
    for name in cli.list_commands(click.Context(cli)):
        assert cli.get_command(click.Context(cli), name) is not None


def total(spec: emu2.Spec, *levels: str) -> int:
    return int(np.prod([spec.counts[level] for level in levels]))


TREE = ("group", "l2b", "l1b", "mab", "pe")


def test_read_has_one_axis_per_free_level(spec: emu2.Spec) -> None:
    machine = emu2.Machine(spec)
    counts = tuple(spec.counts[level] for level in TREE)
    assert machine.read("lm0", count=3).shape == (*counts, 3)
    assert machine.read("lm0", count=3, mab=1).shape == (*counts[:3], counts[4], 3)
    assert machine.read("l1bm", count=2).shape == (*counts[:3], 2)
    assert machine.read("dram", count=2, group=0).shape == (2,)
    assert machine.read("lm0", group=0, l2b=0, l1b=0, mab=0, pe=0).shape == (1,)


def test_write_takes_all_units_or_one_list(spec: emu2.Spec) -> None:
    machine = emu2.Machine(spec)
    shape = (*(spec.counts[level] for level in TREE), 4)
    words = np.arange(np.prod(shape), dtype=np.uint64).reshape(shape)
    machine.write("lm1", words, addr=5)
    assert (machine.read("lm1", addr=5, count=4) == words).all()
    machine.write("lm1", np.array([7, 8], dtype=np.uint64), addr=5, pe=1)
    assert (machine.read("lm1", addr=5, count=2, pe=1) == [7, 8]).all()
    assert (machine.read("lm1", addr=5, count=2, pe=0) == words[..., 0, :2]).all()


def test_every_pe_computes(spec: emu2.Spec) -> None:
    machine = emu2.Machine(spec)
    lanes = machine.read("lm0").size
    values = np.random.default_rng(1).standard_normal(2 * lanes).astype(np.float32)
    singles = values.reshape(-1, 2).astype(">f4").view(">u8").astype(np.uint64)
    shape = tuple(spec.counts[level] for level in TREE)
    machine.write("lm0", singles.reshape(*shape, 1))
    report = machine.run(emu2.assemble("fvadd $lm0 $lm0 $lr0", spec))
    assert (report.steps, report.dump) == (1, [])
    got = machine.read("grf0").astype(">u8").view(">f4").astype(np.float32).ravel()
    assert (got == values + values).all()


def test_index_map_of_distribution(spec: emu2.Spec) -> None:
    found = spec.index_map("l1bmd", "to_pe", shift=1)
    mab, pe, cycle = (spec.counts[level] for level in ("mab", "pe", "cycle"))
    assert found.unit is None
    assert len(found.source["addr"]) == cycle * mab * pe
    to = found.destination
    expected = to["cycle"] * mab * pe + (to["mab"] - 1) % mab * pe + to["pe"]
    assert (found.source["addr"] == expected).all()
    plain = spec.index_map("l1bmd", "to_pe")
    assert (plain.source["addr"] == np.arange(cycle * mab * pe)).all()


def test_index_map_of_an_mv(spec: emu2.Spec) -> None:
    found = spec.index_map("mvp", "dram_to_l2bm_parallel", dst_l2b=0)
    assert found.unit == 64
    assert found.strides == (64, 64)
    assert set(found.destination["group"]) == set(range(spec.counts["group"]))


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda m: m.read("cache"), "R0002"),
        (lambda m: m.read("lm0", addr=1 << 40), "R0001"),
        (lambda m: m.read("lm0", addr=511, count=2), "R0001"),
        (lambda m: m.read("lm0", addr=-1), "R0001"),
        (lambda m: m.read("lm0", count=-1), "R0001"),
        (lambda m: m.read("lm0", addr=1 << 64), "R0001"),
        (lambda m: m.write("lm0", np.zeros(1, np.uint64), addr=-1), "R0001"),
        (lambda m: m.read("lm0", pe=4), "R0003"),
        (lambda m: m.read("lm0", pe=-1), "R0003"),
        (lambda m: m.read("lm0", group=1 << 32), "R0003"),
        (lambda m: m.read("dram", pe=0), "R0003"),
        (lambda m: m.write("lm0", np.zeros((2, 3, 1), np.uint64)), "R0007"),
        (lambda m: m.load_memory_file("missing.json"), "F0001"),
        (lambda m: m.spec.index_map("mvq", "x"), "S0005"),
        (lambda m: m.spec.index_map("l1bmd", "x"), "S0005"),
        (lambda m: emu2.assemble("nop", m.spec, policy="loose"), "R0009"),
    ],
)
def test_errors_have_codes_and_remedies(call: object, code: str) -> None:
    machine = emu2.Machine(emu2.Spec.load("mini"))
    with pytest.raises(emu2.EmulatorError) as caught:
        call(machine)  # type: ignore[operator]
    assert caught.value.code == code
    assert caught.value.help


def test_assemble_error_lists_every_fault() -> None:
    with pytest.raises(emu2.AssembleError) as caught:
        emu2.assemble("linq $lm0 $ln0\nnop\nlinc $lm1 $ln0\n", emu2.Spec.load("mini"))
    assert [d["line"] for d in caught.value.diagnostics] == [1, 3]
    assert "linq $lm0 $ln0" in str(caught.value)


def test_a_program_for_another_machine_is_refused() -> None:
    program = emu2.assemble("nop", emu2.Spec.load("mini"))
    machine = emu2.Machine(emu2.Spec.load("mncore2"))
    with pytest.raises(emu2.RunError) as caught:
        machine.run(program)
    assert caught.value.code == "R0005"
    machine.run(emu2.assemble("nop", machine.spec))


def test_dump_goes_to_a_sink_in_order() -> None:
    class Sink:
        text = ""

        def write(self, text: str) -> None:
            self.text += text

    spec = emu2.Spec.load("mini")
    sink = Sink()
    text = "d get $lm0 2\nlinc $lm0 $ln0\nd get $ln0n0c0b1 1\n"
    report = emu2.Machine(spec).run(emu2.assemble(text, spec), dump=sink)
    assert report.dump == []
    lines = sink.text.splitlines()
    assert len(lines) == 2 * total(spec, *TREE) + total(spec, "mab", "pe")
    assert lines[0].startswith("DEBUG-LM0(n0c0b0m0p0,0):")
    assert lines[1].startswith("DEBUG-LM0(n0c0b0m0p0,2):")
    assert lines[2].startswith("DEBUG-LM0(n0c0b0m0p1,0):")
    assert lines[-1].startswith("DEBUG-LM1(n0c0b1m3p3,0):")


def test_a_sink_that_fails_poisons_the_machine_until_reset() -> None:
    class Sink:
        def write(self, text: str) -> None:
            raise OSError("the disk is full")

    spec = emu2.Spec.load("mini")
    machine = emu2.Machine(spec)
    program = emu2.assemble("d get $lm0 512\n", spec)
    with pytest.raises(OSError, match="the disk is full"):
        machine.run(program, dump=Sink())
    with pytest.raises(emu2.RunError, match="R0004"):
        machine.run(program)
    machine.reset()
    assert len(machine.run(program).dump) == 512 * total(spec, *TREE)


def test_a_run_lets_other_threads_go_on() -> None:
    spec = emu2.Spec.load("mini")
    machine = emu2.Machine(spec)
    program = emu2.assemble("d get $lm0 512\n" * 20, spec)
    seen: list[int] = []
    reader = threading.Thread(target=lambda: seen.append(int(machine.read("lm0").size)))

    class Sink:
        def write(self, text: str) -> None:
            if not reader.is_alive() and not seen:
                reader.start()

    machine.run(program, dump=Sink())
    reader.join(timeout=60)
    assert seen == [total(spec, *TREE)]


@pytest.mark.parametrize("steps", [40, 20_000], ids=["kept", "too long to be kept"])
def test_a_prepared_program_runs_as_any_other(spec: emu2.Spec, steps: int) -> None:
    text = "lpassa $subpeid $lm0v\nnop\n" + "ladd $lm0v $lm0v $lm0v\nnop/2\n" * (steps // 3)
    program = emu2.assemble(text + "lpassa $lm0v $ln0v\n", spec)
    found = []
    for prepared in (False, True):
        machine = emu2.Machine(spec)
        machine.write("lm0", np.array([5], np.uint64), addr=3)
        if prepared:
            machine.prepare(program)
            assert np.all(machine.read("lm0", addr=3) == 5)
        reports = [machine.run(program) for _ in range(3)]
        assert len({(report.steps, report.cycles) for report in reports}) == 1
        found.append([machine.read(name, count=8) for name in ("lm0", "lm1")])
    assert np.array_equal(*found)


def test_preparing_leaves_errors_to_the_run() -> None:
    program = emu2.assemble("nop\n", emu2.Spec.load("mini"))
    machine = emu2.Machine(emu2.Spec.load("mncore2"))
    machine.prepare(program)
    with pytest.raises(emu2.RunError, match="R0005"):
        machine.run(program)
    machine.run(emu2.assemble("nop\n", machine.spec))


def test_results_do_not_depend_on_a_region_being_cut() -> None:
    spec = emu2.Spec.load("mini")
    body = ["linc $lr0v $lr0v", "nop", "iadd $lr0v $lr0v $ls0v", "nop"] * 50
    whole, cut = emu2.Machine(spec), emu2.Machine(spec)
    whole.run(emu2.assemble("\n".join(body), spec))
    for line in body:
        cut.run(emu2.assemble(line, spec))
    for memory in ("grf0", "grf1"):
        assert (whole.read(memory, count=8) == cut.read(memory, count=8)).all()


def test_one_count_changes_the_machine(tmp_path: Path) -> None:
    """A spec that differs from `mini` in one number changes the machine everywhere."""
    path = tmp_path / "wide.toml"
    path.write_text('extends = "mini"\n[counts]\nmab = 8\n')
    mini, wide = emu2.Spec.load("mini"), emu2.Spec.load(str(path))
    text = "lpassa $peid $lm0v\nnop/2\nl1bmd $lm0v $lb0\nnop/2\nl2bmd $lb0 $lc0\n"
    for spec, lanes in ((mini, 16), (wide, 32)):
        machine = emu2.Machine(spec)
        machine.run(emu2.assemble(text, spec, policy="check"))
        assert machine.read("lm0").size == 2 * lanes
        ids = machine.read("l1bm", count=4 * lanes, group=0, l2b=0, l1b=0)
        assert (ids == np.tile(np.arange(lanes), 4)).all()
    line = "l1bmm@7 $lr0v $lb0"
    emu2.assemble(line, wide)
    with pytest.raises(emu2.AssembleError):
        emu2.assemble(line, mini)


def test_sizes_come_from_the_spec(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text('extends = "mini"\n[[memory]]\nname = "lm0"\nwords = 64\n')
    small = emu2.Spec.load(str(path))
    emu2.assemble("linc $lm126 $ln0", small)
    with pytest.raises(emu2.AssembleError):
        emu2.assemble("linc $lm128 $ln0", small)
    with pytest.raises(emu2.EmulatorError):
        emu2.Machine(small).read("lm0", addr=64)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("d get $lm0n0c0b0m0p0 1;", "`;` after the count"),
        ("wait i01", "with `wait`, a `nop` is enough"),
        ("nop; noforward", "only `wait` may share a line"),
    ],
)
def test_what_a_diagnostic_says(text: str, words: str) -> None:
    with pytest.raises(emu2.AssembleError) as caught:
        emu2.assemble(text, emu2.Spec.load("mncore2"))
    assert words in str(caught.value)
