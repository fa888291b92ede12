"""`python -m pycompiler` is the command `pycompiler`."""

from .command import main

if __name__ == "__main__":
    main()
