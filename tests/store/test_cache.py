"""The cache: entries that are whole, under the hash of what determines them."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupgt.store.cache import Cache, key_of

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


@pytest.mark.parametrize("size", [0, 20])
def test_an_entry_that_is_cut_off_is_no_entry(tmp_path: Path, size: int) -> None:
    cache = Cache(tmp_path / "cache")
    cache.write(KEY, {}, [["q", ["a"], None]])
    cache.path(KEY).write_bytes(cache.path(KEY).read_bytes()[:size])
    assert cache.read(KEY) is None


def test_a_key_does_not_depend_on_order() -> None:
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
