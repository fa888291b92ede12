"""Products of a matrix and a vector become sums; those of a parameter stay what they are."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, run, with_seeds
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from pycompiler.machine import load_target
from pycompiler.pfvm.composites import decompose
from pycompiler.pfvm.prepare import prepare, static_types

ELEMS = {"float": np.float32, "double": np.float64}


def _product(a: np.ndarray, b: np.ndarray, *, parameter: bool = False) -> onnx.ModelProto:
    elem = TensorProto.DOUBLE if a.dtype == np.float64 else TensorProto.FLOAT
    given = {"a": a.shape} if parameter else {"a": a.shape, "b": b.shape}
    held = {"b": b} if parameter else {}
    return prepare(model_of([("MatMul", ["a", "b"], "y")], given, ["y"], held, elem))


def _written(model: onnx.ModelProto) -> onnx.ModelProto:
    return decompose(model, static_types(model), load_target("mini"))


def _drawn(rng: random.Random, kind: type) -> tuple[np.ndarray, np.ndarray]:
    """A vector of odd size on one side or on both, and a batch of matrices on the other."""
    k, m = rng.choice((1, 3, 7, 31)), rng.choice((1, 5, 13))
    batch = tuple(rng.choice((1, 2, 3)) for _ in range(rng.randrange(3)))
    shapes = rng.choice([((*batch, m, k), (k,)), ((k,), (*batch, k, m)), ((k,), (k,))])
    made = np.random.default_rng(rng.randrange(1 << 30))
    one, other = (made.standard_normal(shape).astype(kind) for shape in shapes)
    return one, other


@pytest.mark.parametrize("elem", ELEMS)
def test_vectors_on_any_side_become_sums(elem: str) -> None:
    def check(seed: int) -> None:
        a, b = _drawn(random.Random(seed), ELEMS[elem])
        made = _written(_product(a, b))
        assert "MatMul" not in {node.op_type for node in made.graph.node}
        (found,) = ReferenceEvaluator(made).run(None, {"a": a, "b": b})
        assert found.shape == (a @ b).shape
        assert np.allclose(found, a @ b, rtol=0, atol=64 * np.finfo(a.dtype).eps)

    with_seeds(check, 40, 400)


def test_what_stays_a_product() -> None:
    """A parameter has the layout that a product wants, and may be halves."""
    made = np.random.default_rng(3).standard_normal
    for a, b, parameter in ((7,), (7, 5), True), ((3, 7), (7, 5), False), ((1, 7), (7, 1), False):
        model = _product(made(a), made(b), parameter=parameter)
        assert "MatMul" in {node.op_type for node in _written(model).graph.node}


def test_a_matrix_beyond_local_memory() -> None:
    """Its rows, and its terms, are cut."""
    made = np.random.default_rng(5).standard_normal
    for a, b in ((601, 301), (301,)), ((3001,), (3001, 61)):
        given = {"a": made(a), "b": made(b)}
        result, report = compiled(_product(given["a"], given["b"]))
        assert not report["host_fallback"]
        (found,) = run(result, given).values()
        assert np.allclose(found, given["a"] @ given["b"], rtol=0, atol=1e-11)
