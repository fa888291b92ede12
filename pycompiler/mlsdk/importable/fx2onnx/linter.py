"""See :mod:`pycompiler.mlsdk.linter`."""

from pycompiler.mlsdk.linter import *
