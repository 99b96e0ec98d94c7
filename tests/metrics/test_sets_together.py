"""Alternatives that are sets needed together: (a1 and a2) or b."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt.formats.write import write_ground_truth
from groupgt.metrics.base import CONVENTIONS
from tests import laws
from tests.agreement import all_metrics

# (a1 and a2) or b; and c.
GROUPS: list[Any] = [[{"all": ["a1", "a2"]}, "b"], ["c"]]
METRICS = [
    *("recall.autorag", "recall.coverage", "complete.autorag", "complete.coverage"),
    *("hit_rate.autorag", "hit_rate.coverage", "mrr.autorag", "mrecall", "completion_rr"),
]


@pytest.mark.parametrize(
    ("ranking", "recall", "mrr", "completion"),
    [
        (["a1", "x", "a2", "c"], 1, (1 / 3 + 1 / 4) / 2, 1 / 4),  # the set stands at rank 3
        (["a2", "b", "a1"], 1 / 2, (1 / 2) / 2, 0),  # b meets the group first
        (["a1", "c"], 1 / 2, (1 / 2) / 2, 0),  # half a set meets nothing
        (["a1", "a1", "c", "a2"], 1, (1 / 4 + 1 / 3) / 2, 1 / 4),  # a repeat is no member more
        ([], 0, 0, 0),
    ],
)
def test_by_hand(ranking: list[str], recall: float, mrr: float, completion: float) -> None:
    result = groupgt.evaluate({"q": GROUPS}, {"q": ranking}, METRICS)
    assert result["recall.autorag"] == result["recall.coverage"] == recall
    assert result["complete.autorag"] == result["complete.coverage"] == result["mrecall"] == (recall == 1)
    assert result["hit_rate.autorag"] == (recall > 0)
    assert result["mrr.autorag"] == pytest.approx(mrr, abs=1e-15)
    assert result["completion_rr"] == completion
    assert groupgt.evaluate({"q": GROUPS}, {"q": ["a1", "x", "a2"]}, ["recall@2"])["recall@2"] == 0


def slow(groups: list[Any], ranking: list[str], metric: str, k: int | None) -> float:
    """The metrics by plain loops: a set of alternatives, each a set of members."""
    firsts: list[float] = []
    for group in groups:
        alternatives = [set(cell["all"]) if isinstance(cell, dict) else {cell} for cell in group["alternatives"]]
        ranks = [max(ranking.index(name) if name in ranking else np.inf for name in each) for each in alternatives]
        firsts.append(min(ranks) + 1)
    top = len(ranking) if k is None else k
    met = [rank <= top for rank in firsts]
    name = metric.partition(".")[0]
    if metric == "recall.coverage":
        weights = [group["weight"] for group in groups]
        return float(sum(w for w, is_met in zip(weights, met) if is_met) / sum(weights))
    wanted = len(groups) if k is None else min(k, len(groups))
    values = {
        "recall": sum(met) / len(met),
        "complete": float(all(met)),
        "hit_rate": float(any(met)),
        "mrr": sum(1 / rank for rank in firsts if rank <= top) / len(met),
        "mrecall": float(sum(met) >= wanted),
        "completion_rr": 1 / max(firsts) if all(met) else 0.0,
    }
    return float(values[name])


def batch(seed: int = 4, queries: int = 150) -> dict[str, tuple[list[Any], list[str]]]:
    rng = random.Random(seed)
    out = {}
    for number in range(queries):
        pool = [f"d{n}" for n in range(rng.choice((4, 8, 16)))]
        groups = []
        for _ in range(rng.randint(1, 4)):
            cells: list[Any] = [{"all": rng.sample(pool, rng.randint(1, 3))} for _ in range(rng.randint(0, 2))]
            cells += rng.sample(pool, rng.randint(0 if cells else 1, 2))
            groups.append({"alternatives": cells, "weight": rng.choice((1, 2.5))})
        out[f"q{number}"] = (groups, rng.choices([*pool, "x"], k=rng.choice((0, 3, 8, 15))))
    return out


def test_every_metric_that_takes_sets_agrees_with_slow_loops() -> None:
    rows = batch()
    truth, run = {qid: row[0] for qid, row in rows.items()}, {qid: row[1] for qid, row in rows.items()}
    for k in (None, 1, 3, 6):
        asked = [f"{metric}@{k}" if k else metric for metric in METRICS]
        for duplicates in ("penalize", "drop"):
            result = groupgt.evaluate(truth, run, asked, policy={"duplicates": duplicates})
            for text, metric in zip(asked, METRICS):
                for value, (groups, ranking) in zip(result.values[text], rows.values()):
                    seen = [*dict.fromkeys(ranking)]
                    if duplicates == "penalize":  # a repeat keeps its place
                        seen = [name if name not in ranking[:at] else f"-{at}" for at, name in enumerate(ranking)]
                    assert value == pytest.approx(slow(groups, seen, metric, k), abs=1e-12), (text, groups, ranking)
    for qid in list(rows)[::10]:
        for row in result.explain_dict(qid)["metrics"]:
            assert eval(row["worked"]) == pytest.approx(row["value"], abs=1e-9)


def test_laws_hold() -> None:
    rows: Any = batch(5, 40)
    metrics = [groupgt.parse_metric(name) for name in METRICS]

    def values(batch: Any, metrics: Any, policy: Any) -> Any:
        truth = {qid: groups for qid, (groups, _) in batch.items()}
        result = groupgt.evaluate(truth, {qid: ranking for qid, (_, ranking) in batch.items()}, list(metrics))
        return {metric: result.values[name] for name, metric in result.metrics.items()}

    rng = random.Random(1)
    for law in (laws.bounded, laws.alone):
        assert law(rows, rng, metrics, values) == []
    longer = {qid: (groups, [*ranking, "d1", "d2", "y"]) for qid, (groups, ranking) in rows.items()}
    never = [metric for metric in metrics if metric.name in ("recall", "complete", "hit_rate")]
    assert laws.no_better(rows, longer, never, values, slack=0.0) == []
    again = {qid: (groups, [*ranking, *ranking[:1]]) for qid, (groups, ranking) in rows.items()}
    other = {qid: (groups, [*ranking, *["y"][: len(ranking)]]) for qid, (groups, ranking) in rows.items()}
    assert laws.no_better(again, other, metrics, values) == []
    shuffled = {}
    for qid, (groups, ranking) in rows.items():
        mixed = [{**group, "alternatives": group["alternatives"][::-1]} for group in groups][::-1]
        for group in mixed:
            group["alternatives"] = [
                {"all": cell["all"][::-1]} if isinstance(cell, dict) else cell for cell in group["alternatives"]
            ]
        shuffled[qid] = (mixed, ranking)
    before, after = values(rows, metrics, None), values(shuffled, metrics, None)
    for metric in metrics:
        np.testing.assert_allclose(before[metric], after[metric], rtol=0, atol=1e-12)


def test_all_other_metrics_refuse_and_say_why() -> None:
    asked = [metric for metric in all_metrics() if metric.definition.queries == "answerable"]
    taken = {str(metric) for metric in asked if metric.formula.takes_sets}
    assert taken == set(METRICS)
    for metric in asked:
        if str(metric) not in taken:
            with pytest.raises(groupgt.MetricError, match="A set takes up several ranks"):
                groupgt.evaluate({"q": GROUPS}, {"q": ["a1"]}, [metric])
    with pytest.raises(groupgt.MetricError, match=r"ndcg.trec, map.autorag: not defined"):
        groupgt.evaluate({"q": GROUPS}, {"q": ["a1"]}, ["ndcg.trec", "recall", "map"])
    result = groupgt.evaluate({"q": GROUPS}, {"q": ["a1"]}, ["recall"])
    with pytest.raises(groupgt.MetricError, match=r"ndcg\.coverage: not defined"):
        result.explain("q", "ndcg.coverage")


# The rank that first meets each group of a query is the same under all of these, for the rankings below.
ALIKE: list[list[Any]] = [
    [["a"], ["b"], ["c"]],
    [["a", "d"], ["b"], ["c", "e", "f"]],
    [["a", {"id": "d", "grade": 3}], [{"id": "b", "grade": 2}, "e"], ["c", {"id": "x", "grade": 0}]],
]
RANKINGS = [list(names) for names in ("axbdce", "xbcyade", "xy", "cbadef")]


def is_defined_with_sets(metric: groupgt.Metric) -> bool:
    """Whether a metric means something where alternatives are sets: what `takes_sets` has to say of it.

    A set has a rank and nothing else: the largest of its members'. So a metric has to look at the first rank of each
    group alone, which `trec` does not know; and if ranking what is needed first gives 1, so has it with a set, for
    which no ideal leaves the ranks of its members.
    """
    if metric.convention == "trec":
        return False
    corpus = {name: f"word{name}" for name in "abcdefxy"}
    for ranking in RANKINGS:
        truth = {f"q{number}": groups for number, groups in enumerate(ALIKE)}
        values = groupgt.evaluate(truth, dict.fromkeys(truth, ranking), [metric], corpus=corpus).values[str(metric)]
        if not np.allclose(values, values[0], rtol=0, atol=1e-12):
            return False
    if groupgt.evaluate({"q": ALIKE[0]}, {"q": ["a", "b", "c"]}, [metric])[str(metric)] < 1:
        return True
    result = groupgt.evaluate({"q": [[{"all": ["a", "b"]}], ["c"]]}, {"q": ["a", "b", "c"]}, ["recall"])
    hits = result.labelled.hits
    return bool(metric.formula.function(hits, metric.cut(hits), **dict(metric.parameters))[0] == 1)


ASKED = [metric for metric in all_metrics() if not metric.parameters and metric.definition.queries == "answerable"]


@pytest.mark.parametrize("metric", ASKED, ids=str)
def test_whether_a_metric_takes_sets_is_what_its_formula_makes_of_them(metric: groupgt.Metric) -> None:
    assert metric.formula.takes_sets == is_defined_with_sets(metric)


def test_the_metrics_that_take_sets_are_named() -> None:
    with pytest.raises(groupgt.MetricError) as error:
        groupgt.evaluate({"q": GROUPS}, {"q": ["a1"]}, ["precision"])
    named = str(error.value).partition(". Use ")[2]
    assert "hit_rate (autorag, coverage), mrr.autorag, " in named
    every = {*METRICS, "abstains", "false_returns", "harmful", "clean"}
    assert {metric.partition(".")[0] for metric in every} == set(re.findall(r"\w{3,}", named)) - {"and", *CONVENTIONS}


def test_a_table_does_not_ask_for_a_metric_that_refuses() -> None:
    truth = {"q": [GROUPS[0], ["c", {"id": "x", "grade": 0}]]}
    result = groupgt.evaluate(truth, {"q": ["a1", "a2", "x"]}, ["recall@3"])
    assert result.judged() is None
    assert "0.5000" in str(result)


def test_explain_misses_depth_and_label() -> None:
    result = groupgt.evaluate({"q": GROUPS}, {"q": ["a1", "a1", "a2", "b", "c"]}, ["mrr", "recall"])
    rows = [line.split() for line in result.explain("q").splitlines()]
    assert ["group", "1:", "(a1", "and", "a2)", "or", "b"] in rows
    assert ["1", "a1", "(part)", "·"] in rows
    assert ["2", "a1", "(repeat)", "·"] in rows
    assert ["3", "a2", "1", "·"] in rows
    assert [row["hits"] for row in result.explain_dict("q")["results"]] == [[], [], [1], [1], [2]]
    assert result.explain_dict("q")["groups"] == GROUPS
    [row] = groupgt.misses({"q": GROUPS}, {"q": ["a1", "c"]}).queries
    assert row["groups"][0] == {
        "group": "group 1",
        "rank": None,
        "covered": False,
        "alternatives": ["(a1 and a2)", "b"],
    }
    assert groupgt.depth({"q": GROUPS}, {"q": ["a1", "c", "x", "a2"]}, 1.0)[0].depth == 4
    assert groupgt.label(GROUPS, ["a1", "x", "a2"], groups=True).tolist() == [[0, 0, 1], [0, 0, 0]]
    assert "ndcg" not in str(result.plot("depth").spec)
    runs = {"one": {"q": ["a1"]}, "two": {"q": ["b", "c"]}}
    assert groupgt.compare({"q": GROUPS}, runs, ["recall"], baseline="one").to_dict()


def test_a_set_of_one_is_its_member_and_members_may_be_anything() -> None:
    truth = groupgt.GroundTruth.of({"q": [[{"all": ["a", "a"]}, {"all": [{"id": "b"}], "grade": 2}]]})
    assert truth.set_of is None
    assert truth["q"] == [["a", {"id": "b", "grade": 2}]]
    assert truth.repeated_ids == 1
    places: Any = {"q": [[{"all": [{"doc": "d", "start": 0, "end": 9}, {"doc": "e", "start": 0, "end": 9}]}]]}
    found = [{"doc": "d", "start": 0, "end": 9}, {"doc": "e", "start": 2, "end": 9}]
    for run, recall in ((found, 1), (found[:1], 0)):
        assert groupgt.evaluate(places, {"q": run}, ["recall"], labeller="spans")["recall"] == recall
    mapping = {"a1": "d1", "a2": "d2", "b": "d3", "c": "d4", "z": "d2"}
    by_parent = {"use": "parents", "with": {"mapping": mapping}}
    assert groupgt.evaluate({"q": GROUPS}, {"q": ["a1", "z"]}, ["recall"], labeller=by_parent)["recall"] == 1 / 2
    # Members of one document are one: the set is met by it.
    same = {**mapping, "a2": "d1"}
    by_parent = {"use": "parents", "with": {"mapping": same}}
    assert groupgt.evaluate({"q": GROUPS}, {"q": ["a1", "z"]}, ["recall"], labeller=by_parent)["recall"] == 1 / 2


def test_grades_of_sets_and_sets_beside_their_members() -> None:
    groups: Any = {"q": [[{"all": ["a", "b"], "grade": 2}, "a"], [{"all": ["a", "b"], "grade": 0}]]}
    truth = groupgt.GroundTruth.of(groups)
    assert truth["q"] == groups["q"]
    assert truth.select([0]).digest == truth.digest
    result = groupgt.evaluate(groups, {"q": ["a", "b"]}, ["mrr"])
    assert result["mrr"] == 1
    assert groupgt.evaluate(groups, {"q": ["a", "b"]}, ["mrr"], policy={"level": 2})["mrr"] == 1 / 2
    vital: Any = {"q": [{"alternatives": [{"all": ["a", "b"]}], "importance": "vital"}, {"ids": ["c"]}]}
    only = groupgt.evaluate(vital, {"q": ["a", "b"]}, ["recall"], policy={"importance": "vital"})
    assert only["recall"] == 1


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ({"all": []}, "expected a set"),
        ({"all": "a"}, "expected a set"),
        ({"all": ["a", "b"], "id": "c"}, "expected a set"),
        ({"all": ["a", {"all": ["b", "c"]}]}, "sets cannot be nested"),
        ({"all": ["a", {"id": "b", "grade": 2}]}, "grades apply to the set"),
        ({"all": ["a", "b"], "grade": "x"}, "expected a grade"),
        ({"all": ["a", True]}, "expected an id"),
        ({"all": ["a", ""]}, "a group contains a blank id"),
    ],
)
def test_sets_at_fault(cell: Any, words: str) -> None:
    with pytest.raises(groupgt.DataError) as error:
        groupgt.GroundTruth.of({"q": [[cell]]})
    assert words in str(error.value)


def test_they_are_written_where_they_can_be(tmp_path: Path) -> None:
    truth = groupgt.GroundTruth.of({"q": [*GROUPS, [{"all": ["x", "y"], "grade": 3}]]})
    write_ground_truth(tmp_path / "t.jsonl", truth, "jsonl")
    again = groupgt.read_ground_truth(tmp_path / "t.jsonl")
    assert again["q"] == truth["q"]
    assert again.digest == truth.digest
    plain = groupgt.GroundTruth.of({"q": GROUPS})
    for kind in ("csv", "parquet", "trec-subtopics", "qrels-flat"):
        with pytest.raises(groupgt.DataError, match="relevant only together"):
            write_ground_truth(tmp_path / "other", plain, kind)
    with pytest.raises(groupgt.DataError, match="rechunk does not support sets"):
        groupgt.rechunk(truth, old={"a1": "text"}, new={"n": "text"})
    assert groupgt.GroundTruth.of({"q": [[{"all": {"b", "a"}}]]})["q"] == [[{"all": ["a", "b"]}]]


@pytest.mark.parametrize("engine", ["auto", "streaming"])
def test_carriers_agree(tmp_path: Path, engine: str) -> None:
    rows = batch(9, 60)
    truth = {qid: groups for qid, (groups, _) in rows.items()}
    run = {qid: [*dict.fromkeys(ranking)] for qid, (_, ranking) in rows.items()}
    expected = groupgt.evaluate(truth, run, METRICS)
    lines = [(qid, name, rank) for qid, names in run.items() for rank, name in enumerate(names, 1)]
    (tmp_path / "r.trec").write_text("".join(f"{q} Q0 {d} {r} {-r} t\n" for q, d, r in lines))
    (tmp_path / "r.jsonl").write_text(
        "".join(json.dumps({"qid": q, "doc_id": d, "rank": r}) + "\n" for q, d, r in lines)
    )
    (tmp_path / "r.csv").write_text("qid,doc_id,rank\n" + "".join(f"{q},{d},{r}\n" for q, d, r in lines))
    for name in ("r.trec", "r.jsonl", "r.csv"):
        found = groupgt.evaluate(truth, tmp_path / name, METRICS, engine=engine)
        for text in METRICS:
            assert found.values[text].tobytes() == expected.values[text].tobytes(), (name, text)


def test_an_experiment_says_at_once_which_metrics_refuse(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(json.dumps({"qid": "q", "query": "x", "retrieval_gt": GROUPS}) + "\n")
    (tmp_path / "r.trec").write_text("q Q0 a1 1 2 t\nq Q0 a2 2 1 t\n")
    text = (
        "version: 1\nname: e\ndatasets:\n  d: {ground_truth: t.jsonl}\nsystems:\n"
        "  r: {use: results, with: {path: r.trec}}\nevaluate: {metrics: [recall, METRIC]}\n"
        "output: {folder: out, formats: [json]}\ncache: null\n"
    )
    (tmp_path / "e.yaml").write_text(text.replace("METRIC", "ndcg"))
    with pytest.raises(groupgt.GroupgtError, match=r"e.yaml:7:.*evaluate.metrics: dataset 'd': .*ndcg.autorag"):
        groupgt.run_experiment(tmp_path / "e.yaml")
    (tmp_path / "e.yaml").write_text(text.replace("METRIC", "mrr"))
    outcome = groupgt.run_experiment(tmp_path / "e.yaml")
    assert outcome.evaluations["d"]["r"]["mrr"] == (1 / 2) / 2
