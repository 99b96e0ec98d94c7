"""Files of other tools are read as they were meant, or asked about, and no message advises what would be wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.formats.roles import hint
from tests.bad_input import Cli, fails, put

RUN = [{"qid": "q1", "retrieved_ids": ["a", "x"]}, {"qid": "q2", "retrieved_ids": ["c", "y"]}]


def lines(path: Path, *rows: Mapping[str, Any]) -> Path:
    return put(path, "".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.mark.parametrize(
    ("record", "missing", "advised"),
    [
        ({"gt_answer": "Use the dump.", "gt_evidence": ["a.md"]}, "retrieval_gt", "gt_evidence"),
        ({"gold_text": "a", "gold_title": "b", "expected_output": "c", "expected_type": "d"}, "retrieval_gt", None),
        ({"expected_abstention": True, "gt_is_multihop": 1, "gold": 0.5}, "retrieval_gt", None),
        ({"gold_facts": ["The mill was built in 1903."]}, "retrieval_gt", None),
        ({"evidence": ["a"], "Retrieval GT": ["b"]}, "retrieval_gt", "Retrieval GT"),
        ({"passage": "The mill was built in 1903.", "Doc ID": 7}, "doc_id", "Doc ID"),
        ({"title": "Mills", "source": "a.md"}, "doc_id", "source"),
        ({"passage": ["a", "b"]}, "doc_id", None),
        ({"value": True, "confidence": "0.5"}, "score", "confidence"),
        ({"value": "high"}, "grade", None),
    ],
)
def test_advice_about_columns_names_none_that_cannot_be_meant(
    record: dict[str, Any], missing: str, advised: str | None
) -> None:
    words = hint(record, [missing], "run" if missing == "score" else "truth")
    assert (f"rename {advised} to {missing}" in words) if advised else ("rename" not in words and "called" not in words)


def test_contexts_of_a_run_are_told_as_results(tmp_path: Path, cli: Cli) -> None:
    truth = put(tmp_path / "q.txt", "q1 0 d1 1\n")
    run = lines(tmp_path / "r.jsonl", {"task_id": "q1", "contexts": [{"document_id": "d1", "score": 2.0}]})
    told = cli("evaluate", truth, run, "-m", "recall@5")
    fails(told, "rename task_id to qid", "contexts holds objects, not ids: list the document_id of each")
    assert "ground truth" not in told.err


@pytest.mark.parametrize(
    "judgment",
    [{"corpus_item_id": "a", "grade": 3}, {"doc_uri": "a"}, {"document_id": "a", "query_relevance_label": 4}],
)
def test_a_judgment_of_another_tool_says_how_its_id_is_written(judgment: dict[str, Any]) -> None:
    for groups in ([judgment], [[judgment]]):
        with pytest.raises(groupgt.DataError, match=f'if {next(iter(judgment))} holds the id, write {{"id": …'):
            groupgt.GroundTruth.of({"q": groups})
    with pytest.raises(groupgt.DataError, match="put it into a group"):
        groupgt.GroundTruth.of({"q": [{"id": "a", "grade": 1}]})


def test_trials_have_one_name(tmp_path: Path, cli: Cli) -> None:
    truth = put(tmp_path / "q.txt", "q1 0 a 1\n")
    one, two = (lines(tmp_path / name, RUN[0]) for name in ("a.jsonl", "b.jsonl"))
    fails(cli("evaluate", truth, one, two, "--trials", "-m", "recall"), "--trials: the names of the runs differ (a, b)")
    assert cli("evaluate", truth, f"s={one}", f"s={two}", "--trials", "-m", "recall").status == 0
