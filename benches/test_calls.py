"""The cost of calls from Python. `make bench`; compare figures of one run only."""

from __future__ import annotations

from typing import Any

import numpy as np

import emu2


def test_ten_lines_from_text_to_result(benchmark: Any) -> None:
    spec = emu2.Spec.load("mncore2")
    machine = emu2.Machine(spec)
    text = "linc $lr0v $ls0v\n" * 10

    def call() -> None:
        machine.run(emu2.assemble(text, spec))

    benchmark(call)


def test_a_new_machine(benchmark: Any) -> None:
    spec = emu2.Spec.load("mncore2")
    benchmark(lambda: emu2.Machine(spec))


def test_a_mebibyte_of_dram_written_and_read(benchmark: Any) -> None:
    machine = emu2.Machine(emu2.Spec.load("mncore2"))
    words = np.arange(1 << 17, dtype=np.uint64)

    def call() -> None:
        machine.write("dram", words, group=0)
        machine.read("dram", count=words.size, group=0)

    benchmark(call)
