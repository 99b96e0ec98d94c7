"""Verdicts that were paid for survive what happens to their file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import groupgt
from groupgt.store.verdicts import Verdicts

SCORES = {f"{number:064x}": number / 16 for number in range(17)}


def kept(path: Path) -> dict[str, float]:
    return Verdicts(path).known(SCORES)


def test_what_was_kept_is_known_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "verdicts.jsonl"
    assert kept(path) == {}
    Verdicts(path).keep(SCORES)
    assert kept(path) == SCORES


def test_a_line_that_was_cut_off_is_asked_again_and_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    Verdicts(path).keep(SCORES)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        found = kept(path)
        assert found.items() <= SCORES.items()
        Verdicts(path).keep({key: score for key, score in SCORES.items() if key not in found})
        assert kept(path) == SCORES


def test_no_flipped_bit_becomes_a_verdict(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    Verdicts(path).keep(dict(list(SCORES.items())[:3]))
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        assert kept(path).items() <= SCORES.items()


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    code = (
        "import sys; from pathlib import Path; from groupgt.store.verdicts import Verdicts\n"
        "for n in range(40): Verdicts(Path(sys.argv[1])).keep({f'{sys.argv[2]}{n}': n / 40})"
    )
    names = ("a", "b", "c")
    # Our own interpreter, and code that stands above.
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in names]
    assert [each.wait() for each in running] == [0, 0, 0]
    expected = {f"{name}{number}": number / 40 for name in names for number in range(40)}
    assert Verdicts(path).known(expected) == expected


@pytest.mark.skipif(os.name == "nt", reason="folders cannot be closed this way")
def test_where_nothing_can_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(groupgt.DataError, match=r"verdicts\.jsonl: cannot be written"):
        Verdicts(tmp_path / "file" / "verdicts.jsonl").keep(SCORES)
