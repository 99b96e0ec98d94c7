"""Queries that have no answer: their own metrics, thresholds on scores, and which threshold keeps them empty."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.cli.main import main
from groupgt.evaluation.thresholds import between
from tests.snapshots import Snapshot

ROWS = [
    {"qid": "a", "retrieval_gt": [["x"], ["y"]]},
    {"qid": "b", "retrieval_gt": [], "answerable": False},
    {"qid": "c", "retrieval_gt": [], "answerable": False},
    {"qid": "d", "retrieval_gt": []},
    {"qid": "e", "retrieval_gt": [], "answerable": False, "nonrelevant": ["z"]},
]
SCORES = {"a": {"x": 0.9, "y": 0.3}, "b": {"x": 0.5, "z": 0.2}, "c": {"z": 0.25}, "d": {"z": 0.25}}
# The same run in each form: mappings, pairs, results with fields, TREC, CSV.
FORMS = ("dict", "pairs", "fields", "trec", "csv", "jsonl")


def truth(folder: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    path = folder / "qa.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run(form: str, folder: Path, scores: dict[str, dict[str, float]] = SCORES) -> Any:
    if form == "dict":
        return scores
    if form == "pairs":
        return {qid: list(each.items()) for qid, each in scores.items()}
    if form == "fields":
        return {qid: [{"id": name, "score": score} for name, score in each.items()] for qid, each in scores.items()}
    rows = [(qid, name, score) for qid, each in scores.items() for name, score in each.items()]
    path = folder / f"run.{form}"
    if form == "trec":
        text = "".join(f"{qid} Q0 {name} 1 {score!r} t\n" for qid, name, score in rows)
    elif form == "csv":
        text = "qid,doc_id,score\n" + "".join(f"{qid},{name},{score!r}\n" for qid, name, score in rows)
    else:
        lines = (
            {"qid": qid, "retrieved_ids": list(each), "retrieve_scores": list(each.values())}
            for qid, each in scores.items()
        )
        text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("form", FORMS)
def test_a_threshold_is_a_prefix(form: str, tmp_path: Path) -> None:
    metrics = ["recall.coverage", "recall.coverage@0.35score", "recall.coverage@3e-1score", "mrr.coverage@0.95score"]
    metrics += ["abstains", "abstains@0.25score", "abstains@0.35score", "abstains@.6score", "abstains@-1score"]
    metrics += ["false_returns", "false_returns@0.25score"]
    found = groupgt.evaluate(truth(tmp_path), run(form, tmp_path), metrics)
    # Query a: x has .9, y has .3. Of the three that have no answer, b returns .5 and .2, c returns .25, e nothing.
    assert found.means == pytest.approx(
        {
            "recall.coverage": 1,
            "recall.coverage@0.35score": 1 / 2,
            "recall.coverage@3e-1score": 1,
            "mrr.coverage@0.95score": 0,
            "abstains": 1 / 3,
            "abstains@0.25score": 1 / 3,
            "abstains@0.35score": 2 / 3,
            "abstains@.6score": 1,
            "abstains@-1score": 1 / 3,
            "false_returns": (2 + 1 + 0) / 3,
            "false_returns@0.25score": (1 + 1 + 0) / 3,
        }
    )


def test_who_counts(tmp_path: Path, snapshot: Snapshot) -> None:
    for policy in ("missing=zero", "missing=skip", "missing=zero,undefined=zero", "trec,duplicates=penalize"):
        found = groupgt.evaluate(
            truth(tmp_path), SCORES, ["abstains", "recall.coverage", "false_returns"], policy=policy
        )
        # Query e has no row: it abstains under every policy.
        assert np.isnan(found.values["abstains"]).tolist() == [True, False, False, True, False]
        assert found.values["abstains"][4] == 1
        assert found.values["false_returns"][4] == 0
        assert np.isnan(found.values["recall.coverage"]).tolist() == [False, True, True, True, True]
        assert (found.counts["unanswerable"], found.counts["without_row"], found.counts["undefined"]) == (3, 1, 1)
    shown = str(found)
    snapshot(shown)


@pytest.mark.parametrize("name", ["qa.parquet", "qa.jsonl"])
def test_declarations_are_kept(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row for row in ROWS if "nonrelevant" not in row]
    kind = name.partition(".")[2]
    main(["convert", str(truth(tmp_path, rows)), str(tmp_path / f"other.{name}"), "--to", kind])
    capsys.readouterr()
    again = groupgt.read_ground_truth(tmp_path / f"other.{name}")
    assert dict(zip(again.qids, again.unanswerable.tolist())) == {"a": False, "b": True, "c": True, "d": False}


def test_declared_without_an_answer_but_with_one(tmp_path: Path, snapshot: Snapshot) -> None:
    rows = [*ROWS, {"qid": "f", "retrieval_gt": [["x"]], "answerable": "false"}]
    with snapshot.raises(groupgt.DataError):
        groupgt.evaluate(truth(tmp_path, rows), SCORES, ["abstains"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"a": ["x", "y"]}, "needs a score for every result, but these results are only ranked"),
        ({"a": [("x", 0.2), ("y", 0.9)]}, "query 'a': a score threshold needs results in order of falling"),
        ({"a": [{"id": "x", "score": 0.9}, {"id": "y"}]}, "needs a score for every result"),
        (
            {"a": [{"id": "x", "score": 0.1, "call": 1}, {"id": "y", "score": 0.9, "call": 2}]},
            "needs results in order of falling score, found 0.1 before 0.9",
        ),
        (
            "rank.csv",
            "rank.csv: a score threshold needs a score for every result, but these results are only ranked",
        ),
    ],
)
def test_results_without_a_threshold(given: Any, expected: str, tmp_path: Path) -> None:
    (tmp_path / "rank.csv").write_text("qid,doc_id,rank\na,x,1\na,y,2\nb,z,1\n", encoding="utf-8")
    source = tmp_path / given if isinstance(given, str) else given
    with pytest.raises(groupgt.DataError) as error:
        groupgt.evaluate(truth(tmp_path), source, ["recall@0.35score"])
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("recall@0.350score", "0.35"),
        ("recall@-2.0score", "-2"),
        ("recall@1e-3score", "0.001"),
        ("recall@+.5score", "0.5"),
    ],
)
def test_thresholds_are_read_as_numbers(text: str, canonical: str) -> None:
    metric = groupgt.parse_metric(text)
    assert str(metric) == f"recall.autorag@{canonical}score"
    assert groupgt.parse_metric(str(metric)) == metric
    for wrong in ("recall@1e999score", "recall@score", "recall@0.35", "recall@-3", "recall@nanscore"):
        with pytest.raises(groupgt.MetricError):
            groupgt.parse_metric(wrong)


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_thresholds_by_trying_every_one(seed: int, digits: int) -> None:
    """With few digits scores tie; each share's threshold is the lowest that leaves so many queries empty."""
    rng = random.Random(seed)
    qids = [f"q{number}" for number in range(12)]
    answerable = {qid: rng.random() < 0.5 for qid in qids} | {"q0": False, "q1": True}
    scores = {qid: {f"{qid}{n}": round(rng.gauss(0, 1), digits) for n in range(rng.randrange(4))} for qid in qids}
    rows = {
        "qid": qids,
        "retrieval_gt": [[[f"{qid}0"], [f"{qid}1", f"{qid}2"]] if answerable[qid] else [] for qid in qids],
        "answerable": [answerable[qid] for qid in qids],
    }
    import polars as pl

    frame = pl.DataFrame(rows, strict=False)
    if not any(scores.values()):
        return
    found = groupgt.thresholds(frame, scores, [0.3, 0.9])
    best = {qid: max(each.values(), default=-math.inf) for qid, each in scores.items()}
    empty = [best[qid] for qid in qids if not answerable[qid]]
    for row in found.thresholds:
        low = -1e300 if row.threshold is None else row.threshold
        kept = {qid: {name for name, score in each.items() if score >= low} for qid, each in scores.items()}
        known = [
            ((f"{qid}0" in kept[qid]) + bool({f"{qid}1", f"{qid}2"} & kept[qid])) / 2 for qid in qids if answerable[qid]
        ]
        assert row.abstains == pytest.approx(sum(score < low for score in empty) / len(empty))
        assert row.recall == pytest.approx(sum(known) / len(known))
        if row.threshold is not None:
            metrics = [f"abstains@{row.threshold!r}score", f"recall.coverage@{row.threshold!r}score"]
            again = groupgt.evaluate(frame, scores, metrics)
            assert list(again.means.values()) == pytest.approx([row.abstains, row.recall])
    for share in (0.3, 0.9):
        needed = math.ceil(share * len(empty) - 1e-9)
        asked = [row for row in found.thresholds if row.asked and row.abstains >= share - 1e-12]
        lowest = min(asked, key=lambda row: -math.inf if row.threshold is None else row.threshold)
        # One score lower, too few queries would stay empty.
        boundary = sorted(empty)[needed - 1]
        assert lowest.threshold is None or boundary < lowest.threshold or lowest.abstains * len(empty) >= needed


def test_a_retriever_with_known_noise(tmp_path: Path) -> None:
    """Scores are normal around 1 for relevant results and around 0 for others: the best threshold is known."""
    rng = random.Random(7)
    qids = [f"q{number}" for number in range(3000)]
    rows = [
        {"qid": qid, "retrieval_gt": [[f"{qid}a"]] if number % 2 else [], "answerable": bool(number % 2)}
        for number, qid in enumerate(qids)
    ]
    scores = {
        qid: {f"{qid}a": rng.gauss(1 if number % 2 else 0, 0.25), f"{qid}b": rng.gauss(0, 0.25)}
        for number, qid in enumerate(qids)
    }
    found = groupgt.thresholds(truth(tmp_path, rows), scores, 0.9)
    (chosen,) = [row for row in found.thresholds if row.asked]
    # Both of two results stay below t with probability Φ(t ÷ .25)²: .9 is reached at Φ = .948683, which is 1.632219
    # standard deviations, t = .408055; then 1 − Φ((t − 1) ÷ .25) = Φ(2.36778) = .991052 of the answerable are covered.
    assert chosen.threshold == pytest.approx(0.408055, abs=0.02)
    assert chosen.recall == pytest.approx(0.991052, abs=0.007)


@pytest.mark.parametrize(
    ("below", "above"), [(0.1, 0.1000001), (-1e-9, 1e-9), (-3.0, -2.9999), (0.0, 5e-324), (1e15, 1e16), (-1.0, 0.0)]
)
def test_the_shortest_number_between(below: float, above: float) -> None:
    assert below < between(below, above) <= above


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    words = [str(truth(tmp_path)), str(run("trec", tmp_path))]
    main(["depth", *words, "--unit", "score", "--share", "0.6,1"])
    shown = capsys.readouterr().out
    snapshot(shown)
    main(["depth", *words, "--unit", "score", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["unanswerable"] == 3
    main(["plot", "thresholds", *words, "--out", str(tmp_path / "thresholds.json")])
    assert "unanswerable empty" in (tmp_path / "thresholds.json").read_text(encoding="utf-8")
    with snapshot.raises(groupgt.ConfigError):
        groupgt.thresholds({"q": [["a"]]}, {"q": {"a": 0.5}})
    with snapshot.raises(groupgt.ConfigError):
        groupgt.depth({"q": [["a"]]}, {"q": {"a": 0.5}}, unit="score")  # type: ignore[arg-type]


def test_in_an_experiment(tmp_path: Path, snapshot: Snapshot) -> None:
    truth(tmp_path)
    run("trec", tmp_path)
    (tmp_path / "e.yaml").write_text(
        "version: 1\nname: e\ndatasets: {one: {ground_truth: qa.jsonl}}\n"
        "systems: {bm25: {use: results, with: {path: run.trec}}}\n"
        "evaluate: {metrics: [recall.coverage@0.35score, abstains@0.35score]}\n"
        "gate: [{system: bm25, metric: abstains@0.35score, min: 0.6}]\n",
        encoding="utf-8",
    )
    outcome = groupgt.run_experiment(tmp_path / "e.yaml")
    assert outcome.passed
    assert outcome.gates[0].value == pytest.approx(2 / 3)
    snapshot(str(outcome))
