"""Experiment files: every fault at once, each with its place, what was expected and what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

import groupgt
from groupgt.experiment.experiment import load

GOOD = """\
version: 1
groupgt: ">=0.1"
name: trial
convention: coverage
datasets:
  mine: {corpus: corpus.jsonl, ground_truth: questions.jsonl}
systems:
  bm25: {use: bm25, with: {k1: 0.9}}
  stored: {use: results, with: {path: "run.trec"}}
evaluate:
  k: [1, 3]
  metrics: [recall, ndcg]
  primary: ndcg@3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "a", "contents": "ferry times"}\n')
    (tmp_path / "questions.jsonl").write_text('{"qid": "1", "query": "ferry?", "retrieval_gt": [["a"]]}\n')
    (tmp_path / "run.trec").write_text("1 Q0 a 1 1 t\n")
    return tmp_path


def loaded(folder: Path, text: str) -> str:
    """The faults of a file, or nothing."""
    file = folder / "e.yaml"
    file.write_text(text)
    try:
        load(file)
    except groupgt.ConfigError as error:
        return str(error)
    return ""


def test_a_good_file(folder: Path) -> None:
    assert loaded(folder, GOOD) == ""


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("version: 1", "version: 2", "1:10", "version: expected 1, found 2"),
        ("version: 1\n", "", "1:1", "version: this key is needed"),
        ("version: 1", "version: one", "1:10", "expected a whole number, found 'one'"),
        ('">=0.1"', '">=99"', "2:10", "the file needs >=99"),
        ('">=0.1"', '"==0.1"', "2:10", "expected a least version"),
        ("name: trial", "name: [a]", "3:7", "name: expected text, found a list"),
        ("name: trial", "name: ../x", "3:7", "expected a name of letters"),
        ("name: trial", "nam: trial", "3:1", "did you mean 'name'"),
        ("coverage", "coverge", "4:13", "did you mean 'coverage'"),
        ("corpus.jsonl", "corpse.jsonl", "6:18", "there is no such file"),
        ("{corpus: corpus.jsonl, ground", "{ground", "8:9", "has none"),
        ("ground_truth: questions.jsonl", "ground_truth: 5", "6:46", "expected text, found 5"),
        ("use: bm25", "use: bm52", "8:15", "did you mean 'bm25'"),
        ("{use: bm25, with: {k1: 0.9}}", "bm25", "", ""),
        ("{use: bm25, with: {k1: 0.9}}", "5", "8:9", "expected a mapping, found 5"),
        ("k1: 0.9", "k: 0.9", "8:28", "known are k1, b, variant"),
        ("k1: 0.9", "k1: '0.9'", "8:32", "expected a number, found '0.9'"),
        ("k1: 0.9", "b: 2", "8:31", "from 0 to 1, found 2"),
        ("k1: 0.9", "variant: okapi", "8:37", "expected lucene"),
        ("k1: 0.9", "stopwords: klingon", "8:39", "expected none"),
        ('path: "run.trec"', 'path: "nun.trec"', "9:39", "there is no such file"),
        ('path: "run.trec"', "", "9:32", "path: this key is needed"),
        ("k: [1, 3]", "k: [0, 3]", "11:7", "at least 1, found 0"),
        ("k: [1, 3]", "k: [1.5]", "11:7", "expected a whole number, found 1.5"),
        ("k: [1, 3]", "k: 3", "", ""),
        ("[recall, ndcg]", "[recal, ndcg]", "12:13", "did you mean 'recall'"),
        ("[recall, ndcg]", "[]", "12:12", "at least one"),
        ("primary: ndcg@3", "primary: ndcg@5", "13:12", "expected one of the metrics"),
        ("primary: ndcg@3", "primary: ndcg@0", "13:12", "at least 1"),
        ("primary: ndcg@3", "policy: {missing: skp}", "13:", "did you mean 'skip'"),
        ("primary: ndcg@3", "policy: trec", "", ""),
        ("primary: ndcg@3", "labeller: ids", "13:13", "did you mean 'id'"),
        ("primary: ndcg@3", "depth: -1", "13:10", "at least 1"),
        ("primary: ndcg@3", "depht: 5", "13:3", "did you mean 'depth'"),
        ("evaluate:", "output: {formats: [tabel]}\nevaluate:", "10:20", "did you mean 'table'"),
        ("evaluate:", "seed: x\nevaluate:", "10:7", "expected a whole number"),
        ("systems:\n", "systems: {}\nx:\n", "7:10", "systems: expected at least one"),
    ],
)
def test_faults_have_places(folder: Path, old: str, new: str, place: str, words: str) -> None:
    assert old in GOOD
    told = loaded(folder, GOOD.replace(old, new, 1))
    if not place:
        assert told == ""
        return
    assert f"e.yaml:{place}" in told
    assert words in told


def test_all_faults_of_a_file_in_one_go(folder: Path) -> None:
    text = GOOD.replace("coverage", "coverge").replace("use: bm25", "use: bm52").replace("k: [1, 3]", "k: [0, 3]")
    text = text.replace("recall, ndcg", "recal, ndcg").replace("primary:", "primry:") + "extra: 1\nname: again\n"
    told = loaded(folder, text)
    for words in ("coverge", "bm52", "found 0", "recal", "primry", "extra", "stands twice"):
        assert words in told, words
    assert len(told.splitlines()) == 7


def test_only_restricts_systems_to_data_sets(folder: Path) -> None:
    text = GOOD.replace("with: {k1: 0.9}}", "only: [yours]}")
    assert "expected mine, found 'yours'" in loaded(folder, text)
