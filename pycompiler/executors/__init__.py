"""Runs tasks in processes, in threads, on a cluster, or on an executor of the caller."""

from .named import CLUSTER as CLUSTER
from .named import DIED as DIED
from .named import EXECUTORS as EXECUTORS
from .named import PROCESSES as PROCESSES
from .named import THREADS as THREADS
from .named import TIME as TIME
from .named import Workers as Workers
from .named import opened as opened
from .processes import Processes as Processes
from .processes import WorkerDiedError as WorkerDiedError
