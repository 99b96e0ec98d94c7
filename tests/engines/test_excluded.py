"""Ids that a question leaves out of its results: in every carrier, in files, and in experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.engines.excluded import without_excluded
from groupgt.formats.write import write_ground_truth
from groupgt.model.run import Run

TRUTH = {"q1": [["a"], ["b"]], "q2": [["c"]], "3": [["d"]]}
EXCLUDED: dict[str, Any] = {"q1": ["x", 7], "q2": "N/A", "3": ["N/A", "y"]}
# q1: x and 7 are gone, which leaves a at rank 1 and b at rank 3; of q2 nothing; of 3 its first result.
RUN = {"q1": ["x", "a", "7", "z", "b"], "q2": ["x", "c"], "3": ["y", "d"]}
METRICS = ["mrr", "precision", "recall@2"]
# mrr: (1 + 1/3)/2, 1/2, 1; precision: 2/3, 1/2, 1; recall@2: 1/2, 1, 1
EXPECTED = [[2 / 3, 1 / 2, 1], [2 / 3, 1 / 2, 1], [1 / 2, 1, 1]]


@pytest.fixture
def truth() -> groupgt.GroundTruth:
    return groupgt.GroundTruth.of(TRUTH, excluded_ids=EXCLUDED)


def check(truth: Any, run: Any, removed: int = 3, **options: Any) -> groupgt.Evaluation:
    result = groupgt.evaluate(truth, run, METRICS, **options)
    for name, expected in zip(METRICS, EXPECTED):
        assert result.values[name].tolist() == pytest.approx(expected, abs=1e-15), name
    assert result.counts["excluded"] == removed
    return result


def scored(ids: list[str]) -> list[float]:
    return [10.0 - place for place in range(len(ids))]


@pytest.mark.parametrize(
    "run",
    [
        RUN,
        {qid: list(zip(ids, scored(ids))) for qid, ids in RUN.items()},
        {qid: dict(zip(ids, scored(ids))) for qid, ids in RUN.items()},
        {qid: [{"id": name} for name in ids] for qid, ids in RUN.items()},
        {int(qid) if qid.isdigit() else qid: tuple(ids) for qid, ids in RUN.items()},
    ],
    ids=["ids", "pairs", "scores", "mappings", "integers"],
)
def test_in_memory(truth: groupgt.GroundTruth, run: Any) -> None:
    result = check(truth, run)
    assert "excluded 3" in result.footer()[0]
    assert "left out of its results: 7, x" in result.explain("q1")
    assert "left out" not in result.explain("q2")
    assert "x" not in [row["id"] for row in result.explain_dict("q1")["results"]]


def test_without_the_compiled_module(truth: groupgt.GroundTruth, monkeypatch: pytest.MonkeyPatch) -> None:
    from groupgt import native

    monkeypatch.setattr(native, "built", None)
    check(truth, RUN)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    rows = [
        (qid, name, score, place)
        for qid, ids in RUN.items()
        for place, (name, score) in enumerate(zip(ids, scored(ids)), 1)
    ]
    (tmp_path / "run.trec").write_text("".join(f"{q} Q0 {d} {r} {s} t\n" for q, d, s, r in rows))
    (tmp_path / "run.csv").write_text("qid,doc_id,score\n" + "".join(f"{q},{d},{s}\n" for q, d, s, _ in rows))
    (tmp_path / "run.jsonl").write_text(
        "".join(json.dumps({"qid": q, "doc_id": d, "score": s}) + "\n" for q, d, s, _ in rows)
    )
    (tmp_path / "nested.jsonl").write_text(
        "".join(json.dumps({"qid": qid, "retrieved_ids": ids}) + "\n" for qid, ids in RUN.items())
    )
    from groupgt.runtime import pl

    pl.DataFrame(rows, schema=["qid", "doc_id", "score", "rank"], orient="row").write_parquet(tmp_path / "run.parquet")
    return tmp_path


@pytest.mark.parametrize("engine", ["auto", "streaming"])
@pytest.mark.parametrize("name", ["run.trec", "run.csv", "run.jsonl", "nested.jsonl", "run.parquet"])
def test_in_files(truth: groupgt.GroundTruth, files: Path, name: str, engine: str) -> None:
    check(truth, files / name, engine=engine)


def test_large_trec_files_are_read_by_the_compiled_module_and_rid_of_them(
    truth: groupgt.GroundTruth, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from groupgt.formats import trec

    monkeypatch.setattr(trec, "SMALL", 0, raising=False)
    check(truth, groupgt.read_run(files / "run.trec", streamed=True))


def test_a_doubt_is_told_as_ever(truth: groupgt.GroundTruth, files: Path) -> None:
    (files / "run.csv").write_text("qid,doc_id,score\nq1,x,1\nq1,a,nan\n")
    with pytest.raises(groupgt.DataError, match=r"run\.csv:3"):
        groupgt.evaluate(truth, files / "run.csv", METRICS, engine="streaming")
    with pytest.raises(groupgt.DataError, match="expected a list of ids"):
        groupgt.evaluate(truth, {"q1": 5}, METRICS)


def test_what_stands_beside_results_goes_with_them(truth: groupgt.GroundTruth) -> None:
    from groupgt.model.run import Lists

    lengths = {"tokens": {"q1": [1000, 1, 1000, 1, 1], "q2": [1, 1], "3": [1000, 1]}}
    run = Run(Lists(RUN, {qid: scored(ids) for qid, ids in RUN.items()}, lengths))
    result = groupgt.evaluate(truth, run, ["recall@3tokens"])
    assert result.values["recall@3tokens"].tolist() == [1, 1, 1]
    again = without_excluded(truth, without_excluded(truth, run))
    assert again.excluded == 3


def test_they_are_read_and_written(truth: groupgt.GroundTruth, tmp_path: Path) -> None:
    for name, kind in (("t.jsonl", "jsonl"), ("t.parquet", "parquet")):
        write_ground_truth(tmp_path / name, truth, kind)
        again = groupgt.read_ground_truth(tmp_path / name)
        assert again.excluded == truth.excluded == [{"x", "7"}, frozenset(), {"y"}]
        assert again.columns == {}
        assert again.digest == truth.digest != groupgt.GroundTruth.of(TRUTH).digest
    assert truth.select([2, 0]).excluded == [{"y"}, {"x", "7"}]
    for kind in ("csv", "trec", "beir"):
        with pytest.raises(groupgt.DataError, match="cannot store excluded_ids"):
            write_ground_truth(tmp_path / "other", truth, kind)
    nothing = groupgt.GroundTruth.of(TRUTH, excluded_ids={"q1": None, "q2": "N/A", "3": []})
    assert nothing.excluded is None


@pytest.mark.parametrize(
    ("excluded", "words"),
    [
        ({"q1": ["x", "b"]}, "query 'q1': 'b' is both excluded and relevant"),
        ({"q1": "x"}, "query 'q1': expected excluded_ids to be a list of ids, found 'x'"),
        ({"q1": [True]}, "query 'q1': the excluded id True must be a string or integer"),
        ({"q1": [" "]}, "query 'q1': the excluded id ' ' is blank"),
        ({"q9": ["x"]}, "excluded_ids of query 'q9': this query is not in the ground truth"),
    ],
)
def test_what_cannot_be_left_out(excluded: Any, words: str) -> None:
    with pytest.raises(groupgt.DataError) as error:
        groupgt.GroundTruth.of(TRUTH, excluded_ids=excluded)
    assert words in str(error.value)


def test_a_fault_in_a_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"qid": "q", "retrieval_gt": [["a"]], "excluded_ids": ["a"]}) + "\n")
    with pytest.raises(groupgt.DataError, match=r"t\.jsonl:1: query 'q': 'a' is both excluded"):
        groupgt.read_ground_truth(path)


def test_places_and_judged_documents_may_be_left_out() -> None:
    groups = {"q": [[{"doc": "a", "start": 0, "end": 9}], [{"id": "b", "grade": 0}]]}
    assert groupgt.GroundTruth.of(groups, excluded_ids={"q": ["b", "a[0:9]"]}).excluded


def test_flat_qrels_say_that_they_lose_them(truth: groupgt.GroundTruth, tmp_path: Path) -> None:
    lost = write_ground_truth(tmp_path / "qrels", truth, "qrels-flat")
    assert lost[1:] == ["excluded_ids"]
    plain = groupgt.GroundTruth.of(TRUTH)
    assert len(write_ground_truth(tmp_path / "qrels", plain, "qrels-flat")) == 1


def test_an_experiment_asks_for_as_many_more(tmp_path: Path) -> None:
    words = {"x": "cat cat cat", "y": "cat cat owl", "a": "cat owl", "b": "owl cat dog dog"}
    corpus = [{"doc_id": name, "contents": text} for name, text in words.items()]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    rows = [
        {"qid": "q", "query": "cat", "retrieval_gt": [["a"]], "excluded_ids": ["x", "y"]},
        {"qid": "r", "query": "cat", "retrieval_gt": [["y"]], "excluded_ids": "N/A"},
    ]
    (tmp_path / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "e.yaml").write_text(
        "version: 1\nname: e\ndatasets:\n  d: {corpus: corpus.jsonl, ground_truth: truth.jsonl}\n"
        "systems:\n  words: bm25\n  others: {use: bm25, with: {k1: 0.5}}\n  both: {use: rrf, inputs: [words, others]}\n"
        "evaluate: {depth: 2, metrics: [mrr, recall]}\ncache: null\noutput: {folder: out, formats: [json]}\n"
    )
    outcome = groupgt.run_experiment(tmp_path / "e.yaml")
    for name, evaluation in outcome.evaluations["d"].items():
        rankings = evaluation.run.rankings
        assert rankings["q"][0] == "a", name
        assert len(rankings["q"]) == 2
        assert len(rankings["r"]) == 2
        assert evaluation.counts["excluded"] == (4 if name == "both" else 2)
        assert evaluation.values["mrr.autorag"][0] == 1
