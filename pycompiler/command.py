"""The entry point of the command ``pycompiler``: Ctrl-C also works while libraries load.

torch-sized libraries take seconds to import, and some of them take an interrupt for a failed
import. Nothing is open or half written then, so the process ends at once.
"""

from __future__ import annotations

import os
import signal

_INTERRUPTED = 130  # 128 and the number of SIGINT


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)


def main() -> None:
    """Load the command line and run it."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:  # a command in the background ignores the signal
        signal.signal(signal.SIGINT, _end)
    from .cli import main as run

    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
