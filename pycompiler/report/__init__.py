"""The output of a compile: the report, and the folder of its files."""
