"""A browser for the tests of the page, where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import browser as driver


@pytest.fixture(scope="session")
def browser() -> Iterator[driver.Browser]:
    if driver.found() is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium, or set GROUPGT_BROWSER")
    with driver.running() as found:
        yield found


@pytest.fixture(scope="module")
def tab(browser: driver.Browser) -> driver.Tab:
    return browser.tab()
