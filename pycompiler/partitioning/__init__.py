"""Cuts ONNX models between host and device: what runs where, as functions and as one app."""

from .costs import Costs as Costs
from .costs import PieceCost as PieceCost
from .driver import Partition as Partition
from .driver import partition as partition
from .pattern_table import PATTERNS as PATTERNS
from .patterns import Any as Any
from .patterns import Constant as Constant
from .patterns import Pattern as Pattern
from .patterns import either as either
from .patterns import maybe as maybe
from .patterns import op as op
from .patterns import pattern as pattern
from .pieces import Piece as Piece
from .source import Unit as Unit
from .support import CompilerSupport as CompilerSupport
from .support import Row as Row
from .support import Support as Support
from .support import SupportTable as SupportTable
from .table import print_partition as print_partition
