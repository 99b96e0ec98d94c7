"""The picture of a report on the first page shows what a report says today."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.generate.screenshot import PICTURE, WORDS, opened
from tests.browser import Tab


@pytest.mark.slow
def test_the_picture_is_current(tab: Tab, tmp_path: Path) -> None:
    """If not: python -m tests.update."""
    assert PICTURE.stat().st_size > 10_000
    assert opened(tab, tmp_path) == WORDS.read_text(encoding="utf-8").strip()
