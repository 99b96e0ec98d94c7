"""Ids that nearly match are scored as given, with a warning that shows a pair."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import groupgt
from tests.bad_input import Cli, names, put
from tests.snapshots import Snapshot

NEAR = [
    ("case", "Doc-1", "doc-1"),
    ("blank", "d1", " d1"),
    ("trailing blank", "d1 ", "d1"),
    ("NFC and NFD", "caf\u00e9", "cafe\u0301"),
    ("NFD and NFC", "cafe\u0301", "caf\u00e9"),
    ("integer and float", "7", "7.0"),
    ("float and integer", "7.0", "7"),
    ("leading zeros", "7", "007"),
]


@pytest.mark.parametrize(("ours", "theirs"), [each[1:] for each in NEAR], ids=names(NEAR))
@pytest.mark.parametrize("which", ["document", "query"])
def test_nearly_matching_ids(
    which: str, ours: str, theirs: str, cli: Cli, tmp_path: Path, size: str, snapshot: Snapshot
) -> None:
    in_truth, in_run = (("q1", ours), ("q1", theirs)) if which == "document" else ((ours, "d"), (theirs, "d"))
    truth = put(tmp_path / "truth.jsonl", json.dumps({"qid": in_truth[0], "retrieval_gt": [[in_truth[1]]]}))
    run = put(tmp_path / "run.csv", f'qid,doc_id,score\n"{in_run[0]}","{in_run[1]}",1\n')
    found = cli("evaluate", truth, run, "-m", "recall", "--format", "csv")
    assert f"{which} ids nearly match: " in found.err
    if which == "query":
        assert (found.status, found.out) == (2, "")
        snapshot(found.err)
    else:
        assert (found.status, found.out) == (0, "metric,mean,queries\nrecall,0.0,1\n")
        assert "warning" in found.err


def test_nearly_matching_ids_in_the_library(snapshot: Snapshot) -> None:
    with snapshot.warns(groupgt.GroupgtWarning):
        found = groupgt.evaluate({"q": [["A"]]}, {"q": ["a"]}, ["recall"])
    assert found["recall"] == 0


@pytest.mark.parametrize("column", ["harmful_ids", "excluded_ids"])
@pytest.mark.parametrize("theirs", ["H3", "h3 ", "h3.pdf", "h3#0"])
def test_all_ids_that_the_ground_truth_names(column: str, theirs: str) -> None:
    truth = groupgt.GroundTruth.of({"q": [["a"]]}, **{column: {"q": ["h3"]}})
    with pytest.warns(groupgt.GroupgtWarning, match=f"'h3' in the ground truth, '{theirs}' in the results"):
        groupgt.evaluate(truth, {"q": ["a", theirs]}, ["recall"])
    with pytest.warns(groupgt.GroupgtWarning, match="1 ground truth id is not in the corpus"):
        groupgt.evaluate(truth, {"q": ["a"]}, ["recall"], corpus={"a": "text"})
