"""MNCoreLookup: rows of a table in DRAM, picked by address."""
