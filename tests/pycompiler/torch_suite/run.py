"""Runs samples of PyTorch's operator database and writes docs/torch_operators.md.

``python tests/pycompiler/torch_suite/run.py [PATTERN ...]``; see suites/command.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[3])]

import torch
from suites.command import Suite, main

from torch_suite.cases import chosen_tests
from torch_suite.judge import judge
from torch_suite.page import PAGE, RECORDS, page

if __name__ == "__main__":
    version = f"torch {torch.__version__.partition('+')[0]}"
    sys.exit(main(Suite(version, chosen_tests, judge, RECORDS, PAGE, page)))
