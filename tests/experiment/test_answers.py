"""What comes of systems' answers: kept part by part, warned of, passed over, written so that others read the same."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.report.run import run_experiment
from tests.snapshots import Snapshot

SEARCH = """\
import os
import signal
from pathlib import Path

LOG = Path(__file__).with_name("asked.txt")
STOP = Path(__file__).with_name("stop")
asked = 0


def search(queries, k):
    global asked
    if STOP.exists() and asked >= 64:
        STOP.unlink()
        if WAY == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise KeyboardInterrupt
    asked += len(queries)
    with LOG.open("a") as file:
        file.write("".join(f"{len(query)} " for query in queries))
    return [[f"d{number}" for number in range(len(query) % 5, 10)] for query in queries]


def strangers(queries, k):
    return [["doc_1.txt", "doc_2.txt"] for query in queries]


def some(queries, k):
    return [["d1", "doc_2.txt"][len(query) % 2 :] for query in queries]


def fails(queries, k):
    raise RuntimeError("no such luck")
"""
FILE = """\
version: 1
name: trial
convention: coverage
datasets:
  mine: {corpus: corpus.jsonl, ground_truth: questions.jsonl}
systems:
  own: {use: python, with: {target: "own_answers:search"}}
  bm25: bm25
evaluate:
  depth: 10
  k: [5]
  metrics: [recall]
  timed: 0
output: {folder: out}
cache: cache
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    corpus = [{"doc_id": f"d{number}", "contents": f"word{number} text"} for number in range(20)]
    rows = [
        {
            "qid": f"q{number}",
            "query": "x" * (number % 7 + 1) + f" word{number % 20}",
            "retrieval_gt": [[f"d{number % 20}"]],
        }
        for number in range(100)
    ]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "own_answers.py").write_text(SEARCH)
    path = tmp_path / "e.yaml"
    path.write_text(FILE)
    return path


def asked(file: Path) -> int:
    return len(file.with_name("asked.txt").read_text().split())


@pytest.mark.faults
@pytest.mark.parametrize("way", ["stopped", "killed"])
def test_a_part_of_a_system_is_kept(file: Path, way: str) -> None:
    code = file.with_name("own_answers.py")
    code.write_text(f"WAY = {way!r}\n{code.read_text()}")
    whole = run_experiment(file, allow_code=True, output=file.parent / "whole", changes=["cache=null"])
    file.with_name("asked.txt").unlink()
    file.with_name("stop").touch()
    with pytest.raises(groupgt.RetrieverError, match="SIGKILL" if way == "killed" else "KeyboardInterrupt"):
        run_experiment(file, allow_code=True)
    assert asked(file) == 64
    again = run_experiment(file, allow_code=True, resume=True)
    assert asked(file) == 100
    assert again.evaluations["mine"]["own"].means == whole.evaluations["mine"]["own"].means
    assert again.answers["mine", "own"].ids == whole.answers["mine", "own"].ids
    assert len(list((file.parent / "cache").glob("??/*"))) == 2  # the part is gone
    assert run_experiment(file, allow_code=True).retrieved == 1
    assert asked(file) == 200  # a finished run is asked again


@pytest.mark.slow
def test_ids_of_which_the_corpus_knows_none(file: Path, snapshot: Snapshot) -> None:
    target = 'systems.own.with.target="own_answers:strangers"'
    with snapshot.raises(groupgt.RetrieverError):
        run_experiment(file, allow_code=True, changes=[target])
    outcome = run_experiment(file, allow_code=True, changes=[target, "systems.own.on_error=skip"])
    assert set(outcome.evaluations["mine"]) == {"bm25"}
    assert "none of the ids it returns (2) is in" in outcome.failed["mine"]["own"]


@pytest.mark.slow
def test_ids_of_which_the_corpus_knows_some(file: Path, snapshot: Snapshot) -> None:
    with snapshot.warns(groupgt.GroupgtWarning):
        run_experiment(file, allow_code=True, changes=['systems.own.with.target="own_answers:some"'])


def test_stored_ids_of_which_the_corpus_knows_none(file: Path, snapshot: Snapshot) -> None:
    file.with_name("run.trec").write_text("q1 Q0 D_d1 1 1 t\n")
    with snapshot.raises(groupgt.GroupgtError):
        run_experiment(file, changes=["systems.own={use: results, with: {path: run.trec}}"])


def test_a_small_corpus_is_no_cap(file: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_experiment(file, changes=["evaluate.depth=50"], only=["bm25"], allow_code=True)


@pytest.mark.slow
def test_a_fusion_is_passed_over_with_its_input(file: Path) -> None:
    changes = [
        'systems.own={use: python, with: {target: "own_answers:fails"}, on_error: skip}',
        "systems.both={use: rrf, inputs: [bm25, own]}",
    ]
    outcome = run_experiment(file, allow_code=True, changes=changes)
    assert set(outcome.evaluations["mine"]) == {"bm25"}
    assert "its input 'own' failed" in outcome.failed["mine"]["both"]
    assert "no such luck" in outcome.failed["mine"]["both"]
    with pytest.raises(groupgt.RetrieverError, match="no such luck"):
        run_experiment(file, allow_code=True, changes=[changes[0].replace("skip", "fail")], only=["own"])


def test_what_has_no_effect_is_said(file: Path) -> None:
    with pytest.warns(groupgt.GroupgtWarning, match="fewer than the cutoff of recall@20"):
        run_experiment(file, allow_code=True, changes=["evaluate.k=[5, 20]"], only=["bm25"])


@pytest.mark.slow
def test_the_cache_of_a_file_is_what_a_run_of_it_would_use(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_experiment(file, only=["bm25"], allow_code=True)
    run_experiment(file, only=["bm25"], allow_code=True, changes=["name=other", "evaluate.depth=5"])
    main(["cache", str(file), "--clear"])
    assert "removed 1 run" in capsys.readouterr().err
    main(["cache", str(file.parent / "cache"), "--format", "json"])
    (left,) = json.loads(capsys.readouterr().out)
    assert left["experiment"] == "other"


@pytest.mark.slow
def test_what_another_file_kept_is_listed_where_it_would_be_used(
    file: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    run_experiment(file, only=["bm25"], allow_code=True, changes=["name=other"])
    run_experiment(file, only=["bm25"], allow_code=True, changes=["evaluate.depth=5"])
    main(["cache", str(file), "--format", "json"])
    told = capsys.readouterr()
    (used,) = json.loads(told.out)
    assert (used["experiment"], used["system"]) == ("other", "bm25")
    snapshot(told.err)
    assert run_experiment(file, only=["bm25"], allow_code=True).cached == 1
