"""The compiler does not grow beyond its ceilings."""

from __future__ import annotations

from pathlib import Path

from code_lines import CEILINGS, python_lines, rust_lines, totals

PYTHON = '''"""A module.

Text.
"""

# A comment.
def f(x: int) -> str:
    """Text."""
    # Why.
    return """one
two"""  # behind code


class C:
    """Text."""
'''
RUST = """//! A crate.

/// Text.
fn f() {} // behind code
    // Why.
"""


def test_what_counts(tmp_path: Path) -> None:
    for name, text, count, lines in (
        ("a.py", PYTHON, python_lines, 4),
        ("a.rs", RUST, rust_lines, 1),
    ):
        path = tmp_path / name
        path.write_text(text)
        assert count(path) == lines


def test_core_and_tools_stay_below_their_ceilings() -> None:
    assert {part for part, lines in totals().items() if lines > CEILINGS[part]} == set()
