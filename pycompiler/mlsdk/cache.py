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

    The app and the text files of ``codegen_dir`` are kept together. If ``enable_app_cache`` and
    ``enable_codegen_cache`` are both set, a model that was compiled before with the same options
    for the same machine is taken from ``dir``. Several processes may share ``dir``.
    ``report.json`` says ``hit`` or ``miss`` under ``cache``. Problems with the cache are listed
    under ``notes`` and never stop a compile. Delete ``dir`` to empty the cache.

    ``enable_onnx_cache`` changes nothing: only the model that torch exports shows whether a Python
    function and the tensors that it closes over have changed. ``enable_gpfn2obj_cache`` changes
    nothing either: an app holds assembly text, so there are no object files. On ``pfvm:cpu``
    nothing is compiled and nothing is kept. P0704 for values of other types.
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
        """The cache that these options ask for; None if it is switched off."""
        wanted = self.enable_app_cache and self.enable_codegen_cache
        return CompileCache(Path(self.dir)) if wanted else None
