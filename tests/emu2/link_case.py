"""Links and runs small sources, for the tests of the linker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import emu2
from emu2.link import LinkError, link

SPEC = emu2.Spec.load("mncore2")
PES = 4096
STRUCTURE = "((:version :0.0) (:ndim 1) (:pe_shape (4096)) (:pe_local (1)){more})"
PLACEMENT = """((:version :0.1)
 (:reserved_wait_tag #x3f)  ; of the expansions
 (:slot 8 :place :pdm0 :addr 0 :send_wait_tag #x10)
 (:slot 16 :addr 16384 :send_wait_tag #x10)
 (:slot 24 :addr 32768 :send_wait_tag #x10 :recv_wait_tag #x1e)
 (:slot 32 :addr 49152 :recv_wait_tag #x1d)
 (:slot 40 :addr 20483 :send_wait_tag #x10)
 (:slot 48 :addr 20541)
 (:boundary_flags bf0 :addr 65536 :send_wait_tag #x10)
 (:identify 0 :addr 69632 :send_wait_tag #x10)
 (:buffer nbuf0 :addr 73728 :buf_size 4160)
 (:buffer short0 :addr 73728 :buf_size 64)
{more})"""
FLAGS = (
    "data_edge_left data_edge_right cross_chip_left cross_chip_right cross_L2B_left cross_L2B_right"
    " cross_L1B_left cross_L1B_right cross_MAB_left cross_MAB_right"
)
POOL = "@alloc left :omr 9 10 11 12 :grf0 200 202 204 206 208 210 212 214 216 218 220 :n 0"


def linked(source: str, placement: str = "", structure: str = "", *, whole: bool = False) -> str:
    """Return the assembly of a source; the texts are put into the files above unless ``whole``."""
    if not whole:
        placement = PLACEMENT.replace("{more}", placement)
        structure = STRUCTURE.replace("{more}", structure)
    return link(source, placement, structure, SPEC, ("k._vsm", "k.param", "k.stparam")).text


def faults(
    source: str, placement: str = "", structure: str = "", *, whole: bool = False
) -> list[str]:
    """Return the faults that stop a link, as the tool prints them."""
    try:
        linked(source, placement, structure, whole=whole)
    except LinkError as error:
        return [str(fault) for fault in error.faults]
    return []


def flags(left: bool, right: bool) -> np.ndarray:
    """Return the words of flags by the rule of the levels, one for each PE."""
    found = np.zeros(PES, np.uint64)
    for number in range(PES):
        pe, mab, l1b, l2b = number % 4, number // 4 % 16, number // 64 % 8, number // 512
        ends = {"left": (0, 0, 0, 0), "right": (3, 15, 7, 7)}
        for side, at in enumerate(("left", "right")):
            if pe != ends[at][0]:
                continue
            edge = (left, right)[side]
            bit = 8 if edge else 6
            for level, (value, end) in enumerate(zip((mab, l1b, l2b), ends[at][1:], strict=True)):
                if value != end:
                    bit = 2 * level
                    break
            found[number] = 1 << (bit + (1 - side))
    return found


class Run:
    """A device with arrays in its PDM, and what kernels leave there."""

    def __init__(self, arrays: Mapping[int, np.ndarray], tag: int = 0x10) -> None:
        self.device = emu2.Device(SPEC)
        addresses: Sequence[int] = sorted(arrays)
        for addr in addresses:
            last = tag if addr == addresses[-1] else 0
            self.device.send(np.ascontiguousarray(arrays[addr]), addr * 8, last)

    def run(self, text: str) -> Run:
        """Run an assembly, which must pass the checks of the assembler."""
        program = emu2.assemble(text, SPEC, filename="k.vsm", policy="check")
        self.device.exec(self.device.load_kernel(program))
        return self

    def words(self, addr: int, count: int = PES, tag: int = 0, dtype: str = "u8") -> np.ndarray:
        """Return long words of the PDM."""
        return self.device.recv(np.empty(count, dtype), addr * 8, tag)
