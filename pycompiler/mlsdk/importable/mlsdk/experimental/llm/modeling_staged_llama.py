"""See :mod:`pycompiler.mlsdk.experimental.llm.modeling_staged_llama`."""

from pycompiler.mlsdk.experimental.llm.modeling_staged_llama import *
