"""The interface of MLSDK, from :mod:`pycompiler.mlsdk`."""

from pycompiler.mlsdk import *
