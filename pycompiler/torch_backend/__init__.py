"""The back end `emu2` of ``torch.compile``, and a summary of what it does with a function."""

from .backend import emu2, last_report
from .explain import Explanation, explain

__all__ = ["Explanation", "emu2", "explain", "last_report"]
