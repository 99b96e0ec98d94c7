"""Verdicts that were paid for survive what happens to their file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import groupgt
from groupgt.store.journal import Journal
from groupgt.store.verdicts import Verdicts, VerdictStore

SCORES = {f"{number:064x}": number / 16 for number in range(17)}


JUDGE = "mine:judge"


def of_run(folder: Path, *, vouched: bool = True, **options: bool) -> tuple[VerdictStore, Verdicts]:
    """The verdicts of a judge as a new run opens them."""
    store = VerdictStore(folder, **options)
    return store, store.verdicts(JUDGE, vouched=vouched)


def file_of(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def kept(folder: Path) -> dict[str, float]:
    return of_run(folder)[1].available(SCORES)


def test_what_was_kept_is_known_to_the_next(tmp_path: Path) -> None:
    assert kept(tmp_path / "deep") == {}
    of_run(tmp_path / "deep")[1].keep(SCORES)
    assert kept(tmp_path / "deep") == SCORES


def test_a_line_that_was_cut_off_is_asked_again_and_spoils_no_other(tmp_path: Path) -> None:
    of_run(tmp_path)[1].keep(SCORES)
    path = file_of(tmp_path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        found = kept(tmp_path)
        assert found.items() <= SCORES.items()
        of_run(tmp_path)[1].keep({key: score for key, score in SCORES.items() if key not in found})
        assert kept(tmp_path) == SCORES


def test_a_run_is_asked_for_again_unless_it_resumes_or_reuses(tmp_path: Path) -> None:
    _, verdicts = of_run(tmp_path, vouched=False)
    verdicts.keep({"a": 1.0})
    second, verdicts = of_run(tmp_path, vouched=False)
    assert verdicts.available(["a", "b"]) == {}
    (left,) = second.left_behind()
    second.resume(left.owner)
    assert verdicts.available(["a", "b"]) == {"a": 1.0}
    verdicts.keep({"b": 0.0})
    assert (second.used, second.judged) == (1, 1)
    second.finish()
    third, verdicts = of_run(tmp_path, vouched=False)
    assert third.left_behind() == []
    assert verdicts.available(["a", "b"]) == {}
    assert of_run(tmp_path, vouched=False, reuse=True)[1].available(["a", "b"]) == {"a": 1.0, "b": 0.0}
    verdicts.keep({"a": 0.5})
    third.finish()
    assert of_run(tmp_path, vouched=False, reuse=True)[1].available(["a", "b"]) == {"a": 0.5, "b": 0.0}
    assert of_run(tmp_path, vouched=False, reuse=True, refresh=True)[1].available(["a", "b"]) == {}


def test_verdicts_of_an_interrupted_run_that_is_not_resumed_are_not_lost(tmp_path: Path) -> None:
    of_run(tmp_path, vouched=False)[1].keep({"a": 1.0})
    next_run, verdicts = of_run(tmp_path, vouched=False)
    verdicts.keep({"b": 0.0})
    assert of_run(tmp_path, vouched=False, reuse=True)[1].available(["a", "b"]) == {"a": 1.0, "b": 0.0}
    next_run.finish()
    assert of_run(tmp_path, vouched=False, reuse=True)[1].available(["a", "b"]) == {"a": 1.0, "b": 0.0}


def test_one_judge_of_several_data_sets_is_one(tmp_path: Path) -> None:
    store, verdicts = of_run(tmp_path, vouched=False)
    verdicts.keep({"a": 1.0})
    assert store.verdicts(JUDGE, vouched=False).available(["a"]) == {"a": 1.0}
    assert store.verdicts("other", vouched=False).available(["a"]) == {}


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from groupgt.store.verdicts import VerdictStore\n"
        "for n in range(40):\n"
        "    store = VerdictStore(Path(sys.argv[1]))\n"
        "    store.verdicts('mine:judge', vouched=True).keep({f'{sys.argv[2]}{n}': n / 40})"
    )
    names = ("a", "b", "c")
    # Our own interpreter, and code that stands above.
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in names]
    assert [each.wait() for each in running] == [0, 0, 0]
    expected = {f"{name}{number}": number / 40 for name in names for number in range(40)}
    assert of_run(tmp_path)[1].available(expected) == expected


@pytest.mark.skipif(os.name == "nt", reason="folders cannot be closed this way")
def test_where_nothing_can_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(groupgt.DataError, match=r"cannot write .*verdicts\.jsonl"):
        Verdicts(Journal(tmp_path / "file" / "verdicts.jsonl")).keep(SCORES)


def test_without_a_journal_scores_are_kept_in_memory() -> None:
    verdicts = Verdicts()
    verdicts.keep({"a": 1.0})
    assert verdicts.available(["a", "b"]) == {"a": 1.0}
