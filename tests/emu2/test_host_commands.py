"""Host commands: sources, assembled text, the vendor's tools, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import emu2

FILES = sorted((Path(__file__).parents[1] / "data" / "host").glob("*.vsm"))
PAYLOAD = "0000000000000005"


def expected(path: Path) -> list[str]:
    return re.findall(r"^# expect: (.*)$", path.read_text(), re.MULTILINE)


def tool(name: str, *arguments: str, cwd: Path, stdin: str | None = None) -> tuple[int, str, str]:
    code = f"from emu2.words_cli import called_as; called_as('/usr/bin/{name}')()"
    if name == "emu2":
        code = "from emu2.cli import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, input=stdin, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_host_reads_what_it_should(path: Path, machine: str) -> None:
    spec = emu2.Spec.load(machine)
    program = emu2.assemble(path.read_bytes(), spec, filename=path.name, policy="check")
    assert not program.warnings
    # The tags that the host signals are no tags that nobody signals.
    assert program.report()["host_tags"] == []
    report = emu2.Machine(spec).run(program, sanitize=True)
    assert report.host == expected(path)
    assert report.host
    assert report.findings == []
    text = emu2.to_text(program)
    again = emu2.Machine(spec).run(emu2.assemble(text, spec))
    assert again.host == report.host


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_vendors_tools(path: Path, tmp_path: Path) -> None:
    lines = "".join(line + "\n" for line in expected(path))
    code, flat, _ = tool("assemble3", "--instruction-mode", "flat", str(path), cwd=tmp_path)
    assert code == 0
    kept = [line for line in path.read_text().splitlines() if line[:2] in ("c ", "e ", "f")]
    assert [line.upper() for line in flat.splitlines() if line[:1] in "cef"] == [
        line.upper() for line in kept
    ]
    # As a judge does it: the program on standard input.
    assert tool("gpfn3_package_main", cwd=tmp_path, stdin=flat) == (0, lines, "")
    (tmp_path / "flat.asm").write_text(flat)
    assert tool("emu2", "run", "flat.asm", cwd=tmp_path) == (0, lines, "")
    assert tool("emu2", "run", str(path), cwd=tmp_path) == (0, lines, "")
    assert tool("emu2", "run", "-", cwd=tmp_path, stdin=path.read_text()) == (0, lines, "")
    code, mixed, _ = tool("assemble3", cwd=tmp_path, stdin=path.read_text())
    assert code == 0
    assert tool("gpfn3_package_main", cwd=tmp_path, stdin=mixed) == (0, lines, "")


@pytest.mark.parametrize(
    "line",
    [
        "c",
        "c 0 0 i01 i00 0 000000000 000001",
        f"c 1 0 i01 i00 0 000000000 000001 {PAYLOAD}",
        f"c 0 1 i01 i00 0 000000000 000001 {PAYLOAD}",
        f"c 0 0 i1 i00 0 000000000 000001 {PAYLOAD}",
        f"c 0 0 01 i00 0 000000000 000001 {PAYLOAD}",
        f"c 0 0 i01 i00 4 000000000 000001 {PAYLOAD}",
        f"c 0 0 i01 i00 0 00000000 000001 {PAYLOAD}",
        f"c 0 0 i01 i00 0 000000000 0000001 {PAYLOAD}",
        f"c 0 0 i01 i00 0 000000000 +1 {PAYLOAD}",
        f"c 0 0 i01 i00 0 000000000 000002 {PAYLOAD}",
        "c 0 0 i01 i00 0 000000000 000001 000000000000000g",
        "c 0 0 i01 i00 0 000000000 000001 000000000000000é",
        f"c 0 0 i01 i00 0 000000000 000001 {PAYLOAD} 0",
        f"c 0 0 i01 i00 0 FFFFFFFFF 000001 {PAYLOAD}",
        "e 0 0 i01 i00 0 000000000",
        "e 0 0 i01 i00 0 000000000 FFFFFF",
        f"e 0 0 i01 i00 0 000000000 000001 {PAYLOAD}",
        "f 0",
    ],
)
def test_malformed_commands_are_refused(line: str) -> None:
    spec = emu2.Spec.load("mini")
    for read in (emu2.assemble, emu2.read_asm):
        with pytest.raises(emu2.AssembleError) as error:
            read(f"# first\n{line}\n", spec)
        (found,) = error.value.diagnostics
        assert (found["code"], found["line"]) == ("W0208", 2), found


@pytest.mark.parametrize("count", ["1", "001", "00001", "000001"])
def test_a_count_may_leave_out_zeros_in_front(count: str) -> None:
    """Public compilers of kernels write it so."""
    spec = emu2.Spec.load("mini")
    text = f"c 0 0 i10 i00 0 000000000 {count} {PAYLOAD}\nnop; wait i10\n"
    program = emu2.assemble(f"{text}e 0 0 i11 i00 0 000000000 {count}\n", spec)
    assert emu2.Machine(spec).run(program).host == [f"PDM(0): {PAYLOAD}"]
    assert f"000000000 000001 {PAYLOAD}" in emu2.to_text(program)
    with emu2.Device(spec) as device:
        device.exec(device.load_kernel(text))
        assert device.debug_read("PDM")[0] == int(PAYLOAD, 16)


def test_a_kernel_of_a_device_has_no_host_commands() -> None:
    with emu2.Device("mini") as device:
        kernel = device.load_kernel("e 0 0 i01 i00 0 000000000 000001\n")
        with pytest.raises(emu2.RunError) as error:
            device.exec(kernel)
    assert (error.value.code, error.value.line) == ("W0208", 1)


def test_an_l2bm_without_a_unit_is_the_first_one() -> None:
    spec = emu2.Spec.load("mncore2")
    program = emu2.assemble("mvp/n16384 $lc0 $d0\n", spec)
    assert [found["code"] for found in program.warnings] == ["A0411"]
    same = emu2.assemble("mvp/n16384 $lc0@.0 $d0\n", spec)
    assert emu2.to_text(program) == emu2.to_text(same)


def test_a_read_before_the_mv_has_ended_is_found() -> None:
    spec = emu2.Spec.load("mini")
    text = f"c 0 0 i01 i00 0 000000000 000001 {PAYLOAD}\nnop; wait i01\n"
    text += "mvp/n64i02 $p0@0 $p64@0\ne 0 0 i03 i00 0 000000040 000001\n"
    report = emu2.Machine(spec).run(emu2.assemble(text, spec), sanitize=True)
    (found,) = report.findings
    assert (found["code"], found["line"], found["earlier_line"]) == ("Z0303", 4, 3)
    # Only one of the 64 words was written; the host reads the copy of that one.
    assert report.host == [f"PDM(64): {PAYLOAD}"]
