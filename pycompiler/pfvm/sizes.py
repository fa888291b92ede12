"""Sizes that a caller gives to dimensions of a model that the file leaves open."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import onnx

from ..errors import PycompilerError, error
from .declared import shown_sizes
from .names import graphs
from .registered import registered

#: Examples in refusals: of a first axis, of the edges of a picture, of any other axis.
_BATCH, _EDGE, _OTHER = 1, 224, 16
_PICTURE = (_BATCH, 3, _EDGE, _EDGE)


@dataclass(frozen=True)
class Sizes:
    """Sizes by the names of dimensions, and shapes by the names of inputs.

    ``typed`` is the command that was typed, None in Python.
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    typed: Sequence[str] | None = None

    def __post_init__(self) -> None:
        legal = "a whole number from 0 on for each name"
        for name, size in _items("dims", self.dims, legal):
            if not _is_size(size):
                raise self._wrong("dims", name, size, legal)
        legal = "a list of whole numbers from 0 on for each input"
        for name, shape in _items("shapes", self.shapes, legal):
            if not isinstance(shape, Sequence) or not all(map(_is_size, shape)):
                raise self._wrong("shapes", name, shape, legal)

    def _wrong(self, what: str, name: str, value: object, legal: str) -> PycompilerError:
        shown = f"{name}={_text(value)}"
        if self.typed is None:
            what, shown = f"{what}[{name!r}]", repr(value)
        return error(
            "P0704", name=f"--{what[:-1]}" if self.typed else what, value=shown, legal=legal
        )

    def applied(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """Return the model with these sizes. P0139 for sizes that are not known then, P0704.

        Sizes below 0 are not known. An input with a default is a constant, unless ``shapes`` names
        it: then the caller gives it.
        """
        out = onnx.ModelProto()
        out.CopyFrom(model)
        self._choose_inputs(out)
        inputs = {info.name: info for info in out.graph.input}
        known = self._bound(inputs)
        for part in graphs(out.graph):
            for info in (*part.input, *part.output, *part.value_info):
                for dim in info.type.tensor_type.shape.dim:
                    if dim.dim_param in known:
                        dim.dim_value = known[dim.dim_param]
                    elif dim.dim_value < 0:
                        dim.ClearField("dim_value")
        for name, shape in self.shapes.items():
            for dim, size in zip(inputs[name].type.tensor_type.shape.dim, shape, strict=True):
                dim.dim_value = size
        unknown = [info for info in inputs.values() if _is_open(info)]
        if unknown:
            shown = ", ".join(f"`{info.name}` ({_shown(info)})" for info in unknown)
            raise error("P0139", inputs=shown, remedy=self._remedy(unknown))
        return out

    def _choose_inputs(self, model: onnx.ModelProto) -> None:
        """Leave only inputs that the caller gives, in place."""
        graph = model.graph
        held = {t.name for t in graph.initializer} - set(registered(model))
        names = [info.name for info in graph.input]
        for name in self.shapes:
            if name not in names:
                free = ", ".join(one for one in names if one not in held)
                raise self._wrong("shapes", name, self.shapes[name], f"for an input: {free}")
        chosen = [info for info in graph.input if info.name not in held - set(self.shapes)]
        # Before version 4 of the format, every initializer had to be an input.
        model.ir_version = max(model.ir_version, 4)
        if len(chosen) < len(graph.input):
            del graph.input[:]
            graph.input.extend(chosen)
        kept = [t for t in graph.initializer if t.name not in self.shapes]
        if len(kept) < len(graph.initializer):
            del graph.initializer[:]
            graph.initializer.extend(kept)

    def _bound(self, inputs: Mapping[str, onnx.ValueInfoProto]) -> dict[str, int]:
        """Return the size of each named dimension: the sizes of inputs give some of them."""
        found = {dim.dim_param: "" for info in inputs.values() for dim, _ in _dims(info)}
        for name, size in self.dims.items():
            if name not in found or not name:
                names = ", ".join(filter(None, found)) or "none, the inputs name no dimension"
                raise self._wrong("dims", name, size, f"for a dimension of the inputs: {names}")
        known = dict(self.dims)
        for name, shape in self.shapes.items():
            tensor = inputs[name].type.tensor_type
            if not tensor.HasField("shape"):
                tensor.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in shape)
            dims = tensor.shape.dim
            if len(dims) != len(shape):
                legal = f"of rank {len(dims)}: ({_shown(inputs[name])})"
                raise self._wrong("shapes", name, shape, legal)
            for dim, size in zip(dims, shape, strict=True):
                if dim.dim_param and known.setdefault(dim.dim_param, size) != size:
                    legal = f"one with {dim.dim_param}={known[dim.dim_param]}, as given elsewhere"
                    raise self._wrong("shapes", name, shape, legal)
        return known

    def _remedy(self, unknown: Sequence[onnx.ValueInfoProto]) -> str:
        """Return the command to type, or the arguments, with examples of sizes."""
        dims: dict[str, int] = dict(self.dims)
        shapes: dict[str, Sequence[int]] = {}
        for info in unknown:
            found = list(_dims(info))
            sizes = [
                dims.get(dim.dim_param, _example(axis, len(found))) if size is None else size
                for axis, (dim, size) in enumerate(found)
            ]
            if found and all(size is not None or dim.dim_param for dim, size in found):
                for (dim, own), size in zip(found, sizes, strict=True):
                    if own is None:
                        dims.setdefault(dim.dim_param, size)
            else:
                shapes[info.name] = sizes or list(_PICTURE)
        if self.typed is None:
            given = [f"dims={dims}"] * bool(dims)
            given += [f"shapes={dict(self.shapes) | shapes}"] * bool(shapes)
            return "the arguments " + " and ".join(given)
        words = list(self.typed)
        for name, size in dims.items():
            words += ["--dim", f"{name}={size}"] if name not in self.dims else []
        for name, shape in shapes.items():
            words += ["--shape", f"{name}={_text(shape)}"]
        return shlex.join(words)


def parsed_sizes(
    dims: Iterable[str], shapes: Iterable[str], typed: Sequence[str] | None = None
) -> Sizes:
    """Return the sizes of texts like ``batch=1`` and ``image=1x3x224x224``. P0704."""
    sizes: dict[str, int] = {}
    for text in dims:
        name, _, size = text.rpartition("=")
        if not name or not re.fullmatch(r"[0-9]{1,18}", size):
            raise error("P0704", name="--dim", value=text, legal="like batch=1")
        sizes[name] = int(size)
    found: dict[str, tuple[int, ...]] = {}
    for text in shapes:
        name, _, shape = text.rpartition("=")
        if not name or not re.fullmatch(r"([0-9]{1,18}(x[0-9]{1,18})*)?", shape):
            raise error("P0704", name="--shape", value=text, legal="like image=1x3x224x224")
        found[name] = tuple(map(int, shape.split("x"))) if shape else ()
    return Sizes(sizes, found, typed)


def _items(name: str, found: object, legal: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(found, Mapping):
        raise error("P0704", name=name, value=repr(found), legal=f"a dict with {legal}")
    yield from found.items()


def _is_size(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def _text(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, Sequence) else str(value)


def _dims(info: onnx.ValueInfoProto) -> Iterator[tuple[Any, int | None]]:
    """Yield the dimensions of a tensor with their sizes, None for one that is not known."""
    for dim in info.type.tensor_type.shape.dim:
        yield dim, int(dim.dim_value) if dim.HasField("dim_value") else None


def _is_open(info: onnx.ValueInfoProto) -> bool:
    tensor = info.type.tensor_type
    whole = tensor.HasField("shape") and all(size is not None for _, size in _dims(info))
    return info.type.HasField("tensor_type") and not whole


def _shown(info: onnx.ValueInfoProto) -> str:
    if not info.type.tensor_type.HasField("shape"):
        return "of any shape"
    return shown_sizes(info.type.tensor_type.shape.dim)


def _example(axis: int, rank: int) -> int:
    if axis == 0:
        return _BATCH
    return _EDGE if rank >= 4 and axis >= 2 else _OTHER
