"""The command-line tools for a board: pipelines, states, wrong arguments."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from sdk_root import folder_of, root

from emu2.sdk.install import BOARD_TOOLS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "run")


def call(
    folder: Path, tool: str, *arguments: str, data: bytes = b"", **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """Call a tool on the device whose memories a file keeps."""
    return subprocess.run(
        [root() / "bin" / tool, *arguments],
        cwd=folder,
        input=data,
        capture_output=True,
        env={"EMU2_STATE": str(folder / "state"), **variables},
        timeout=60,
        check=False,
    )


def out(folder: Path, tool: str, *arguments: str, data: bytes = b"") -> bytes:
    """Return what a tool prints that must succeed."""
    result = call(folder, tool, *arguments, data=data)
    assert (result.returncode, result.stderr) == (0, b""), result.stderr
    return result.stdout


def test_a_pipeline(folder: Path) -> None:
    """Zeros, data, a kernel, its result: four processes on one device."""
    words = bytes(range(1, 65)) * 8
    out(folder, "write-pdm", "0", data=bytes(2048))
    out(folder, "send-dma", "0", data=words)
    result = call(folder, "run-idma", "_build/three.idma.dat", "--no-reset", "0x1e", "29")
    assert result.returncode == 0
    lines = result.stdout.decode().splitlines()
    assert lines[0] == "# kernel: _build/three.idma.dat"
    rows = [re.fullmatch(r"(0x\w\w) (\d+) (\d+) (\d+)", line) for line in lines[1:]]
    assert [row[1] for row in rows if row] == ["0xLL", "0xKK", "0x1d", "0x1e"]
    assert out(folder, "recv-dma", "1536", "512") == words
    assert out(folder, "read-pdm", "2048") == words[:8]


DATA = [
    (("f64:1.5",), bytes.fromhex("000000000000f83f")),
    (("f32:-2", "f32:0.5"), bytes.fromhex("000000c00000003f")),
    (("bf16:3.14159", "0x12", "0x1"), bytes.fromhex("49401201")),
    (("0x123", "0x12345", "0x1"), bytes.fromhex("2301452301000100")),
    (("0x1122334455667788",), bytes.fromhex("8877665544332211")),
]


@pytest.mark.parametrize(
    ("words", "expected"),
    [pytest.param(*one, marks=[pytest.mark.long] if n > 1 else []) for n, one in enumerate(DATA)],
)
def test_data_words(words: tuple[str, ...], expected: bytes, folder: Path) -> None:
    """Formats, and the zeros behind a part of a unit."""
    out(folder, "send-dma", "--channel", "PDM", "8", *words)
    padded = expected + bytes(-len(expected) % 4)
    assert out(folder, "recv-dma", "8", str(len(padded))) == padded
    out(folder, "write-pdm", "64", *words)
    assert out(folder, "read-pdm", "64", str(len(expected))) == expected


def test_places_that_are_no_long_words(folder: Path) -> None:
    """Units of 4 bytes: the other half of a long word stays."""
    out(folder, "send-dma", "0", data=b"abcdefghijklmnop")
    out(folder, "send-dma", "4", data=b"EFGHIJ")
    assert out(folder, "recv-dma", "0", "16") == b"abcdEFGHIJ\0\0mnop"
    out(folder, "send-dma", "--channel", "DRAM", "64", data=b"dram")
    assert out(folder, "recv-dma", "--channel", "3", "64", "4") == b"dram"
    assert out(folder, "recv-dma", "64", "4") == bytes(4)


def test_registers_and_captures(folder: Path) -> None:
    assert out(folder, "pio-read", "0x40") == b"0x0000000000000004\n"
    assert out(folder, "pio", "0x40", "3") == b""
    assert out(folder, "pio-write", "0x50", "0x8000000000000000") == b""
    assert out(folder, "reset") + out(folder, "reset", "--pio-reset") == b""
    assert b"keep their contents" in out(folder, "reset", "--explain")
    assert out(folder, "set-capture", "B", "100") == b""
    shown = out(folder, "run-idma", "_build/twice.idma.dat", "--capture", "c:10").decode()
    assert shown.splitlines()[:2] == ["# Capture C snapshot (threshold=10):", "#   all_nop = 8"]
    late = call(folder, "run-idma", "_build/copy.idma.dat")
    assert (late.returncode, b"warning: time-out" in late.stderr) == (0, True)


def test_descriptors(folder: Path) -> None:
    """As on current boards, a start by descriptors is refused."""
    assert out(folder, "write-DM", "--via-dma", "3", "128", "256") == b""
    assert out(folder, "read-DM", "3", "2") == b"0:0x0:0x0\n" * 2
    assert out(folder, "set-descriptor-regset", "5", "8", "0x10", "0x20") == b""
    for tool, arguments in (
        ("kick-idma2", ("0", "1", "--no-wait")),
        ("run-idma2", ("_build/copy.idma.dat", "--dram-offset", "64", "--dm-index", "2")),
    ):
        result = call(folder, tool, *arguments)
        assert (result.returncode, b"(14)" in result.stderr) == (1, True)


WRONG = [
    ("pio-read", ()),
    ("pio-read", ("x",)),
    ("pio-write", ("1",)),
    ("send-dma", ()),
    ("send-dma", ("--channel", "2", "0", "0x1")),
    ("send-dma", ("0", "f16:1")),
    ("send-dma", ("0", "0x11223344556677889")),
    ("send-dma", ("0",)),
    ("send-dma", ("4194304", "0x1")),
    ("recv-dma", ("0", "6")),
    ("recv-dma", ("0",)),
    ("read-pdm", ("1048576", "1")),
    ("read-pdm", ("-1",)),
    ("write-pdm", ("0x100000", "0x1")),
    ("run-idma", ()),
    ("run-idma", ("none.idma.dat",)),
    ("run-idma", ("_build/copy.idma.dat", "--other")),
    ("run-idma", ("_build/copy.idma.dat", "64")),
    ("run-idma", ("_build/copy.idma.dat", "--timeout", "-1")),
    ("run-idma", ("_build/copy.idma.dat", "--capture", "A:1")),
    ("run-idma", ("wrong.idma.dat",)),
    ("write-DM", ("8192", "0", "128")),
    ("write-DM", ("0", "1", "128")),
    ("read-DM", ("8191", "2")),
    ("kick-idma2", ("1",)),
    ("set-capture", ("A", "1")),
    ("set-descriptor-regset", ("64", "0")),
    ("run-idma2", ("_build/copy.idma.dat", "--dram-offset", "1")),
]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [pytest.param(*one, marks=[pytest.mark.long] if n % 5 else []) for n, one in enumerate(WRONG)],
)
def test_wrong_arguments(tool: str, arguments: tuple[str, ...], folder: Path) -> None:
    (folder / "wrong.idma.dat").write_bytes(bytes(100))
    result = call(folder, tool, *arguments)
    assert (result.returncode, result.stdout) == (1, b"")
    assert tool.encode() in result.stderr


def test_the_state_is_named(folder: Path) -> None:
    """Without a file for the memories a note says so; another device has another file."""
    result = call(folder, "read-pdm", "0", EMU2_STATE="")
    assert (result.returncode, result.stdout, b"EMU2_STATE" in result.stderr) == (0, bytes(8), True)
    out(folder, "send-dma", "0", data=b"device 0")
    assert call(folder, "read-pdm", "0", GPFN3_DEVICE="1").stdout == bytes(8)
    assert call(folder, "send-dma", "0", data=b"device 1", GPFN3_DEVICE="1").returncode == 0
    assert out(folder, "read-pdm", "0") == b"device 0"
    assert call(folder, "read-pdm", "0", GPFN3_DEVICE="1").stdout == b"device 1"
    assert call(folder, "read-pdm", "0", GPFN3_DEVICE="x").returncode == 1
    assert call(folder, "reset", "-x").returncode == 2


def test_every_tool_is_there() -> None:
    assert {tool for tool, _ in WRONG} | {"pio", "reset"} == set(BOARD_TOOLS)
    listed = subprocess.run([root() / "bin" / "board-tools"], capture_output=True, check=False)
    assert {row.split()[0].decode() for row in listed.stdout.splitlines()} == set(BOARD_TOOLS)
