"""Passages that were overlooked: found, reviewed by hand, and taken up only when marked."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.curation.near import near_duplicates
from groupgt.curation.review import HEADERS, accepted, check_of, rows_of
from tests.snapshots import Snapshot

pytest.importorskip("rapidfuzz", reason="the extra groupgt[text] is not installed")

CORPUS = {
    "a": "Thirty days of leave a year, for everybody.",
    "a2": "Thirty days of leave a year - for everybody",
    "a3": "Thirty days of leave per year, for everybody!",
    "b": "Sick days are paid from the first day on.",
    "c": "Nothing like it at all.",
}
GROUPS = [
    {"alternatives": [{"id": "a", "grade": 2}], "name": "leave"},
    {"alternatives": ["b", {"id": "c", "grade": 0}], "weight": 3},
]

SEARCH = ["check", "truth.jsonl", "--corpus", "corpus.jsonl", "--near-duplicates", "--write"]


def found(threshold: float) -> list[tuple[str, str]]:
    truth = groupgt.GroundTruth.of({"q": GROUPS})
    return [(each.alternative, each.candidate) for each in near_duplicates(truth, CORPUS, threshold)]


def test_what_nearly_equals_an_alternative() -> None:
    # a2 is a once punctuation is gone; a3 differs in a word: "a" and "per".
    assert found(1.0) == [("a", "a2")]
    assert found(0.9) == [("a", "a2"), ("a", "a3")]


def test_what_is_judged_is_no_candidate() -> None:
    truth = groupgt.GroundTruth.of({"q": [["a", {"id": "a2", "grade": 0}]], "other": [["a2"]]})
    pairs = [(each.qid, each.candidate) for each in near_duplicates(truth, CORPUS, 1.0)]
    assert pairs == [("other", "a")]


def test_alternatives_that_are_texts_have_near_duplicates_too() -> None:
    truth = groupgt.GroundTruth.of({"q": [[{"text": CORPUS["a3"]}]]})
    assert [each.candidate for each in near_duplicates(truth, CORPUS, 0.9)] == ["a", "a2"]


def test_ids_that_the_corpus_lacks_have_no_near_duplicates() -> None:
    truth = groupgt.GroundTruth.of({"q": [["a", "gone"], ["lost"]]})
    assert [(each.alternative, each.candidate) for each in near_duplicates(truth, CORPUS, 1.0)] == [("a", "a2")]


def test_spans_have_no_near_duplicates(snapshot: Snapshot) -> None:
    truth = groupgt.GroundTruth.of({"p": [[{"doc": "d", "start": 0, "end": 5}]]})
    with snapshot.raises(groupgt.DataError):
        near_duplicates(truth, CORPUS)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    row = {"qid": "q", "query": "How much leave?", "retrieval_gt": GROUPS, "kind": "x"}
    (tmp_path / "truth.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    lines = (json.dumps({"doc_id": name, "contents": text}) + "\n" for name, text in CORPUS.items())
    (tmp_path / "corpus.jsonl").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def marked(path: Path, marks: list[str]) -> None:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, HEADERS)
            writer.writeheader()
            writer.writerows({**row, "accept": mark} for row, mark in zip(rows, marks))
        return
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    text = "".join(json.dumps({**row, "accept": mark}) + "\n" for row, mark in zip(lines, marks))
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_only_what_is_marked_is_taken_up(folder: Path, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    review = folder / f"review.{ending}"
    main([*SEARCH, review.name])
    assert "wrote 2 candidates to" in capsys.readouterr().err
    main(["convert", "truth.jsonl", "same.jsonl", "--to", "jsonl", "--accept", review.name])
    before, same = (groupgt.read_ground_truth(folder / name) for name in ("truth.jsonl", "same.jsonl"))
    assert same.digest == before.digest
    marked(review, ["", "TRUE"])
    main(["convert", "truth.jsonl", "more.jsonl", "--to", "jsonl", "--accept", review.name])
    assert capsys.readouterr().err.endswith("accepted 1, rejected 1\ngroupgt: wrote 1 query to more.jsonl\n")
    more = groupgt.read_ground_truth(folder / "more.jsonl")
    assert more["q"] == [
        {"alternatives": [{"id": "a", "grade": 2}, {"id": "a3", "grade": 2}], "name": "leave"},
        {"alternatives": ["b", {"id": "c", "grade": 0}], "weight": 3},
    ]
    assert (more.texts, more.columns) == (before.texts, before.columns)
    lines = [(folder / name).read_text(encoding="utf-8").splitlines() for name in ("truth.jsonl", "more.jsonl")]
    assert list(json.loads(lines[1][0])) == list(json.loads(lines[0][0]))


def test_shape_and_excluded_ids_are_kept(folder: Path) -> None:
    truth = groupgt.GroundTruth.of({"q": GROUPS}, shape="subtopics", excluded_ids={"q": ["x"]})
    rows = rows_of(near_duplicates(truth, CORPUS, 1.0))
    (folder / "review.jsonl").write_text(json.dumps(dict(zip(HEADERS, ["yes", *rows[0][1:]]))) + "\n")
    extended, count, _ = accepted(truth, folder / "review.jsonl")
    assert (count, extended.shape, extended.excluded) == (1, "subtopics", [frozenset({"x"})])


def test_evidence_stands_beside_each_candidate(folder: Path) -> None:
    main([*SEARCH, "review.jsonl"])
    row = json.loads((folder / "review.jsonl").read_text(encoding="utf-8").splitlines()[1])
    assert list(row) == HEADERS
    assert 0.9 < row.pop("similarity") < 1
    assert row.pop("check") == check_of(row)
    assert row == {
        "accept": "",
        "qid": "q",
        "query": "How much leave?",
        "group": "group 1 (leave)",
        "alternative": "a",
        "candidate": "a3",
        "alternative_text": CORPUS["a"],
        "candidate_text": CORPUS["a3"],
    }


def test_a_review_is_not_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "review.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(SystemExit) as end:
        main([*SEARCH, "review.csv"])
    assert end.value.code == 2
    assert "may contain review marks" in capsys.readouterr().err
    assert (folder / "review.csv").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"accept": "perhaps"}, "review.jsonl:1: expected yes, y, x, true, 1, 1.0 .*found 'perhaps'"),
        ({"qid": "p"}, "review.jsonl:1: query 'p' is not in the ground truth"),
        ({"alternative": "z"}, "review.jsonl:1: query 'q': group 1 \\(leave\\) has no alternative 'z'"),
        ({"group": "sick days"}, "sick days has no alternative 'a'"),
    ],
)
def test_marks_and_rows_that_do_not_fit(folder: Path, change: dict[str, str], words: str) -> None:
    truth = groupgt.read_ground_truth(folder / "truth.jsonl")
    row = {
        "accept": "yes",
        "qid": "q",
        "query": "",
        "group": "group 1 (leave)",
        "alternative": "a",
        "candidate": "a2",
        **change,
    }
    row |= {"similarity": 1, "alternative_text": "", "candidate_text": ""}
    row["check"] = check_of(row)
    (folder / "review.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(groupgt.DataError, match=words):
        accepted(truth, folder / "review.jsonl")


@pytest.mark.parametrize(("old", "new"), [("a2", "a9"), ("Thirty days of leave a year - ", "Thirty "), ("leave", "b")])
def test_a_row_that_was_changed_is_no_proposal(folder: Path, old: str, new: str, snapshot: Snapshot) -> None:
    main([*SEARCH, "review.csv"])
    review = folder / "review.csv"
    marked(review, ["yes", ""])
    review.write_text(review.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with snapshot.raises(groupgt.DataError):
        accepted(groupgt.read_ground_truth(folder / "truth.jsonl"), review)


def test_ids_that_a_spreadsheet_would_run_come_back_as_they_were(folder: Path) -> None:
    corpus = {"=a": CORPUS["a"], "-b": CORPUS["a2"], "'=c": CORPUS["a"]}
    lines = (json.dumps({"doc_id": name, "contents": text}) + "\n" for name, text in corpus.items())
    (folder / "corpus.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "truth.jsonl").write_text(json.dumps({"qid": "+q", "retrieval_gt": [["=a"]]}), encoding="utf-8")
    main([*SEARCH, "review.csv"])
    marked(folder / "review.csv", ["x", "x"])
    main(["convert", "truth.jsonl", "more.jsonl", "--to", "jsonl", "--accept", "review.csv"])
    assert groupgt.read_ground_truth(folder / "more.jsonl")["+q"] == [["=a", "-b", "'=c"]]


def test_check_counts_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "truth.jsonl", "--corpus", "corpus.jsonl", "--near-duplicates", "--format", "json"]
    main(words)
    last = json.loads(capsys.readouterr().out)["findings"]["truth.jsonl"][-1]
    assert last["count"] == 2
    assert last["example"].startswith("q: a2 ≈ a (1.00), q: a3 ≈ a (0.9")
    with pytest.raises(SystemExit) as end:
        main(["check", "truth.jsonl", "--near-duplicates"])
    assert end.value.code == 2
    assert "add --corpus" in capsys.readouterr().err
