"""`emu2.Device` as a host program uses it: numpy arrays, kernels in sequence, faults."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu2

# Adds 1 to 16 long words of the PDM: one for each PE of a MAB and each cycle.
INCREMENT = """\
nop; wait i10
mvp/n64i01 $p0@0 $lc0@0.0
nop; wait i01
l2bmb $lc0 $lb0
nop
l1bmm $lb0 $lr0v
nop/2
linc $lr0v $lr0v
nop/2
l1bmm@0 $lr0v $lb256
nop/2
l2bm@0 $lb256 $lc256
nop
mvp/n64i1e $lc256@0.0 $p64@0
"""
COPY = "nop; wait i10\nmvp/n64i1e $p0@0 $p64@0\n"


@pytest.fixture
def device() -> Iterator[emu2.Device]:
    with emu2.Device("mini") as opened:
        yield opened


@pytest.mark.parametrize(
    ("mode", "first", "last"),
    [
        (0, 0x3F3E3D3C3B3A3938, 0x0706050403020100),
        (1, 0x0001020304050607, 0x38393A3B3C3D3E3F),
        (2, 0x0100030205040706, 0x39383B3A3D3C3F3E),
        (3, 0x0302010007060504, 0x3B3A39383F3E3D3C),
        (4, 0x0706050403020100, 0x3F3E3D3C3B3A3938),
    ],
)
def test_golden_buffer(mode: int, first: int, last: int) -> None:
    golden = bytes(range(64))
    with emu2.Device("mini", endian=mode) as device:
        assert device.endian == mode
        device.send(golden)
        words = device.debug_read("PDM", (0,), 0, 8)
        assert (int(words[0]), int(words[7])) == (first, last)
        assert device.recv(np.zeros(64, np.uint8)).tobytes() == golden


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "u4", "f4", "i8", "f8", "c16", "?"])
def test_arrays_of_any_dtype(device: emu2.Device, dtype: str) -> None:
    kernel = device.load_kernel(COPY)
    shape = (8, 64 // np.dtype(dtype).itemsize)
    data = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    device.send(data, 0, tag=0x10)
    device.exec(kernel)
    out = np.empty_like(data)
    assert device.recv(out, 512, tag=0x1E) is out
    assert (out == data).all()


def test_values_meet_the_machine(device: emu2.Device) -> None:
    """The device gets the values of an array, in the mode of the element's size."""
    table = [
        (4, np.array([1, -2], "f8"), [0x3FF0000000000000, 0xC000000000000000]),
        (4, np.array([1, -2], "i8"), [1, (1 << 64) - 2]),
        (3, np.array([1, -2], "f4"), [0x3F800000C0000000]),
        (3, np.array([1, -2], "i4"), [0x00000001FFFFFFFE]),
        (2, np.array([1, -2, 3, 4], "i2"), [0x0001FFFE00030004]),
        (1, np.arange(8, dtype="u1"), [0x0001020304050607]),
    ]
    for mode, data, words in table:
        device.endian = mode
        device.send(data)
        assert [int(w) for w in device.debug_read("pdm", None, 0, len(words))] == words


def test_slices_are_sent_in_their_own_order(device: emu2.Device) -> None:
    data = np.arange(64, dtype=np.uint64).reshape(8, 8)
    device.send(data[:, 3])
    assert (device.debug_read("PDM", None, 0, 8) == data[:, 3]).all()


def test_many_kernels_on_one_device(device: emu2.Device) -> None:
    copy = device.load_kernel(COPY)
    show = device.load_kernel("d get $p64n0 1\n")
    for number in range(100):
        device.send(np.full(64, number, np.uint64), 0, 0x10)
        device.exec(copy)
        assert f"v:0x{number:X})" in device.exec(show).dump[0]
        got = device.recv(np.empty(64, np.uint64), 512, 0x1E)
        assert (got == number).all()


def test_the_pes_compute() -> None:
    data = np.arange(64, dtype=np.uint64)
    with emu2.Device() as device:
        assert device.spec.name == "mncore2"
        assert device.size == 4 << 20
        kernel = device.load_kernel(INCREMENT)
        for _ in range(3):
            device.send(data, 0, 0x10)
            report = device.exec(kernel)
            data = device.recv(np.empty_like(data), 512, 0x1E)
        assert report.counters["mvs"] == 2
    assert (data[:16] == np.arange(3, 19)).all()


def test_kernels_from_files(tmp_path: Path, device: emu2.Device) -> None:
    source = "d set $lm0 1 0000000000000001\nlinc $lm0 $ln0\nd get $ln0n0c0b0m0p0 1\n"
    program = emu2.assemble(source, device.spec)
    asm = io.StringIO()
    emu2.write_asm(program, asm, form="mixed")
    (tmp_path / "k.vsm").write_text(source)
    (tmp_path / "k.asm").write_text(asm.getvalue())
    (tmp_path / "k.idma.dat").write_bytes(emu2.pack(program))
    forms: list[Any] = [
        program,
        tmp_path / "k.vsm",
        str(tmp_path / "k.asm"),
        tmp_path / "k.idma.dat",
        source,
        source.encode(),
        asm.getvalue(),
        emu2.pack(program),
    ]
    for form in forms:
        kernel = device.load_kernel(form)
        (line,) = device.exec(kernel).dump
        assert "v:0x2)" in line
        assert kernel.program.spec.name == "mini"
    sink = io.StringIO()
    assert device.exec(kernel, dump=sink).dump == []
    assert "v:0x2)" in sink.getvalue()


def test_debug_access(device: emu2.Device) -> None:
    words = np.array([3, 5], np.uint64)
    device.debug_write("LM1", (0, 0, 1, 3, 2), 10, words)
    location = {"chip": 0, "l2b": 0, "l1b": 1, "mab": 3, "pe": 2}
    assert (device.debug_read("lm1", location, 10, 2) == words).all()
    (line,) = device.exec(device.load_kernel("d get $ln20n0c0b1m3p2 1\n")).dump
    assert "v:0x3)" in line


def signalled(device: emu2.Device) -> None:
    device.send(np.zeros(64, np.uint64), 0, 0x10)
    device.exec(device.load_kernel(COPY))


def received_twice(device: emu2.Device) -> None:
    signalled(device)
    device.recv(np.empty(8), 512, 0x1E)
    device.recv(np.empty(8), 512, 0x1E)


def sent_under_a_tag_in_flight(device: emu2.Device) -> None:
    signalled(device)
    device.send(np.zeros(8), 0, 0x1E)


def closed(device: emu2.Device) -> None:
    device.close()
    device.close()
    device.send(np.zeros(8))


#: The byte order that this host does not have, also inside of records.
SWAPPED = [
    np.dtype(one).newbyteorder() for one in ("u8", "f8", "f4", "i2", [("a", "u4"), ("b", "f4")])
]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda d: d.send(np.zeros(1), d.size), "H0001"),
        (lambda d: d.send(np.zeros(0)), "H0002"),
        (lambda d: d.send(b"1234"), "H0002"),
        (lambda d: d.recv(np.zeros(1), 4), "H0002"),
        (lambda d: d.send(np.zeros(1), 0, 64), "H0003"),
        (lambda d: d.recv(np.zeros(1), 0, 1), "H0004"),
        (received_twice, "H0004"),
        (sent_under_a_tag_in_flight, "H0005"),
        (closed, "H0006"),
        (lambda d: d.exec(d.load_kernel("nop\nnop; wait i11\n")), "R0008"),
        (lambda d: d.exec(emu2.Device().load_kernel("nop\n")), "R0005"),
        (lambda d: d.recv(np.zeros((8, 8))[:, 0]), "R0007"),
        (lambda d: d.recv([0] * 8), "R0007"),
        (lambda d: d.send(np.array([None, 1])), "R0007"),
        *((lambda d, t=t: d.send(np.ones(8, t)), "R0007") for t in SWAPPED),
        *((lambda d, t=t: d.recv(np.ones(8, t)), "R0007") for t in SWAPPED),
        (lambda d: d.debug_write("PDM", None, 0, np.ones(1, SWAPPED[0])), TypeError),
        (lambda d: setattr(d, "endian", 5), "R0009"),
        (lambda d: setattr(d, "endian", -1), "R0009"),
        (lambda d: setattr(d, "endian", 300), "R0009"),
        (lambda d: d.send(bytes(8), -8), "H0001"),
        (lambda d: d.recv(np.zeros(1), -8), "H0001"),
        (lambda d: d.send(bytes(8), 0, -1), "H0003"),
        (lambda d: d.recv(np.zeros(1), 0, 2**40), "H0003"),
        (lambda d: d.send("abcd"), "R0007"),
        (lambda d: d.load_kernel("no/such/kernel.vsm"), "F0001"),
        (lambda d: d.debug_read("CACHE"), "R0002"),
        (lambda d: d.debug_read("LM0", (1,)), "R0003"),
        (lambda d: d.debug_read("LM0", (0,) * 6), "R0003"),
        (lambda d: d.debug_read("LM0", {"group": 0}), "R0003"),
        (lambda d: d.debug_read("LM0", (-1,)), "R0003"),
        (lambda d: d.debug_read("LM0", {"mab": -1}), "R0003"),
        (lambda d: d.debug_read("LM0", None, 1 << 40), "R0001"),
        (lambda d: d.debug_read("LM0", None, -1), "R0001"),
        (lambda d: d.debug_write("PDM", None, 1 << 40, np.zeros(1, np.uint64)), "R0001"),
        (lambda d: emu2.Device("mncore9"), "S0011"),
    ],
)
def test_faults(device: emu2.Device, call: Any, code: Any) -> None:
    if not isinstance(code, str):
        with pytest.raises(code):
            call(device)
        return
    with pytest.raises(emu2.EmulatorError) as caught:
        call(device)
    assert caught.value.code == code
    assert caught.value.help


def test_a_wait_for_nothing_names_its_line(device: emu2.Device) -> None:
    kernel = device.load_kernel("nop/3\n\nlinc $lm0 $ln0; wait i11\n", filename="k.vsm")
    with pytest.raises(emu2.RunError) as caught:
        device.exec(kernel)
    assert (caught.value.file, caught.value.line, caught.value.code) == ("k.vsm", 3, "R0008")
    with pytest.raises(emu2.EmulatorError, match="R0004"):
        device.send(np.zeros(8))
    device.reset()
    device.send(np.zeros(8), 0, 0x11)
    device.exec(kernel)


def test_a_kernel_that_does_not_assemble(device: emu2.Device) -> None:
    with pytest.raises(emu2.AssembleError, match="A0102"):
        device.load_kernel("fly\n")


def test_leaving_the_block_closes() -> None:
    with emu2.Device("mini") as device:
        pass
    with pytest.raises(emu2.EmulatorError, match="H0006"):
        device.reset()


def test_dram_costs_what_is_touched() -> None:
    spec = emu2.Spec.load("mncore2")
    machine = emu2.Machine(spec)
    assert machine.resident_bytes == 0
    words = np.arange(1, (1 << 17) + 1, dtype=np.uint64)
    far = spec.memories["dram"]["words"] - words.size
    machine.write("dram", words, group=3, addr=far)
    machine.run(emu2.assemble("d get $d0 8\nd get $d268435456n1 64\n", spec))
    assert machine.resident_bytes == 1 << 20
    assert (machine.read("dram", group=3, addr=far, count=words.size) == words).all()
