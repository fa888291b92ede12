"""The version of the packages, and the versions of all that makes the results of a compile."""

from __future__ import annotations

import hashlib
import importlib.metadata
from functools import lru_cache
from pathlib import Path

__version__ = "0.9.0"


@lru_cache(maxsize=1)
def software() -> tuple[str, ...]:
    """Return versions, and a digest of our code, which can change without a new version."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    packages = ("onnx", "onnxruntime")
    return (__version__, digest.hexdigest(), *map(importlib.metadata.version, packages))
