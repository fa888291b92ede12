"""Captures functions that differentiate, or that change tensors they close over.

torch's exporter traces neither, so such a function is traced twice with fake tensors first. The
first trace runs the function with its tensors as they are: backward passes and writes become nodes
of a graph. The second trace makes the tensors inputs, and each write a new value. What is left is a
function without side effects, which the exporter takes. The real tensors, gradients and the random
state stay as they were.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim import SGD
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from ..errors import error
from .as_torch import like_torch, traced_place
from .cumulative_averages import momenta_as_tensors
from .gradient_rules import GRADIENT_RULES
from .kept_gradients import KeptGradients
from .random_rules import RANDOM_RULES
from .resizes import RESIZES
from .tensor_names import get_tensor_name

Positional = Callable[..., tuple[torch.Tensor, ...]]

_ATEN = torch.ops.aten
#: Nodes whose result is their operand.
_COPIES = (_ATEN.clone.default, _ATEN.alias.default, _ATEN.detach.default)

_tracing = threading.local()


class NeedsStep(BaseException):
    """Raised where a trace meets a backward pass or a write that the exporter cannot take."""


class NeedsTrace(NeedsStep):
    """Raised where a trace meets a transform of torch.func: only the trace of a step takes it."""


def in_training_step() -> bool:
    """Whether this thread is tracing a function whose writes are captured."""
    return bool(getattr(_tracing, "step", False))


def takes_step() -> bool:
    """Whether an optimizer may step here. Raise :class:`NeedsStep` in a trace that takes none."""
    if getattr(_tracing, "plain", False):
        raise NeedsStep
    return in_training_step()


@contextlib.contextmanager
def _in_step() -> Iterator[None]:
    """Trace a step in this thread; models that ask torch hear that they are compiled, exported."""
    compiler: Any = torch.compiler
    saved = compiler._is_compiling_flag, compiler._is_exporting_flag
    compiler._is_compiling_flag = compiler._is_exporting_flag = True
    _tracing.step = True
    try:
        yield
    finally:
        _tracing.step = False
        compiler._is_compiling_flag, compiler._is_exporting_flag = saved


@dataclass(frozen=True, eq=False)
class TrainingStep:
    """A function without side effects, and the tensors that it replaces.

    ``function`` returns the results of the caller's function, and behind them the new values of
    ``changed``. ``private`` are those of ``changed`` that nobody registered: buffers of modules.
    """

    function: Positional
    changed: tuple[torch.Tensor, ...]
    private: tuple[torch.Tensor, ...]


@contextlib.contextmanager
def refused_steps(*, keep: bool) -> Iterator[None]:
    """Raise :class:`NeedsStep` when this thread starts a backward pass, or an optimizer steps.

    With ``keep``, raise :class:`NeedsTrace` when it reads a number of a tensor: it may change.
    """
    mine = threading.get_ident()
    places = (torch.autograd, torch.autograd.graph)
    tracer: Any = proxy_tensor
    saved, call = torch.autograd.graph._engine_run_backward, tracer.proxy_call

    def run(*args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() == mine:
            raise NeedsStep
        return saved(*args, **kwargs)

    def traced(mode: Any, func: Any, *args: Any) -> Any:
        if keep and threading.get_ident() == mine and _reads(func):
            raise NeedsTrace
        return call(mode, func, *args)

    for place in places:
        place._engine_run_backward = run  # type: ignore[attr-defined]
    _tracing.plain, tracer.proxy_call = True, traced
    try:
        yield
    finally:
        _tracing.plain, tracer.proxy_call = False, call
        for place in places:
            place._engine_run_backward = saved  # type: ignore[attr-defined]


def _reads(func: Any) -> bool:
    return torch.Tag.data_dependent_output in getattr(func, "tags", ())


def training_step(
    function: Positional, inputs: tuple[torch.Tensor, ...], registered: Mapping[str, torch.Tensor]
) -> TrainingStep:
    """Trace ``function``; ``registered`` are the tensors that may change.

    Buffers of modules that ran may change too. P0115 if another tensor would change.
    """
    buffers: list[torch.Tensor] = []
    gradients = KeptGradients(registered.values())

    def note(module: torch.nn.Module, _: object) -> None:
        buffers.extend(module.buffers())
        gradients.take(module.parameters())

    def settled(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = function(*given)
        gradients.settle()
        gradients.add(inputs, given)
        return results

    leaves = tuple(tensor.detach().requires_grad_(tensor.requires_grad) for tensor in inputs)
    with (
        register_module_forward_pre_hook(note),
        _in_step(),
        plain_kernels(),
        _no_new_state(),
        momenta_as_tensors(),
        gradients,
    ):
        traced = _traced(settled, leaves)
    names = [n.target for n in traced.graph.nodes if n.op == "get_attr"]
    attributes = {n: getattr(traced, n) for n in dict.fromkeys(names)}
    tensors = {n: t for n, t in attributes.items() if isinstance(t, torch.Tensor)}
    for tensor in tensors.values():
        if tensor.is_leaf and isinstance(tensor.grad, torch._subclasses.FakeTensor):
            tensor.grad = None
    pure = _without_writes(traced, tuple(tensor.detach() for tensor in inputs), tensors)
    _check_numbers(pure, len(inputs))
    changed = _changed(pure, len(tensors))
    state = list(tensors.values())
    known, owned = _identities(registered.values()), _identities(buffers)
    for place in changed:
        if id(state[place]) not in known | owned:
            raise _refused(state[place])
    private = tuple(state[place] for place in changed if id(state[place]) not in known)
    results = len(pure.graph.output_node().args[0]) - len(state)  # type: ignore[arg-type]

    def step(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        with preserve_node_meta():  # the lines of the caller's function
            found = torch.fx.Interpreter(pure).run(*given, *state)
        return (*found[:results], *(found[results + place] for place in changed))

    return TrainingStep(step, tuple(state[place] for place in changed), private)


@contextlib.contextmanager
def _no_new_state() -> Iterator[None]:
    """Refuse optimizers of torch whose state is the host's, or begins in the trace. P0703.

    It would begin anew in each call. Their state stays as it was.
    """
    before: dict[int, dict[Any, dict[str, Any]]] = {}

    def note(optimizer: torch.optim.Optimizer, *_: object) -> None:
        if type(optimizer).__module__.startswith("torch.optim") and type(optimizer) is not SGD:
            raise _refused_optimizer(optimizer, "the host counts its steps or decides about them")
        before[id(optimizer)] = {p: dict(found) for p, found in optimizer.state.items()}

    def check(optimizer: torch.optim.Optimizer, *_: object) -> None:
        known = before.pop(id(optimizer))
        old = _identities(t for found in known.values() for t in found.values())
        state = [t for found in optimizer.state.values() for t in found.values()]
        if any(isinstance(t, torch.Tensor) and id(t) not in old for t in state):
            optimizer.state.clear()
            optimizer.state.update(known)
            raise _refused_optimizer(optimizer, "its state would begin anew in each call")

    with register_optimizer_step_pre_hook(note), register_optimizer_step_post_hook(check):
        yield


def _refused_optimizer(optimizer: torch.optim.Optimizer, reason: str) -> Exception:
    remedy = "use MNCoreSGD, MNCoreAdam, MNCoreAdamW, or an MNCoreOptimizer of your own"
    return error("P0703", name=f"{type(optimizer).__name__}.step()", reason=reason, remedy=remedy)


@contextlib.contextmanager
def plain_kernels() -> Iterator[None]:
    """Have torch build attention and recurrent cells of plain operators, which all have rules."""
    with contextlib.ExitStack() as stack:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of settings for hardware that is not there
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        try:
            yield
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                stack.close()


def step_rules() -> dict[Any, Callable[..., Any]]:
    """Return how operators are written in those that the exporter and the device have."""
    rules: dict[Any, Callable[..., Any]] = {**RESIZES, **GRADIENT_RULES}
    return {**core_aten_decompositions(), **like_torch(rules, leave=True)}


def _tracer(function: Callable[..., Any]) -> Callable[..., torch.fx.GraphModule]:
    return make_fx(
        function,
        decomposition_table={**step_rules(), **RANDOM_RULES},
        tracing_mode="fake",
        _allow_non_fake_inputs=True,
        record_stack_traces=True,
    )


def _traced(function: Positional, inputs: tuple[torch.Tensor, ...]) -> torch.fx.GraphModule:
    with torch.enable_grad():
        return _tracer(function)(*inputs)


class _Lifted(torch.fx.Interpreter):
    """Runs a graph with other tensors in place of its attributes."""

    def __init__(self, module: torch.fx.GraphModule, tensors: Mapping[str, torch.Tensor]):
        super().__init__(module)
        self._tensors = tensors

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        found = self._tensors.get(target)
        return super().get_attr(target, args, kwargs) if found is None else found


def _without_writes(
    traced: torch.fx.GraphModule,
    inputs: tuple[torch.Tensor, ...],
    tensors: Mapping[str, torch.Tensor],
) -> torch.fx.GraphModule:
    """Return a graph of inputs and tensors, which returns the results and the new tensors."""

    def lifted(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        state = [tensor.clone() for tensor in given[len(inputs) :]]
        run = _Lifted(traced, dict(zip(tensors, state, strict=True)))
        with preserve_node_meta():  # the lines of the caller's function
            return (*run.run(*given[: len(inputs)]), *state)

    trace = _tracer(torch.func.functionalize(lifted, remove="mutations"))
    with torch.no_grad():
        return trace(*inputs, *(tensor.detach() for tensor in tensors.values()))


def _check_numbers(pure: torch.fx.GraphModule, count: int) -> None:
    """Raise P0101 for a number that depends on state alone, not on the first ``count`` inputs.

    torch's exporter would make it the number of now, but the state changes between calls.
    """
    nodes = list(pure.graph.nodes)
    given, kept = set(nodes[:count]), {n for n in nodes[count:] if n.op == "placeholder"}
    for node in nodes[count + len(kept) :]:
        for some in (given, kept):
            if not some.isdisjoint(node.all_input_nodes):
                some.add(node)
        if node.target is _ATEN._local_scalar_dense.default and node in kept - given:
            reason = "Python would read a registered tensor once, but each call has its own values"
            raise error("P0101", place=traced_place(node.meta), reason=reason)


def _changed(pure: torch.fx.GraphModule, count: int) -> list[int]:
    """Return the places of those of the last ``count`` results that are no copies of inputs."""
    results: Any = pure.graph.output_node().args[0]
    state = results[len(results) - count :]
    return [place for place, node in enumerate(state) if not _copied(node)]


def _copied(node: Any) -> bool:
    while node.op == "call_function" and node.target in _COPIES:
        node = node.args[0]
    return bool(node.op == "placeholder")


def _identities(tensors: Any) -> set[int]:
    return {id(tensor) for tensor in tensors}


def _refused(tensor: torch.Tensor) -> Exception:
    name = get_tensor_name(tensor) or "without name"
    kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "tensor"
    return error("P0115", kind=kind, name=name, shape=tuple(tensor.shape))
