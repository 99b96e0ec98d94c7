"""What is damaged in the cache is retrieved again; it never ends a run, and never reaches a result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groupgt.cli.main import main
from groupgt.report.run import run_experiment
from groupgt.runtime import zstd
from tests.faults.trial import RETRIEVALS, check_finished, entries, experiment, newest


def unpacked(data: bytes) -> list[Any]:
    return [json.loads(line) for line in zstd.decompress(data).splitlines()]


def packed(lines: list[Any]) -> bytes:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return zstd.compress(text.encode(), options={zstd.CompressionParameter.checksum_flag: 1})


def changed(change: Callable[[dict[str, Any], list[Any]], list[Any]]) -> Callable[[bytes, bytes], bytes]:
    """Another entry of the right form: what is said of it, and its rows, as `change` returns them."""

    def make(own: bytes, _: bytes) -> bytes:
        about, *rows = unpacked(own)
        return packed(change(about, rows))

    return make


# Each makes an entry's bytes out of its own and another's.
DAMAGES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "empty": lambda own, _: b"",
    "first half": lambda own, _: own[: len(own) // 2],
    "without its last byte": lambda own, _: own[:-1],
    "zeros": lambda own, _: bytes(len(own)),
    "text": lambda own, _: b"no entry at all\n",
    "another's": lambda _, other: other,
    "a row too few": changed(lambda about, rows: [about, *rows[:-1]]),
    "another question": changed(lambda about, rows: [about, ["unknown", *rows[0][1:]], *rows[1:]]),
    "no times": changed(lambda about, rows: [{"rows": len(rows)}, *rows]),
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
