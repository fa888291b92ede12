"""The layer for other chips: what a plug-in brings, and what it gets."""

from .eager import DeviceTensor, Eager
from .interface import (
    DeviceContext,
    Event,
    Executor,
    Form,
    GraphExecutor,
    Kernel,
    KernelExecutor,
    ResourceManager,
    Stream,
)
from .kernel_cache import KernelCache
from .mixed import MixedGraph
from .pool import Buffer, MemoryPool
from .registry import GROUP, open_device, plugins
from .reuse import Plan, Step, plan_reuse
from .session import Session
from .tasks import TaskPool, TaskStream

__all__ = [
    "GROUP",
    "Buffer",
    "DeviceContext",
    "DeviceTensor",
    "Eager",
    "Event",
    "Executor",
    "Form",
    "GraphExecutor",
    "Kernel",
    "KernelCache",
    "KernelExecutor",
    "MemoryPool",
    "MixedGraph",
    "Plan",
    "ResourceManager",
    "Session",
    "Step",
    "Stream",
    "TaskPool",
    "TaskStream",
    "open_device",
    "plan_reuse",
    "plugins",
]
