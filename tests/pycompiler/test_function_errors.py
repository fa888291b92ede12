"""Errors of functions are those of docs/function_errors.md: two functions in `make test`, all in
`make test-long`.
"""

from __future__ import annotations

import os

import pytest
from function_errors import FUNCTIONS, PAGE, row

from pycompiler.tolerance import FUNCTION, RELATIVE

LONG = "EMU2_LONG" in os.environ


@pytest.mark.parametrize("name", FUNCTIONS if LONG else ("expm1", "nn.functional.logsigmoid"))
def test_errors_are_as_the_page_says(name: str) -> None:
    assert row(name) in PAGE.read_text().splitlines()


def test_the_page_has_all_functions_and_no_large_error() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in lines] == list(FUNCTIONS)
    worst = {line.split("`")[1]: line.split(" | ")[1] for line in lines}
    large = {
        name
        for name, shown in worst.items()
        if shown != "0" and 2.0 ** float(shown.removeprefix("2^")) > RELATIVE["Float", FUNCTION]
    }
    # lgamma takes logarithms of products; the argument of ndtr is rounded before it is squared.
    assert large <= {"lgamma", "digamma", "special.ndtr"}
