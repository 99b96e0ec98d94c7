"""Warnings of results that look like those of something else."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.formats import source
from tests.snapshots import Snapshot


def test_nearly_matching_ids_are_shown_as_a_pair(snapshot: Snapshot) -> None:
    for ours, theirs in (("Doc-1", "doc-1"), ("doc", "doc "), ("\u00e9", "e\u0301"), ("7", "7.0"), ("7", "007")):
        with pytest.warns(groupgt.GroupgtWarning, match="nearly match"):
            groupgt.evaluate({"q": [[ours]]}, {"q": [theirs]}, ["recall"])
    with snapshot.warns(groupgt.GroupgtWarning):
        groupgt.evaluate({"Q": [["a"]], "p": [["a"]]}, {"q": ["a"], "p": ["a"]}, ["recall"])


# What is judged, what the run returns, and whether they nearly match.
NEAR = [
    ("Doc-1", "doc-1", True),
    ("doc", "doc ", True),
    ("7", "7.0", True),
    ("007", "7", True),
    ("docs/a.md", "/docs/a.md", True),
    ("./docs/a.md", "docs/a.md", True),
    ("http://a/b", "http://a/b/", True),
    ("docs/a.md", "docs\\a.md", True),
    ("my file.pdf", "my%20file.pdf", True),
    ("report.pdf", "report", True),
    ("report", "report.txt", True),
    ("report.pdf", "report.html", True),
    ("report.pdf", "report.pdf#3", True),
    ("report.pdf", "report::12", True),
    ("d29", "d29#chunk-1", True),
    ("b.pdf", "b.pdf:page_12", True),
    ("\u00c9t\u00e9.md", "e\u0301te\u0301_2", True),
    # A suffix counts one way only, and other words and numbers are other documents.
    ("report.pdf#3", "report.pdf", False),
    ("report#3", "report#4", False),
    ("report", "report#a", False),
    ("report", "my report", False),
    ("v1.5", "v1.50", False),
    ("a/b", "b", False),
]


def run_with(kind: str, tmp_path: Path, run: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> Any:
    rows = [(qid, name, -float(rank)) for qid, names in run.items() for rank, name in enumerate(names)]
    columns = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")
    if kind == "lists":
        return run
    if kind == "frame":
        return columns
    path = tmp_path / "run.trec"
    path.write_text("".join(f"{qid} Q0 {name} 1 {score} t\n" for qid, name, score in rows), encoding="utf-8")
    if kind == "lines":
        monkeypatch.setattr(source, "SMALL", 0)
        return path
    columns.write_parquet(tmp_path / "run.parquet")
    return tmp_path / "run.parquet"


@pytest.mark.parametrize("kind", ["lists", "frame", "parquet", "lines"])
@pytest.mark.parametrize(("judged", "returned", "is_near"), NEAR)
def test_ids_that_nearly_match_although_others_match(
    judged: str, returned: str, is_near: bool, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "lines" and " " in judged + returned:
        pytest.skip("a TREC run has no blanks in ids")
    truth = {"p": [["d"]], "q": [["a"], [judged]]}
    run = run_with(kind, tmp_path, {"p": ["d"], "q": ["x", "a", returned]}, monkeypatch)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = groupgt.evaluate(truth, run, ["recall"])
    assert found.values["recall"].tolist() == [1, 0.5]
    texts = [str(each.message) for each in told]
    if not is_near:
        assert texts == []
        return
    (text,) = texts
    show = ascii if ascii(judged + returned).count("\\u") else repr
    pair = f"document ids nearly match: {show(judged)} in the ground truth, {show(returned)} in the results (1 pair)"
    assert text.endswith(pair)


def test_two_forms_of_one_letter_are_shown_as_escapes(snapshot: Snapshot) -> None:
    with pytest.warns(groupgt.GroupgtWarning) as told:
        groupgt.evaluate({"q": [["\u00e9"], ["a"]]}, {"q": ["e\u0301", "a"]}, ["recall"])
    snapshot(str(told[0].message))


def test_ids_that_are_judged_themselves_are_no_near_misses() -> None:
    truth = {"q": [["report"], ["a"]], "p": [["report#1"]], "r": [[{"id": "A", "grade": 0}], ["b"]]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        groupgt.evaluate(truth, {"q": ["report#1", "a"], "p": ["report#1"], "r": ["a", "b"]}, ["recall"])


def test_at_most_a_thousand_queries_are_looked_at() -> None:
    truth = {f"q{number}": [["a"], [f"D{number}"]] for number in range(1200)}
    run = {f"q{number}": ["a", f"d{number}"] for number in range(1200)}
    note = r"\(1,000 pairs\); only 1,000 of 1,200 queries with an unmatched id were compared$"
    with pytest.warns(groupgt.GroupgtWarning, match=note):
        groupgt.evaluate(truth, run, ["recall"])


def test_condensed_lists_are_compared_before_results_are_dropped(snapshot: Snapshot) -> None:
    truth = {"q": {"a": 1, "B": 1, "n": 0}}
    with snapshot.warns(groupgt.GroupgtWarning):
        groupgt.evaluate(truth, {"q": ["x", "b", "a"]}, ["recall"], policy="unjudged=drop")


def test_a_run_that_shares_no_query_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    truth = {"q1": [["a"]], "q2": [["b"]]}
    for kind in ("lists", "frame", "parquet", "lines"):
        run = run_with(kind, tmp_path, {"t1": ["a"], "t2": ["b"]}, monkeypatch)
        with snapshot.raises(groupgt.DataError):
            groupgt.evaluate(truth, run, ["recall"])
        with snapshot.warns(groupgt.GroupgtWarning):
            groupgt.check(truth, {"run": run})
    with snapshot.raises(groupgt.DataError):
        groupgt.evaluate(truth, {"Q1": ["a"], "Q2": ["b"]}, ["recall"])


def test_runs_without_results_and_truth_without_answers_are_no_errors() -> None:
    declared = groupgt.GroundTruth.from_rows(["u"], [[]], groupgt.Policy(), columns={"answerable": [False]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert groupgt.evaluate({"q": [["a"]]}, {}, ["recall"])["recall"] == 0
        assert groupgt.evaluate({"q": [["a"]]}, {"q": [], "t": ["a"]}, ["recall"])["recall"] == 0
        assert groupgt.evaluate(declared, {"t": ["a"]}, ["abstains"])["abstains"] == 1


def test_results_of_another_corpus_are_pointed_out() -> None:
    truth = {f"q{number}": [[f"d{number}"]] for number in range(12)}
    with pytest.warns(groupgt.GroupgtWarning, match="from the same corpus"):
        groupgt.evaluate(truth, {qid: ["elsewhere"] for qid in truth}, ["recall"])


CHUNKS = {"c1": ("d", 0, 40), "c2": ("d", 40, 80), "c3": ("d", 80, 400)}


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 2),
        ({"joint": True}, 1),
        ({"min_overlap": 0.3}, 1),
        ({"of": "union"}, 3),
    ],
)
def test_alternatives_that_no_result_can_hit_are_told(
    options: dict[str, object], count: int, snapshot: Snapshot
) -> None:
    spans = [(0, 80), (90, 200), (350, 900), (0, 100)]  # of which chunks cover halves, all, 50 of 550, and 40 of 100
    truth = {"q": [[{"doc": "d", "start": start, "end": end} for start, end in spans]]}
    labeller = {"use": "spans", "with": {"chunks": CHUNKS, "min_overlap": 0.5, **options}}
    with snapshot.warns(groupgt.GroupgtWarning):
        groupgt.evaluate(truth, {"q": ["c3"]}, ["recall"], labeller=labeller)


def test_texts_that_are_longer_than_every_passage_are_told(snapshot: Snapshot) -> None:
    truth = {"q": [[{"text": "one two three four"}, {"text": "one two"}]]}
    labeller = {"use": "text", "with": {"corpus": {"c": "one two three"}}}
    with snapshot.warns(groupgt.GroupgtWarning):
        groupgt.evaluate(truth, {"q": ["c"]}, ["recall"], labeller=labeller)


def test_two_passages_of_one_corpus_are_no_near_misses() -> None:
    truth, run = {"q": [["signature"], ["a"]]}, {"q": ["Signature", "a"]}
    texts = {"a": "one", "signature": "a function", "Signature": "a class"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert groupgt.evaluate(truth, run, ["recall"], corpus=texts)["recall"] == 0.5
        groupgt.check(truth, {"r": run}, corpus=texts)
    with pytest.warns(groupgt.GroupgtWarning, match="nearly match"):
        groupgt.evaluate(truth, run, ["recall"], corpus={"a": "one", "signature": "a function"})
