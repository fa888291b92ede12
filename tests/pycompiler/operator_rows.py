"""The parts of a table of operators to compare: rows, samples, random shapes and values."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper

from pycompiler import tolerance
from pycompiler.graph.dtypes import MNDtype
from pycompiler.tolerance import FLUSH, MOVE, PRODUCT, RELATIVE, SUM, SUMS, bound

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Tensor = torch.Tensor
REAL, WHOLE, LONG, TRUTH, NATURAL = "float32", "int32", "int64", "bool", "uint32"
WIDE, HUGE = "float64", "uint64"
REALS = (REAL, WIDE)
SIGNED = (*REALS, WHOLE, LONG)
NUMBERS = (*SIGNED, HUGE)
DTYPES = {
    REAL: MNDtype.FLOAT,
    WHOLE: MNDtype.INT,
    LONG: MNDtype.LONG,
    TRUTH: MNDtype.SINGLE_BOOL,
    NATURAL: MNDtype.UINT,
    WIDE: MNDtype.DOUBLE,
    HUGE: MNDtype.ULONG,
}
#: Operators whose factors the mode `mixed` rounds to halves.
PRODUCTS = {"MatMul", "Gemm", "Einsum", "Conv", "ConvTranspose"}
#: onnxruntime computes in singles too. Its error may be this many times the device's.
HOST_ERROR = 4.0


@dataclass(frozen=True)
class Sample:
    """One use of an operator: its operands by name, in order, and PyTorch's function.

    ``fixed`` operands are constants of the model. An operand without a value is left out. Sums have
    ``terms`` terms, each at most ``scale``. onnxruntime may have an additional error ``absolute``.
    """

    operands: Mapping[str, Array | None]
    function: Callable[..., Tensor | tuple[Tensor, ...]]
    fixed: frozenset[str] = frozenset()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    terms: int = 0
    scale: float = 1.0
    absolute: float = 0.0

    @property
    def given(self) -> dict[str, Array]:
        """The operands that a call gives."""
        named = self.operands.items()
        # A function of NumPy gives a scalar for an array without axes.
        return {n: np.asarray(a) for n, a in named if a is not None and n not in self.fixed}

    @property
    def constants(self) -> dict[str, Array]:
        """The operands that are constants of the model."""
        named = self.operands.items()
        return {n: np.asarray(a) for n, a in named if a is not None and n in self.fixed}

    def wanted(self) -> tuple[Array, ...]:
        """Return PyTorch's results, in double precision."""
        read = {n: a for n, a in self.operands.items() if a is not None}
        found = self.function(**{name: precise(array) for name, array in read.items()})
        return tuple(t.numpy() for t in (found if isinstance(found, tuple) else (found,)))


def precise(array: Array) -> Tensor:
    """Return a tensor of doubles, or of integers that PyTorch computes with."""
    wide = {"f": np.float64, "u": np.int64}.get(array.dtype.kind, array.dtype)
    return torch.from_numpy(np.asarray(array, wide))


#: The operators that make products of halves in `mixed`.
HALVES = PRODUCTS | {"Attention", "GridSample", "RoiAlign"}


@dataclass(frozen=True)
class Row:
    """An operator in one dtype: its name, element types of inputs and result, random samples.

    ``claim`` is the registry's name of the dtype. ``ranks`` are the ranks of the first operand in
    the samples. ``error`` is a row of the tolerance table. ``second`` is the element type of the
    results after the first if it is another one. ``host`` writes the node in another form for
    onnxruntime if that has no kernel. ``slow`` rows are part of `make test-long`.
    """

    op: str
    claim: str
    result: str
    sample: Callable[[random.Random], Sample]
    error: str
    ranks: range = range(7)
    opset: int = 20
    host: Callable[[onnx.NodeProto], list[onnx.NodeProto]] | None = None
    second: str = ""
    slow: bool = False

    def dtype(self, output: int, sample: Sample) -> str:
        """Return the element type of a result; without one, it is that of the last operand."""
        if self.op == "DynamicQuantizeLinear" and output == 1:
            return REAL
        if not self.result:
            last = [array for array in sample.operands.values() if array is not None][-1]
            return str(last.dtype)
        return self.second if output and self.second else self.result

    def model(self, sample: Sample, *, for_host: bool = False) -> onnx.ModelProto:
        """A model of one node."""
        reads = [name if a is not None else "" for name, a in sample.operands.items()]
        while reads and not reads[-1]:
            reads.pop()
        outs = [f"y{number}" for number in range(sample.outputs)]
        node = helper.make_node(self.op, reads, outs, name="node", **sample.attributes)
        numbers = [
            helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype(place, sample)))
            for place in range(len(outs))
        ]
        nodes = self.host(node) if for_host and self.host is not None else [node]
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info(n, elem(a), a.shape) for n, a in sample.given.items()],
            [
                helper.make_tensor_value_info(name, number, wanted.shape)
                for name, number, wanted in zip(outs, numbers, sample.wanted(), strict=True)
            ],
            [numpy_helper.from_array(array, name) for name, array in sample.constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 10
        return model

    def limit(self, sample: Sample, wanted: Array, mode: str) -> Array:
        """Return the largest error that the tolerance table allows."""
        dtype = "Double" if self.result == WIDE else "Float"
        if self.error == PRODUCT:
            return np.asarray(sample.terms * tolerance.PRODUCTS[dtype, PRODUCT] * np.abs(wanted))
        if self.error == SUM:
            halves = mode == "mixed" and self.op in HALVES and dtype == "Float"
            return np.asarray(sample.terms * sample.scale * SUMS["Half" if halves else dtype, SUM])
        limit = bound(dtype, self.error) * np.abs(wanted)
        return np.asarray(limit if self.error == MOVE else limit + FLUSH[dtype])


def elem(array: Array) -> int:
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


assert {MOVE, SUM} - {kind for _, kind in RELATIVE} == {SUM}


def values(rng: random.Random, dtype: str, shape: Shape) -> Array:
    """Singles of both signs, some zeros, a spread of magnitudes; integers near 0 and anywhere."""
    made = np.random.default_rng(rng.getrandbits(32))
    if dtype in REALS:
        spread = np.exp2(made.integers(-6, 6, shape)) * 4
        found = made.standard_normal(shape) * spread
        return np.where(made.random(shape) < 0.05, 0.0, found).astype(dtype)
    if dtype == TRUTH:
        return np.asarray(made.random(shape) < 0.5)
    info = np.iinfo(dtype)
    near = made.integers(max(info.min, -3), 4, shape)
    far = made.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if dtype == HUGE:  # torch computes with int64 instead
        far >>= np.uint64(1)
    return np.where(made.random(shape) < 0.5, near, far).astype(dtype)


def widened(sample: Callable[[random.Random], Sample]) -> Callable[[random.Random], Sample]:
    """Return samples with doubles in the place of singles; their last bits are set, too."""

    def wide(rng: random.Random) -> Sample:
        found = sample(rng)
        operands = {
            name: np.asarray(a.astype(np.float64) * (1 + 1e-9))
            if a is not None and a.dtype == REAL
            else a
            for name, a in found.operands.items()
        }
        return replace(found, operands=operands, scale=found.scale * (1 + 1e-8))

    return wide


def normal(rng: random.Random, shape: Shape) -> Array:
    made = np.random.default_rng(rng.getrandbits(32))
    return np.asarray(made.standard_normal(shape)).astype(np.float32)


SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 16, 33)


def random_shape(rng: random.Random, least: int, most: int, elements: int) -> Shape:
    """``least`` to ``most`` axes; axes that would make too many elements have size 1."""
    shape: list[int] = []
    for _ in range(rng.randint(least, most)):
        size = rng.choice(SIZES)
        shape.append(size if prod(shape) * size <= elements else 1)
    rng.shuffle(shape)
    return tuple(shape)


def part_of(rng: random.Random, shape: Shape) -> Shape:
    """A shape that broadcasts to ``shape``: axes of size 1, and leading ones left out."""
    kept = [size if rng.random() < 0.75 else 1 for size in shape]
    return tuple(kept[rng.randint(0, len(shape)) if rng.random() < 0.4 else 0 :])


def signed(rng: random.Random, axis: int, rank: int) -> int:
    """The axis, counted from the front or from the back."""
    return axis - rank if rng.random() < 0.5 else axis
