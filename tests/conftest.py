"""How much is tried: few random examples by default, many where the slow tests are asked for too (`-m ""`)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

DEFAULT = "not property and not faults"

for _name, _examples in (("short", 30), ("full", 200)):
    settings.register_profile(
        _name, max_examples=_examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("short" if config.getoption("markexpr") == DEFAULT else "full")
