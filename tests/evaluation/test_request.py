"""One request, resolved once, serves every run and gives what the keyword functions give."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.evaluation.depth import METRIC, depths_of
from groupgt.evaluation.evaluate import evaluate_each, evaluate_run
from groupgt.evaluation.request import Request
from groupgt.formats import corpus as module
from groupgt.metrics.language import metrics_in
from tests.snapshots import Snapshot

TRUTH = {"q1": [["a", "b"], ["c"]], "q2": [["d"]]}
RUNS = {"first": {"q1": ["a", "x", "c"], "q2": ["d"]}, "second": {"q1": ["x", "b"], "q2": ["x", "d"]}}


def test_it_gives_what_evaluate_gives() -> None:
    asked: dict[str, Any] = {"convention": "coverage", "k": [1, 3], "by": "n_groups", "policy": "trec"}
    request = Request.of(["ndcg", "recall"], **asked)
    truth = request.truth_of(TRUTH)
    for found, (name, run) in zip(evaluate_each(request, truth, RUNS.items()), RUNS.items(), strict=True):
        alone = groupgt.evaluate(TRUTH, run, ["ndcg", "recall"], name=name, **asked)
        assert found.name == alone.name == name
        assert str(found) == str(alone)
        assert found.to_dict(per_query=True) == alone.to_dict(per_query=True)


def test_a_corpus_is_read_once_for_all_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(f'{{"doc_id": "{name}", "contents": "{name * 4}"}}\n' for name in "abcdx"))
    read: list[Path] = []
    reader = module.read_corpus
    monkeypatch.setattr(module, "read_corpus", lambda where: (read.append(where), reader(where))[1])
    request = Request.of(["recall@8chars"], corpus=path)
    found = evaluate_each(request, request.truth_of(TRUTH), RUNS.items())
    assert [each["recall@8chars"] for each in found] == [0.75, 0.75]
    assert read == [path]


def test_what_is_wrong_is_said_before_anything_is_read() -> None:
    for wrong in ({"metrics": "recal"}, {"policy": "autorga"}, {"engine": "sprak"}, {"labeller": "ids"}):
        with pytest.raises(groupgt.GroupgtError, match="did you mean"):
            Request.of(**{"metrics": "mrr", **wrong})  # type: ignore[arg-type]  # mistakes to be named
    with pytest.raises(groupgt.ConfigError, match="duplicates=keep"):
        Request.of("mrr.coverage", policy={"duplicates": "keep"})


def test_parameters_are_those_of_the_convention_that_the_ground_truth_decides(
    tmp_path: Path, snapshot: Snapshot
) -> None:
    """b has grade 1 and comes before a, of grade 3: (1/log2 2 + 7/log2 3)/(7/log2 2 + 1/log2 3) = 0.7098."""
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.trec"
    qrels.write_text("q 0 a 3\nq 0 b 1\n")
    run.write_text("q Q0 b 1 2 t\nq Q0 a 2 1 t\n")
    gain = (1 + 7 / math.log2(3)) / (7 + 1 / math.log2(3))
    assert groupgt.evaluate(qrels, run, ["ndcg(gain=exp)@3", "map"])["ndcg(gain=exp)@3"] == pytest.approx(gain)
    assert groupgt.score({"a": 3, "b": 1}, ["b", "a"], ["ndcg(gain=exp)"]) == {"ndcg(gain=exp)": pytest.approx(gain)}
    main(["evaluate", str(qrels), str(run), "-m", "ndcg(gain=exp)@3"])
    # Groups are evaluated under autorag, whose ndcg knows no grades.
    with snapshot.raises(groupgt.MetricError):
        groupgt.evaluate({"q": [["a"], ["b"]]}, run, ["ndcg(gain=exp)@3"])


def test_two_runs_of_one_name(snapshot: Snapshot) -> None:
    first, second = (groupgt.Run.of(run, "first") for run in RUNS.values())
    with snapshot.raises(groupgt.DataError):
        groupgt.evaluate_runs(TRUTH, [first, second], ["mrr"])


def test_depth_of_what_is_evaluated_already() -> None:
    request = Request.of(METRIC, by="n_groups")
    truth = request.truth_of(TRUTH)
    evaluation = evaluate_run(request, truth, RUNS["first"])
    found = depths_of([evaluation], [0.5, 1.0], unit="results", confidence=0.9, lengths=request.lengths)
    assert found == groupgt.depth(TRUTH, RUNS["first"], [0.5, 1.0], by="n_groups", confidence=0.9)


def test_several_conventions() -> None:
    metrics = metrics_in(["mrr", "rbp", "ndcg@all"], ["autorag", "trec"], [3])
    assert [str(metric) for metric in metrics] == [
        "mrr.autorag@3", "rbp@3", "ndcg.autorag", "mrr.trec@3", "ndcg.trec"
    ]  # fmt: skip


def test_the_engine_is_chosen_in_depth_and_agree_too(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("q1 Q0 a 1 2 t\nq1 Q0 c 2 1 t\nq2 Q0 d 1 1 t\n")
    streaming = {"use": "streaming", "with": {"memory": "64GB"}}
    assert groupgt.depth(TRUTH, path, engine=streaming) == groupgt.depth(TRUTH, path)
    other = {"q1": [["a"]], "q2": [["x"]]}
    assert groupgt.agree(TRUTH, path, other_truth=other, engine=streaming) == groupgt.agree(
        TRUTH, path, other_truth=other
    )
    for ask in (groupgt.depth, groupgt.agree):
        with pytest.raises(groupgt.ConfigError, match="did you mean 'spark'"):
            ask(TRUTH, path, engine="sprak")
