"""Pages of the manual that are written from the compiler's own tables."""
