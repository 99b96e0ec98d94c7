"""Several runs on one ground truth, and one where several were given."""

from __future__ import annotations

from pathlib import Path

import pytest

import groupgt
from tests.snapshots import Snapshot

TRUTH = {"q1": [["a"], ["b"]], "q2": [["c"]]}
RUNS = {"one": {"q1": ["a"], "q2": ["x"]}, "two": {"q1": ["a", "b"], "q2": ["c"]}}


def test_one_table_of_several(snapshot: Snapshot) -> None:
    found = groupgt.evaluate_runs(TRUTH, RUNS, ["recall@2", "mrr"], by="n_groups")
    assert list(found) == ["one", "two"]
    assert found["two"].means == {"recall@2": 1.0, "mrr": 0.875}  # mrr: (1 + 1/2) / 2 and 1
    assert found.means["one"]["recall@2"] == 0.25
    assert found.per_query.filter(run="one")["recall@2"].to_list() == [0.5, 0.0]
    assert repr(found) == "Evaluations(one, two: recall@2, mrr)"
    frame = found.to_polars()
    assert frame.columns == ["run", "by", "slice", "metric", "mean", "queries"]
    assert frame.filter(run="one", slice="2", metric="recall@2")["mean"].to_list() == [0.5]
    with snapshot.raises(groupgt.ConfigError):
        _ = found["tow"]
    assert "tow" not in found


def test_each_is_what_evaluate_gives() -> None:
    found = groupgt.evaluate_runs(TRUTH, RUNS, ["recall", "ndcg"], k=[1, 2], policy="trec")
    for name, run in RUNS.items():
        alone = groupgt.evaluate(TRUTH, run, ["recall", "ndcg"], k=[1, 2], policy="trec", name=name)
        assert found[name].to_dict(per_query=True) == alone.to_dict(per_query=True)


def test_several_conventions_stand_side_by_side() -> None:
    found = groupgt.evaluate_runs(TRUTH, RUNS, ["recall@2"], convention=["autorag", "trec"])
    assert found.table().splitlines()[0].split() == ["run", "metric", "autorag", "trec"]


def test_runs_without_names(snapshot: Snapshot) -> None:
    with snapshot.raises(groupgt.ConfigError):
        groupgt.evaluate_runs(TRUTH, list(RUNS.values()), ["recall"])
    with snapshot.raises(groupgt.ConfigError):
        groupgt.compare(TRUTH, list(RUNS.values()), ["recall"])
    for runs in ({}, []):
        with pytest.raises(groupgt.ConfigError, match="at least one"):
            groupgt.evaluate_runs(TRUTH, runs, ["recall"])


@pytest.mark.parametrize(
    "runs",
    [
        RUNS,
        {"one": {}, "two": RUNS["two"]},
        {"one": {"q1": {"a": 1.0}}},
        {"one": "one.trec"},
        {"one": Path("one.trec")},
        {"one": groupgt.Run.of(RUNS["one"])},
    ],
    ids=["lists", "one is empty", "scores", "path", "Path", "Run"],
)
def test_several_runs_given_as_one(runs: object, snapshot: Snapshot) -> None:
    for call in (
        lambda: groupgt.evaluate(TRUTH, runs, ["recall"]),
        lambda: groupgt.depth(TRUTH, runs),
    ):
        with snapshot.raises(groupgt.ConfigError):
            call()


def test_misses_takes_one_run_or_several_by_name(tmp_path: Path, snapshot: Snapshot) -> None:
    one = groupgt.misses(TRUTH, RUNS["one"], k=1)
    several = groupgt.misses(TRUTH, RUNS, k=1, worst=1)
    assert isinstance(one, groupgt.Misses)
    assert isinstance(several, groupgt.Misses)
    assert list(several.to_dict()["solved"]) == list(RUNS)
    assert len(several.to_dict()["hardest"]) == 1
    corpus = {"a": "The text of a.", "b": "The text of b.", "c": "The text of c.", "d": "The text of d."}
    assert "The text of" in groupgt.misses(TRUTH, RUNS, k=1, corpus=corpus).text()
    with snapshot.raises(groupgt.ConfigError):
        groupgt.misses(TRUTH, RUNS, worst=0)


def test_misses_of_several_count_what_all_of_them_answer() -> None:
    """Two of four queries; a run that answers more is not ahead for that."""
    truth = {f"q{number}": [[f"d{number}"]] for number in range(4)}
    every = {qid: groups[0] for qid, groups in truth.items()}
    runs = {"every": every, "half": {qid: every[qid] for qid in ("q0", "q1")}}
    found = groupgt.misses(truth, runs, k=1, policy={"missing": "skip"})
    assert (found.evaluated, found.to_dict()["solved"]) == (2, {"every": 2, "half": 2})
    assert "2 of 2 queries" in found.text()


def test_rankings_of_other_queries_are_one_run() -> None:
    for ranking in (["a"], {"a": 0.5}, [("a", 0.5)], {}):
        rankings = {"q9": ranking, "q1": ["x"]}
        assert groupgt.evaluate(TRUTH, rankings, ["recall"])["recall"] == 0


def test_frames_by_name_are_several() -> None:
    import polars as pl

    frame = pl.DataFrame({"qid": ["q1"], "doc_id": ["a"], "score": [1.0]})
    with pytest.raises(groupgt.ConfigError, match="several by name"):
        groupgt.evaluate(TRUTH, {"one": frame}, ["recall"])


FOUR = {f"q{number}": [[f"d{number}"]] for number in range(4)}


@pytest.mark.parametrize(
    ("answered", "said"),
    [
        (4, ""),
        (2, "warning: some has no results for 2 of 4 queries (such as 'q2'), which score 0 (policy missing=zero; "),
        (
            1,
            "warning: some has no results for 3 of 4 queries (such as 'q1'), more than half, which score 0 (policy ",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
def test_queries_without_results_are_said_above_the_table(answered: int, said: str) -> None:
    run = {f"q{number}": [f"d{number}"] for number in range(answered)}
    whole = {qid: groups[0] for qid, groups in FOUR.items()}
    for result in (
        groupgt.evaluate_runs(FOUR, {"some": run}, ["recall"]),
        groupgt.evaluate_runs(FOUR, {"whole": whole, "some": run}, ["recall"]),
        groupgt.compare(FOUR, {"some": run, "other": run}, ["recall"], resamples=10),
        groupgt.depth(FOUR, run, name="some"),
        groupgt.misses(FOUR, run, name="some"),
        groupgt.misses(FOUR, {"some": run, "whole": whole}),
    ):
        above = result.text().partition("\n-----")[0]
        if said:
            plural = said.replace("some has", "some, other have")
            assert said in above or plural in above, type(result).__name__
        else:
            assert "no results" not in above


@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
def test_a_run_that_skips_what_is_missing_is_doubtful_if_it_skips_more_than_half() -> None:
    half = {"q0": ["d0"], "q1": ["d1"]}
    skip = {"missing": "skip"}
    assert "no results" not in groupgt.evaluate_runs(FOUR, {"some": half}, ["recall"], policy=skip).text()
    found = groupgt.evaluate_runs(FOUR, {"some": {"q0": ["d0"]}}, ["recall"], policy=skip)
    first = "warning: some has no results for 3 of 4 queries (such as 'q1'), more than half, which means exclude ("
    assert " ".join(found.text().split()).startswith(first)


def test_other_doubts_stand_above_the_table_too() -> None:
    twice = groupgt.evaluate_runs(
        FOUR, {"some": {qid: ["x", "x", *groups[0]] for qid, groups in FOUR.items()}}, ["mrr"]
    )
    assert "queries with a repeated result: some 4. " in twice.text()  # x is judged by nobody, but takes two ranks
    twice = groupgt.evaluate_runs(FOUR, {"some": {qid: groups[0] * 2 for qid, groups in FOUR.items()}}, ["mrr"])
    first = "warning: queries with a repeated result: some 4. Repeats keep their rank but count as non-relevant "
    assert twice.text().startswith(first)
    nothing = groupgt.evaluate_runs({"q": []}, {"some": {"q": ["a"]}}, ["mrr"])
    assert nothing.text().startswith("warning: no query has a group that can be covered, so there are no means.")


def test_runs_are_sorted_by_their_mean() -> None:
    truth = {"q": [["a"]], "p": [["b"]]}
    runs = {"none": {"q": ["x"], "p": ["x"]}, "both": {"q": ["a"], "p": ["b"]}, "one": {"q": ["a"], "p": ["x"]}}
    found = groupgt.evaluate_runs(truth, runs, ["recall", "mrr"])
    assert list(found) == ["none", "both", "one"]
    assert list(found.sorted_by("mrr")) == ["both", "one", "none"]
    with pytest.raises(groupgt.GroupgtError, match="'map' was not evaluated"):
        found.sorted_by("map")


def test_a_metric_that_is_better_when_lower_has_no_highest_mean() -> None:
    truth = groupgt.GroundTruth.of({"q": [["a"]]}, harmful_ids={"q": ["h"]})
    runs = {"hit": {"q": ["a", "h"]}, "clean": {"q": ["x", "y"]}}
    text = groupgt.evaluate_runs(truth, runs, ["recall@2", "harmful@2"]).text()
    assert "Best mean of 2 runs on recall@2: hit (1.0000); on harmful@2: clean." in text


def test_slices_count_the_queries_of_each_metric() -> None:
    truth = groupgt.GroundTruth.of({"p": [["a"]], "q": [["b"]]}, harmful_ids={"q": ["h"]})
    found = groupgt.evaluate(truth, {"p": ["a"], "q": ["b"]}, ["recall@2", "harmful@2"], by=["n_groups"])
    # Both queries have a recall, and only q has harmful ids.
    assert "1 to 2" in found.text()


def test_a_grid_of_cutoffs_says_how_many_queries_a_metric_has() -> None:
    truth = groupgt.GroundTruth.of({"p": [["a"]], "q": [["b"]]}, harmful_ids={"q": ["h"]})
    metrics = ["recall@1", "recall@2", "harmful@1", "harmful@2"]
    text = groupgt.evaluate(truth, {"p": ["a"], "q": ["b"]}, metrics).text()
    assert "harmful@1: 1 query, harmful@2: 1 query" in text
