"""Pages about compiles that a browser opens from disk; the command `dashboard`."""
