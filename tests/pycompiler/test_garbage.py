"""The garbage collector is as it was after a compile, whether it succeeds or not."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from compiling import compiled, model_of

from pycompiler.errors import PycompilerError
from pycompiler.garbage import without_collection


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Restore the collector after a test that stops it or freezes objects."""
    yield
    gc.unfreeze()
    gc.enable()


def test_it_stops_and_goes_on() -> None:
    with without_collection():
        assert not gc.isenabled()
        with without_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_stays_off_where_it_was_off() -> None:
    gc.disable()
    with without_collection():
        pass
    assert not gc.isenabled()


def test_objects_that_were_frozen_stay_frozen() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    assert frozen
    with without_collection():
        pass
    # Frozen objects still end with their last reference, so a few may be gone; a thaw leaves none.
    assert gc.get_freeze_count() > frozen // 2


def test_an_error_ends_it() -> None:
    with pytest.raises(ValueError, match="here"), without_collection():
        raise ValueError("here")
    assert gc.isenabled()


def test_compiles() -> None:
    compiled(model_of([("Relu", ["x"], "y")], {"x": (4,)}, ["y"]))
    assert gc.isenabled()
    with pytest.raises(PycompilerError, match="P0120"):
        compiled(model_of([("Relu", ["x"], "y")], {"x": (1 << 40,)}, ["y"]))
    assert gc.isenabled()
