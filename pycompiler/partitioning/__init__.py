"""Cuts ONNX models between host and device: what runs where, as functions and as one app."""

from .costs import Costs, PieceCost
from .driver import Partition, partition
from .pattern_table import PATTERNS
from .patterns import Any, Constant, Pattern, either, maybe, op, pattern
from .pieces import Piece
from .source import Unit
from .support import CompilerSupport, Row, Support, SupportTable
from .table import print_partition

__all__ = [
    "PATTERNS",
    "Any",
    "CompilerSupport",
    "Constant",
    "Costs",
    "Partition",
    "Pattern",
    "Piece",
    "PieceCost",
    "Row",
    "Support",
    "SupportTable",
    "Unit",
    "either",
    "maybe",
    "op",
    "partition",
    "pattern",
    "print_partition",
]
