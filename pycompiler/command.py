"""The entry point of the command ``pycompiler``: Ctrl-C also works while its libraries load."""

from __future__ import annotations

import sys

from emu2.streams import open_closed_streams

from .loading import loading


def main() -> None:
    """Load the command line and run it."""
    open_closed_streams()
    with loading():
        from .cli import main as run
    run()


def dump_gpfnapp() -> None:
    """Print an app: the command ``dump_gpfnapp``, which is ``pycompiler dump`` by another name."""
    sys.argv[1:1] = ["dump"]
    main()


if __name__ == "__main__":
    main()
