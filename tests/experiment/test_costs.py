"""What queries cost: stated by files, by retrievers' replies and by traces, beside latency, with a gate on it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt import read_run
from groupgt.experiment.cache import answers_of, rows_of
from groupgt.model.policy import Policy
from groupgt.report import times
from groupgt.retrievers.base import as_pairs, checked
from groupgt.retrievers.python import ranking_of

RUN = [
    {"qid": "q1", "retrieved_ids": ["a"], "cost": 0.001},
    {"qid": "q2", "retrieved_ids": ["x"], "cost": 0.003},
    {"qid": "q3", "retrieved_ids": ["x"]},
]
FILE = """
version: 1
name: costs
datasets: {d: {ground_truth: truth.jsonl}}
systems:
  stored: {use: results, with: {path: run.jsonl}}
  mine: {use: python, version: v1, with: {target: "searches:search"}}
  other: {use: python, version: v1, with: {target: "searches:free"}}
  both: {use: rrf, inputs: [mine, mine_again]}
  mine_again: {use: python, version: v1, with: {target: "searches:search"}}
evaluate: {metrics: [recall@10]}
gate:
  - {system: stored, metric: cost_p95, max: 0.002}
  - {system: mine, metric: cost_mean, max: 0.0025}
  - {system: other, metric: cost_mean, max: 1}
output: {formats: [json]}
"""
SEARCHES = """
def search(query, k):
    return {"results": {query: 0.5, "x": 0.1}, "cost": 0.004 if query == "q1" else 0.001}

def free(query, k):
    return [query]
"""


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_costs_stand_beside_latency(tmp_path: Path) -> None:
    lines(tmp_path / "truth.jsonl", [{"qid": q, "query": q, "retrieval_gt": [[q]]} for q in ("q1", "q2", "q3")])
    lines(tmp_path / "run.jsonl", RUN)
    (tmp_path / "searches.py").write_text(SEARCHES, encoding="utf-8")
    (tmp_path / "e.yaml").write_text(FILE, encoding="utf-8")
    # stored: (.001 + .003)/2 and .003; mine: (.004 + .001 + .001)/3 and .004; both: twice that.
    expected = {
        "stored": (0.002, 0.003),
        "mine": (0.002, 0.004),
        "other": (None, None),
        "both": (0.004, 0.008),
        "mine_again": (0.002, 0.004),
    }
    # The second run reads its results from the cache.
    for cached in (0, 3):
        outcome = groupgt.run_experiment(tmp_path / "e.yaml", allow_code=True)
        assert outcome.kept.cached == cached
        found = {each.system: (each.cost_mean, each.cost_p95) for each in outcome.timings}
        for system, costs in expected.items():
            assert found[system] == (pytest.approx(costs[0]) if costs[0] else None, costs[1]), system
    results = [(gate.passed, gate.problem, gate.value) for gate in outcome.gates]
    assert results == [(False, None, 0.003), (True, None, pytest.approx(0.002)), (False, "no measurement", None)]
    text = outcome.text()
    assert "cost p95 of stored" in text
    folder = max((tmp_path / "results" / "costs").glob("*/timings.json")).parent
    timings = {each["system"]: each for each in json.loads((folder / "timings.json").read_text())["systems"]}
    assert timings["both"]["costs"] == pytest.approx([0.008, 0.002, 0.002])
    assert timings["other"]["cost_mean"] is None
    assert list(times.columns(outcome))[-2:] == ["mean cost", "p95 cost"]
    assert times.page_rows(outcome, "d")["stored"]["texts"][-2:] == ["0.002", "0.003"]


def test_a_file_states_the_cost_of_each_query_and_trial(tmp_path: Path) -> None:
    assert read_run(lines(tmp_path / "run.jsonl", RUN)).costs == {"q1": 0.001, "q2": 0.003}
    trials = [{**row, "trial": trial, "cost": trial} for row in RUN for trial in (1, 2)]
    assert [run.costs["q3"] for run in read_run(lines(tmp_path / "trials.jsonl", trials)).trials] == [1, 2]
    for cost in (-1, "0.1", True, math.nan):
        path = lines(tmp_path / "bad.jsonl", [{**RUN[0], "cost": cost}])
        with pytest.raises(groupgt.DataError, match=r"bad\.jsonl:1"):
            read_run(path)


def test_spans_state_costs(tmp_path: Path) -> None:
    def span(number: int, **attributes: Any) -> dict[str, Any]:
        cells = [{"key": key.replace("_", "."), "value": {"stringValue": text}} for key, text in attributes.items()]
        times = {"startTimeUnixNano": str(number), "endTimeUnixNano": str(number + 1)}
        return {"traceId": "t", "spanId": str(number), **times, "attributes": cells}

    search = span(1, openinference_span_kind="RETRIEVER", query_id="q1", retrieval_documents_0_document_id="a")
    search["attributes"].append({"key": "gen_ai.usage.cost", "value": {"doubleValue": 0.25}})
    model = span(2, openinference_span_kind="LLM")
    model["attributes"].append({"key": "llm.cost.total", "value": {"doubleValue": 0.5}})
    spans = [{"resourceSpans": [{"scopeSpans": [{"spans": [search, model]}]}]}]
    assert read_run(lines(tmp_path / "spans.jsonl", spans)).costs == {"q1": 0.75}


def test_replies_state_costs() -> None:
    replies = [
        as_pairs({"results": [{"id": "a", "score": 1}], "cost": 2}, "id", "score"),
        ranking_of({"results": {"b": 0.5}, "cost": 0.5}, Policy()),
        ranking_of({"results": 0.5, "c": 0.75}, Policy()),
        [],
    ]
    qids = ["q1", "q2", "q3", "q4"]
    answers = checked("mine", qids, replies, 2)
    assert answers.ids == {"q1": ["a"], "q2": ["b"], "q3": ["c", "results"], "q4": []}
    assert answers.costs == {"q1": 2, "q2": 0.5}
    again = answers_of(qids, json.loads(json.dumps(rows_of(answers))))
    assert (again.ids, again.scores, again.costs) == (answers.ids, answers.scores, answers.costs)
    with pytest.raises(groupgt.GroupgtError, match="query 'q1': expected a number of at least 0 as cost, found 'free'"):
        checked("mine", ["q1"], [{"results": ["a"], "cost": "free"}], 2)
