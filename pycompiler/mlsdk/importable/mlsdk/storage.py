"""Paths of scripts' files, from :mod:`pycompiler.mlsdk.storage`."""

from pycompiler.mlsdk.storage import path as path
