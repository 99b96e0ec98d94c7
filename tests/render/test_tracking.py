"""Flat names for trackers: valid everywhere, and no two of them the same."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.cli.main import main
from groupgt.report.tracking import name_of, tracked
from tests.agreement import all_metrics, at
from tests.conftest import Cli
from tests.snapshots import Snapshot

TRUTH = {"q1": [["a", "b"], ["c"]], "q2": [["d"]]}
RUNS = {"bm25": {"q1": ["a"], "q2": ["d"]}, "dense: large": {"q1": ["a", "c"], "q2": ["x"]}}
# What MLflow allows in a key; W&B and DVC allow more.
ALLOWED = re.compile(r"[A-Za-z0-9_.\-/ ]+")


def test_every_metric_has_a_name_of_its_own() -> None:
    texts = [str(at(metric, k)) for metric in all_metrics() for k in (None, 5)]
    names = {name_of(text) for text in texts}
    assert len(names) == len(set(texts))
    assert all(ALLOWED.fullmatch(name) for name in names)
    assert [name_of(text) for text in ("rbp(p=0.95)@20", "dense: large")] == ["rbp/p_0.95/at_20", "dense--large"]
    assert tracked([(["bm25"], {"recall@5": 0.5, "mrr": math.nan})]) == {"bm25/recall/at_5": 0.5}


@pytest.mark.property
@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6, unique=True))
def test_names_are_valid_or_refused(texts: list[str]) -> None:
    means = [([text], {"recall": 0.5}) for text in texts]
    try:
        names = tracked(means)
    except groupgt.ConfigError:
        assert len({name_of(text) for text in texts}) < len(texts)
        return
    assert len(names) == len(texts)
    assert all(ALLOWED.fullmatch(name) for name in names)


def test_results_as_metrics(snapshot: Snapshot) -> None:
    metrics = ["recall@5", "mrr", "abstains"]
    one = groupgt.evaluate(TRUTH, RUNS["bm25"], metrics)
    assert one.to_metrics() == {"recall/at_5": 0.75, "mrr": one["mrr"]}  # no query is declared unanswerable
    runs = groupgt.evaluate_runs(TRUTH, RUNS, ["recall@5"])
    assert runs.to_metrics() == {"bm25/recall/at_5": 0.75, "dense--large/recall/at_5": 0.5}
    assert groupgt.compare(TRUTH, RUNS, ["recall@5"], resamples=9).to_metrics() == runs.to_metrics()
    clash = {"a b": RUNS["bm25"], "a-b": RUNS["bm25"]}
    with snapshot.raises(groupgt.ConfigError):
        groupgt.evaluate_runs(TRUTH, clash, ["recall"]).to_metrics()


@pytest.mark.parametrize("names", [["one"], ["one", "two"]])
def test_the_command(names: list[str], tmp_path: Path) -> None:
    rows = ({"qid": qid, "retrieval_gt": groups} for qid, groups in TRUTH.items())
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    results = ({"qid": qid, "retrieved_ids": ids} for qid, ids in RUNS["bm25"].items())
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in results), encoding="utf-8")
    datasets = "".join(f"  {name}: {{ground_truth: qa.jsonl}}\n" for name in names)
    (tmp_path / "e.yaml").write_text(
        f"version: 1\nname: e\ndatasets:\n{datasets}systems: {{bm25: {{use: results, with: {{path: run.jsonl}}}}}}\n"
        "evaluate: {metrics: [recall@5]}\n",
        encoding="utf-8",
    )
    main(["run", str(tmp_path / "e.yaml"), "-o", str(tmp_path / "out"), "--metrics-json", str(tmp_path / "m.json")])
    written = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    before = ["", ""] if len(names) == 1 else ["one/", "two/"]
    assert written == {f"{prefix}bm25/recall/at_5": 0.75 for prefix in before}


def test_a_dry_run_refuses_names_that_clash(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "qa.jsonl").write_text('{"qid": "q", "retrieval_gt": [["a"]]}\n', encoding="utf-8")
    (tmp_path / "run.jsonl").write_text('{"qid": "q", "retrieved_ids": ["a"]}\n', encoding="utf-8")
    system = {"use": "results", "with": {"path": "run.jsonl"}}
    experiment = {
        **{"version": 1, "name": "e", "datasets": {"d": {"ground_truth": "qa.jsonl"}}},
        **{"systems": {"a b": system, "a-b": system}, "evaluate": {"metrics": ["recall@1"]}},
    }
    (tmp_path / "e.yaml").write_text(json.dumps(experiment), encoding="utf-8")
    asked = ["run", str(tmp_path / "e.yaml"), "--dry-run"]
    assert cli(*asked).status == 0
    refused = cli(*asked, "--metrics-json", str(tmp_path / "m.json"))
    assert refused.status == 2
    assert "a-b/recall/at_1" in refused.err
