"""What people read of a compile: the log, the table of nodes, and what a compiled model answers."""

from .performance import Performance

__all__ = ["Performance"]
