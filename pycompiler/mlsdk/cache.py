"""Options of the compile cache."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path

from ..cache import CompileCache
from ..errors import error


@dataclass(frozen=True)
class CacheOptions:
    """Keep compilations in the folder ``dir``, and take them from there.

    The app and the text files of ``codegen_dir`` are made together and are kept together: where
    ``enable_app_cache`` and ``enable_codegen_cache`` are both set, a model that was compiled before
    with the same options for the same machine is taken from ``dir``, by any process; processes may
    share it. ``report.json`` says ``hit`` or ``miss`` under ``cache``, and what was wrong with the
    cache under ``notes``: that never stops a compile. The cache is never emptied; delete ``dir``.

    ``enable_onnx_cache`` has nothing to switch: whether a Python function and the tensors it closes
    over are the ones of last time is known only from the model torch exports of them. Neither has
    ``enable_gpfn2obj_cache``: an app holds assembly text, there are no object files. On
    ``pfvm:cpu`` nothing is compiled and nothing is kept. P0704 for values of other types.
    """

    dir: str | os.PathLike[str]
    enable_app_cache: bool = True
    enable_onnx_cache: bool = True
    enable_codegen_cache: bool = True
    enable_gpfn2obj_cache: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.dir, str | os.PathLike):
            raise error("P0704", name="dir", value=repr(self.dir), legal="a str or a path")
        for flag in fields(self)[1:]:
            value = getattr(self, flag.name)
            if not isinstance(value, bool):
                raise error("P0704", name=flag.name, value=repr(value), legal="True or False")

    @property
    def cache(self) -> CompileCache | None:
        """The cache these options ask for."""
        wanted = self.enable_app_cache and self.enable_codegen_cache
        return CompileCache(Path(self.dir)) if wanted else None
