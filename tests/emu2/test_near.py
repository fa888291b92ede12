"""A name that nobody knows: the diagnostic asks for the one that may be meant."""

from __future__ import annotations

import pytest

from emu2.near import did_you_mean
from pycompiler.errors import PycompilerError
from pycompiler.options import parse_options
from pycompiler.presets.read import read_preset
from pycompiler.runtime.device import find_device


def test_the_nearest_name_or_nothing() -> None:
    known = ("strict", "scheduler", "tune")
    assert did_you_mean("shceduler", known) == "did you mean `scheduler`? "
    assert did_you_mean("xyz", known) == did_you_mean("strict", ()) == ""


@pytest.mark.parametrize(
    ("call", "name", "meant", "code"),
    [
        (lambda name: parse_options({name: 1}), "shceduler", "scheduler", "P0701"),
        (find_device, "emuu2", "emu2", "P0601"),
        (find_device, "pfvm_cpu", "pfvm:cpu", "P0601"),
        (read_preset, "debgu", "debug", "P0706"),
    ],
)
def test_a_diagnostic_asks(call, name: str, meant: str, code: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PycompilerError) as caught:
        call(name)
    assert caught.value.code == code
    assert caught.value.help.startswith(f"did you mean `{meant}`? ")
    with pytest.raises(PycompilerError) as caught:
        call("xyzxyzxyz")
    assert "did you mean" not in str(caught.value)
