"""pycompiler: PyTorch functions to MN-Core 2 assembly, run on emu2.

The public interface is :mod:`pycompiler.mlsdk`, :func:`partition` for ONNX models, and
:func:`last_report` of what ``torch.compile`` made.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .partitioning import partition
    from .torch_backend import last_report

__all__ = ["__version__", "last_report", "partition"]
_ROOMS = {"partition": ".partitioning", "last_report": ".torch_backend"}


def __getattr__(name: str) -> Any:
    # The command line must start without onnx, which takes a second to load.
    if name in _ROOMS:
        return getattr(import_module(_ROOMS[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
