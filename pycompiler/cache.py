"""The compile cache: keeps the results of a compilation under a digest of its inputs.

An entry is one zip file. It is written to a temporary file and renamed, so processes may share a
folder. The last writer of a key wins, and all writers of a key write the same. A problem with the
cache becomes a note in the report and never stops a compile. If the entries take more than ``most``
bytes, those that were not used for the longest time are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from .app.reader import read_app
from .app.writer import app_content
from .files import pieces, temporary_file, trim
from .machine import Target
from .options import Options, decisive
from .pfvm.held import array_of, digest_of, is_held
from .pfvm.names import graphs
from .pfvm.source import source_of
from .pipeline import Artifacts
from .report.report import OF_A_PROGRAM, Report
from .version import software

_APP, _VSM, _FACTS = "model.app", "model.vsm", "facts.json"
_FILES = "files/"
#: What the entries of a folder may take: hundreds of compiled networks.
MOST_BYTES = 1 << 33


class CompileCache:
    """Entries in a folder, which is made when the first entry is stored."""

    def __init__(self, folder: Path, most: int = MOST_BYTES):
        self.folder, self.most = folder, most

    def load(self, key: str, report: Report) -> Artifacts | None:
        """Return the entry of ``key`` and add its part to the report; None if there is none."""
        path = self._path(key)
        if not path.exists():
            return None
        try:
            with zipfile.ZipFile(path) as entry:
                facts = json.loads(entry.read(_FACTS))
                found = Artifacts(
                    read_app(entry.read(_APP), str(path)),
                    entry.read(_VSM).decode(),
                    {n: entry.read(_FILES + n) for n in facts["files"]},
                )
            if facts["key"] != key:
                raise ValueError("it belongs to another key")
            kept = {name: facts["report"][name] for name in OF_A_PROGRAM}
        except Exception as problem:  # a damaged entry can raise many kinds of exception
            report.note(f"cache: `{path}` is damaged and made anew ({problem})")
            return None
        report.data.update(kept)
        with contextlib.suppress(OSError):
            os.utime(path)
        return found

    def store(self, key: str, made: Artifacts, report: Report) -> None:
        """Write the entry of ``key``."""
        facts = {
            "key": key,
            "files": list(made.files),
            "report": {name: report.data[name] for name in OF_A_PROGRAM},
        }
        path = self._path(key)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with temporary_file(self.folder, path.name) as building:
                with zipfile.ZipFile(building, "w") as entry:
                    with entry.open(_APP, "w", force_zip64=True) as file:
                        file.writelines(pieces(app_content(made.app)))
                    parts: dict[str, str | bytes]
                    parts = {_VSM: made.vsm, _FACTS: json.dumps(facts)}
                    parts |= {_FILES + name: content for name, content in made.files.items()}
                    for part, content in parts.items():
                        entry.writestr(part, content, zipfile.ZIP_DEFLATED)
                building.replace(path)
            trim(self.folder.glob("*.zip"), self.most)
        except (OSError, ValueError) as problem:
            report.note(f"cache: nothing is stored, `{self.folder}` cannot be written ({problem})")

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.zip"


def cache_key(model: onnx.ModelProto, target: Target, options: Options) -> str:
    """Return a digest of all inputs of a compilation: model, machine, options, this software."""
    facts = {
        "software": software(),
        "machine": [target.name, target.digest],
        "options": decisive(options),
    }
    digest = hashlib.sha256(json.dumps(facts, default=repr).encode())
    digest.update(_canonical(model))
    return digest.hexdigest()


def _canonical(model: onnx.ModelProto) -> bytes:
    """Return the model's bytes without metadata that no pass reads; source lines stay."""
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    plain.ClearField("producer_name")
    plain.ClearField("producer_version")
    plain.ClearField("doc_string")
    for tensor in filter(is_held, plain.graph.initializer):
        tensor.doc_string, tensor.external_data[0].value = digest_of(array_of(tensor)), ""
    bodies = [part for whole in (plain.graph, *plain.functions) for part in graphs(whole)]
    for part in bodies:
        part.ClearField("doc_string")
        for node in part.node:
            source = source_of(node)
            del node.metadata_props[:]
            node.doc_string = source or ""
    return bytes(plain.SerializeToString(deterministic=True))


def cache_states(app: str) -> Mapping[str, Any]:
    """Return the entry ``cache`` of the report; ``app`` is ``hit``, ``miss`` or ``off``."""
    return {"app": app, "codegen": app, "onnx": "off", "gpfn2obj": "off"}
