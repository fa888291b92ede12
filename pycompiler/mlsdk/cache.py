"""Options of the compile cache."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class CacheOptions:
    """Where compilations may be cached, and which stages. Accepted; nothing is cached yet."""

    dir: str | os.PathLike[str]
    enable_app_cache: bool = True
    enable_onnx_cache: bool = True
    enable_codegen_cache: bool = True
    enable_gpfn2obj_cache: bool = True
