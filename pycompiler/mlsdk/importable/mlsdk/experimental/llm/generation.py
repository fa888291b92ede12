"""See :mod:`pycompiler.mlsdk.experimental.llm.generation`."""

from pycompiler.mlsdk.experimental.llm.generation import *
