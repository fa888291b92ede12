"""Watches a trace for writes in place, and finds the line of the model that made them."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from ..errors import SourceLocation, error
from ..pfvm.source import NOT_THE_MODEL
from .training_step import NeedsStep, in_training_step

_ATEN = torch.ops.aten
#: Normalizations that write running statistics without saying so. Their operands, in order, are
#: input, weight, bias, mean, variance, and whether statistics are those of the batch.
_BATCH_NORMS = (_ATEN.native_batch_norm.default, _ATEN.batch_norm.default)


class NoWrites(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses in-place writes to inputs. A write to another tensor needs a training step.

    The trace sees ``registered`` tensors without their elements: each call has its own.
    """

    supports_higher_order_operators = True

    def __init__(self, inputs: Mapping[str, torch.Tensor], registered: Iterable[torch.Tensor]):
        super().__init__()  # type: ignore[no-untyped-call]
        self.inputs = inputs
        self._registered = {id(tensor) for tensor in registered}
        #: The memory of the trace's views of real tensors.
        self._views: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if kwargs.get("device") == torch.device("meta"):  # nested transforms see fake tensors so
            kwargs = {**kwargs, "device": torch.device("cpu")}
        if func in _BATCH_NORMS and args[5]:
            self._refuse(args[3:5])
        # Operators of higher order have no schema; torch itself refuses writes in their bodies.
        written: list[torch.Tensor] = []
        if hasattr(func, "_schema") and func._schema.is_mutable:
            for index, argument in enumerate(func._schema.arguments):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    given = args[index] if index < len(args) else kwargs.get(argument.name)
                    self._refuse(given)
                    written += given if isinstance(given, list | tuple) else [given]
        changing = [id(one) in self._registered for one in args]
        if any(changing) and torch.Tag.data_dependent_output in getattr(func, "tags", ()):
            pairs = zip(args, changing, strict=True)
            args = tuple(one.clone() if changes else one for one, changes in pairs)
        with _kept(written):
            found = func(*args, **kwargs)
        if isinstance(found, FakeTensor):
            self._note(found, args, changes=any(changing), view=getattr(func, "is_view", False))
        return found

    def _note(self, found: FakeTensor, args: tuple[Any, ...], *, changes: bool, view: bool) -> None:
        """Remember a view of a real tensor, and forget the elements of one that changes."""
        found.constant = None if changes else found.constant
        if view and not isinstance(args[0], FakeTensor):
            self._views.add(found.untyped_storage()._cdata)

    def _refuse(self, given: object) -> None:
        for tensor in given if isinstance(given, list | tuple) else [given]:
            if not isinstance(tensor, torch.Tensor):
                continue
            storage = tensor.untyped_storage()._cdata
            if not isinstance(tensor, FakeTensor) or storage in self._views:
                if in_training_step():
                    continue
                raise NeedsStep
            for key, value in self.inputs.items():
                if value.untyped_storage()._cdata == storage:
                    raise error("P0105", place=model_place(), target=f"its input `{key}`")


@contextlib.contextmanager
def _kept(tensors: Sequence[object]) -> Iterator[None]:
    """Give real tensors their values again: torch's fake mode computes with tensor and number."""
    with _disable_current_modes():
        found = [t for t in tensors if isinstance(t, torch.Tensor)]
        real = [t.detach() for t in found if not isinstance(t, FakeTensor)]
        values = [tensor.clone() for tensor in real]
    yield
    with _disable_current_modes():
        for tensor, value in zip(real, values, strict=True):
            if not torch.equal(tensor, value):
                tensor.copy_(value)


def model_place(problem: BaseException | None = None) -> SourceLocation | None:
    """Find the innermost line of the model's own code: of ``problem`` or of the current stack."""
    stack = traceback.extract_stack() if problem is None else None
    frames = stack or traceback.extract_tb(problem.__traceback__ if problem else None)
    own = [f for f in frames if not f.filename.startswith((*NOT_THE_MODEL, "<"))]
    return SourceLocation(own[-1].filename, own[-1].lineno) if own else None
