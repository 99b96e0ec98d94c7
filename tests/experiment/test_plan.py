"""`groupgt run --dry-run`: what would be done, and what of it is done already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import groupgt
from groupgt.experiment.plan import plan
from groupgt.report.run import run_experiment
from groupgt.retrievers.bm25 import BM25
from tests.conftest import Cli
from tests.retrievers.small import small
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow


def test_the_plan_says_what_is_kept(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row[-1] for row in plan(sweep)[1]] == ["retrieve"] * 4 + ["combine"] * 2
    run_experiment(sweep, only=["bm25[k1=0.9*"])
    monkeypatch.setattr(BM25, "retrieve", None)
    assert [row[-1] for row in plan(sweep)[1]] == ["cached"] * 2 + ["retrieve"] * 2 + ["combine"] * 2


def test_the_plan_retrieves_nothing(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BM25, "retrieve", None)
    headers, rows, *_ = plan(experiment)
    assert headers[0] == "dataset"
    assert [row[1] for row in rows] == ["plain", "shallow"]
    assert rows[0][3:] == [60, 188, 6, 2 + 30, "retrieve"]


LISTED = "def search(queries, k):\n    return [['d1'] for _ in queries]\n"


def test_the_plan_refuses_what_a_run_would(tmp_path: Path, snapshot: Snapshot) -> None:
    """A latency gate on a function of lists: only the function tells that no query is asked alone."""
    file = small(tmp_path, 'mine: {use: python, with: {target: "mine:search"}}')
    (tmp_path / "mine.py").write_text(LISTED)
    changes = ["gate=[{system: mine, metric: latency_p95_ms, max: 1}]"]
    for refusing in (plan, run_experiment):
        with snapshot.raises(groupgt.GroupgtError):
            refusing(file, changes=changes, allow_code=True)
    snapshot(plan(file, changes=changes).unchecked)


def test_the_plan_asks_about_joined_ids_as_a_run_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The corpus knows d1 and d2, so `d1,d2` is two ids, which no retriever can return as one."""
    file = small(tmp_path, "words: {use: bm25}")
    monkeypatch.setattr(BM25, "retrieve", None)
    (tmp_path / "truth.jsonl").write_text('{"qid": "q1", "query": "x", "retrieval_gt": "d1,d2"}\n')
    for refusing in (plan, run_experiment):
        with pytest.raises(groupgt.DataError, match=r"although 'd1' is; .*retrieval_gt\[,\]"):
            refusing(file)


def test_a_plan_says_once_where_a_fault_is(tmp_path: Path) -> None:
    file = small(tmp_path, "mine: {use: results, with: {path: mine.csv}}")
    (tmp_path / "mine.csv").write_text("question_id,page,position\nq1,d1,1\n")
    for refusing in (plan, run_experiment):
        with pytest.raises(groupgt.GroupgtError) as error:
            refusing(file)
        (told,) = error.value.faults
        assert (told.count("dataset 'set'"), told.count("system 'mine'")) == (1, 1)


def test_without_code_all_else_is_checked_and_what_is_not_is_said(tmp_path: Path, snapshot: Snapshot) -> None:
    file = small(tmp_path, 'mine: {use: python, with: {target: "mine:search"}}')
    (tmp_path / "mine.py").write_text("open('ran', 'w').close()\n" + LISTED)
    (tmp_path / "judging.py").write_text("open('ran', 'w').close()\n\ndef judge(pairs):\n    return pairs\n")
    text = file.read_text()
    judge = 'labeller: {use: code, with: {target: "judging:judge"}}, tokenizer: "python:judging:judge"'
    file.write_text(text.replace("metrics: [recall]", f"metrics: [recall, recall@9tokens], {judge}"))
    found = plan(file)
    assert [what.partition(": ")[0] for what in found.unchecked] == [
        "systems.mine.use",
        "evaluate.labeller.use",
        "evaluate.tokenizer",
    ]
    assert [row[:2] for row in found.rows] == [["set", "mine"], ["set", "(labeller)"]]
    assert not (tmp_path / "ran").exists()
    with snapshot.raises(groupgt.ConfigError):
        plan(file, changes=['systems.mine.with.target="mine:serach"'])
    with pytest.raises(groupgt.ConfigError) as error:
        run_experiment(file)
    assert str(error.value).count("allow it with --allow-code") == 3


def test_whether_a_function_is_asked_singly_is_refused_only_where_it_is_known(
    tmp_path: Path, snapshot: Snapshot
) -> None:
    (tmp_path / "mine.py").write_text(
        "def single(query, k):\n    return ['d1']\n\n\n"
        "def batched(queries, k):\n    return [['d1'] for _ in queries]\n\n\n"
        "def factory(corpus):\n    return single\n"
    )
    for name in ("single", "factory", "batched"):
        file = small(tmp_path, f'mine: {{use: python, with: {{target: "mine:{name}"}}}}')
        file.write_text(file.read_text() + "gate: [{system: mine, metric: latency_p95_ms, max: 60000}]\n")
        snapshot(plan(file).unchecked)
        if name == "batched":
            for run, kind in ((plan, groupgt.ConfigError), (run_experiment, groupgt.RetrieverError)):
                with snapshot.raises(kind):
                    run(file, allow_code=True)
        else:
            assert plan(file, allow_code=True).unchecked == []
            assert run_experiment(file, allow_code=True).gates[0].passed


COUNTED = """
version: 1
name: counted
datasets: {own: {ground_truth: truth.jsonl}}
systems:
  agent: {use: python, with: {target: "calls:search"}, trials: 3}
  other: {OTHER}
evaluate: {metrics: [recall@1, "complete(pass_at=2)@1"], depth: 1, timed: 0}
output: {folder: out}
cache: null
"""


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            'use: python, with: {target: "calls:search"}',
            "systems.other: metric 'complete.autorag(pass_at=2)@1': expected",
        ),
        ("use: results, with: {path: one.jsonl}", "system 'other': metric 'complete.autorag(pass_at=2)@1': expected"),
        ("use: results, with: {path: none.jsonl}", "returned no results for any of 2 queries"),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_what_a_run_refuses_is_refused_before_anything_is_called(
    other: str, words: str, dry: bool, tmp_path: Path, cli: Cli
) -> None:
    called = tmp_path / "called.txt"
    (tmp_path / "calls.py").write_text(
        "from pathlib import Path\n"
        f"def search(query, k):\n    Path({str(called)!r}).write_text(query)\n    return [query]\n"
    )
    rows = [{"qid": qid, "query": qid, "retrieval_gt": [[qid]]} for qid in "ab"]
    (tmp_path / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "one.jsonl").write_text('{"qid": "a", "retrieved_ids": ["a"]}\n')
    (tmp_path / "none.jsonl").write_text('{"qid": "a", "retrieved_ids": []}\n')
    text = COUNTED.replace("OTHER", other)
    text = text.replace(', "complete(pass_at=2)@1"', "") if "none" in other else text
    (tmp_path / "counted.yaml").write_text(text)
    told = cli("run", tmp_path / "counted.yaml", "--allow-code", *(["--dry-run"] if dry else []))
    assert told.status == 2
    assert words in told.err
    if "none" not in other:
        assert not called.exists()
