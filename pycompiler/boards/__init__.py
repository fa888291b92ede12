"""Several devices: batches over processes, and training with one process per board."""

from .batches import AppTask, map_batches
from .data_parallel import DataParallel
from .pipeline import Pipeline
from .ranks import Ranks

__all__ = ["AppTask", "DataParallel", "Pipeline", "Ranks", "map_batches"]
