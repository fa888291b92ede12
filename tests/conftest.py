"""Settings of all tests: what hypothesis tries, and threads where tests run beside each other."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SETTINGS = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
# The same examples every time, so that a red run is due to the change.
settings.register_profile("gate", _SETTINGS, derandomize=True)
# Others every time: `make test-long` prints the seed.
settings.register_profile("long", _SETTINGS)
settings.load_profile("long" if os.environ.get("EMU2_LONG") else "gate")
