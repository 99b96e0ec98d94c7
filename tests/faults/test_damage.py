"""What is damaged in the cache is retrieved again; it never ends a run, and never reaches a result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from groupgt.cli.main import main
from groupgt.report.run import run_experiment
from groupgt.store.cache import Cache
from tests.faults.trial import RETRIEVALS, check_finished, entries, experiment, newest


def unpacked(data: bytes) -> list[Any]:
    return [json.loads(line) for line in zstandard.ZstdDecompressor().decompress(data).splitlines()]


def packed(lines: list[Any]) -> bytes:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return zstandard.ZstdCompressor(write_checksum=True).compress(text.encode())


def changed(change: Callable[[dict[str, Any], list[Any]], list[Any]]) -> Callable[[bytes, bytes], bytes]:
    """Another entry of the right form: what is said of it, and its rows, as `change` returns them."""

    def make(own: bytes, _: bytes) -> bytes:
        about, *rows = unpacked(own)
        return packed(change(about, rows))

    return make


def flipped(position: int, bit: int) -> Callable[[bytes, bytes], bytes]:
    return lambda own, _: bytes(
        each ^ (1 << bit) if place == position % len(own) else each for place, each in enumerate(own)
    )


# Each makes an entry's bytes out of its own and another's.
DAMAGES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "empty": lambda own, _: b"",
    "first half": lambda own, _: own[: len(own) // 2],
    "without its last byte": lambda own, _: own[:-1],
    "four bytes": lambda own, _: own[:4],
    "zeros": lambda own, _: bytes(len(own)),
    "text": lambda own, _: b"no entry at all\n",
    "its text": lambda own, _: zstandard.ZstdDecompressor().decompress(own),
    "a bit of the middle": flipped(10_007, 3),
    "a bit of the checksum": flipped(-1, 0),
    "a bit of the magic number": flipped(0, 0),
    "a bit of the size": flipped(4, 7),
    "no text": lambda own, _: packed([]),
    "no JSON": lambda own, _: zstandard.compress(b"{\n"),
    "no UTF-8": lambda own, _: zstandard.compress(b"\xff\xfe\n"),
    "a list first": lambda own, _: packed([[1], [2]]),
    "a row too few": changed(lambda about, rows: [about, *rows[:-1]]),
    "a row too many": changed(lambda about, rows: [about, *rows, rows[0]]),
    "no rows": changed(lambda about, rows: [about | {"rows": 0}]),
    "another's": lambda _, other: other,
    "a question less": changed(lambda about, rows: [about | {"rows": len(rows) - 1}, *rows[1:]]),
    "another question": changed(lambda about, rows: [about, ["unknown", *rows[0][1:]], *rows[1:]]),
    "a question twice": changed(lambda about, rows: [about, rows[1], *rows[1:]]),
    "rows of two": changed(lambda about, rows: [about, *(row[:2] for row in rows)]),
    "rows of text": changed(lambda about, rows: [about, *("abc" for _ in rows)]),
    "ids that are numbers": changed(lambda about, rows: [about, *([row[0], [1, 2], [2.0, 1.0]] for row in rows)]),
    "ids that are no list": changed(lambda about, rows: [about, *([row[0], 7, None] for row in rows)]),
    "fewer scores than ids": changed(lambda about, rows: [about, *([*row[:2], row[2][:1]] for row in rows)]),
    "scores that are text": changed(lambda about, rows: [about, *([*row[:2], ["x"] * len(row[1])] for row in rows)]),
    "no times": changed(lambda about, rows: [{"rows": len(rows)}, *rows]),
    "times that are text": changed(
        lambda about, rows: [about | {"timing": dict.fromkeys(about["timing"], "x")}, *rows]
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_retrieved_again(tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str) -> None:
    file = experiment(tmp_path)
    run_experiment(file)
    expected, before = newest(file), entries(file)
    paths = sorted((tmp_path / "cache").glob("??/*.zst"))
    paths[0].write_bytes(DAMAGES[damage](*(path.read_bytes() for path in paths[:2])))
    main(["cache", str(file)])
    assert capsys.readouterr().err == ""
    outcome = run_experiment(file)
    assert newest(file) == expected
    assert (outcome.retrieved, outcome.cached) == (1, RETRIEVALS - 1)
    check_finished(file, expected, folders=[2])
    assert [unpacked(data)[1:] for data in entries(file).values()] == [unpacked(each)[1:] for each in before.values()]
    assert run_experiment(file).cached == RETRIEVALS


def test_every_entry_is_damaged(tmp_path: Path) -> None:
    file = experiment(tmp_path)
    run_experiment(file)
    expected = newest(file)
    for path in (tmp_path / "cache").glob("??/*.zst"):
        path.write_bytes(path.read_bytes()[:-5])
    assert run_experiment(file, jobs=2).retrieved == RETRIEVALS
    check_finished(file, expected, folders=[2])


def test_a_folder_in_place_of_an_entry(tmp_path: Path) -> None:
    file = experiment(tmp_path)
    run_experiment(file)
    expected = newest(file)
    path = next((tmp_path / "cache").glob("??/*.zst"))
    path.unlink()
    path.mkdir()
    with pytest.warns(UserWarning, match="retrieved results cannot be cached"):
        assert run_experiment(file).retrieved == 1
    assert newest(file) == expected


def test_no_bit_that_flips_and_no_end_that_is_lost_changes_what_is_read(tmp_path: Path) -> None:
    cache, key = Cache(tmp_path), "ab" * 32
    rows = [[f"q{number}", ["x", "y", "z"], [3.5, 2.25, number / 7]] for number in range(5)]
    cache.write(key, {"system": "mine"}, rows)
    whole, path = cache.read(key), cache.path(key)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        assert cache.read(key) is None, length
    for place in range(len(data)):
        for bit in range(8):
            path.write_bytes(flipped(place, bit)(data, b""))
            assert cache.read(key) in (None, whole), (place, bit)
            assert len(list(cache.entries())) == 1, (place, bit)
