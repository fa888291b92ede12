"""Samples of PyTorch's operator database (``op_db``), as its package makes them."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

#: A sample is small if its tensors have this many elements together.
_ELEMENTS = 4096
#: Operators whose smallest sample takes minutes to compile: 50 frames, one step each.
_LONG = frozenset({"nn.functional.ctc_loss"})
#: Fewer elements for operators that take long to compile.
_LIMITS = {"mode": 1024}
#: The dtypes of samples: the first that an operator has.
_DTYPES = (torch.float32, torch.int64, torch.int32, torch.bool, torch.complex64)


@dataclass(frozen=True)
class OperatorTest:
    """A sample: ``call`` maps the tensors of ``inputs`` to the results of the operator."""

    name: str
    operator: str
    inputs: dict[str, torch.Tensor]
    call: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.operator, self.name)


def _again(operator: str, name: str) -> OperatorTest:
    """Return a sample in another process: torch's samples hold functions without a name."""
    return next(one for one in operator_tests([operator]) if one.name == name)


@cache
def _database() -> tuple[tuple[str, Any], ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db

        found = {}
        for info in op_db:
            variant = f".{info.variant_test_name}" if info.variant_test_name else ""
            found[f"{info.name}{variant}"] = info
        return tuple(sorted(found.items()))


def operator_names() -> list[str]:
    """Return the names of all operators. The first call takes some seconds."""
    return [name for name, _ in _database()]


def operator_tests(names: Sequence[str] | None = None) -> list[OperatorTest]:
    """Return the tests of some operators; without names, of all."""
    wanted = None if names is None else set(names)
    found: list[OperatorTest] = []
    for name, info in _database():
        if wanted is None or name in wanted:
            found += _tests(name, info)
    return found


def chosen_tests(patterns: Sequence[str]) -> list[OperatorTest]:
    """Return the tests of operators whose names match one of the patterns; all without."""
    names = operator_names()
    if patterns:
        names = [name for name in names if any(re.search(one, name) for one in patterns)]
    return operator_tests(names)


def _tests(name: str, info: Any) -> list[OperatorTest]:
    if name in _LONG:
        return []
    legal = info.supported_dtypes("cpu")
    dtype = next((one for one in _DTYPES if one in legal), None)
    if dtype is None:
        return []
    seeded(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = list(info.sample_inputs("cpu", dtype))
    most = _LIMITS.get(name, _ELEMENTS)
    small = [one for one in samples if _elements(one) <= most]
    small = small or sorted(samples, key=_elements)[:1]
    places = sorted({0, len(small) - 1}) if small else []
    return [_test(f"{name}:{place}", name, info.op, small[place]) for place in places]


#: Operators whose results torch leaves open: indices of equal elements, memory, random numbers.
_OPEN = frozenset({"kthvalue", "mode", "median", "nanmedian", "empty", "normal", "sort", "topk"})
_RANDOM = re.compile(
    "rand|lowrank|dropout|empty|rrelu|normal|multinomial|exponential|uniform|bernoulli|cauchy|geometric"
)
#: Operators of which torch rounds inner steps to halves: powers beyond their range, and places.
_ROUGH_HALVES = frozenset({"matrix_exp", "linalg.matrix_exp", "nn.functional.grid_sample"})
_TYPES = (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8)


def typed_samples(
    seed: int, count: int
) -> Iterator[tuple[str, Callable[..., Any], tuple[torch.Tensor, ...]]]:
    """Yield calls of drawn operators in drawn element types: name, function, tensors."""
    drawn = random.Random(seed)
    while count:
        name, info = drawn.choice(_database())
        legal = [dtype for dtype in _TYPES if dtype in info.supported_dtypes("cpu")]
        open_ = name in _OPEN or _RANDOM.search(name)
        if not legal or open_ or name in _LONG:
            continue
        dtype = drawn.choice(legal)
        if name in _ROUGH_HALVES and dtype in (torch.float16, torch.bfloat16):
            continue
        seeded(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = [s for s in info.sample_inputs("cpu", dtype) if _elements(s) <= 512]
        if not samples:
            continue
        place = drawn.randrange(len(samples))
        test = _test(f"{name} of {dtype}:{place}", name, info.op, samples[place])
        if _computes(test):
            names = list(test.inputs)
            count -= 1

            def call(*tensors: torch.Tensor, test: OperatorTest = test, names: Any = names) -> Any:
                return tuple(test.call(dict(zip(names, tensors, strict=True))).values())

            yield test.name, call, tuple(test.inputs.values())


def _computes(test: OperatorTest) -> bool:
    """Whether torch computes the sample, twice with the same dense results."""
    try:
        one, other = (
            test.call({name: tensor.clone() for name, tensor in test.inputs.items()})
            for _ in range(2)
        )
    except Exception:
        return False
    dense = [t.layout == torch.strided for t in (*test.inputs.values(), *one.values())]
    return (
        bool(one)
        and all(dense)
        and all(
            torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
            for a, b in zip(one.values(), other.values(), strict=True)
        )
    )


def seeded(seed: int) -> None:
    """Set the seeds of all generators that operators and their samples draw from."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def _elements(sample: Any) -> int:
    return sum(tensor.numel() for tensor in _tensors(_arguments(sample)))


def _arguments(sample: Any) -> tuple[Any, ...]:
    return (sample.input, sample.args, sample.kwargs)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _with(value: Any, tensors: Iterator[torch.Tensor]) -> Any:
    """Return ``value`` with its tensors replaced, in order."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, (list, tuple)):
        return type(value)([_with(part, tensors) for part in value])
    if isinstance(value, dict):
        return {key: _with(part, tensors) for key, part in value.items()}
    return value


def _test(name: str, operator: str, op: Callable[..., Any], sample: Any) -> OperatorTest:
    arguments = _arguments(sample)
    given = [tensor.detach() for tensor in _tensors(arguments)]

    complex_ones = [tensor.is_complex() for tensor in given]

    def call(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        parts = zip(tensors.values(), complex_ones, strict=True)
        whole = (torch.view_as_complex(part) if pair else part for part, pair in parts)
        first, args, kwargs = _with(arguments, whole)
        found = map(_pairs, _tensors(op(first, *args, **kwargs)))
        return {f"out{number}": result for number, result in enumerate(found)}

    inputs = {f"x{number}": _pairs(tensor) for number, tensor in enumerate(given)}
    return OperatorTest(name, operator, inputs, call)


def _pairs(tensor: torch.Tensor) -> torch.Tensor:
    """Return a complex tensor as pairs of real numbers."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
