"""Helpers for decoders of texts, from :mod:`pycompiler.mlsdk.experimental.llm`."""
