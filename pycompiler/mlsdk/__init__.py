"""The public interface, shaped like the vendor's MLSDK.

>>> from pycompiler.mlsdk import Context, MNDevice
>>> context = Context(MNDevice("emu2"))
>>> add = context.compile(lambda d: {"out": d["x"] + d["y"]}, {"x": x, "y": y}, "out/add")
>>> add({"x": x, "y": y})["out"].cpu()

Scripts that say ``import mlsdk`` run unchanged through ``python -m pycompiler.mlsdk SCRIPT``.
"""

from ..errors import HostFallbackWarning, PycompilerError
from ..runtime.proxy import TensorProxy
from . import storage
from .cache import CacheOptions
from .context import CompiledFunction, Context
from .device import MNDevice
from .storage import path

__all__ = [
    "CacheOptions",
    "CompiledFunction",
    "Context",
    "HostFallbackWarning",
    "MNDevice",
    "PycompilerError",
    "TensorProxy",
    "path",
    "storage",
]
