"""The list of rewrites, and what each is worth for a model."""
