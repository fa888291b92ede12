"""Makes ``import fx2onnx`` work in processes that a script starts: they get its ``sys.path``."""

import importlib
import sys

from pycompiler.mlsdk.script import install_alias

install_alias()
del sys.modules[__name__]
importlib.import_module(__name__)
