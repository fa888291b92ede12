"""The registered tensors, which live on the device between calls."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import torch
from torch.utils.hooks import RemovableHandle

from ..errors import error
from ..frontend.tensor_names import (
    get_tensor_name,
    set_tensor_name,
    set_tensor_name_in_module,
    tensors_of,
)
from ..frontend.torch_dtypes import TORCH_DTYPES, dtype_name, strange_kind
from ..frontend.training_step import takes_step
from ..graph.dtypes import uncomputed
from ..graph.graph import TensorType
from ..runtime.registered_values import Registered, Registry
from ..runtime.tensors import to_array, to_tensor
from .known_steps import torch_state
from .optimizers import MNCoreOptimizer, set_buffer_name_in_optimizer

_ELEMS = {dtype: elem for elem, dtype in TORCH_DTYPES.items()}


class ContextRegistry:
    """The registered tensors of a context."""

    def __init__(self) -> None:
        #: The values that functions share, by name.
        self.values = Registry()
        #: The optimizers, by the prefix that they were registered under.
        self.optimizers: dict[str, torch.optim.Optimizer] = {}
        #: Those whose rates are on the device.
        self.rated: list[MNCoreOptimizer] = []
        self._tensors: dict[str, torch.Tensor] = {}
        #: What refuses a step of torch's optimizers on the host, as long as they are registered.
        self._hooks: list[RemovableHandle] = []

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the tensors that were registered, by name."""
        return dict(self._tensors)

    def register(
        self, prefix: str, module_or_optimizer: torch.nn.Module | torch.optim.Optimizer
    ) -> None:
        """Name all parameters and buffers of a module ``prefix.<path>`` and register them.

        Of an optimizer, the state is registered; one of torch gets its state here, for the
        argument `optimizers` of ``Context.compile``. P0608, P0703, P0704.
        """
        if isinstance(module_or_optimizer, MNCoreOptimizer):
            set_buffer_name_in_optimizer(module_or_optimizer, prefix)
            self.add_optimizer(module_or_optimizer)
            self.optimizers[prefix] = module_or_optimizer
            return
        if isinstance(module_or_optimizer, torch.optim.Optimizer):
            for path, tensor in torch_state(module_or_optimizer):
                set_tensor_name(tensor, f"{prefix}.{path}")
                self.add(tensor)
            self.optimizers[prefix] = module_or_optimizer
            self._hooks.append(module_or_optimizer.register_step_pre_hook(_refuse_step))
            return
        set_tensor_name_in_module(module_or_optimizer, prefix)
        for _, tensor in tensors_of(module_or_optimizer):
            self.add(tensor)

    def add(self, tensor: torch.Tensor) -> None:
        """Register a named tensor with its current values. P0608, P0109, P0135."""
        if not isinstance(tensor, torch.Tensor):
            raise error("P0704", name="tensor", value=repr(tensor), legal="a torch.Tensor")
        name = get_tensor_name(tensor)
        if tensor.is_meta or torch.nn.parameter.is_lazy(tensor):
            raise error("P0608", name=name or "without name", problem="it has no values yet")
        shown = f"{dtype_name(tensor.dtype)} {tuple(tensor.shape)}"
        if name is None:
            raise error("P0608", name=shown, problem="it has no name")
        kind = strange_kind(tensor)
        if kind is not None:
            legal = ", ".join(map(dtype_name, TORCH_DTYPES.values()))
            raise uncomputed("tensor", name, kind, legal)
        if self._tensors.get(name) is tensor:
            return
        if name in self._tensors:
            raise error("P0608", name=name, problem="another tensor is registered by that name")
        type = TensorType(_ELEMS[tensor.dtype], tuple(tensor.shape))
        self.values.share(name, type, to_array(tensor))
        self._tensors[name] = tensor

    def add_optimizer(self, optimizer: MNCoreOptimizer) -> None:
        """Register the named state of an optimizer with its current values. P0608."""
        for _, tensor in optimizer.state_tensors():
            self.add(tensor)
        optimizer.watch(self.reload)
        self.rated.append(optimizer)

    def reload(self, tensor: torch.Tensor) -> None:
        """Bring the values of a registered tensor to the device; do nothing with others."""
        for name, known in self._tensors.items():
            if known is tensor:
                self.values[name].load(to_array(tensor))

    def find(self, tensor: torch.Tensor) -> Registered:
        """Return the value of a registered tensor, by its last name. P0608."""
        for name, known in reversed(self._tensors.items()):
            if known is tensor:
                return self.values[name]
        named = get_tensor_name(tensor)
        raise error("P0608", name=named or "without name", problem="it is not registered")

    def check(self) -> None:
        """Check that no tensor has changed its shape or dtype since it was registered. P0608."""
        for name, tensor in self._tensors.items():
            then, now = self.values[name].type, tuple(tensor.shape)
            if (then.elem, then.shape) != (_ELEMS.get(tensor.dtype), now):
                before = f"{dtype_name(TORCH_DTYPES[then.elem])} {then.shape}"
                problem = f"it was {before} when it was registered, and is "
                raise error(
                    "P0608", name=name, problem=f"{problem}{dtype_name(tensor.dtype)} {now} now"
                )

    def check_apart(self, written: Collection[str]) -> None:
        """Check that no tensor of ``written`` shares its memory with another one. P0703."""
        spans = {id(tensor): (*_span(tensor), name) for name, tensor in self._tensors.items()}
        for (_, end, name), (begin, _, other) in pairwise(sorted(spans.values())):
            if begin < end and not {name, other}.isdisjoint(written):
                reason = f"it shares its memory with `{other}`, and the device keeps both apart"
                remedy = "use one tensor in both places, as in `b.weight = a.weight`"
                raise error("P0703", name=f"a change of {name}", reason=reason, remedy=remedy)

    def synchronize(self) -> None:
        """Copy the values on the device to the tensors. P0608."""
        self.check()
        with torch.no_grad():
            for name, tensor in self._tensors.items():
                found = to_tensor(self.values[name].values())
                # No function writes an expanded tensor, and torch does not either.
                if not torch.equal(found, tensor) or 0 not in tensor.stride():
                    tensor.copy_(found)

    def clear(self) -> None:
        """Forget all values."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self.optimizers.clear()
        self.rated.clear()
        self._tensors.clear()
        self.values.clear()


def _refuse_step(optimizer: torch.optim.Optimizer, *_: object) -> None:
    """Refuse a step on the host, where the parameters are not. P0117."""
    if not takes_step():
        raise error("P0117", optimizer=type(optimizer).__name__)


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Return where the memory of a tensor begins, and what is behind it."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in pairs) if tensor.numel() else -1
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()
