"""The public interface, with the names of the vendor's MLSDK.

>>> from pycompiler.mlsdk import Context, MNDevice
>>> context = Context(MNDevice("emu2"))
>>> add = context.compile(lambda d: {"out": d["x"] + d["y"]}, {"x": x, "y": y}, "out/add")
>>> add({"x": x, "y": y})["out"].cpu()

Scripts that say ``import mlsdk`` run unchanged through ``python -m pycompiler.mlsdk SCRIPT``.
"""

from ..errors import HostFallbackWarning, OptionWarning, PycompilerError
from ..frontend.tensor_names import get_tensor_name, set_tensor_name, set_tensor_name_in_module
from ..runtime.io_spec import IOSpec
from ..runtime.proxy import TensorProxy
from . import storage
from .automap import AutomapFunction, register_pytree_dataclass, register_pytree_namedtuple
from .cache import CacheOptions
from .context import Context
from .device import MNDevice
from .function import CompiledFunction, TensorLike
from .lr_scheduler import MNCoreLRScheduler
from .optimizers import (
    MNCoreAdam,
    MNCoreAdamW,
    MNCoreOptimizer,
    MNCoreSGD,
    set_buffer_name_in_optimizer,
)
from .storage import path
from .trace import trace_event, trace_scope

__all__ = [
    "AutomapFunction",
    "CacheOptions",
    "CompiledFunction",
    "Context",
    "HostFallbackWarning",
    "IOSpec",
    "MNCoreAdam",
    "MNCoreAdamW",
    "MNCoreLRScheduler",
    "MNCoreOptimizer",
    "MNCoreSGD",
    "MNDevice",
    "OptionWarning",
    "PycompilerError",
    "TensorLike",
    "TensorProxy",
    "get_tensor_name",
    "path",
    "register_pytree_dataclass",
    "register_pytree_namedtuple",
    "set_buffer_name_in_optimizer",
    "set_tensor_name",
    "set_tensor_name_in_module",
    "storage",
    "trace_event",
    "trace_scope",
]
