"""Errors of functions are those of docs/function_errors.md: two functions in `make test`, all in
`make test-long`.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from double_functions import FUNCTIONS as WIDE
from double_functions import LONG as LONG_DOUBLE
from function_errors import FUNCTIONS, PAGE, row, wide_row

from pycompiler.tolerance import FUNCTION, RELATIVE

LONG = "EMU2_LONG" in os.environ


@pytest.mark.parametrize("name", FUNCTIONS if LONG else ("expm1", "nn.functional.logsigmoid"))
def test_errors_are_as_the_page_says(name: str) -> None:
    assert row(name) in PAGE.read_text().splitlines()


@pytest.mark.skipif(np.finfo(LONG_DOUBLE).nmant < 63, reason="the host has no wider numbers")
@pytest.mark.parametrize("op", WIDE if LONG else ("Atan",))
def test_errors_of_doubles_are_as_the_page_says(op: str) -> None:
    assert wide_row(op) in PAGE.read_text().splitlines()


def test_the_page_has_all_functions_and_no_large_error() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in lines] == [*FUNCTIONS, *WIDE]
    lines, wide = lines[: len(FUNCTIONS)], lines[len(FUNCTIONS) :]
    assert all(
        2.0 ** float(line.split(" | ")[1].removeprefix("2^")) <= RELATIVE["Double", FUNCTION]
        for line in wide
    )
    worst = {line.split("`")[1]: line.split(" | ")[1] for line in lines}
    large = {
        name
        for name, shown in worst.items()
        if shown != "0" and 2.0 ** float(shown.removeprefix("2^")) > RELATIVE["Float", FUNCTION]
    }
    # lgamma takes logarithms of products; the argument of ndtr is rounded before it is squared.
    assert large <= {"lgamma", "digamma", "special.ndtr"}
