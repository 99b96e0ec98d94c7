"""A fixed slice of the mutated files, and every file that was once at fault."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.fuzz import files
from tests.fuzz.__main__ import KEPT
from tests.fuzz.trial import trial, trials

KINDS = [*files.RUNS, *files.TRUTHS]


def _faults(kind: str, seed: int, count: int, folder: Path) -> list[str]:
    return [str(found) for _, found in islice(trials(seed, folder, [kind]), count) if found is not None]


@pytest.mark.parametrize("kind", KINDS)
def test_some_mutated_files(kind: str, tmp_path: Path) -> None:
    assert _faults(kind, 1, 30, tmp_path) == []


@pytest.mark.property
@pytest.mark.parametrize("kind", KINDS)
def test_many_mutated_files(kind: str, tmp_path: Path) -> None:
    assert _faults(kind, 2, 1500, tmp_path) == []


@pytest.mark.parametrize("path", sorted(KEPT.glob("*")), ids=lambda path: path.name)
def test_files_once_at_fault(path: Path, tmp_path: Path) -> None:
    assert trial(path.name.rpartition("-")[0], path.read_bytes(), tmp_path / "trial") is None
