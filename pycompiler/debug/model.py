"""A compiled model under the debugger."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

import emu2
from emu2.debug.session import Session

from ..app.model import App, HostSegment
from ..errors import error
from ..graph.text import parse_graph
from ..pfvm.session import Array
from ..report.codegen_dir import L3IR, MODEL_APP, MODEL_VSM, read_file
from ..runtime.device import Board
from ..runtime.executable import DeviceFunction
from .moments import Moments
from .values import Values


def open_model(folder: Path, app: App, board: Board, inputs: Mapping[str, Array]) -> Session:
    """Place constants and inputs on a board, and stand before the first statement of the model.

    P0611 for a model that the host runs in part: its assembly alone does not say what the host
    computes between two segments. P0004 if a file of the folder is missing, P0504 if an earlier
    version wrote it.
    """
    if any(isinstance(segment, HostSegment) for segment in app.segments):
        raise error("P0611", path=folder)
    function = DeviceFunction(app, board)
    for name, array in inputs.items():
        place = function.place(name, output=False)
        if place is not None:
            place.write(np.asarray(array))
    code = read_file(folder, MODEL_VSM).decode()
    graph = parse_graph(read_file(folder, L3IR).decode())
    path = str(folder / MODEL_VSM)
    program = emu2.assemble(code, board.target.spec, filename=path)
    machine = board.machine
    letters = dict(emu2.Debugger(emu2.assemble("nop", board.target.spec)).levels)
    moments = Moments(graph, board.target, app, folder / MODEL_APP)
    values = Values(graph, board.target, letters, moments)
    session = Session(path, program, machine, source=code, notes=moments.notes(), named=values)
    values.run = session.run
    return session
