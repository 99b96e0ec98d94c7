"""Faults of `datasets`: files, scripts that make them, and what only the data shows."""

from __future__ import annotations

from pathlib import Path

import pytest

import groupgt
from groupgt.report.run import run_experiment
from tests.experiment.faulty_files import (
    Fault,
    check_one,
)
from tests.snapshots import Snapshot

FAULTS: list[Fault] = [
    # Of data sets.
    (
        "a missing corpus",
        [("corpus: corpus", "corpus: corpse")],
        "8:13",
        "datasets.mine.corpus",
        "file not found: FOLDER/corpse.jsonl",
    ),
    # What only the data shows.
    (
        "no such column",
        [("{type: [", "{tpe: [")],
        "10:13",
        "datasets.mine.where.tpe",
        "type, year), found 'tpe'",
    ),
    (
        "no question left",
        [("[single, multi]", "[double]")],
        "10:13",
        "datasets.mine.where.type",
        "has the value 'double'",
    ),
    ("where of nothing", [("[single, multi]", "~")], "10:19", "datasets.mine.where.type", "a list, found nothing"),
    ("where as a list", [("{type: [single, multi]}", "[type]")], "10:12", "datasets.mine.where", "found a list"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_one_fault_is_one_line_at_its_place(folder: Path, fault: Fault) -> None:
    check_one(folder, fault)


def searched(folder: Path, queries: str, judged: str = "301 0 d1 1\n302 0 d2 1\n") -> Path:
    """An experiment of qrels, a corpus, and questions in a file of their own."""
    (folder / "qrels").write_text(judged)
    (folder / "topics").write_text(queries)
    (folder / "corpus.jsonl").write_text(
        '{"doc_id": "d1", "contents": "crime"}\n{"doc_id": "d2", "contents": "polio"}\n'
    )
    (folder / "e.yaml").write_text(
        "version: 1\nname: topics\ndatasets: {own: {ground_truth: qrels, queries: topics, corpus: corpus.jsonl}}\n"
        "systems: {bm25: {use: bm25}}\nevaluate: {metrics: [mrr], k: [1]}\noutput: {folder: out}\n"
    )
    return folder / "e.yaml"


def test_questions_in_a_file_of_their_own(tmp_path: Path) -> None:
    topics = (
        "<top>\n<num> Number: 301\n<title> organized crime\n</top>\n<top>\n<num> Number: 302\n<title> polio\n</top>\n"
    )
    file = searched(tmp_path, topics)
    outcome = run_experiment(file)
    assert outcome.evaluations["own"]["bm25"].means == {"mrr.trec@1": 1.0}
    assert outcome.truths["own"].texts == ["organized crime", "polio"]
    assert "topics" in outcome.digests
    assert run_experiment(file).cached == 1
    (tmp_path / "topics").write_text(topics.replace("polio", "crime"))
    changed = run_experiment(file)
    assert (changed.retrieved, changed.evaluations["own"]["bm25"].means) == (1, {"mrr.trec@1": 0.5})


def test_questions_that_are_not_those_of_the_ground_truth(tmp_path: Path, snapshot: Snapshot) -> None:
    with snapshot.raises(groupgt.DataError):
        run_experiment(searched(tmp_path, "7\tcrime\n"))
    with snapshot.raises(groupgt.ConfigError):
        run_experiment(searched(tmp_path, "301\tcrime\n"))
    file = searched(tmp_path, "301\tcrime\n")
    file.write_text(file.read_text().replace("queries: topics, ", ""))
    with snapshot.raises(groupgt.ConfigError):
        run_experiment(file)
    file.write_text(file.read_text().replace("corpus:", "queries: topic, corpus:"))
    with snapshot.raises(groupgt.ConfigError):
        run_experiment(file)
