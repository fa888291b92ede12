"""The pytest plug-in, as a user's project sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from forked import Forks

import emu2  # noqa: F401  (numpy must be loaded before pytester restores the modules)
from emu2.fidelity import MEANING

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]

SUM = """\
# spec: mini
# expect: $lr0n0c0b0m0p0 = 0000000000000007
# expect: f $ls0 = 1.5 1.5
d set $lm0 1 0000000000000003
d set $ln0 1 0000000000000004
nop/2
ladd $lm0 $ln0 $lr0
imm f"1.5" $ls0
"""
WRONG = SUM.replace("0000000000000007", "0000000000000008").replace("1.5 1.5\n", "1.5 2\n", 1)


ZERO = 16 * "0"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project that collects programs and uses the small machine."""
    options = "emu2_vsm_files = test_*.vsm\nemu2_spec = mini\n"
    pytester.makeini(f"[pytest]\naddopts = -p emu2_pytest\n{options}")
    return pytester


def write(project: pytest.Pytester, **files: str) -> None:
    for name, text in files.items():
        (project.path / f"{name}.vsm").write_text(text, encoding="utf-8", newline="")


def test_programs_pass_and_fail_with_a_table(project: pytest.Pytester) -> None:
    write(project, test_sum=SUM, test_wrong=WRONG, other=WRONG)
    result = project.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    shown = result.stdout.str()
    assert "line 2: $lr0n0c0b0m0p0 (long words)" in shown
    assert "GREG0 n0c0b0m0p0 address 0" in shown
    assert "- 0000000000000008" in shown
    assert "+ 0000000000000007" in shown
    assert "line 3: $ls0 (f)" in shown
    assert "GREG1 n0c0b0m0p1 address 0 lane 1" in shown
    assert "+ 1.5 (0x3fc00000)" in shown
    # One value differs in the first line, one on each of 32 PEs in the second; 20 are shown.
    assert "33 values differ" in shown
    assert "... and 13 more" in shown


def test_fidelity_is_summed_up(project: pytest.Pytester) -> None:
    for name, count in (("test_one", 1), ("test_two", 3)):
        text = "msl $lm0 $lr0\n" * count + "nop\n# expect: $lr0 = 0000000000000000\n"
        project.path.joinpath(f"{name}.vsm").write_text(text)
    said = project.runpytest_inprocess("--emu2-fidelity", "-p", "no:cacheprovider").outlines
    at = said.index("2 programs")
    assert said[at + 1].split() == ["2", "33.3%", *MEANING["vendor-output"].split()]
    assert said[at + 2].split() == ["4", "66.7%", *MEANING["manual"].split()]


def test_nothing_is_collected_unless_asked(pytester: pytest.Pytester) -> None:
    write(pytester, test_wrong=WRONG)
    pytester.makepyfile("def test_it(): pass")
    pytester.runpytest_inprocess("-p", "emu2_pytest").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nop\n", "the program states nothing"),
        ("# expect: $lr0 = 12\nnop\n", "line 1: a long word has 16 hex digits"),
        ("# expect: lr0 1\nnop\n", "line 1: write `# expect:"),
        ("# expect: f $lr0 = 1\nnop\n", "line 1: 1 values; a long word has 2"),
        ("# expect: d $lr0 = x\nnop\n", "line 1: could not convert"),
        ("# expect: $lr0 = 0000000000000000 within 1\nnop\n", "line 1: `within` needs a format"),
        ("# expect: $lq0 = 0000000000000000\nnop\n", "A0201"),
        ("# expect: $lr0 = 0000000000000000\nladdd $lr0 $lr0 $lr0\n", "A0102"),
        ("# error: A0101\nladdd $lr0 $lr0 $lr0\n", "expected A0101, got A0102"),
        ("# error: A0102\nnop\n", "expected A0102, but the program assembles"),
        ("# sanitize:\nd get $lr0n0c0b0m0p0 1\n", "Z0101"),
        ("# Expect: $lr0 = 0000000000000000\nnop\n", "line 1: `# Expect:` is no directive"),
        ("nop\n## expect: $lr0 = 0000000000000000\n", "line 2: `## expect:` is no directive"),
        ("# expects: $lr0 = 0\nnop\n", "write `# expect:`"),
        ("# expect : $lr0 = 0\nnop\n", "write `# expect:`"),
        ("# expect\uff1a $lr0 = 0\nnop\n", "write `# expect:`"),
        ("# expect f $lr0 = 1 1\nnop\n", "write `# expect:`"),
        ("# sanitise:\nnop\n", "write `# sanitize:`"),
        ("# sanitize: no\nnop\n", "line 1: `# sanitize:` takes nothing"),
        ("# error: A0102 A0103\nnop\n", "line 1: `A0102 A0103` is no code"),
        ("# spec: mini\n# spec: mncore2\n# sanitize:\nnop\n", "line 2: write one `# spec:`"),
        (f"# error: A0102\n# expect: $lr0 = {ZERO}\nfly\n", "line 1: a program that is refused"),
        ("# expect: f $lr0 = 0 0 within -1\nnop\n", "line 1: values are numbers"),
        ("# expect: f $lr0 = 0 0 within nan\nnop\n", "line 1: values are numbers"),
        ("# expect: f $lr0 = nan nan\nnop\n", "line 1: values are numbers"),
        ("# expect: f $lr0 = 0_1 1\nnop\n", "line 1: could not convert"),
        ("# expect: $lr0 = 000000000000000_\nnop\n", "line 1: a long word has 16 hex digits"),
    ],
)
def test_faults_are_named(project: pytest.Pytester, text: str, said: str) -> None:
    write(project, test_it=text)
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    assert said in result.stdout.str()
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff# {wrong}\n{good}",
        "  \t# {wrong}\n{good}",
        "! {wrong}\n{good}",
        "nop # {wrong}\n{good}",
        "nop#{wrong}\r\n{good}",
        "# page \x0c \u2028\n# {wrong}\n{good}",
    ],
)
def test_no_expectation_is_dropped(project: pytest.Pytester, text: str) -> None:
    good = f"# expect: $lr0 = {ZERO}\nnop\n"
    wrong = f"expect: $lr0 = {ZERO[:-1]}1"
    write(project, test_wrong=text.format(wrong=wrong, good=good), test_good=good)
    result = project.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    number = 1 + text.split("{wrong}")[0].count("\n")
    assert f"line {number}: $lr0 (long words)" in result.stdout.str()


def test_programs_that_must_fail_and_sanitized_ones(project: pytest.Pytester) -> None:
    tolerance = '# expect: d $lr0 = 1.0000001 within 1e-3\nimm f"1.875" $lr4\n'
    tolerance += "d set $lr0 1 3FF0000000000000\n"
    clean = "# sanitize:\nd set $lr0 1 0000000000000001\nd get $lr0n0c0b0m0p0 1\n"
    refused = "# error: A0102\nladdd $lr0 $lr0 $lr0\n"
    write(project, test_refused=refused, test_clean=clean, test_near=tolerance)
    project.runpytest_inprocess().assert_outcomes(passed=3)


def test_fixtures(project: pytest.Pytester) -> None:
    project.makepyfile("""
        import numpy as np
        import emu2
        import pytest

        def test_machine(emu2_machine):
            assert emu2_machine.spec.name == "mini"
            emu2_machine.run(emu2.assemble('imm i"7" $lr0', emu2_machine.spec))
            assert emu2_machine.read("grf0").max() == 7 << 32 | 7

        @pytest.mark.emu2_spec("mncore2")
        def test_other_machine(emu2_machine):
            assert emu2_machine.spec.name == "mncore2"

        def test_device(emu2_device):
            emu2_device.send(np.arange(64.0), 0)
            assert emu2_device.recv(np.empty(64), 0)[5] == 5
    """)
    project.runpytest_inprocess("--strict-markers").assert_outcomes(passed=3)


def test_cycles_are_stored_and_compared(project: pytest.Pytester) -> None:
    project.makepyfile("""
        import os
        import emu2
        import pytest

        @pytest.mark.parametrize("name", ["", "b"])
        def test_it(emu2_machine, cycle_regression, name):
            nops = int(os.environ["NOPS"])
            program = emu2.assemble(f"nop/{nops}", emu2_machine.spec)
            margin = float(os.environ["MARGIN"])
            cycle_regression.check(emu2_machine.run(program), name, margin=margin)
            cycle_regression.check(program, "program", margin=1)
    """)

    def run(nops: int, margin: float, *options: str) -> pytest.RunResult:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NOPS", str(nops))
            patch.setenv("MARGIN", str(margin))
            return project.runpytest_inprocess("-p", "no:cacheprovider", *options)

    missing = run(100, 0)
    missing.assert_outcomes(failed=2)
    assert "run once with --emu2-bless" in missing.stdout.str()
    run(100, 0, "--emu2-bless").assert_outcomes(passed=2)
    stored = sorted(path.name for path in project.path.rglob("*.json"))
    assert len(stored) == 4, stored
    first = next(path for path in project.path.rglob("*.json"))
    assert json.loads(first.read_text()) == {"steps": 100, "cycles": 400, "dram_words": 0}
    run(100, 0).assert_outcomes(passed=2)
    run(102, 0.02).assert_outcomes(passed=2)
    slower = run(103, 0.02)
    slower.assert_outcomes(failed=2)
    assert "cycles     stored          400  now          412 +3.00%" in slower.stdout.str()
    # Fewer steps are a change too.
    run(99, 0).assert_outcomes(failed=2)


def test_what_cannot_be_compared_is_an_error(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest

        COUNTERS = {"steps": 1, "cycles": 1, "dram_words": 1}

        @pytest.mark.parametrize("margin", [-0.1, float("nan"), float("inf")])
        def test_margin(cycle_regression, margin):
            cycle_regression.check(COUNTERS, margin=margin)

        @pytest.mark.parametrize("text", ["", "[]", "{}", '{"steps": null}'])
        def test_stored(cycle_regression, text, request):
            folder = request.path.parent / "cycles" / request.path.stem
            folder.mkdir(parents=True, exist_ok=True)
            for name in ("a", "b"):
                cycle_regression._test = name
                (folder / f"{name}.json").write_text(text)
            cycle_regression.check(COUNTERS)

        @pytest.mark.emu2_spec
        def test_no_machine(emu2_device): pass

        @pytest.mark.emu2_spec("mini", "mncore2")
        def test_two_machines(emu2_machine): pass
        """
    )
    result = project.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=7, errors=2)
    shown = result.stdout.str()
    assert "Traceback" not in shown
    assert "IndexError" not in shown
    for text in ("is no part from 0 on", "does not hold steps", "with the name of a machine"):
        assert text in shown


@pytest.mark.filterwarnings("ignore")
def test_compiled_functions_are_compared(project: pytest.Pytester, forks: Forks) -> None:
    project.makepyfile("""
        import pytest
        import torch

        X = {"x": torch.arange(12.0).reshape(3, 4) - 5}

        def test_same(compiled, cycle_regression):
            results = compiled(lambda d: {"y": torch.relu(d["x"])}, X)
            assert results["y"].shape == (3, 4)
            cycle_regression.check(compiled.codegen_dir, margin=10)

        def test_module(compiled):
            compiled(torch.nn.ReLU(), X)

        def test_other(compiled):
            calls = []

            def changing(d):
                calls.append(1)
                return {"y": d["x"] + (1 if len(calls) == 1 else 2)}

            with pytest.raises(AssertionError, match="^y: "):
                compiled(changing, X)
    """)
    # In a process of its own, because numpy and torch load only once in each.
    run = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    done = forks.text(run, "--emu2-bless", folder=project.path)
    assert done.returncode == 0, done.stdout
    assert pytest.RunResult.parse_summary_nouns(done.stdout.splitlines()) == {"passed": 3}
    # A first run without stored numbers says what to do, and nothing of torch's own traces.
    project.makepyfile("""
        import torch

        def test_first(compiled, cycle_regression):
            compiled(torch.nn.ReLU(), {"x": torch.ones(3, 4)})
            cycle_regression.check(compiled.codegen_dir)
    """)
    done = forks.text(run, folder=project.path)
    assert done.returncode == 1, done.stdout
    assert "nothing is stored in " in done.stdout
    assert "run once with --emu2-bless" in done.stdout
    assert "Captured log" not in done.stdout


def test_the_plug_in_imports_nothing_until_it_is_used() -> None:
    code = (
        "import sys, emu2_pytest; "
        "print([m for m in ('emu2', 'numpy', 'torch', 'pycompiler') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"
