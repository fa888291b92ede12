"""The line of the model's own code that made a node, as torch's exporter recorded it."""

from __future__ import annotations

import importlib.util
import os
import re

import onnx

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def _package(name: str) -> str:
    """Return the folder of a package, with a separator at the end, without importing it."""
    spec = importlib.util.find_spec(name)
    folders = spec.submodule_search_locations if spec is not None else None
    return (folders[0] if folders else name) + os.sep


#: Folders whose frames are not the model's own code.
NOT_THE_MODEL = (_package("torch"), _package("pycompiler"))


def source_of(node: onnx.NodeProto) -> str | None:
    """Return ``file:line`` of the innermost frame of the model's own code that made ``node``."""
    trace = {item.key: item.value for item in node.metadata_props}
    return own_line(trace.get("pkg.torch.onnx.stack_trace", ""))


def own_line(trace: str) -> str | None:
    """Return ``file:line`` of the innermost frame of the model's own code in a printed stack."""
    frames = _FRAME.findall(trace)
    own = [f"{file}:{line}" for file, line in frames if not file.startswith(NOT_THE_MODEL)]
    return own[-1] if own else None
