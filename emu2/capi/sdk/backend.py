"""Builds the wheel of emu2-sdk: the staged tree, and nothing else (PEP 517)."""

from __future__ import annotations

import base64
import hashlib
import os
import sysconfig
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import stage  # type: ignore[import-not-found]

HERE = Path(__file__).parent
STAGED = "EMU2_SDK_TREE"
"""A variable with the path of a staged tree, which is packed as it is."""
MODULE = '"""The tree of the SDK, which `emu2 sdk install` copies."""\n'


def version() -> str:
    """Return the version of all Rust packages."""
    text = (stage.TREE / "Cargo.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["workspace"]["package"]["version"])


def build_wheel(directory: str, settings: Any = None, metadata: Any = None) -> str:
    """Write the wheel to ``directory`` and return its name."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    stem = f"emu2_sdk-{version()}"
    name = f"{stem}-py3-none-{platform}.whl"
    needs = "".join(f"Requires-Dist: {needed}\n" for needed in project["dependencies"])
    info = {
        "METADATA": f"Metadata-Version: 2.4\nName: emu2-sdk\nVersion: {version()}\n"
        f"Summary: {project['description']}\nLicense-Expression: {project['license']}\n{needs}",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: emu2\nRoot-Is-Purelib: false\n"
        f"Tag: py3-none-{platform}\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(os.environ.get(STAGED, folder))
        if STAGED not in os.environ:
            stage.stage(tree, stage.built())
        contents = {
            f"emu2_sdk/tree/{p.relative_to(tree)}": p
            for p in sorted(tree.rglob("*"))
            if p.is_file()
        }
        records = []
        with zipfile.ZipFile(Path(directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:

            def add(path: str, data: bytes, mode: int = 0o644) -> None:
                entry = zipfile.ZipInfo(path)
                entry.external_attr = (0o100000 | mode) << 16
                wheel.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
                records.append(f"{path},sha256={digest.decode()},{len(data)}")

            for path, file in contents.items():
                add(path, file.read_bytes(), file.stat().st_mode & 0o777)
            add("emu2_sdk/__init__.py", MODULE.encode())
            for path, text in info.items():
                add(f"{stem}.dist-info/{path}", text.encode())
            records.append(f"{stem}.dist-info/RECORD,,")
            record = zipfile.ZipInfo(f"{stem}.dist-info/RECORD")
            wheel.writestr(record, "\n".join(records) + "\n")
    return name
