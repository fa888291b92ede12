"""The CPU runtime of ONNX models: onnxruntime, one session per model.

onnx's reference evaluator, which is slow, runs models that onnxruntime does not know: newer opsets,
and element types of operators that it has no kernel for.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

from ..errors import PycompilerError, error
from .declared import inferred, static_shape
from .device_functions import inlined
from .held import Array as Array
from .held import array_of, hold, holding, is_held, tensor_of, whole
from .names import keys, nodes_of
from .nans import with_forms
from .random import taken_for_functions
from .reference_operators import REFERENCE
from .runtime_faults import faulty, kinds_of
from .staged_session import StagedSession
from .torch_calls import has_calls

#: What runs sessions: the later ones have what those before them lack.
_PROVIDERS: ContextVar[tuple[str, ...]] = ContextVar("providers", default=("CPUExecutionProvider",))
_CUDA = "CUDAExecutionProvider"
#: How onnxruntime names a node for whose types it has no kernel.
_LACKS = re.compile(r"node (?:with name '|\()([^')]+)")
#: Its optimisers that merge two random results, or drop a Dropout that is switched on.
_WRONG_FOR_RANDOM = ["CommonSubexpressionElimination", "EliminateDropout"]
#: Those that join two roundings into one, or round a result that is not to be rounded.
_WRONG_FOR_ROUNDING = [
    *("DoubleQDQPairsRemover", "TransposeOptimizer", "TransposeOptimizer_CPUExecutionProvider")
]


def has_cuda() -> bool:
    """Whether onnxruntime can run sessions on a GPU with CUDA."""
    return _CUDA in onnxruntime.get_available_providers()


@contextmanager
def with_cuda(wanted: bool) -> Iterator[None]:
    """Run the sessions that are started inside on a GPU, if that is ``wanted``."""
    before = _PROVIDERS.get()
    token = _PROVIDERS.set((_CUDA, *before) if wanted else before)
    try:
        yield
    finally:
        _PROVIDERS.reset(token)


class HostSession:
    """A model ready to run on the host. Inputs and outputs are named by the caller's keys."""

    def __init__(self, model: onnx.ModelProto, what: str):
        """Load ``model``; ``what`` names it in diagnostics. P0602 if the runtime refuses it."""
        self.what = what
        with holding():
            self._proto = proto = inlined(hold(model))
            try:
                self._session = _started(proto)
            except Exception as problem:  # the runtime's errors have no common base class
                raise error("P0602", what=what, reason=_first_line(problem)) from problem
        self.input_keys, self.output_keys = keys(proto)
        held = {tensor.name for tensor in proto.graph.initializer}
        self._names = [value.name for value in proto.graph.input if value.name not in held]

    @property
    def runtime(self) -> str:
        """The libraries that run the model: ``onnxruntime``, ``onnx.reference``, ``torch``."""
        return self._session.runtime

    def run(
        self, inputs: Mapping[str, Array], replaced: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """Run the model on arrays of exactly its types. P0602 if the runtime fails.

        P0613 if a result has another shape than the model declares. ``replaced`` has the registered
        values by their ONNX names.
        """
        arrays = dict(replaced or {})
        arrays |= {n: inputs[key] for n, key in zip(self._names, self.input_keys, strict=True)}
        # numpy gives a contiguous scalar an axis.
        feed = {name: np.ascontiguousarray(a).reshape(a.shape) for name, a in arrays.items()}
        try:
            results = self._session.run(feed)
        except Exception as problem:
            raise error("P0602", what=self.what, reason=_first_line(problem)) from problem
        made = [np.asarray(result) for result in results]
        for array, info in zip(made, self._proto.graph.output, strict=True):
            wanted = static_shape(info)
            if wanted is not None and array.shape != wanted:
                raise error("P0613", name=info.name, found=array.shape, wanted=wanted)
        return dict(zip(self.output_keys, made, strict=True))


def _started(model: onnx.ModelProto) -> StagedSession | _PlainSession:
    """Start a model; nodes for which onnxruntime has no kernel, or a wrong one, run alone."""
    apart = faulty(model)
    if not any(apart) and not has_calls(model):
        try:
            return _PlainSession(model)
        except Exception as problem:  # the runtime's errors have no common base class
            named, nodes = _LACKS.findall(str(problem)), model.graph.node
            kinds = kinds_of(inferred(model).graph)
            forms = [(n.op_type, *map(kinds.get, (*n.input, *n.output))) for n in nodes]
            lacking = {form for n, form in zip(nodes, forms, strict=True) if n.name in named}
            # onnxruntime hands no halves of this kind from one session to the next.
            apart = [form in lacking or onnx.TensorProto.BFLOAT16 in form for form in forms]
            if not any(apart):
                return _PlainSession(model, slow=True)
    return StagedSession(model, _started, apart, partial(_PlainSession, slow=True))


class _PlainSession:
    """A model without calls, in onnxruntime; in onnx's evaluator if that fails, or if ``slow``."""

    def __init__(self, model: onnx.ModelProto, slow: bool = False):
        self._model = with_forms(model)
        self._held = copy_context()  # it has the arrays that the model holds
        self.reference = evaluator(self._model) if slow else None
        if self.reference is not None:
            return
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        held = [tensor for tensor in self._model.graph.initializer if is_held(tensor)]
        # It does not copy the data.
        made = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
        values = [made(np.ascontiguousarray(array_of(t)), t.data_type) for t in held]
        options.add_external_initializers([t.name for t in held], values)
        rounds = any(node.op_type == "QuantizeLinear" for node in nodes_of(self._model.graph))
        wrong = _WRONG_FOR_RANDOM if taken_for_functions(self._model.graph) else []
        self._session = onnxruntime.InferenceSession(
            self._model.SerializeToString(),
            options,
            providers=list(_PROVIDERS.get()),
            disabled_optimizers=[*wrong, *(_WRONG_FOR_ROUNDING if rounds else ())],
        )

    @property
    def runtime(self) -> str:
        """The library that runs the model."""
        return "onnxruntime" if self.reference is None else "onnx.reference"

    def run(self, feed: Mapping[str, Array]) -> list[Array]:
        """Return the results in order."""
        if self.reference is None:
            try:
                return list(self._session.run(None, feed))
            except Exception:
                reference = self._held.run(evaluator, self._model)
                if reference is None:
                    raise
                found = self._evaluated(reference, feed)
                self.reference = reference
                return found
        return self._evaluated(self.reference, feed)

    def _evaluated(self, reference: ReferenceEvaluator, feed: Mapping[str, Array]) -> list[Array]:
        """Return what the reference evaluator makes, which must have the declared types."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [np.asarray(result) for result in reference.run(None, dict(feed))]
        for array, info in zip(found, self._model.graph.output, strict=True):
            wanted = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
            if array.dtype != wanted:
                raise ValueError(f"`{info.name}` is {array.dtype} instead of {wanted}")
        return found


def results_of(
    node: onnx.NodeProto,
    held: Mapping[str, onnx.TensorProto],
    types: Mapping[str, tuple[int, tuple[int, ...]]],
    model: onnx.ModelProto,
) -> dict[str, Array] | None:
    """Return what a node of ``model`` makes of the tensors in ``held``, and of zeros for others.

    None if the host cannot run it. ``types`` are element types and shapes.
    """
    names = dict.fromkeys(name for name in node.input if name)
    inputs = [_info(name, types) for name in names if name not in held]
    outputs = [_info(name, types) for name in node.output if name]
    graph = onnx.helper.make_graph([node], "node", inputs, outputs)
    for name in names:
        if name in held:
            graph.initializer.append(tensor_of(array_of(held[name]), name))
    facts = {"opset_imports": model.opset_import, "ir_version": model.ir_version}
    functions = [one for one in model.functions if one.name == node.op_type]
    small = onnx.helper.make_model(graph, functions=functions, **facts)
    kind = onnx.helper.tensor_dtype_to_np_dtype
    zeros = {n: np.zeros(types[n][1], kind(types[n][0])) for n in names if n not in held}
    try:
        return HostSession(small, node.op_type).run(zeros)
    except PycompilerError:
        return None


def _info(name: str, types: Mapping[str, tuple[int, tuple[int, ...]]]) -> onnx.ValueInfoProto:
    if name not in types:
        return onnx.ValueInfoProto(name=name)
    return onnx.helper.make_tensor_value_info(name, *types[name])


def evaluator(model: onnx.ModelProto) -> ReferenceEvaluator | None:
    """Return onnx's own evaluator of a model; None if it lacks an operator."""
    try:
        return ReferenceEvaluator(whole(model), new_ops=REFERENCE)
    except Exception:  # its errors have no common base class either
        return None


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]
