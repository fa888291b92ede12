"""Converts what a caller gives to the type that a function was compiled for, as MLSDK does."""

from __future__ import annotations

from numbers import Number

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor

from ..frontend.torch_dtypes import strange_kind
from ..graph.dtypes import numpy_dtype
from ..graph.graph import TensorType
from ..pfvm.session import Array
from .tensors import to_array


class UnfitError(ValueError):
    """A value has another shape, or elements that the dtype cannot hold; the text says which."""


def converted(given: object, type: TensorType) -> Array:
    """Return a tensor, an array or a number as an array of ``type``.

    Another dtype is converted, as ``torch.Tensor.to`` does. An element may lose digits when it
    becomes a float. A single element fits any shape of one element. UnfitError for other shapes,
    and for an element that would become another number: 1.5 or 300 as uint8, 1e300 as float32.
    """
    array = _array(given)
    if array.shape != type.shape:
        if array.size != 1 or any(size != 1 for size in type.shape):
            raise UnfitError(f"has shape {array.shape}")
        array = array.reshape(type.shape)
    dtype = numpy_dtype(type.elem)
    return array if array.dtype == dtype else _as_dtype(array, dtype)


def _array(given: object) -> Array:
    if isinstance(given, torch.Tensor):
        if strange := strange_kind(given):
            raise UnfitError(f"is {strange}")
        if given.is_meta or isinstance(given, FakeTensor):
            raise UnfitError("is without data" if given.is_meta else "is of a trace, without data")
        return to_array(given)
    array = np.asarray(given) if isinstance(given, np.ndarray | np.generic | Number) else None
    if array is None or array.dtype.kind in "OSU":
        raise UnfitError(f"is a {type(given).__name__}, no tensor")
    if array.dtype.kind in "cmM":
        raise UnfitError(f"has dtype {array.dtype}")
    return array


def _as_dtype(array: Array, dtype: np.dtype[np.generic]) -> Array:
    with np.errstate(all="ignore"):
        found: Array = array.astype(dtype)
        if dtype.kind in "iub":
            back = found.astype(array.dtype)
            kept = (back == array) & ((found < 0) == (array < 0)) & ~_beyond(array, dtype)
        else:
            kept = np.isfinite(found) == np.isfinite(array)
    if not kept.all():
        lost = array[np.unravel_index(int(np.argmin(kept)), kept.shape)]
        raise UnfitError(f"has the element {lost}, which {dtype} cannot hold")
    return found


def _beyond(array: Array, dtype: np.dtype[np.generic]) -> Array:
    """Whether floats are at least 2 ** 63 or 2 ** 64: the greatest integer rounds to that."""
    if dtype.kind == "b" or array.dtype.kind in "iub":
        return np.zeros(array.shape, np.bool_)
    limit = 2.0 ** (8 * dtype.itemsize - (dtype.kind == "i"))
    return np.asarray(array.astype(np.float64) >= limit)
