"""The column of `torch.compile` in the page of models: it has a command of its own.

A full page takes hours on few cores, so this column is written into a page that is there already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .row import DOOR, MODES, Row

#: The command that fills the column in.
DOOR_COMMAND = f"python -m pycompiler.models --mode {DOOR} --markdown docs/models.md"
#: What the column has for a model that did not go through the door.
NOT_RUN = "-"
#: The first words of the line that counts the column.
_COUNTED = f"* Through `{DOOR}`, "

_SECTION = f"## Models in `{MODES[0]}`"


def with_column(text: str, rows: Sequence[Row]) -> str:
    """Return a page with the column; models without a row keep the cell that they have."""
    found = {(row.name, str(row.batch)): _cell(row) for row in rows if row.mode == DOOR}
    lines, cells = [], []
    inside, library, place = False, "", None
    for line in text.splitlines():
        if line.startswith("#"):
            inside = line == _SECTION
        if inside and (named := re.fullmatch(r"\*\*(.*)\*\*", line)):
            library = named[1]
        if inside and line.startswith("|"):
            own = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if own[0] == "model":
                place = own.index(DOOR) if DOOR in own else None
            kept = own[place] if place is not None else NOT_RUN
            if place is not None:
                del own[place]
            if own[0] == "model":
                cell = DOOR
            elif set(own[0]) <= set("-:"):
                cell = "---"
            else:
                cell = found.get((f"{library}:{own[0]}", own[2]), kept)
                cells.append(cell)
            line = f"| {' | '.join([*own, cell])} |"
        lines.append(line)
    return _counted(lines, cells) + ("\n" if text.endswith("\n") else "")


def _counted(lines: Sequence[str], cells: Sequence[str]) -> str:
    """Return the page with a line that counts the column, behind those of the modes."""
    plain = [line for line in lines if not line.startswith(_COUNTED)]
    counts = [number for number, line in enumerate(plain) if line.startswith("* In `")]
    ran = [cell for cell in cells if cell != NOT_RUN]
    if counts and ran:
        matched = sum(cell.startswith("matched") for cell in ran)
        whole = sum(cell == _shown(1, 1, {}, 0) for cell in ran)
        line = (
            f"{_COUNTED}{matched} of {len(ran)} match torch, {whole} of them as one graph and one "
            "piece."
        )
        at = counts[-1] + 1
        while at < len(plain) and plain[at].startswith("  "):
            at += 1
        plain.insert(at, line)
    return "\n".join(plain)


def _cell(row: Row) -> str:
    if row.code or not row.matched:
        return row.result
    return _shown(row.graphs, row.pieces, row.in_torch, row.operators)


def _shown(graphs: int, pieces: int, in_torch: Mapping[str, int], operators: int) -> str:
    left = sum(in_torch.values())
    many = [f"{count} {name}{'s' * (count != 1)}" for count, name in
            ((graphs, "graph"), (pieces, "piece"))]  # fmt: skip
    stays = f", {left} of {operators} operators in torch" if left else ""
    return f"matched: {', '.join(many)}{stays}"
