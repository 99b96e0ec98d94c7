"""What a format cannot hold is refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

import groupgt
from groupgt.formats import write


@pytest.mark.parametrize("qid", ["q", "#q", "q 1"])
@pytest.mark.parametrize("document", ["a", "a b", " a", "a "])
def test_trec_runs_hold_words_alone(qid: str, document: str, tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    rankings = [(qid, [document], [1.0])]
    if " " not in qid + document:
        write.write_run(path, rankings, "trec", scored=True, tag="t")
        assert groupgt.read_run(path, "trec").rankings == {qid: ["a"]}
        return
    with pytest.raises(groupgt.DataError):
        write.write_run(path, rankings, "trec", scored=True, tag="t")
    assert not path.exists()


@pytest.mark.parametrize("format", ["trec", "trec-subtopics", "qrels-flat"])
@pytest.mark.parametrize(("qid", "document"), [("#q", "a"), ("q 1", "a"), ("q", "a b"), ("q", " a")])
def test_qrels_hold_words_alone_and_no_comments(format: str, qid: str, document: str, tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    with pytest.raises(groupgt.DataError):
        write.write_ground_truth(path, groupgt.GroundTruth.of({qid: [[document]]}), format)
    assert not path.exists()
