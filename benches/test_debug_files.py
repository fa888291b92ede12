"""Files of a million debug lines. `make bench`; compare figures of one run only."""

from __future__ import annotations

from typing import Any

import emu2

LINES = 1_000_000


def value(line: int) -> str:
    """Return 16 hex digits that differ from line to line."""
    return f"{line * 0x9E3779B97F4A7C15 % (1 << 64):016X}"


def unit(pe: int) -> str:
    """Return the selectors of a PE by its number on the chip."""
    return f"n{pe >> 10}c{pe >> 9 & 1}b{pe >> 6 & 7}m{pe >> 2 & 15}p{pe & 3}"


def run(benchmark: Any, text: str, *, assembled: bool = False) -> emu2.Machine:
    """Measure the time to read and run `text`; return the machine."""
    spec = emu2.Spec.load("mncore2")
    machine = emu2.Machine(spec)

    def call() -> None:
        program = emu2.read_asm(text, spec) if assembled else emu2.assemble(text, spec)
        machine.run(program)

    benchmark.pedantic(call, rounds=3)
    benchmark.extra_info["source_bytes"] = len(text)
    benchmark.extra_info["resident_bytes"] = machine.resident_bytes
    return machine


def test_a_million_sets_of_local_memory(benchmark: Any) -> None:
    """The aim is less than 5 s on two cores."""
    lines = (f"d set $lm{2 * (k // 4096)}{unit(k % 4096)} 1 {value(k)}\n" for k in range(LINES))
    machine = run(benchmark, "".join(lines))
    last = machine.read("lm0", addr=(LINES - 1) // 4096, group=0, l2b=1, l1b=1, mab=0, pe=0)
    assert last.size == 1


def test_a_million_sets_of_scattered_dram(benchmark: Any) -> None:
    """Host memory grows with the words that are set, in pages of 32 KiB."""
    lines = (f"d set $d{k % 1000 * 4096 + k}n{k & 3} 1 {value(k)}\n" for k in range(LINES))
    run(benchmark, "".join(lines))


def test_a_million_lines_of_dram(benchmark: Any) -> None:
    lines = (f"r {k & 3} {k:09X} 001 {value(k)}\n" for k in range(LINES))
    run(benchmark, "".join(lines), assembled=True)


def test_a_hundred_thousand_sets_of_every_pe(benchmark: Any) -> None:
    lines = (f"d set $lm{2 * (k % 2048)} 1 {value(k)}\n" for k in range(LINES // 10))
    run(benchmark, "".join(lines))


def test_a_kernel_on_a_device(benchmark: Any) -> None:
    """The cost of a call with a kernel of two lines."""
    device = emu2.Device()
    kernel = device.load_kernel("nop; wait i10\nlinc $lr0v $lr0v\n")
    device.send(bytes(8), 0, 0x10)
    benchmark(lambda: device.exec(kernel))
