"""The entry point of the command ``pycompiler``: Ctrl-C also works while its libraries load."""

from __future__ import annotations

from .loading import loading


def main() -> None:
    """Load the command line and run it."""
    with loading():
        from .cli import main as run
    run()


if __name__ == "__main__":
    main()
