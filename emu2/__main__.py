"""`python -m emu2` is the command `emu2`."""

from emu2.cli import main

if __name__ == "__main__":
    main()
