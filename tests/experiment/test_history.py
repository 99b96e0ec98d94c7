"""Result folders read back, merged into one comparison and told over time."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.comparison.settings import Settings
from groupgt.report.run import run_experiment
from groupgt.results.folder import ResultFolder, folders_of
from groupgt.results.merge import history, merged
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

FILE = """\
version: 1
name: small
convention: coverage
datasets:
  own: {ground_truth: truth.jsonl}
systems:
  one: {use: results, with: {path: one.jsonl}}
  two: {use: results, with: {path: two.jsonl}}
evaluate:
  k: [2]
  metrics: [recall, mrr]
  primary: recall@2
compare: {baseline: one}
output: {folder: out, formats: [csv, json]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An experiment on six questions, two of whose ids a spreadsheet would run."""
    qids = ["=1+1", "'-2", "p", "q", "r", "s"]
    (tmp_path / "small.yaml").write_text(FILE, encoding="utf-8")
    truth = [{"qid": qid, "retrieval_gt": [["a"], ["b"]]} for qid in qids]
    (tmp_path / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in truth))
    write(tmp_path, "one", {qid: ["a", "x"] for qid in qids})
    write(tmp_path, "two", {qid: ["a", "b"] if qid != "s" else ["x"] for qid in qids})
    return tmp_path


def write(folder: Path, name: str, run: dict[str, list[str]]) -> None:
    rows = [{"qid": qid, "retrieved_ids": ids} for qid, ids in run.items()]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def run(folder: Path, *changes: str) -> Path:
    found = run_experiment(folder / "small.yaml", changes=changes).folder
    assert found is not None
    return found


@pytest.mark.parametrize("formats", ["[csv]", "[parquet]", "[csv, parquet]"])
def test_what_is_read_back_is_what_was_compared(folder: Path, formats: str) -> None:
    outcome = run_experiment(folder / "small.yaml", changes=[f"output.formats={formats}"])
    assert outcome.folder is not None
    read = ResultFolder.read(outcome.folder)
    again = merged([read], Settings(seed=0))["own"]
    given = outcome.comparison["own"]
    assert again.baseline == "one"
    assert again.rows == given.rows
    assert again.qids == ["=1+1", "'-2", "p", "q", "r", "s"]


def test_several_folders_are_one_comparison(
    folder: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    first = run(folder)
    write(folder, "two", {"p": ["b", "a"]})
    write(folder, "three", {"q": ["b", "a"]})
    second = run(folder, "systems.three={use: results, with: {path: three.jsonl}}")
    table = merged([ResultFolder.read(first), ResultFolder.read(second)], Settings())["own"]
    # `one` is the same in both; `two` is not. Best first: recall@2 of 5/6, 1/2, 1/6 and 1/6.
    first_two, second_two = (f"two ({path.name})" for path in (first, second))
    assert table.names == [first_two, "one", second_two, "three"]
    main(["report", str(first), str(second), "--baseline", "three", "-m", "recall@2"])
    out = capsys.readouterr().out
    snapshot(out)
    assert "mrr" not in out
    assert str(second) in out


def test_history(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run(folder)
    write(folder, "two", {qid: ["a", "b"] for qid in ["=1+1", "'-2", "p", "q", "r", "s"]})
    second = run(folder)
    (folder / "truth.jsonl").write_text(json.dumps({"qid": "p", "retrieval_gt": [["a"]]}) + "\n")
    third = run(folder)
    headers, rows = history([ResultFolder.read(path) for path in (third, first, second)], Settings())["own"]
    assert headers[5] == "recall.coverage@2"
    # Five of six questions complete, then all: the change is (6 - 5)/6 by one question, whose p is 1.
    assert [row[0] for row in rows] == [first.name, second.name, third.name]
    assert [row[5:] for row in rows] == [
        [5 / 6, None, None, ""],
        [1.0, pytest.approx(1 / 6), 1.0, ""],
        [1.0, None, None, "other ground truth"],
    ]
    main(["report", "--history", str(folder / "out" / "small"), "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert [row["run"] for row in told["own"]] == [first.name, second.name, third.name]


def test_folders_are_found(folder: Path) -> None:
    first = run(folder)
    second = run(folder, "evaluate.k=[2, 3]")
    above = folder / "out" / "small"
    assert folders_of([above]) == [first, second]
    assert folders_of([above / "latest"]) == [second]
    assert folders_of([second, above]) == [second, first]


def test_what_does_not_fit_is_refused(folder: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    first = run(folder)
    rows = (folder / "truth.jsonl").read_text().replace('"b"', '"c"')
    (folder / "truth.jsonl").write_text(rows)
    second = run(folder, "convention=autorag", "evaluate.policy={missing: skip}")
    with pytest.raises(SystemExit) as end:
        main(["report", str(first), str(second)])
    assert end.value.code == 2
    err = capsys.readouterr().err
    snapshot(err)


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes the ground truth, row by row."""
    rows = list(map(json.loads, (folder / "truth.jsonl").read_text().splitlines()))
    for row in rows:
        change(row)
    (folder / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


OTHERS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (
        lambda row: row.update(query=f"Else {row['qid']}?"),
        "6 of 6 queries, 6 with different text (=1+1, '-2, p and 3 more)",
    ),
    (
        lambda row: row["qid"] == "q" and row.update(retrieval_gt=[["a"], [{"id": "b", "grade": 2}]]),
        "1 of 6 queries, 1 with different judgments (q)",
    ),
    (
        lambda row: row["qid"] == "r" and row.update(retrieval_gt=[["a"], {"alternatives": ["b"], "weight": 2}]),
        "1 of 6 queries, 1 with different judgments (r)",
    ),
    (lambda row: row["qid"] == "s" and row.update(qid="t"), "2 of 7 queries, 1 added (t), 1 left out (s)"),
    (
        lambda row: row["qid"] == "u" and row.update(answerable=True),
        "1 of 7 queries, 1 with different judgments (u)",
    ),
]


@pytest.mark.parametrize(("change", "words"), OTHERS)
def test_other_content_of_the_ground_truth_is_refused(
    folder: Path, change: Callable[[dict[str, Any]], object], words: str, snapshot: Snapshot
) -> None:
    rewrite(folder, lambda row: row.update(query=f"What is {row['qid']}?"))
    if "(u)" in words:
        with (folder / "truth.jsonl").open("a") as file:
            file.write('{"qid": "u", "query": "What is u?", "retrieval_gt": [], "answerable": false}\n')
    policy = "evaluate.policy={empty_groups: drop}"
    first = run(folder, policy)
    rewrite(folder, change)
    second = run(folder, policy)
    folders = [ResultFolder.read(first), ResultFolder.read(second)]
    with pytest.raises(groupgt.DataError) as told:
        merged(folders, Settings())
    snapshot(str(told.value))
    _, rows = history(folders, Settings())["own"]
    assert rows[1][-1] == "other ground truth"


def test_the_same_content_in_another_order_and_with_other_names_is_merged(folder: Path) -> None:
    first = run(folder)
    named = [{"alternatives": ["b"], "name": "the second"}, ["a"]]
    rewrite(folder, lambda row: row.update(retrieval_gt=named, query="only now"))
    lines = (folder / "truth.jsonl").read_text().splitlines(keepends=True)
    (folder / "truth.jsonl").write_text("".join(reversed(lines)))
    folders = [ResultFolder.read(first), ResultFolder.read(run(folder))]
    assert folders[0].manifest.ground_truth != folders[1].manifest.ground_truth
    # Every value is the same, so that there is one version of each system.
    assert merged(folders, Settings())["own"].names == ["two", "one"]


def test_files_of_labellers_are_compared_by_their_contents(folder: Path) -> None:
    labelled = "evaluate.labeller={use: parents, with: {mapping: %s}}"
    table = [{"doc_id": name, "parent": name} for name in "abx"]
    for name in ("map", "copy"):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    first = run(folder, labelled % "map.jsonl")
    copied = run(folder, labelled % "copy.jsonl")
    assert merged([ResultFolder.read(first), ResultFolder.read(copied)], Settings())["own"].names == ["two", "one"]
    table[1]["parent"] = "x"
    (folder / "map.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    other = run(folder, labelled % "map.jsonl")
    with pytest.raises(groupgt.DataError) as told:
        merged([ResultFolder.read(first), ResultFolder.read(other)], Settings())
    what = f"data set 'own': the labeller's mapping, map.jsonl, differs from map.jsonl in {first}"
    assert what in str(told.value)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: (path / "manifest.json").write_text("{"), "cannot be read"),
        (lambda path: (path / "manifest.json").write_text("{}"), "run the experiment again"),
        (lambda path: (path / "per_query.csv").unlink(), "expected per_query.csv or per_query.parquet"),
        (
            lambda path: (path / "per_query.csv").write_text("dataset,run,qid\n"),
            "the columns recall.coverage@2, mrr.coverage@2 are missing",
        ),
        (
            lambda path: (path / "per_query.csv").write_text(
                (path / "per_query.csv").read_text().replace("0.5", "half", 1)
            ),
            r"per_query.csv:\d+: expected a number in the 'recall.coverage@2' column, found 'half'",
        ),
    ],
)
def test_damaged_folders(folder: Path, damage, words: str) -> None:
    path = run(folder)
    damage(path)
    with pytest.raises(groupgt.DataError, match=words):
        ResultFolder.read(path)


def cut(path: Path, *rows: int) -> None:
    """Leaves rows out of the values; the header is row 0."""
    lines = (path / "per_query.csv").read_text().splitlines(keepends=True)
    (path / "per_query.csv").write_text("".join(line for at, line in enumerate(lines) if at not in rows))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: cut(path, 3), r"system '...': expected one row for each of 6 queries, found 5"),
        (lambda path: cut(path, *range(1, 7)), "found 0"),
        (
            lambda path: (path / "per_query.csv").write_text(
                (path / "per_query.csv").read_text() + "own,one,p,0.5,0.5\n"
            ),
            "found 7",
        ),
        (
            lambda path: (path / "per_query.csv").write_text(
                (path / "per_query.csv").read_text() + "own,other,p,0.5,0.5\n"
            ),
            "found 'other'",
        ),
    ],
)
def test_values_that_no_run_wrote(folder: Path, damage, words: str) -> None:
    path = run(folder)
    damage(path)
    with pytest.raises(groupgt.DataError, match=words):
        ResultFolder.read(path)


@pytest.mark.parametrize(
    "change",
    [
        {"config": {}},
        {"config": None},
        {"metrics": None},
        {"metrics": {"recall@2": "recall.coverage@2"}},
        {"metrics": ["recal@2"]},
        {"ground_truth": {}},
        {"ground_truth": {"own": None}},
        {"policy": None},
        {"counts": {}},
    ],
    ids=str,
)
def test_manifests_of_others(folder: Path, change: dict[str, object]) -> None:
    path = run(folder)
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, **change}))
    with pytest.raises(groupgt.DataError, match=r"manifest\.json"):
        ResultFolder.read(path)


def test_faults_of_all_folders_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = run(folder), run(folder)
    (first / "manifest.json").write_text("{}")
    (second / "per_query.csv").unlink()
    with pytest.raises(SystemExit):
        main(["report", str(first), str(second)])
    assert "2 errors" in capsys.readouterr().err


def test_folders_of_one_name_are_told_apart_by_their_paths(folder: Path) -> None:
    first = run(folder)
    copy = folder / "elsewhere" / first.name
    shutil.copytree(first, copy)
    text = (copy / "per_query.csv").read_text()
    (copy / "per_query.csv").write_text(text.replace("own,one,p,0.5", "own,one,p,0.25"))
    table = merged([ResultFolder.read(first), ResultFolder.read(copy)], Settings())["own"]
    assert table.names == ["two", f"one ({first})", f"one ({copy})"]
    assert table.baseline == f"one ({first})"


def test_a_metric_that_no_run_has(folder: Path, snapshot: Snapshot) -> None:
    path = run(folder)
    read = [ResultFolder.read(path)]
    for ask in (lambda: merged(read, Settings(), None, ["ndcg"]), lambda: history(read, Settings(), "ndcg")):
        with snapshot.raises(groupgt.ConfigError):
            ask()


def test_a_pointer_that_points_nowhere(folder: Path) -> None:
    run(folder)
    (folder / "out" / "small" / "latest").write_text("removed\n")
    with pytest.raises(groupgt.DataError, match=r"small.removed: expected a result folder .*, found no such folder"):
        folders_of([folder / "out" / "small" / "latest"])


def test_paths_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["report", str(tmp_path / "nowhere"), str(tmp_path)])
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert "2 errors" in err
    assert "no such folder" in err


def test_another_experiment_has_no_history_with_it(
    folder: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    first = run(folder)
    second = run(folder, "name=other")
    with pytest.raises(SystemExit):
        main(["report", "--history", str(first), str(second)])
    snapshot(capsys.readouterr().err)
    shutil.rmtree(second)


def test_reports_compare_as_the_folders_did(
    folder: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    change = "compare={baseline: one, metrics: [recall@2], alpha: 0.01, correction: none, seed: 0}"
    first = run(folder, change.replace(", seed: 0", ""), "seed=5")
    main(["report", str(first), "--details"])
    out = capsys.readouterr().out
    assert "seed 5, p-values not corrected; " in out
    assert "alpha 0.01" in out
    # As in the run: compared on one metric, with the means of the others.
    assert "mrr@2: ├─┤" not in out
    main(["report", str(first), "--format", "csv"])
    assert "mrr" not in capsys.readouterr().out
    second = run(folder, change.replace(", seed: 0", "").replace("0.01", "0.02"), "seed=5")
    main(["report", str(first), str(second), "--details"])
    told = capsys.readouterr()
    snapshot(told.err)
    assert "alpha 0.01" in told.out
    main(["report", str(first), "--alpha", "0.2", "--correction", "holm", "--details"])
    out = capsys.readouterr().out
    assert "p-values corrected (Holm) for 1 comparison; " in out
    assert "for 1 comparison; alpha 0.2" in out


def test_a_history_needs_times(folder: Path, snapshot: Snapshot) -> None:
    first = run(folder)
    first.rename(first.parent / "kept")
    with snapshot.raises(groupgt.ConfigError):
        history([ResultFolder.read(first.parent / "kept")], Settings())
