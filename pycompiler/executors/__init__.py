"""Runs tasks in processes, in threads, on a cluster, or on an executor of the caller."""

from .named import CLUSTER, DIED, EXECUTORS, PROCESSES, THREADS, TIME, Workers, opened
from .processes import Processes, WorkerDiedError

__all__ = [
    "CLUSTER",
    "DIED",
    "EXECUTORS",
    "PROCESSES",
    "THREADS",
    "TIME",
    "Processes",
    "WorkerDiedError",
    "Workers",
    "opened",
]
