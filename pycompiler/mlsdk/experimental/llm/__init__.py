"""Helpers for decoders of texts: masks, caches, pipelines."""
