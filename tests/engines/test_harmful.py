"""Passages that must not come back: in every carrier, in files, under every policy, and where people look for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt.formats.write import write_ground_truth
from groupgt.runtime import pl

nan = np.nan
TRUTH = {"q1": [["a"], ["b"]], "q2": [["c"]], "3": [["d"]], "q4": [["e"]]}
HARMFUL: dict[str, Any] = {"q1": ["x", 7], "q2": None, "3": ["y"], "q4": ["y"]}
RUN = {"q1": ["x", "a", "7", "z", "x"], "q2": ["x", "c"], "3": ["d", "y"]}
METRICS = ["harmful", "harmful@2", "clean", "clean@1", "judged"]
# q1 returns x, 7 and x again; q2 names none; 3 returns y at rank 2; q4 has no results. A repeat is judged once.
EXPECTED = {
    "harmful": [3 / 5, nan, 1 / 2, nan],
    "harmful@2": [1 / 2, nan, 1 / 2, nan],
    "clean": [0, nan, 0, 1],
    "clean@1": [0, nan, 1, 1],
    "judged": [3 / 5, 1 / 2, 1, 0],
}


@pytest.fixture
def truth() -> groupgt.GroundTruth:
    return groupgt.GroundTruth.of(TRUTH, harmful_ids=HARMFUL)


def check(truth: Any, run: Any, **options: Any) -> None:
    result = groupgt.evaluate(truth, run, METRICS, **options)
    for name, expected in EXPECTED.items():
        np.testing.assert_array_equal(result.values[name], expected, name)


@pytest.mark.parametrize(
    "run",
    [
        RUN,
        {qid: [(name, 9.0 - place) for place, name in enumerate(ids)] for qid, ids in RUN.items()},
        pl.DataFrame({"qid": list(RUN), "retrieved_ids": list(RUN.values())}),
    ],
    ids=["ids", "pairs", "frame"],
)
def test_in_memory(truth: groupgt.GroundTruth, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from groupgt import native

    check(truth, run)
    monkeypatch.setattr(native, "built", None)
    check(groupgt.GroundTruth.of(TRUTH, harmful_ids=HARMFUL), run)


@pytest.mark.parametrize("engine", ["auto", "streaming"])
@pytest.mark.parametrize("name", ["run.trec", "run.csv", "run.parquet"])
def test_in_files(truth: groupgt.GroundTruth, tmp_path: Path, name: str, engine: str) -> None:
    rows = [(qid, doc, 9.0 - place) for qid, ids in RUN.items() for place, doc in enumerate(ids)]
    frame = pl.DataFrame(rows, ["qid", "doc_id", "score"], orient="row")
    if name == "run.trec":
        (tmp_path / name).write_text("".join(f"{qid} Q0 {doc} 1 {score} t\n" for qid, doc, score in rows))
    else:
        getattr(frame, {"run.csv": "write_csv", "run.parquet": "write_parquet"}[name])(tmp_path / name)
    check(truth, tmp_path / name, engine=engine)


def test_they_are_read_and_written(truth: groupgt.GroundTruth, tmp_path: Path) -> None:
    for name, kind in (("t.jsonl", "jsonl"), ("t.parquet", "parquet")):
        write_ground_truth(tmp_path / name, truth, kind)
        again = groupgt.read_ground_truth(tmp_path / name)
        assert again.harmful == truth.harmful == [{"x", "7"}, frozenset(), {"y"}, {"y"}]
        assert again.digest == truth.digest != groupgt.GroundTruth.of(TRUTH).digest
    assert json.loads((tmp_path / "t.jsonl").read_text().splitlines()[0]) == {
        "qid": "q1",
        "retrieval_gt": [["a"], ["b"]],
        "harmful_ids": ["7", "x"],
    }
    (tmp_path / "t.csv").write_text(
        'qid,retrieval_gt,harmful_ids\nq1,"[[""a""],[""b""]]","[""x"",""7""]"\nq2,[["c"]],\n'
    )
    assert groupgt.read_ground_truth(tmp_path / "t.csv").harmful == [{"x", "7"}, frozenset()]
    assert truth.select([2, 0]).harmful == [{"y"}, {"x", "7"}]
    assert truth.select([2, 0]).judgments.names_harmful.tolist() == [True, True]
    for kind in ("csv", "trec", "beir"):
        with pytest.raises(groupgt.DataError, match="cannot store harmful_ids"):
            write_ground_truth(tmp_path / "other", truth, kind)
    assert write_ground_truth(tmp_path / "qrels", truth, "qrels-flat")[1:] == ["harmful_ids"]
    assert "q1 0 x 0\n" in (tmp_path / "qrels").read_text()


@pytest.mark.parametrize(
    ("harmful", "words"),
    [
        ({"q1": ["x", "b"]}, "query 'q1': 'b' is both harmful and relevant; remove one"),
        ({"q1": ["out"]}, "query 'q1': 'out' is both harmful and excluded; remove one"),
        ({"q1": "x"}, "query 'q1': expected harmful_ids to be a list of ids, found 'x'"),
        ({"q9": ["x"]}, "harmful_ids of query 'q9': this query is not in the ground truth"),
    ],
)
def test_what_cannot_be_harmful(harmful: Any, words: str) -> None:
    with pytest.raises(groupgt.DataError) as error:
        groupgt.GroundTruth.of(TRUTH, harmful_ids=harmful, excluded_ids={"q1": ["out"]})
    assert words in str(error.value)


def test_they_change_no_other_metric_than_those_of_judgments(truth: groupgt.GroundTruth) -> None:
    metrics = ["recall", "ndcg.trec@3", "map.coverage", "complete", "precision"]
    for policy in (
        "missing=zero",
        "empty_groups=unmeetable",
        "unjudged=nonrelevant,level=1",
        "trec,duplicates=penalize",
    ):
        with_harm = groupgt.evaluate(truth, RUN, metrics, policy=policy, convention="coverage")
        without = groupgt.evaluate(TRUTH, RUN, metrics, policy=policy, convention="coverage")
        for name, column in without.values.items():
            np.testing.assert_array_equal(with_harm.values[name], column, f"{policy} {name}")
        assert with_harm.counts == without.counts
    # A negative grade stays unjudged, unless its document is harmful.
    graded = {"q": [["a"], [{"id": "n", "grade": -1}], [{"id": "m", "grade": -1}]]}
    named = groupgt.GroundTruth.of(graded, harmful_ids={"q": ["m"]})
    assert groupgt.evaluate(named, {"q": ["n", "m"]}, ["judged"])["judged"] == 1 / 2
    # Results without a judgment are dropped, and the harmful ones are judged.
    dropped = groupgt.evaluate(truth, {"q1": ["u", "x", "v", "a"]}, ["harmful@2", "clean@1"], policy="unjudged=drop")
    assert [dropped.values[name][0] for name in ("harmful@2", "clean@1")] == [1 / 2, 0]


def test_which_queries_have_a_value(tmp_path: Path) -> None:
    rows = [
        {"qid": "answered", "retrieval_gt": [["a"]], "harmful_ids": ["x"]},
        {"qid": "missing", "retrieval_gt": [["a"]], "harmful_ids": ["x"]},
        {"qid": "declared", "retrieval_gt": [], "answerable": False, "harmful_ids": ["x"]},
        {"qid": "abstains", "retrieval_gt": [], "answerable": False, "harmful_ids": ["x"]},
        {"qid": "undefined", "retrieval_gt": [], "harmful_ids": ["x"]},
        {"qid": "harmless", "retrieval_gt": [["a"]]},
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = {qid: ["a", "x"] for qid in ("answered", "declared", "undefined", "harmless", "extra")}
    for policy, missing in (("missing=zero", 1), ("missing=skip", nan)):
        found = groupgt.evaluate(tmp_path / "t.jsonl", run, ["harmful", "clean"], policy=policy)
        np.testing.assert_array_equal(found.values["harmful"], [1 / 2, nan, 1 / 2, nan, nan, nan])
        np.testing.assert_array_equal(found.values["clean"], [0, missing, 0, 1, nan, nan])
    assert found.counts["undefined"] == 1


def test_other_labellers_are_refused() -> None:
    for labeller in ("text", "parents"):
        with pytest.raises(
            groupgt.ConfigError, match=f"clean@3: harmful_ids contains ids, but with the {labeller} labeller"
        ):
            groupgt.evaluate(TRUTH, RUN, ["recall", "clean@3"], labeller=labeller)


def test_where_people_look_for_them(truth: groupgt.GroundTruth) -> None:
    misses = groupgt.misses(truth, RUN, k=2)
    assert misses.to_dict()["harmful"] == [
        {"qid": "q1", "rank": 1, "id": "x"},
        {"qid": "3", "rank": 2, "id": "y"},
    ]
    assert [line.split() for line in misses.text().splitlines() if line.endswith(" y")] == [["3", "2", "y"]]
    assert "harmful" not in groupgt.misses(TRUTH, RUN, k=2).to_dict()
    result = groupgt.evaluate(truth, RUN, METRICS)
    explained = result.explain("q1")
    assert "harmful: 7, x" in explained
    assert "= 3 / 5" in explained
    assert [finding.count for finding in groupgt.check(truth).findings["truth"] if "harmful" in finding.what] == [4]


def test_an_audit_corrects_no_metric_of_harm(truth: groupgt.GroundTruth) -> None:
    qids = [f"q{number}" for number in range(40)]
    groups = {qid: [["a"]] for qid in qids}
    model = groupgt.GroundTruth.of(groups, harmful_ids={qid: ["x"] for qid in qids})
    human = groupgt.GroundTruth.of({qid: groups[qid] for qid in qids[::2]}, harmful_ids={"q0": ["y"]})
    run = {qid: ["a", "x"] for qid in qids[::4]}
    found = groupgt.evaluate(model, run, ["recall", "clean"], audit=human, assume_random=True)
    assert list(found.corrected) == ["recall"]
    assert found.means_by_labels()["clean"] == 30 / 40
    assert found["clean"] == 30 / 40


def test_they_count_whatever_importance_is_evaluated() -> None:
    groups = [
        {"alternatives": ["a"], "importance": "vital"},
        {"alternatives": ["b", {"id": "y", "grade": 0}], "importance": "okay"},
    ]
    truth = groupgt.GroundTruth.of({"q": groups}, harmful_ids={"q": ["h", "y"]})
    for policy in ("importance=vital", "importance=vital+okay"):
        found = groupgt.evaluate(truth, {"q": ["h", "a", "y", "z"]}, ["harmful", "clean@1", "mrr.trec"], policy=policy)
        assert dict(found.means) == {"harmful": 1 / 2, "clean@1": 0, "mrr.trec": 1 / 2}
