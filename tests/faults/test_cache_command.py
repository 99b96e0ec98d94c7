"""`groupgt cache`: what is kept, and how to be rid of it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from groupgt.report.run import run_experiment
from tests.faults.trial import RETRIEVALS, called, check_finished, entries, experiment, newest


def shown(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> tuple[str, str]:
    return called(capsys, "cache", *arguments, status=status)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = experiment(tmp_path)
    run_experiment(found)
    return found


def test_it_lists_what_is_kept(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = shown(capsys, file)
    assert err == ""
    assert all(name in out for name in ("plain", "bm25[k1=0.9]", "bm25[k1=1.6]"))
    assert "rrf" not in out
    assert shown(capsys, file.parent / "cache")[0] == out


def test_its_list_is_data(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(capsys, file, "--format", "json")[0])
    assert [each["system"] for each in found] == ["bm25[k1=0.9]", "bm25[k1=1.6]", "plain"]
    assert {(each["experiment"], each["dataset"], each["uses"], each["depth"]) for each in found} == {
        ("trial", "handbook", "bm25", 50)
    }
    assert all(each["questions"] == 60 for each in found)
    sizes = {name[:12]: len(data) for name, data in entries(file).items()}
    assert {each["key"]: each["bytes"] for each in found} == sizes
    rows = list(csv.DictReader(io.StringIO(shown(capsys, file, "--format", "csv")[0])))
    assert [row["system"] for row in rows] == [each["system"] for each in found]


def test_it_clears(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected, size = newest(file), sum(map(len, entries(file).values()))
    out, err = shown(capsys, file, "--clear")
    assert (out, err) == ("", f"groupgt: removed 3 runs, {size:,} bytes\n")
    assert entries(file) == {}
    assert json.loads(shown(capsys, file, "--format", "json")[0]) == []
    assert shown(capsys, file, "--clear")[1] == "groupgt: removed 0 runs, 0 bytes\n"
    assert run_experiment(file).retrieved == RETRIEVALS
    check_finished(file, expected, folders=[2])


def test_it_clears_some(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(shown(capsys, file, "--only", "bm25*", "--format", "json")[0])
    assert [each["system"] for each in listed] == ["bm25[k1=0.9]", "bm25[k1=1.6]"]
    assert "removed 2 runs" in shown(capsys, file, "--only", "bm25*", "--clear")[1]
    outcome = run_experiment(file)
    assert (outcome.cached, outcome.retrieved) == (1, 2)
    assert "removed 1 run" in shown(capsys, file, "--only", "bm25[k1=0.9]", "--clear")[1]
    assert run_experiment(file).cached == RETRIEVALS - 1


def test_what_is_damaged_is_listed_and_cleared(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next((file.parent / "cache").glob("??/*.zst"))
    path.write_bytes(path.read_bytes()[:-1])
    found = json.loads(shown(capsys, file, "--format", "json")[0])
    assert [each["system"] for each in found].count("damaged") == 1
    assert "removed 3 runs" in shown(capsys, file, "--clear")[1]
    assert not path.exists()


def test_stray_files_are_no_trouble(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected, cache = newest(file), file.parent / "cache"
    shard = next(cache.glob("??/*.zst")).parent
    (cache / "zz").mkdir()
    strays = [
        cache / "notes.txt",
        cache / "notes.jsonl.zst",
        shard / "notes.txt",
        shard / f"{shard.name}.jsonl.zst",
        cache / "zz" / "zz-notes.jsonl.zst",
        cache / "a folder" / "notes.jsonl.zst",
    ]
    for stray in strays:
        stray.parent.mkdir(exist_ok=True)
        stray.write_text("mine", encoding="utf-8")
    assert run_experiment(file).cached == RETRIEVALS
    assert newest(file) == expected
    found = json.loads(shown(capsys, file, "--format", "json")[0])
    assert len(found) == RETRIEVALS
    assert "removed 3 runs" in shown(capsys, file, "--clear")[1]
    assert all(stray.read_text(encoding="utf-8") == "mine" for stray in strays)


def test_no_cache_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = experiment(tmp_path)
    assert json.loads(shown(capsys, file, "--format", "json")[0]) == []
    assert shown(capsys, file, "--clear")[1] == "groupgt: removed 0 runs, 0 bytes\n"
    assert not (tmp_path / "cache").exists()
    file.write_text(file.read_text(encoding="utf-8").replace("cache: cache", "cache: null"), encoding="utf-8")
    run_experiment(file)
    assert run_experiment(file).retrieved == RETRIEVALS
    assert json.loads(shown(capsys, file, "--format", "json")[0]) == []


def test_it_runs_no_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = experiment(tmp_path, '  mine: {use: python, with: {target: "danger_in_a_list:build"}}\n')
    trace = tmp_path / "ran"
    code = f"from pathlib import Path\nPath({str(trace)!r}).touch()\nbuild = print\n"
    (tmp_path / "danger_in_a_list.py").write_text(code, encoding="utf-8")
    shown(capsys, file)
    assert not trace.exists()
