"""Every operator as a torch function: exported, compiled in both modes, and compared.

The reference is PyTorch. A second one is onnxruntime on the exported model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

import numpy as np
import onnx
import pytest
import torch
from compiling import LONG, in_turns, run, sampled, tried
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch_hard_cases import HARD_CASES
from torch_operators import FAMILIES, Family, Tensors

from pycompiler.frontend.export import export
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession
from pycompiler.pipeline import compile_onnx
from pycompiler.report.report import Report
from pycompiler.request import Request

#: onnxruntime computes in singles too. Its error may be this many times the device's.
HOST_ERROR = 4.0
MODES = ("mixed", "float")
#: Of families that have more functions, `make test` compiles half.
MANY = 30


def wide(inputs: Tensors) -> Tensors:
    """Return the inputs in double precision."""
    return {n: t.double() if t.is_floating_point() else t for n, t in inputs.items()}


def reference(family: Family, name: str) -> torch.Tensor:
    """Return PyTorch's result, in double precision if the function accepts it."""
    try:
        return family.functions[name](wide(family.inputs))
    except RuntimeError:  # the function has parameters that are singles
        return family.functions[name](family.inputs)


def check(family: Family, model: onnx.ModelProto, mode: str) -> None:
    report = Report("mini", {})
    options = parse_options({"float_dtype": mode})
    compiled = compile_onnx(Request(model, load_target("mini"), options, report))
    assert report.data["host_fallback"] == []
    given_inputs = {name: tensor.numpy() for name, tensor in family.inputs.items()}
    found = run(compiled, given_inputs)
    host = HostSession(model, "model").run(given_inputs)
    for name, function in family.functions.items():
        plain, wanted = function(family.inputs), reference(family, name)
        result = found[name]
        assert result.shape == tuple(plain.shape), name
        assert result.dtype == plain.numpy().dtype, name
        precise = wanted.double() if wanted.is_floating_point() else wanted
        limit = family.limits[name](precise, mode).numpy()
        for other, factor in ((wanted.numpy(), 1.0), (host[name], HOST_ERROR)):
            if result.dtype != np.float32:
                assert np.array_equal(result, other), (name, mode)
                continue
            with np.errstate(invalid="ignore"):
                near = np.abs(result.astype(np.float64) - other) <= factor * limit
            assert (near | (result == other)).all(), (name, mode)


def compare(family: Family, modes: Sequence[str] = MODES) -> None:
    """Compile the family in ``modes``, with inputs that differ from those of the call."""
    sample = {key: (tensor == 0).to(tensor.dtype) for key, tensor in family.inputs.items()}
    assert not any(torch.equal(sample[key], tensor) for key, tensor in family.inputs.items())
    model = optimise(export(family.call, sample))
    for mode in modes:
        check(family, model, mode)


@pytest.mark.parametrize("name", sampled([*FAMILIES]))
def test_family(name: str) -> None:
    turns = cycle(MODES)

    # The first example is the smallest: tensors of rank 0 and axes of size 1. In `make test` it is
    # compiled in one mode, and the second example in the other.
    @given(st.data(), st.integers(1, 2**31))
    # No shrinking, because it takes long.
    @settings(max_examples=tried(2), phases=[Phase.explicit, Phase.generate])
    def case(data: st.DataObject, seed: int) -> None:
        mode = next(turns)
        compare(FAMILIES[name](data.draw, seed), MODES if LONG else (mode,))

    case()


@pytest.mark.parametrize("name", HARD_CASES)
def test_hard_cases(name: str) -> None:
    # In `make test` the cases take the modes in turns.
    turn, made = list(HARD_CASES).index(name) % 2, HARD_CASES[name]()
    if len(made.functions) > MANY:
        made = replace(made, functions=in_turns(made.functions, turn, 2))
    compare(made, MODES if LONG else MODES[turn:][:1])
