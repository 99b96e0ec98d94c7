"""Files that are made by code are what the code makes today; `python -m tests.update` makes them again."""

from __future__ import annotations

import pytest

from tests.update import DERIVED

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * each.slow) for name, each in DERIVED.items()]
)
def test_a_derived_file_is_current(name: str) -> None:
    if missing := DERIVED[name].missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    assert DERIVED[name].stale() == [], "python -m tests.update"
