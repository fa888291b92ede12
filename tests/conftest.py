"""Settings of all tests: the examples that hypothesis tries."""

from __future__ import annotations

import os

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
