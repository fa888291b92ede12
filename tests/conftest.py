"""Settings of all tests: the examples of hypothesis, tests that take long, and forked programs."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from forked import Forks
from forked import forks as started
from hypothesis import HealthCheck, settings

_SETTINGS = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
# The same examples in every run, so that a failure is due to the change.
settings.register_profile("gate", _SETTINGS, derandomize=True)
# New examples in every run: `make test-long` prints the seed.
settings.register_profile("long", _SETTINGS)
settings.load_profile("long" if os.environ.get("EMU2_LONG") else "gate")

# Tests of the compiler import some million objects that live until the end. With Python's own
# thresholds, looking through them again and again takes a tenth of all time.
gc.set_threshold(10_000, 20, 50)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests marked ``long`` to `make test-long`: others prove nearly the same."""
    if not os.environ.get("EMU2_LONG"):
        left = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left)


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Provide programs that run in copies of one process, which has imported the libraries."""
    with started(tmp_path_factory.mktemp("streams")) as found:
        yield found


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Hear SIGINT here and in commands that the test starts.

    A shell that starts a command in the background lets it ignore the signal, and all its children.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
