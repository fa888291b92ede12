"""See :mod:`pycompiler.mlsdk.experimental.llm.kv_cache`."""

from pycompiler.mlsdk.experimental.llm.kv_cache import *
