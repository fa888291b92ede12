"""See :mod:`pycompiler.mlsdk.experimental.llm.attention_mask`."""

from pycompiler.mlsdk.experimental.llm.attention_mask import *
