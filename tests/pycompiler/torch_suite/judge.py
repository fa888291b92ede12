"""Compiles and runs one sample of torch's operator database, and says what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import torch
from suites.compare import compiled, differ
from suites.outcome import CONTRACT, WRONG, Outcome, judged

from pycompiler.frontend.export import export
from pycompiler.pfvm.names import graphs
from pycompiler.pfvm.random import is_random

from .cases import OperatorTest, seeded

#: The operator has no tensor among its results, or torch cannot compute it on a CPU.
NOTHING = "nothing"
#: The results have memory that nobody wrote: their values mean nothing.
UNWRITTEN = frozenset({"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty"}) | {
    "new_empty_strided"
}
#: How many results are compared: the second of `mode` is any of the places of the value.
COMPARED = {"mode": 1}
#: torch's own tests of float32 allow 1.3e-6 and 1e-5 against a second computation in float32.
_RELATIVE, _ABSOLUTE = 1e-5, 1e-5


def judge(test: OperatorTest, device: str) -> Outcome:
    """Compile a sample for a device, run it, compare the results with torch's."""
    torch.set_num_threads(1)  # others run beside this one
    return judged(test.name, test.operator, lambda folder: _run(test, device, folder))


def _run(test: OperatorTest, device: str, folder: Path) -> tuple[str, str]:
    try:
        expected, writes = _computed(test, 1)
    except Exception as problem:
        return NOTHING, str(problem)
    if not expected:
        return NOTHING, ""

    def call(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        if writes:
            tensors = {name: tensor.clone() for name, tensor in tensors.items()}
        return test.call(tensors)

    model = export(call, test.inputs, training=False)
    random = test.operator in UNWRITTEN or not _same(expected, _computed(test, 2)[0])
    random |= any(is_random(node) for part in graphs(model.graph) for node in part.node)
    function, where, reason = compiled(lambda: model, device, folder)
    arrays = [held.values() for held in function.run(_arrays(test.inputs)).values()]
    wanted, given = list(_arrays(expected).values()), list(_arrays(test.inputs).values())
    most = COMPARED.get(test.operator, len(wanted))
    problem, outside = differ(arrays[:most], wanted[:most], given, _RELATIVE, _ABSOLUTE, random)
    if not problem:
        return where, reason
    if outside:
        return CONTRACT, "a NaN or an infinity"
    return WRONG, f"{problem}; {reason}" if reason else problem


def _computed(test: OperatorTest, seed: int) -> tuple[dict[str, torch.Tensor], bool]:
    """Return torch's results, and whether the operator writes into its operands."""
    seeded(seed)
    given = {name: tensor.clone() for name, tensor in test.inputs.items()}
    with torch.no_grad():
        found = test.call(given)
    writes = any(tensor._version > 0 for tensor in given.values())
    return found, writes or not _same(given, test.inputs)


def _same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    def equal(name: str) -> bool:
        one, other = _array(first[name]), _array(second[name])
        return one.shape == other.shape and np.array_equal(
            one, other, equal_nan=one.dtype.kind in "fc"
        )

    return all(map(equal, first))


def _arrays(tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
    return {name: _array(tensor) for name, tensor in tensors.items()}


def _array(tensor: torch.Tensor) -> Any:
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    tensor = tensor.resolve_conj().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return np.asarray(tensor.numpy())
