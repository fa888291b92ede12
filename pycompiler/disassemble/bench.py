"""Times the nodes of a compiled function on the emulator."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

import emu2

from ..app.make_app import programs_of
from ..app.model import App, HostSegment
from ..errors import error
from ..pfvm.session import Array
from ..profile.programs import pieces
from ..report.codegen_dir import MODEL_APP
from ..runtime.device import Board
from ..runtime.executable import DeviceFunction


@dataclass(frozen=True)
class Timing:
    """Seconds of a node, or of all nodes of one kind, in one run of the function."""

    name: str
    seconds: float
    share: float
    nodes: int = 1


class Bench:
    """Runs a function in pieces: consecutive lines that count for one node.

    The pieces run in the order of the program on one machine with the function's constants, so
    every node computes what it computes in a run of the function. P0504; P0611 for a model that the
    host runs in part.
    """

    def __init__(self, folder: Path, app: App, board: Board, inputs: Mapping[str, Array]):
        """Place constants and inputs, and assemble the pieces."""
        if any(isinstance(segment, HostSegment) for segment in app.segments):
            raise error("P0611", path=folder)
        self._machine = board.machine
        self.function = DeviceFunction(app, board)
        for name, array in inputs.items():
            place = self.function.place(name, output=False)
            if place is not None:
                place.write(np.asarray(array))
        spec = board.target.spec
        known: dict[str, emu2.Program] = {}
        self._pieces: list[tuple[str, emu2.Program]] = []
        for _, segment in programs_of(app, folder / MODEL_APP):
            for node, text in pieces(segment):
                if text not in known:
                    known[text] = emu2.assemble(text, spec, filename=str(folder))
                self._pieces.append((node, known[text]))
        self._nothing = emu2.assemble("nop", spec)

    def run(self, count: int) -> dict[str, float]:
        """Run all pieces ``count`` times and return the median seconds of each node."""
        times: dict[str, list[float]] = defaultdict(lambda: [0.0] * count)
        for turn in range(count):
            for node, program in self._pieces:
                start = time.perf_counter()
                self._machine.run(program)
                times[node][turn] += time.perf_counter() - start
        return {node: median(own) for node, own in times.items()}

    def overhead(self, count: int) -> tuple[float, int]:
        """Return the seconds that starting a run takes, and the number of pieces."""
        found = []
        for _ in range(count):
            start = time.perf_counter()
            self._machine.run(self._nothing)
            found.append(time.perf_counter() - start)
        return median(found), len(self._pieces)


def timings(
    seconds: Mapping[str, float], kind: Callable[[str], str] = lambda node: node
) -> list[Timing]:
    """Return the times of nodes, or of kinds of nodes, the longest first."""
    sums: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for node, own in seconds.items():
        sums[kind(node)] += own
        counts[kind(node)] += 1
    whole = sum(sums.values()) or 1.0
    rows = (Timing(name, own, own / whole, counts[name]) for name, own in sums.items())
    return sorted(rows, key=lambda row: (-row.seconds, row.name))
