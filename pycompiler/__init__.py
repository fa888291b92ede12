"""pycompiler: PyTorch functions to MN-Core 2 assembly, run on emu2.

The public interface is :mod:`pycompiler.mlsdk`.
"""

__version__ = "0.1.0"
