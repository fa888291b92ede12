"""Names of the training path. It is not implemented: each name says so when it is used (P0703)."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import PycompilerError, error

_WRITE_IT = "write the update into the function and return the new parameters as outputs"


def missing(name: str, remedy: str = _WRITE_IT) -> PycompilerError:
    """Return the diagnostic for a name of the training path."""
    reason = "there is no training path yet"
    return error("P0703", name=name, reason=reason, remedy=remedy)


class MNCoreOptimizer:
    """Base class of the optimizers. P0703: there is no training path yet."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise missing(type(self).__name__)


class MNCoreSGD(MNCoreOptimizer):
    """Gradient descent with momentum. P0703: there is no training path yet."""


class MNCoreAdam(MNCoreOptimizer):
    """Adam. P0703: there is no training path yet."""


class MNCoreAdamW(MNCoreOptimizer):
    """Adam with decoupled weight decay. P0703: there is no training path yet."""


class MNCoreLRScheduler:
    """Learning rates of a torch scheduler. P0703: there is no training path yet."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise missing("MNCoreLRScheduler")


def set_buffer_name_in_optimizer(optimizer: object, prefix: str) -> NoReturn:
    """Name an optimizer's state. P0703: there is no training path yet."""
    raise missing("set_buffer_name_in_optimizer")
