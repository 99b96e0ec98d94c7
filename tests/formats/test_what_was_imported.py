"""What a file means depends on its bytes, not on what the process has imported."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def outcomes(*arguments: str) -> tuple[list[list[object]], bool]:
    """Every row of the tables in one fresh process, and whether that has polars in the end."""
    command = [sys.executable, "-X", "utf8", "-m", "tests.formats.outcomes", *arguments]
    told = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.splitlines()
    return [json.loads(line) for line in told[:-1]], json.loads(told[-1])


@pytest.mark.property
def test_every_row_means_the_same_with_polars_and_without() -> None:
    without, has_polars = outcomes()
    assert not has_polars
    with_polars, has_polars = outcomes("polars")
    assert has_polars
    assert len(without) > 200
    assert {status for _, status, *_ in without} == {0, 2}
    assert with_polars == without
