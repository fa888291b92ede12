"""Exports torch functions to ONNX with torch's own exporter.

The function maps a dict of tensors to a dict of tensors. Shapes are those of the sample inputs.
Tracing runs on fake tensors, so parameters, gradients, training flags and the random state stay as
they were. Functions that differentiate or write into tensors go through :mod:`.training_step`.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import onnx
import torch
import torch.fx.traceback

from ..errors import PycompilerError, SourceLocation, error, place_of
from ..graph.dtypes import uncomputed
from ..pfvm.names import set_keys
from ..pfvm.prepare import static_types
from ..pfvm.random_numbers import set_first_call
from ..pfvm.registered import PRIVATE, mark, mark_updates
from ..pfvm.source import NOT_THE_MODEL, source_of
from ..pfvm.torch_calls import DOMAIN
from .constant_names import add_unread, name_constants, recognised, update_names
from .convert import convert
from .host_decisions import decided_by_tensors
from .kept_gradients import KeptGradients
from .module_paths import ModulePaths, name_nodes
from .no_writes import NoWrites, model_place
from .simpler_calls import with_simpler_calls
from .taken_apart import taken_apart
from .tensor_names import memory_of, named_memories
from .torch_dtypes import TORCH_DTYPES, dtype_name, strange_kind
from .training_step import (
    NeedsStep,
    NeedsTrace,
    Positional,
    TrainingStep,
    refused_steps,
    training_step,
)
from .written_out import WrittenOut

Function = Callable[[dict[str, torch.Tensor]], Mapping[str, torch.Tensor]]

_OURS = frozenset({"dynamo", "f", "model", "args", "input_names", "output_names", "kwargs"})

#: Arguments without effect: MLSDK's choice of an exporter, and the exporter's messages, which are
#: not shown.
_IGNORED = frozenset({"use_fx2onnx", "verbose"})

#: Said of the caches of transformers, which hold tensors for each layer.
_CACHE = ": name the tensors of its layers one by one, and make the cache of them in the function"

#: torch's exceptions where values of tensors decide about shapes.
_OF_VALUES = ("GuardOnDataDependentSymNode", "PendingUnbackedSymbolNotFound")

#: Held while tracing, which redirects streams, logs and warnings of the whole process.
_TRACING = threading.RLock()


class _Wrapper(torch.nn.Module):
    """A function over positional tensors as a module that is not in training mode."""

    def __init__(self, function: Callable[..., tuple[torch.Tensor, ...]]):
        super().__init__()
        self.training = False
        # As an attribute, the caller's function would be restored by the tracer, and a module
        # would become a submodule. Neither may happen.
        self.__dict__["_function"] = function

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        result: tuple[torch.Tensor, ...] = self.__dict__["_function"](*tensors)
        return result


def check_tensors(what: str, value: object, one: str) -> Mapping[str, torch.Tensor]:
    """Return ``value`` if it maps names to dense tensors of known dtypes.

    P0104 if it is anything else, P0109 or P0135 if a tensor is of another kind. In diagnostics,
    ``what`` names the whole and ``one`` an entry.
    """
    if not isinstance(value, Mapping):
        got = "a tensor" if isinstance(value, torch.Tensor) else type(value).__name__
        raise error("P0104", what=what, got=got)
    for key, tensor in value.items():
        if not isinstance(key, str) or not key:
            raise error("P0104", what=what, got=f"a key {key!r}")
        if not isinstance(tensor, torch.Tensor):
            found = type(tensor).__name__
            hint = _CACHE if found.endswith("Cache") else ""
            raise error("P0104", what=what, got=f"{found} at `{key}`{hint}")
        kind = strange_kind(tensor)
        if kind is not None:
            legal = ", ".join(map(dtype_name, TORCH_DTYPES.values()))
            raise uncomputed(one, key, kind, legal)
    return value


def check_function(function: object) -> None:
    """Raise P0704 unless ``function`` can be called with one dict."""
    legal = "a function that takes one dict of tensors"
    if not callable(function):
        raise error("P0704", name="function", value=repr(function), legal=legal)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some callables of compiled modules have no signature
        return
    try:
        signature.bind({})
    except TypeError as problem:
        value = f"one with the signature {signature}"
        raise error("P0704", name="function", value=value, legal=legal) from problem


def _exporter_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for torch's exporter. P0107, P0704 for those that it cannot get."""
    legal = inspect.signature(torch.onnx.export).parameters.keys() - _OURS
    for key in given:
        if key in _OURS:
            raise error("P0107", key=key)
        if key not in legal | _IGNORED:
            names = ", ".join(sorted(legal | _IGNORED))
            raise error("P0704", name="export_kwargs", value=f"a dict with {key!r}", legal=names)
    return {key: value for key, value in given.items() if key not in _IGNORED}


def export(
    function: Function,
    inputs: Mapping[str, torch.Tensor],
    export_kwargs: Mapping[str, Any] | None = None,
    registered: Mapping[str, torch.Tensor] | None = None,
    training: bool | None = None,
) -> onnx.ModelProto:
    """Return the ONNX model of ``function``; its inputs and outputs are named by the dicts' keys.

    Tensors that the function closes over become constants, under their own names if they have
    one, or those that their modules give them. Nodes have the path of their module before their
    names. Those in ``registered`` become values that may change between calls. If the function
    changes some of them itself, their new values are outputs behind its own. ``export_kwargs`` go
    to ``torch.onnx.export``. ``training`` False refuses functions that differentiate (P0116), None
    finds out. Raises P0101 to P0107, P0109, P0115 and P0704. An exception of the function itself
    passes through unchanged.
    """
    if not isinstance(export_kwargs, Mapping | None):
        raise error(
            "P0704", name="export_kwargs", value=repr(export_kwargs), legal="a dict or None"
        )
    extra = _exporter_arguments(export_kwargs or {})
    if extra.get("dynamic_shapes") or extra.get("dynamic_axes"):
        raise error("P0103", name="export_kwargs", shape="dynamic_shapes is given")
    sample = check_tensors("inputs", inputs, "input")
    check_function(function)
    tensors = tuple(sample.values())
    keys, result_keys, traced = list(sample), [""], _anchored(function)
    known, paths = dict(registered or {}), ModulePaths(function)
    stdout, stderr = sys.stdout, sys.stderr

    def positional(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = dict(zip(keys, tensors, strict=True))
        shown = contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr)
        with shown[0], shown[1], NoWrites(given, known.values()), WrittenOut():
            result = check_tensors("function's result", traced(dict(given)), "result")
        result_keys[:] = result
        return tuple(result.values())

    with _TRACING, _undisturbed(), paths.followed(), decided_by_tensors():
        program, step = _captured(positional, tensors, known, training)
        updates = update_names(step, known)
        wanted_state = {memory_of(t): n for n, t in {**known, **updates}.items()}
        state = recognised(program, wanted_state)
        model, state = convert(program, extra, state)
    named = named_memories()
    own = paths.parameters({*named.values(), *known, *updates})
    wanted = {**recognised(program, {**own, **named}), **state}
    name_nodes(model)
    names = name_constants(model, wanted, {*keys, *result_keys, *updates})
    outputs = [f"{name}__new" for name in updates]
    set_keys(model, keys, [*result_keys, *outputs])
    values = {names[constant]: name for constant, name in state.items() if constant in names}
    values |= add_unread(model, {n: t for n, t in updates.items() if n not in values.values()})
    mark(model, {value: name if name in known else PRIVATE for value, name in values.items()})
    made = {name: value for value, name in values.items()}
    new = [output.name for output in model.graph.output[len(result_keys) :]]
    mark_updates(model, {o: made[n] for o, n in zip(new, updates, strict=True)})
    set_first_call(model, torch.initial_seed())
    if all(opset.domain != DOMAIN for opset in model.opset_import):
        model.opset_import.add(domain=DOMAIN, version=1)
    try:
        static_types(model, open_inside=True)
    except PycompilerError as problem:
        problem.place = _maker(model, problem.fields["name"])
        raise
    return model


def _captured(
    function: Positional,
    inputs: tuple[torch.Tensor, ...],
    registered: Mapping[str, torch.Tensor],
    training: bool | None,
) -> tuple[torch.export.ExportedProgram, TrainingStep | None]:
    """Trace ``function``, as a training step if it differentiates or writes into tensors."""
    plain = tuple(tensor.detach() for tensor in inputs)
    if not training:
        try:
            with refused_steps(keep=bool(registered)), KeptGradients(registered.values()):
                return _capture(_Wrapper(function), plain), None
        except NeedsStep as found:
            if training is False and not isinstance(found, NeedsTrace):
                raise error("P0116", name="training") from None
    step = _step(function, inputs, registered)
    if training is False and step.changed:
        raise error("P0116", name="training")
    return _capture(_Wrapper(step.function), plain), step


def _step(
    function: Positional, inputs: tuple[torch.Tensor, ...], registered: Mapping[str, torch.Tensor]
) -> TrainingStep:
    try:
        return training_step(function, inputs, registered)
    except PycompilerError as problem:
        raise problem.with_traceback(None) from None
    except Exception as problem:
        raise _why_not_captured(problem) from problem


def _maker(model: onnx.ModelProto, value: str) -> SourceLocation | None:
    """Find the line that made ``value``, through copies, which have no line of their own."""
    makers = {name: node for node in model.graph.node for name in node.output}
    node = makers.get(value)
    while node is not None and source_of(node) is None and node.input:
        node = makers.get(node.input[0])
    return place_of(None if node is None else source_of(node))


def _anchored(function: Function) -> Function:
    """Mark ``function`` as model code for torch's tracer, so that its lines are recorded."""
    annotate = getattr(torch.fx.traceback, "annotate_fn", None)
    if annotate is None or not hasattr(function, "__code__"):
        return function
    anchored: Function = annotate({})(function)
    return anchored


def _capture(wrapper: _Wrapper, tensors: tuple[torch.Tensor, ...]) -> torch.export.ExportedProgram:
    try:
        program = torch.export.export(wrapper, tensors, strict=False)
        return taken_apart(with_simpler_calls(program))
    except PycompilerError as problem:
        raise problem.with_traceback(None) from None
    except Exception as problem:
        raise _why_not_captured(problem) from problem


def _why_not_captured(problem: Exception) -> Exception:
    """Return the function's own exception if it raised one, otherwise a diagnostic."""
    frames = traceback.extract_tb(problem.__traceback__)
    in_torch = bool(frames) and frames[-1].filename.startswith(NOT_THE_MODEL)
    if not in_torch and type(problem).__module__.partition(".")[0] != "torch":
        return problem
    name, text = type(problem).__name__, str(problem).strip()
    first = text.splitlines()[0] if text else name
    reason = f"{name}: {first}{_advice(problem)}"
    return error("P0101", place=model_place(problem), reason=reason)


def _advice(problem: Exception) -> str:
    """Return what to do if values decide about a size, or a mixture of experts was not captured."""
    for frame, _ in traceback.walk_tb(problem.__traceback__):
        if type(frame.f_locals.get("self")).__name__.endswith("Experts"):
            return "; experts that loop over their tokens: set_experts_implementation('grouped_mm')"
    if type(problem).__name__ in _OF_VALUES and ("zuf" in str(problem) or "Eq(u" in str(problem)):
        return "; Python looks at a value: choose with torch.where, and print what calls return"
    if type(problem).__name__ in _OF_VALUES:
        return (
            "; a size or a place is read from a tensor: give a number, as in "
            "one_hot(x, num_classes), or pick with the tensor, as in index_select"
        )
    return ""


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep the random state, and keep the exporter's messages off stdout, stderr and logs."""
    level = logging.root.manager.disable
    state = torch.get_rng_state()
    logging.disable(logging.CRITICAL)
    try:
        chatter = io.StringIO()
        hidden = contextlib.redirect_stdout(chatter), contextlib.redirect_stderr(chatter)
        with hidden[0], hidden[1], warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        torch.set_rng_state(state)
