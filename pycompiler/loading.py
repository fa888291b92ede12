"""Ctrl-C while libraries load: the process ends at once.

torch-sized libraries take seconds to import, and some of them take an interrupt for a failed
import. Nothing is open or half written then.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_INTERRUPTED = 130  # 128 and the number of SIGINT


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)


@contextmanager
def loading() -> Iterator[None]:
    """Make Ctrl-C end the process while the body imports libraries.

    Only the command line uses it. A command in the background ignores the signal: that stays so.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
