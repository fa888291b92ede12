"""Projects to begin with: a kernel, a model, or a host program, each with a test."""
