"""``python -m pycompiler.models``: compiles models of well-known libraries and prints a table."""
