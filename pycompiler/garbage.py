"""The garbage collector during a compile."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Stop the collector, and restore its state afterwards.

    A compile makes millions of small objects without cycles, which live until it ends. Looking for
    cycles among them would take a tenth of the planning and half of the emission.
    """
    enabled, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not frozen:
                # All objects count as old now: the next collection of young ones would walk
                # through everything that the compile leaves.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
