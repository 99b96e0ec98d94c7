"""`gm_map`: a number of a run, refused wherever values per query are needed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import groupgt
from tests.bad_input import Cli
from tests.peers.test_peers import REASON, data, qrels_of
from tests.snapshots import Snapshot

TRUTH: Any = {"q1": [["a"], ["b"]], "q2": [["c"]], "q3": [["d"]]}
RUN: Any = {"q1": ["a", "x", "b"], "q2": ["x", "c"], "q3": ["x"]}


def test_no_value_per_query() -> None:
    result = groupgt.evaluate(TRUTH, RUN, ["gm_map", "map.trec"])
    assert result.per_query.columns == ["qid", "map.trec"]
    assert list(result.to_dict(per_query=True)["per_query"]) == ["qid", "map.trec"]
    assert "gm_map" not in result.explain("q1")
    assert math.isnan(groupgt.evaluate({"q": []}, {"q": ["a"]}, ["gm_map"])["gm_map"])


def test_refused_where_values_per_query_are_needed(snapshot: Snapshot) -> None:
    asked: list[Any] = [
        lambda: groupgt.compare(TRUTH, {"a": RUN, "b": RUN}, ["gm_map"]),
        lambda: groupgt.evaluate(TRUTH, RUN, ["gm_map"], by="kind"),
        lambda: groupgt.evaluate(TRUTH, RUN, ["gm_map"]).explain("q1", "gm_map"),
        lambda: groupgt.evaluate(TRUTH, RUN, ["gm_map"]).assert_at_least({"gm_map": 0.1}),
    ]
    for ask in asked:
        with snapshot.raises(groupgt.MetricError):
            ask()


@pytest.mark.peers
def test_trec_eval() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason=REASON.format("pytrec_eval"))
    truth, run = data(10, graded=True)
    found = pytrec_eval.RelevanceEvaluator(qrels_of(truth), {"gm_map"}).evaluate(run)
    expected = pytrec_eval.compute_aggregated_measure("gm_map", [each["gm_map"] for each in found.values()])
    result = groupgt.evaluate(truth, run, ["gm_map"], policy="trec")
    assert result["gm_map"] == pytest.approx(expected, abs=1e-9)


def test_a_gate_is_refused(tmp_path: Path, cli: Cli, snapshot: Snapshot) -> None:
    assert cli("init", tmp_path / "new").status == 0
    file = tmp_path / "new" / "experiment.yaml"
    told = cli("run", file, "--dry-run", "--set", "evaluate.metrics=[recall@5, gm_map]")
    assert told.status == 2
    snapshot(told.err)
