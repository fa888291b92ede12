"""Exports a function: copies of this process have what the exporter loads the first time."""

from __future__ import annotations

import contextlib
import sys
import warnings

import torch
from quick_export import keep_tables_of_exports

from pycompiler.frontend.export import export

keep_tables_of_exports()
with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    export(lambda given: {"y": given["x"] + 1}, {"x": torch.ones(2)})
