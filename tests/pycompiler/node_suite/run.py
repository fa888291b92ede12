"""Runs ONNX's node tests and writes docs/onnx.md with the files that it is made from.

``python tests/pycompiler/node_suite/run.py [PATTERN ...]``; see suites/command.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[3])]

import onnx
from suites.command import Suite, main

from node_suite.cases import chosen_tests
from node_suite.judge import judge
from node_suite.page import PAGE, RECORDS, page

if __name__ == "__main__":
    version = f"onnx {onnx.__version__}"
    sys.exit(main(Suite(version, chosen_tests, judge, RECORDS, PAGE, page)))
