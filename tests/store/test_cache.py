"""The cache: entries that are whole, under the hash of what determines them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import groupgt
from groupgt.store.cache import Cache, key_of
from groupgt.store.journal import Journal
from groupgt.store.verdicts import Verdicts

KEY = key_of({"a": 1})


def test_an_entry_is_read_back(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    assert cache.read(KEY) is None
    cache.write(KEY, {"system": "bm25"}, [["q", ["a"], [0.1]]])
    assert cache.read(KEY) == ({"system": "bm25", "key": KEY, "rows": 1}, [["q", ["a"], [0.1]]])
    assert cache.path(KEY).is_file()
    assert [entry.about["system"] for entry in cache.entries()] == ["bm25"]
    cache.remove(KEY)
    assert not cache.path(KEY).exists()


def test_an_entry_that_another_process_removes_meanwhile_is_no_entry(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    keys = sorted(key_of({"a": number}) for number in range(3))
    for key in keys:
        cache.write(key, {}, [])
    entries = cache.entries()
    assert next(entries).key == keys[0]
    cache.remove(keys[1])
    assert [entry.key for entry in entries] == [keys[2]]


@pytest.mark.parametrize("target", ["precious", "nowhere", "folder"])
def test_an_entry_that_is_a_link_is_replaced_and_its_target_stays(tmp_path: Path, target: str) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "folder").mkdir()
    cache = Cache(tmp_path / "cache")
    cache.path(KEY).parent.mkdir(parents=True)
    cache.path(KEY).symlink_to(tmp_path / target)
    cache.write(KEY, {}, [["q", [], None]])
    assert not cache.path(KEY).is_symlink()
    assert cache.read(KEY) is not None
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    assert list((tmp_path / "folder").iterdir()) == []


def test_verdicts_are_not_added_to_what_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "verdicts.jsonl").symlink_to(tmp_path / "precious")
    verdicts = Verdicts(Journal(tmp_path / "verdicts.jsonl"))
    for write in (verdicts.prepare, lambda: verdicts.keep({"a": 1.0})):
        with pytest.raises(groupgt.DataError, match="cannot be written: it is a symbolic link"):
            write()
    assert (tmp_path / "precious").read_text() == "mine"


def test_what_is_left_half_done_is_swept_and_a_link_to_something_else_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "mine.txt").write_text("mine")
    cache = Cache(tmp_path / "cache")
    cache.write(KEY, {}, [])
    part = tmp_path / "cache" / ".part-elsewhere-1-x"
    part.symlink_to(tmp_path / "kept")
    os.utime(part, (0, 0), follow_symlinks=False)
    os.utime(tmp_path / "kept", (0, 0))
    cache.write(key_of({"a": 2}), {}, [])
    assert not part.is_symlink()
    assert (tmp_path / "kept" / "mine.txt").read_text() == "mine"
