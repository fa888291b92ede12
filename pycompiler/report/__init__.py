"""What a compile leaves behind: the report, and the folder of its files."""
