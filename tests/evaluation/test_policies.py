"""What each policy does, in the library and on the command line alike."""

from __future__ import annotations

import json
import math
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.formats import source
from tests.bad_input import TREC, Cli, fails, put
from tests.snapshots import Snapshot


def measured(cli: Cli, tmp_path: Path, truth: Any, run: Any, metrics: str, **policy: str) -> tuple[Any, Any]:
    """The means and counts of the library, after the command line said the same; or both of their errors."""
    lines = [json.dumps({"qid": qid, "retrieval_gt": groups}) + "\n" for qid, groups in truth.items()]
    path = put(tmp_path / "t.jsonl", "".join(lines))
    rows = [
        f"{qid} Q0 {name} 1 {score} t\n"
        for qid, ranking in run.items()
        for name, score in (ranking if ranking and isinstance(ranking[0], tuple) else zip(ranking, range(0, -99, -1)))
    ]
    file = put(tmp_path / "r.trec", "".join(rows))
    given = [f"{name}={value}" for name, value in policy.items()]
    told = cli("evaluate", path, file, "-m", metrics, "--format", "json", *(x for g in given for x in ("--policy", g)))
    try:
        ours = groupgt.evaluate(truth, file, metrics.split(","), policy=policy)
    except groupgt.GroupgtError as error:
        assert told.status == 2
        assert told.out == ""
        return str(error), told.err
    result = json.loads(told.out)["runs"][0]
    means = {name: None if math.isnan(mean) else mean for name, mean in ours.means.items()}
    assert {name: row["mean"] for name, row in result["metrics"].items()} == means
    assert result["counts"] == ours.counts
    assert {**result["policy"], **policy} == result["policy"]
    return means, ours.counts


AB = {"q1": [["a"], ["b"]]}


@pytest.mark.parametrize("groups", [[], [[]], [[""]], None, [[{"id": "a", "grade": 0}]], [[{"id": "a", "grade": -2}]]])
def test_undefined_queries_are_left_out(groups: Any, cli: Cli, tmp_path: Path, size: str) -> None:
    means, counts = measured(cli, tmp_path, {**AB, "q2": groups}, {"q1": ["a"], "q2": ["a"]}, "recall")
    assert means == {"recall": 0.5}
    assert (counts["undefined"], counts["evaluated"]) == (1, 1)


@pytest.mark.parametrize("groups", [[["a"], []], [["a"], [""]], [["a"], None], [["a", ""]], [["a", None]]])
def test_empty_groups(groups: Any, cli: Cli, tmp_path: Path) -> None:
    for text in measured(cli, tmp_path, {"q1": groups}, {"q1": ["a"]}, "recall"):
        assert "query 'q1'" in text
        assert "empty_groups" in text
    assert measured(cli, tmp_path, {"q1": groups}, {"q1": ["a"]}, "recall", empty_groups="drop")[0] == {"recall": 1}


def test_an_id_twice_in_a_group_counts_once(cli: Cli, tmp_path: Path) -> None:
    means, counts = measured(cli, tmp_path, {"q1": [["a", "a"], ["b"]]}, {"q1": ["a", "x"]}, "ndcg,recall.trec")
    assert means == measured(cli, tmp_path, AB, {"q1": ["a", "x"]}, "ndcg,recall.trec")[0]
    assert counts["repeated_ids"] == 1


def test_flat_ground_truth(cli: Cli, tmp_path: Path) -> None:
    flat = {"q1": ["a", "b"]}
    for text in measured(cli, tmp_path, flat, {"q1": ["a"]}, "recall"):
        assert "query 'q1'" in text
        assert "flat_gt" in text
    assert measured(cli, tmp_path, flat, {"q1": ["a"]}, "recall", flat_gt="and")[0] == {"recall": 0.5}
    assert measured(cli, tmp_path, flat, {"q1": ["a"]}, "recall", flat_gt="or")[0] == {"recall": 1}


def test_missing_results(cli: Cli, tmp_path: Path, size: str) -> None:
    truth, run = {"q1": [["a"], ["b", "c"]], "q2": [["d"]]}, {"q1": ["a", "b", "c"]}
    means, counts = measured(cli, tmp_path, truth, run, "recall,redundancy")
    assert means == {"recall": 0.5, "redundancy": pytest.approx(1 / 3)}
    assert counts["missing"] == 1
    means, counts = measured(cli, tmp_path, truth, run, "recall,redundancy", missing="skip")
    assert means["recall"] == 1
    assert counts["missing"] == 1
    for text in measured(cli, tmp_path, truth, run, "recall", missing="error"):
        assert "query 'q2'" in text


def test_extra_results(cli: Cli, tmp_path: Path, size: str) -> None:
    run = {"q1": ["a", "b"], "q9": ["z"]}
    means, counts = measured(cli, tmp_path, AB, run, "recall")
    assert means == {"recall": 1}
    assert counts["extra"] == 1
    for text in measured(cli, tmp_path, AB, run, "recall", extra="error"):
        assert "'q9'" in text


def test_duplicates(cli: Cli, tmp_path: Path, size: str) -> None:
    run = {"q1": ["a", "a", "b"]}
    ideal = 1 + 1 / math.log2(3)
    for value, ndcg in (("penalize", 1.5 / ideal), ("drop", 1.0), ("keep", (ideal + 0.5) / ideal)):
        means, counts = measured(cli, tmp_path, AB, run, "ndcg", duplicates=value)
        assert means == {"ndcg": pytest.approx(ndcg)}
        assert counts["duplicates"] == 1
    ours, theirs = measured(cli, tmp_path, AB, run, "ndcg", duplicates="error")
    for text in (ours, theirs):
        assert str(tmp_path / "r.trec") in text
        assert "query 'q1'" in text
        assert "'a'" in text
        assert "drop" in text
    for text in measured(cli, tmp_path, AB, run, "ndcg.trec", duplicates="keep"):
        assert "keep" in text
        assert "ndcg.trec" in text


def test_dropped_repeats_close_the_gap_every_time(tmp_path: Path, size: str) -> None:
    path = put(tmp_path / "run.trec", "q1 Q0 a 1 3 t\nq1 Q0 a 2 2 t\nq1 Q0 b 3 1 t\n")
    policy = {"duplicates": "drop"}
    found = {groupgt.evaluate(AB, path, ["mrr"], policy=policy)["mrr"] for _ in range(12)}
    assert found == {0.75}


@pytest.mark.parametrize("value", ["penalize", "drop", "error", "keep"])
def test_duplicates_of_irrelevant_and_extra_results(
    value: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run, repeats in (({"q1": ["a", "x", "x", "b"]}, 1), ({"q1": ["a", "b"], "q9": ["z", "z"]}, 0)):
        small = measured(cli, tmp_path, AB, run, "ndcg,recall@2", duplicates=value)
        monkeypatch.setattr(source, "SMALL", 0)
        large = measured(cli, tmp_path, AB, run, "ndcg,recall@2", duplicates=value)
        monkeypatch.undo()
        if value == "error":
            assert large == small
            continue
        # A file that is streamed is searched for repeats of all results only if the policy asks for it.
        assert small[1]["duplicates"] == repeats
        assert large[1]["duplicates"] == (repeats if value == "drop" else 0)
        assert (large[0], large[1] | {"duplicates": repeats}) == small


def test_every_repeat_is_counted_in_memory(tmp_path: Path) -> None:
    """x is repeated and judged by nobody, so map is (1/3 + 2/4)/2 and not (1/2 + 2/3)/2; q9 has no ground truth."""
    ids = {"q1": ["x", "x", "a", "b"], "q2": ["c", "d"], "q9": ["z", "z"]}
    truth = {"q1": {"a": 1, "b": 1}, "q2": {"c": 1}}
    rows = [(qid, name, -rank) for qid, ranking in ids.items() for rank, name in enumerate(ranking)]
    columns = dict(zip(("qid", "doc_id", "score"), map(list, zip(*rows))))
    (tmp_path / "run.json").write_text(json.dumps(ids), encoding="utf-8")
    pairs = {qid: [(name, 1.0) for name in ranking] for qid, ranking in ids.items()}
    frames = [pl.DataFrame(columns)]
    if find_spec("pandas") is not None:
        frames.append(import_module("pandas").DataFrame(columns))
    for run in (ids, pairs, tmp_path / "run.json", *frames):
        found = groupgt.evaluate(truth, run, ["map", "map@2"])
        assert found.values["map"].tolist() == pytest.approx([5 / 12, 1])
        assert found.counts["duplicates"] == 1
        assert "duplicates 1" in str(found)
        repeats = {each.what: each.count for each in groupgt.check(truth, {"run": run}).findings["run"]}
        assert repeats["queries with a repeated result"] == 1
        assert repeats["queries with a repeated relevant result"] == 0


def test_repeats_of_what_a_labeller_matches_are_counted_beside_repeated_ids() -> None:
    """In q1 two results are chunks of the same judged document, in q2 of the same other one, in q3 of none."""
    run = {"q1": ["a#1", "a#2"], "q2": ["x#1", "a#1", "x#2"], "q3": ["a#1", "b#1"]}
    labeller = {"use": "parents", "with": {"pattern": "(.*)#[0-9]+"}}
    found = groupgt.evaluate({qid: [["a"]] for qid in run}, run, ["mrr"], labeller=labeller)
    assert found.counts["duplicates"] == 2


def test_ties(cli: Cli, tmp_path: Path, size: str) -> None:
    truth, run = {"q1": [["a"]]}, {"q1": [("a", 1), ("b", 1), ("c", 0)]}
    means, counts = measured(cli, tmp_path, truth, run, "mrr,recall@1", ties="id")
    assert means == {"mrr": 0.5, "recall@1": 0}
    assert counts["ties"] == 1
    assert measured(cli, tmp_path, truth, run, "mrr,recall@1", ties="input")[0] == {"mrr": 1, "recall@1": 1}


def test_lists_keep_their_order() -> None:
    assert groupgt.evaluate({"q": [["a"]]}, {"q": [("a", 0.1), ("b", 0.9)]}, ["mrr"])["mrr"] == 1


def test_numbers_as_ids() -> None:
    assert groupgt.evaluate({1: [[2]]}, {"1": ["2"]}, ["mrr"])["mrr"] == 1
    assert groupgt.evaluate({"1": [["2"]]}, {1: {2: 0.5}}, ["mrr"])["mrr"] == 1
    bad: list[tuple[Any, Any]] = [
        ({"q": [[1.0]]}, {"q": ["1"]}), ({"q": [[True]]}, {"q": ["1"]}), ({1.0: [["a"]]}, {"1": ["a"]}),
        ({"q": [["1"]]}, {"q": [1.0]}), ({"q": [["1"]]}, {"q": [True]}), ({"q": [["1"]]}, {"q": {1.5: 1}}),
    ]  # fmt: skip
    for truth, run in bad:
        with pytest.raises(groupgt.DataError, match=r"1\.0|True|1\.5"):
            groupgt.evaluate(truth, run, ["mrr"])


@pytest.mark.parametrize(
    ("run", "metrics", "kind"),
    [
        ({"q": {"a": math.nan}}, ["mrr"], groupgt.DataError),
        ({"q": {"a": math.inf}}, ["mrr"], groupgt.DataError),
        ({"q": {"a": 10**400}}, ["mrr"], groupgt.DataError),
        ({"q": {"a": "1"}}, ["mrr"], groupgt.DataError),
        ({"q": [("a", math.nan)]}, ["mrr"], groupgt.DataError),
        ({"q": "a"}, ["mrr"], groupgt.DataError),
        (5, ["mrr"], groupgt.DataError),
        ({"q": ["a"]}, ["mrr@0"], groupgt.MetricError),
        ({"q": ["a"]}, ["nope"], groupgt.MetricError),
        ({"q": ["a"]}, ["rbp(q=0.5)"], groupgt.MetricError),
        ({"q": ["a"]}, ["rbp(p=1)"], groupgt.MetricError),
        ({"q": ["a"]}, [5], groupgt.MetricError),
    ],
)
def test_what_is_always_an_error(run: Any, metrics: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        groupgt.evaluate({"q": [["a"]]}, run, metrics)


@pytest.mark.parametrize("k", [0, -1, 1.5, "5", 10**30])
def test_k_of_the_library(k: Any) -> None:
    with pytest.raises(groupgt.GroupgtError):
        groupgt.evaluate({"q": [["a"]]}, {"q": ["a"]}, ["mrr"], k=[k])


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("autorag", {"missing": "skip", "duplicates": "keep"}),
        ("trec", {"missing": "skip", "duplicates": "error"}),
    ],
)
def test_presets_are_printed(preset: str, expected: dict[str, str], cli: Cli, truth: Path) -> None:
    found = cli("evaluate", truth, put(truth.parent / "run.trec", TREC), "-m", "recall", "--policy", preset)
    assert found.status == 0
    for name, value in expected.items():
        assert f"{name}={value}" in found.out


@pytest.mark.parametrize("given", ["", "nope", "missing", "missing=", "missing=Skip", "a=b", "=skip", "missing:skip"])
def test_unknown_policy(given: str, cli: Cli, truth: Path) -> None:
    run = put(truth.parent / "run.trec", TREC)
    fails(cli("evaluate", truth, run, "-m", "recall", "--policy", given), "policy")


JUDGED = {"q1": [[{"id": "a", "grade": 1}], [{"id": "n", "grade": 0}], [{"id": "m", "grade": -1}], ["b"]]}


def test_unjudged_results_are_dropped(cli: Cli, tmp_path: Path, size: str) -> None:
    run = {"q1": ["x", "a", "n", "y", "m", "b"]}
    kept = measured(cli, tmp_path, JUDGED, run, "mrr.trec,precision.trec@4,num_ret")[0]
    assert kept == {"mrr.trec": 1 / 2, "precision.trec@4": 1 / 4, "num_ret": 6}
    dropped = measured(cli, tmp_path, JUDGED, run, "mrr.trec,precision.trec@4,num_ret", unjudged="drop")[0]
    # x and y have no grade, and m has a negative one: all three count as unjudged.
    assert dropped == {"mrr.trec": 1, "precision.trec@4": 2 / 4, "num_ret": 3}
    # A repeat keeps its place among judged results, unless the policy drops it before.
    twice = {"q1": ["a", "x", "a", "b"]}
    for duplicates, place in (("penalize", 3), ("drop", 2)):
        policy = {"unjudged": "drop", "duplicates": duplicates}
        assert groupgt.evaluate(JUDGED, twice, ["completion_rr"], policy=policy)["completion_rr"] == 1 / place


def test_ties_of_condensed_lists_are_counted_at_their_cutoff() -> None:
    run = {"q1": {"x": 3.0, "a": 2.0, "z": 1.0, "n": 1.0, "b": 1.0}}
    for k, ties in ((1, 0), (2, 1), (3, 0)):
        result = groupgt.evaluate(JUDGED, run, [f"recall@{k}"], policy="unjudged=drop")
        assert result.counts["ties"] == ties
    # One result is left of those with a score of 2.0, and ties with none.
    run = {"q1": {"x": 2.0, "a": 2.0, "m": 2.0, "b": 1.0}}
    for policy, ties in (("unjudged=nonrelevant", 1), ("unjudged=drop", 0)):
        assert groupgt.evaluate(JUDGED, run, ["recall"], policy=policy).counts["ties"] == ties


def test_budgets_count_judged_results_alone() -> None:
    run = {"q1": ["x", "a", "m", "n", "b"]}
    lengths = {"tokens": {"x": 50, "a": 10, "m": 50, "n": 10, "b": 10}}
    for policy, share in (({}, 0), ({"unjudged": "drop"}, 1 / 2)):
        result = groupgt.evaluate(JUDGED, run, ["recall.trec@25tokens"], policy=policy, lengths=lengths)
        assert result["recall.trec@25tokens"] == share


def test_judged_only_is_the_policy(snapshot: Snapshot) -> None:
    run = {"q1": ["x", "a", "n", "y", "m", "b"]}
    metrics = ["nDCG(judged_only=True)@3", "P(judged_only=True)@3"]
    spelled = groupgt.evaluate(JUDGED, run, metrics, convention="trec")
    policy = groupgt.evaluate(JUDGED, run, ["nDCG@3", "P@3"], convention="trec", policy="unjudged=drop")
    assert list(spelled.means.values()) == list(policy.means.values())
    assert spelled.policy == policy.policy
    snapshot(str(spelled))
    assert "judged@3 0.6667\n" in str(groupgt.evaluate(JUDGED, run, ["nDCG@3"], convention="trec")) + "\n"
    assert "judged@" not in str(groupgt.evaluate(AB, run, ["nDCG@3"]))
    assert [row["id"] for row in policy.explain_dict("q1")["results"]] == ["a", "n", "b"]


@pytest.mark.parametrize(
    ("truth", "metrics", "options", "words"),
    [
        (AB, ["mrr"], {"policy": "unjudged=drop"}, "no document in the ground truth is judged non-relevant"),
        # A document with a negative grade is not judged.
        ({"q1": [["a"], [{"id": "m", "grade": -1}]]}, ["mrr"], {"policy": "unjudged=drop"}, "is judged non-relevant"),
        (JUDGED, ["mrr"], {"policy": "unjudged=drop", "labeller": "text", "corpus": {"a": "a", "b": "b"}}, "labeller"),
        (JUDGED, ["P(judged_only=True)@3", "mrr"], {}, "but not for mrr"),
    ],
)
def test_unjudged_results_that_cannot_be_dropped(truth: Any, metrics: Any, options: Any, words: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=words):
        groupgt.evaluate(truth, {"q1": ["a"]}, metrics, **options)


@pytest.mark.parametrize("carrier", ["lists", "r.trec", "in order", "any order"])
def test_results_for_queries_that_are_left_out_are_not_extra(tmp_path: Path, carrier: str) -> None:
    """Of q1 to q3 and q9, only q9 has no ground truth."""
    truth = {"q1": [["a"]], "q2": [["b"]], "q3": [["c"]]}
    rows = [("q1", "a", 3.0), ("q2", "x", 2.0), ("q3", "c", 1.0), ("q9", "z", 1.0)]
    frame = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")
    run: Any = {qid: [(doc, score)] for qid, doc, score in rows} if carrier == "lists" else frame
    if carrier == "r.trec":
        run = tmp_path / carrier
        run.write_text("".join(f"{qid} Q0 {doc} 1 {score} t\n" for qid, doc, score in rows))
    elif carrier == "any order":
        run = pl.concat([frame, frame.select("qid", pl.col("doc_id") + "2", "score")])
    assert groupgt.evaluate(truth, run, ["recall"], limit=2).counts["extra"] == 1
    assert groupgt.evaluate(truth, run, ["recall"]).counts["extra"] == 1
    with pytest.raises(groupgt.DataError, match=r"'q9'.*extra=error"):
        groupgt.evaluate(truth, run, ["recall"], limit=1, policy={"extra": "error"})


def test_results_for_queries_that_are_left_out_alone_are_refused() -> None:
    with pytest.raises(groupgt.DataError, match="among the selected queries"):
        groupgt.evaluate({"q1": [["a"]], "q2": [["b"]]}, {"q2": ["b"]}, ["recall"], limit=1)
