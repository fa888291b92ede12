"""The layer for other chips: what a plug-in brings, and what it gets."""

from .eager import DeviceTensor as DeviceTensor
from .eager import Eager as Eager
from .interface import DeviceContext as DeviceContext
from .interface import Event as Event
from .interface import Executor as Executor
from .interface import Form as Form
from .interface import GraphExecutor as GraphExecutor
from .interface import Kernel as Kernel
from .interface import KernelExecutor as KernelExecutor
from .interface import ResourceManager as ResourceManager
from .interface import Stream as Stream
from .kernel_cache import KernelCache as KernelCache
from .mixed import MixedGraph as MixedGraph
from .pool import Buffer as Buffer
from .pool import MemoryPool as MemoryPool
from .registry import GROUP as GROUP
from .registry import open_device as open_device
from .registry import plugins as plugins
from .reuse import Plan as Plan
from .reuse import Step as Step
from .reuse import plan_reuse as plan_reuse
from .session import Session as Session
from .tasks import TaskPool as TaskPool
from .tasks import TaskStream as TaskStream
