"""pycompiler: PyTorch functions to MN-Core 2 assembly, run on emu2.

The public interface is :mod:`pycompiler.mlsdk`, and :func:`partition` for ONNX models.
"""

from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .partitioning import partition

__all__ = ["__version__", "partition"]


def __getattr__(name: str) -> Any:
    # The command line must start without onnx, which takes a second to load.
    if name == "partition":
        from .partitioning import partition

        return partition
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
