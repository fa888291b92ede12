"""Reads the inputs of a function from an ``.npz`` file."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np

from ..errors import PycompilerError, error
from ..files import TEXT_BYTES, read_input
from ..graph.dtypes import numpy_dtype
from ..graph.graph import TensorType
from ..pfvm.session import Array


def wrong_inputs(problem: str, wanted: Mapping[str, TensorType]) -> PycompilerError:
    """Return P0603 with the inputs that are wanted."""
    signature = ", ".join(f"{name}: {type}" for name, type in wanted.items()) or "none"
    return error("P0603", problem=problem, signature=signature)


#: What numpy, zipfile and zlib raise for a file that is no set of arrays, or a damaged one.
_NO_ARRAYS = (
    *(ValueError, TypeError, EOFError, OSError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error),
)


def read_arrays(path: Path, wanted: Mapping[str, TensorType]) -> dict[str, Array]:
    """Return the arrays of an .npz file. P0001, P0006, and P0603 unless all of them are wanted.

    The header of an array is compared before its data is read: a header may promise any size.
    """
    size = sum(prod(type.shape) * 16 for type in wanted.values()) + TEXT_BYTES
    data = io.BytesIO(read_input(path, size))
    try:
        found: dict[str, Array] = {}
        with zipfile.ZipFile(data) as file:
            for member in file.namelist():
                name = member.removesuffix(".npy")
                if name not in wanted:
                    raise wrong_inputs(f"`{name}` is no input", wanted)
                _check_header(file, member, name, wanted)
                with file.open(member) as stream:
                    array = np.lib.format.read_array(stream, allow_pickle=False)
                found[name] = _native(array)
        return found
    except _NO_ARRAYS as problem:
        raise error("P0006", path=path, reason=str(problem)) from problem


def _check_header(
    file: zipfile.ZipFile, member: str, name: str, wanted: Mapping[str, TensorType]
) -> None:
    with file.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    type = wanted[name]
    if (numpy_dtype(type.elem), type.shape) != (dtype.newbyteorder("="), shape):
        raise wrong_inputs(f"`{name}` is {dtype} {shape}", wanted)


def _native(array: Array) -> Array:
    """``array`` in this computer's byte order."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)
