"""What ``pycompiler explain`` prints: cause, remedy and example of every code of the table."""

from __future__ import annotations

from emu2.explain import Entry, read_causes

from .table import TABLE

CAUSES = "causes.toml"

#: What the Python examples begin with; ``command`` is the command line of ``pycompiler``.
PRELUDE = """\
import json
from pathlib import Path
import onnx
import torch
from pycompiler.mlsdk import Context, MNDevice

context = Context(MNDevice("emu2:mini"))
x = torch.ones(4)
"""


def entries() -> dict[str, Entry]:
    """Return the entry of every code, in the order of the table."""
    causes = read_causes("pycompiler.errors", CAUSES)
    found = {}
    for code, kind in TABLE.items():
        title, remedy = kind.message.format(**kind.example), kind.help.format(**kind.example)
        own = causes.get(code, {})
        found[code] = Entry(code=code, title=title, remedy=remedy, drawn=bool(kind.example), **own)
    return found
