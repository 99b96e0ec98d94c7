"""What counts as relevant, and which groups and queries count: `level`, `undefined`, `unmeetable`, `importance`."""

from __future__ import annotations

import json
import random
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groupgt
from tests import laws
from tests.agreement import TOLERANCE, all_metrics, at, random_query
from tests.reference import reference

# Five judged queries: none has a relevant document in the third, and the fifth has no results.
COMMENTED = """\
# judged by hand
1 0 a 1
1 0 b 1
2 0 c 1
3 0 d 0
# nothing relevant above
4 0 e 1
4 0 f 0
5 0 g 1
"""
RUN = """\
1 Q0 a 1 9 r
1 Q0 x 2 8 r
1 Q0 b 3 7 r
2 Q0 x 1 9 r
2 Q0 c 2 8 r
3 Q0 d 1 9 r
4 Q0 f 1 9 r
4 Q0 x 2 8 r
4 Q0 y 3 7 r
4 Q0 e 4 6 r
"""


@pytest.fixture
def commented(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "qrels").write_text(COMMENTED)
    (tmp_path / "run.trec").write_text(RUN)
    return tmp_path / "qrels", tmp_path / "run.trec"


def test_trec_counts_a_query_without_relevant_documents_as_0(commented: tuple[Path, Path]) -> None:
    """map: (1/1 + 2/3)/2 = 5/6, 1/2, nothing of nothing, and 1/4; query 5 has no results and is left out."""
    result = groupgt.evaluate(*commented, ["map"], convention="trec", policy="trec")
    assert result["map"] == pytest.approx((5 / 6 + 1 / 2 + 0 + 1 / 4) / 4, abs=1e-15)
    assert result.values["map"][2] == 0
    assert result.counts["evaluated"] == 4
    assert result.counts["undefined"] == 0
    assert result.counts["missing"] == 1
    left_out = groupgt.evaluate(*commented, ["map"], convention="trec", policy={"preset": "trec", "undefined": "skip"})
    assert left_out["map"] == pytest.approx((5 / 6 + 1 / 2 + 1 / 4) / 3, abs=1e-15)
    assert left_out.counts["undefined"] == 1
    assert np.isnan(left_out.values["map"][2])
    # trec_eval -c: what has no results counts as 0 as well.
    complete = groupgt.evaluate(*commented, ["map"], convention="trec", policy={"preset": "trec", "missing": "zero"})
    assert complete["map"] == pytest.approx((5 / 6 + 1 / 2 + 0 + 1 / 4 + 0) / 5, abs=1e-15)


def test_what_has_no_ground_truth_at_all_stays_undefined() -> None:
    result = groupgt.evaluate({"q": [], "r": [["a"]]}, {"q": ["a"], "r": ["a"]}, ["recall"], policy="trec")
    assert result.counts["undefined"] == 1
    assert result["recall"] == 1


IRRELEVANT: dict[str, Any] = {"q": [{"alternatives": [{"id": "a", "grade": 0}]}]}


def test_a_query_that_counts_as_0_is_explained_and_looked_through() -> None:
    asked = [metric for metric in all_metrics() if metric.definition.queries == "answerable"]
    metrics = [str(metric) for metric in asked if not metric.definition.reads_texts]
    result = groupgt.evaluate(IRRELEVANT, {"q": ["a", "b"]}, metrics, policy={"undefined": "zero"})
    for text, mean in result.means.items():
        if text.startswith("rbp_resid"):
            assert 0 < mean < 1
        else:
            assert mean == {"num_ret": 2}.get(text, 0.5 if text.startswith(("judged", "unj")) else 0), text
    text = result.explain("q")
    assert "no group with a relevant alternative: the query counts as 0" in text
    assert "undefined" not in text
    found = result.misses(5)
    assert found.evaluated == 0
    assert found.queries == []
    empty = groupgt.evaluate(IRRELEVANT, {"q": []}, ["redundancy", "recall"], policy={"undefined": "zero"})
    assert np.isnan(empty["redundancy"])
    assert empty["recall"] == 0
    depth = groupgt.depth(IRRELEVANT, {"q": ["a"]}, 1.0, policy={"undefined": "zero"})[0]
    assert (depth.queries, depth.depth, depth.reached) == (1, None, 0)


GRADED: dict[str, Any] = {
    "q": [
        {"alternatives": [{"id": "a", "grade": 1}, {"id": "b", "grade": 2}], "name": "one"},
        {"alternatives": [{"id": "c", "grade": 1}], "name": "two"},
    ]
}


def test_level_says_from_which_grade_on_documents_are_relevant() -> None:
    """With level=2 only b is relevant, and the second group has nothing left; a and c are judged, not relevant."""
    run = {"q": ["a", "b", "c"]}
    metrics = ["recall.autorag", "recall.trec", "mrr.trec", "precision.trec", "bpref", "judged", "ndcg.trec", "dcg"]
    result = groupgt.evaluate(GRADED, run, metrics, policy={"level": 2})
    assert result["recall.autorag"] == 1
    assert result["recall.trec"] == 1
    assert result["mrr.trec"] == 1 / 2
    assert result["precision.trec"] == 1 / 3
    # One judged non-relevant above b, R = 1, N = 2: 1 − min(1, 1)/min(2, 1) = 0.
    assert result["bpref"] == 0
    assert result["judged"] == 1
    # ndcg and dcg look at grades, as trec_eval's do under -l.
    dcg = 1 + 2 / log2(3) + 1 / 2
    assert result["dcg"] == pytest.approx(dcg, abs=1e-15)
    assert result["ndcg.trec"] == pytest.approx(dcg / (2 + 1 / log2(3) + 1 / 2), abs=1e-15)
    assert result.counts["irrelevant_groups"] == 1
    assert "policy level=2" in result.footer()
    lenient = groupgt.evaluate(GRADED, run, metrics, policy={"level": 1})
    assert lenient.means == groupgt.evaluate(GRADED, run, metrics).means


def test_what_is_below_the_level_is_shown_as_not_relevant() -> None:
    result = groupgt.evaluate(GRADED, {"q": ["a", "b"]}, ["recall", "dcg", "bpref"], policy={"level": 2})
    rows = [line.split() for line in result.explain("q").splitlines()]
    assert ["1", "a", "·", "not", "relevant"] in rows
    assert ["2", "b", "1"] in [row[:3] for row in rows]
    assert result.explain_dict("q")["results"][0]["hits"] == []
    found = groupgt.misses(GRADED, {"q": ["x"]}, policy={"level": 2})
    assert found.queries[0]["groups"] == [
        {"group": "group 1 (one)", "rank": None, "covered": False, "alternatives": ["b"]}
    ]


def test_what_hits_a_group_is_not_shown_as_not_relevant() -> None:
    groups = {"q": [["a", {"id": "b", "grade": 0}], ["b", {"id": "c", "grade": 0}]]}
    for last, shown in (("b", False), ("c", True)):
        lines = groupgt.evaluate(groups, {"q": ["a", last]}, ["recall"]).explain("q").splitlines()
        [headers] = [line.split() for line in lines if line.startswith("rank")]
        assert ("judged" in headers) == shown


@pytest.mark.parametrize("level", [0, -1, "x", float("nan"), True, 2.0**32])
def test_levels_that_are_none(level: Any) -> None:
    with pytest.raises(groupgt.ConfigError, match="policy level: expected a grade above 0"):
        groupgt.Policy.of({"level": level})


NUGGETS: dict[str, Any] = {
    "q": [
        {"alternatives": ["a"], "name": "supported", "weight": 3},
        {"alternatives": [], "name": "unsupported"},
        {"alternatives": [{"id": "b", "grade": 0}], "name": "refuted", "weight": 2},
    ]
}


def test_groups_that_cannot_be_met_count_where_that_is_asked() -> None:
    run = {"q": ["x", "a", "b"]}
    metrics = ["recall", "recall.coverage", "complete", "mrr", "mrr.coverage", "ndcg.coverage", "mrecall@1", "map_ia"]
    result = groupgt.evaluate(NUGGETS, run, [*metrics, "alpha_ndcg"], policy={"empty_groups": "unmeetable"})
    assert result["recall"] == 1 / 3
    assert result["recall.coverage"] == 3 / 6
    assert result["complete"] == 0
    assert result["mrecall@1"] == 0
    assert result["mrr"] == pytest.approx((1 / 2) / 3, abs=1e-15)
    assert result["map_ia"] == pytest.approx((1 / 2) / 3)
    # Ideals have what can be met alone: a at rank 1.
    assert result["mrr.coverage"] == 1 / 2
    assert result["ndcg.coverage"] == pytest.approx(1 / log2(3), abs=1e-15)
    assert result.counts["empty_groups"] == result.counts["irrelevant_groups"] == 0
    text = result.explain("q", ["novelty_ndcg", "recall.coverage", "map_ia", "ndcg.coverage"])
    assert "3 / (3 + 1 + 2)" in text
    assert "group 2 (unsupported): no alternatives" in text
    [row] = result.misses(1).queries
    assert [group["group"] for group in row["groups"]] == [
        "group 1 (supported)",
        "group 2 (unsupported)",
        "group 3 (refuted)",
    ]
    assert [group["alternatives"] for group in row["groups"]] == [["a"], [], []]
    unsupported = next(line for line in result.misses(1).table().splitlines() if "unsupported" in line)
    assert unsupported.split()[-5:] == ["cannot", "be", "covered", "no", "alternatives"]
    with pytest.raises(AssertionError, match=r"misses group 2 \(unsupported\): cannot be covered; misses group 3"):
        result.assert_at_least({"complete": 1})
    dropped = groupgt.evaluate(NUGGETS, run, metrics, policy={"empty_groups": "drop"})
    assert dropped["recall"] == 1
    assert dropped.counts["empty_groups"] == 1
    assert dropped.counts["irrelevant_groups"] == 1
    with pytest.raises(groupgt.DataError, match="empty_groups=unmeetable"):
        groupgt.evaluate(NUGGETS, run, metrics)


def test_a_query_none_of_whose_groups_can_be_met_is_undefined_or_0() -> None:
    nothing = {"q": [{"alternatives": [{"id": "b", "grade": 0}], "name": "refuted"}], "r": [["a"]]}
    run = {"q": ["b"], "r": ["a"]}
    result = groupgt.evaluate(nothing, run, ["recall"], policy={"empty_groups": "unmeetable"})
    assert result["recall"] == 1
    assert result.counts["undefined"] == 1
    zero = groupgt.evaluate(nothing, run, ["recall"], policy={"empty_groups": "unmeetable", "undefined": "zero"})
    assert zero["recall"] == 1 / 2


def test_rows_of_qrels_are_no_groups_that_must_be_met(tmp_path: Path, commented: tuple[Path, Path]) -> None:
    for name in ("recall", "complete"):
        policy = {"empty_groups": "unmeetable"}
        assert groupgt.evaluate(*commented, [name], policy=policy).means == groupgt.evaluate(*commented, [name]).means
    truth = groupgt.read_ground_truth(commented[0], policy=groupgt.Policy(empty_groups="unmeetable"))
    from groupgt.formats.write import write_ground_truth

    write_ground_truth(tmp_path / "again.jsonl", truth, "jsonl")
    again = groupgt.read_ground_truth(tmp_path / "again.jsonl", policy=groupgt.Policy(empty_groups="unmeetable"))
    assert again.shape == "flat"
    assert again.columns == {}
    assert len(again.judgments.group_query) == 5
    # Of subtopics and of groups in Python each counts.
    (tmp_path / "subtopics").write_text("1 1 a 1\n1 2 b 0\n")
    subtopics = groupgt.evaluate(
        tmp_path / "subtopics", {"1": ["a"]}, ["recall"], policy=policy, truth_format="trec-subtopics"
    )
    assert subtopics["recall"] == 1 / 2


def test_groups_without_alternatives_are_written_where_they_can_be(tmp_path: Path) -> None:
    from groupgt.formats.write import write_ground_truth

    truth = groupgt.GroundTruth.of(NUGGETS, groupgt.Policy(empty_groups="unmeetable"))
    write_ground_truth(tmp_path / "truth.jsonl", truth, "jsonl")
    policy = groupgt.Policy(empty_groups="unmeetable")
    again = groupgt.read_ground_truth(tmp_path / "truth.jsonl", policy=policy)
    assert again["q"] == truth["q"] == NUGGETS["q"]
    assert again.select([0])["q"] == truth["q"]
    plain = groupgt.GroundTruth.of({"q": [["a"], []]}, policy)
    assert groupgt.GroundTruth.of({"q": [["a"], []]}, {"empty_groups": "unmeetable"})["q"] == plain["q"]
    with pytest.raises(groupgt.DataError, match="cannot store groups without alternatives"):
        write_ground_truth(tmp_path / "truth.csv", plain, "csv")


IMPORTANT: dict[str, Any] = {
    "q": [
        {"alternatives": ["a"], "importance": "vital"},
        {"alternatives": ["b"], "importance": "okay", "name": "aside"},
        {"alternatives": [{"text": "c"}]},
    ],
    "r": [{"alternatives": ["d"], "importance": "okay"}],
}


def test_only_groups_of_an_importance_are_asked_for_where_that_is_said() -> None:
    truth = {"q": IMPORTANT["q"][:2], "r": IMPORTANT["r"]}
    run = {"q": ["a", "x", "d"], "r": ["d"]}
    vital = groupgt.evaluate(truth, run, ["recall"], policy={"importance": ["vital"]})
    assert vital["recall"] == 1
    assert vital.counts["undefined"] == 1
    assert vital.counts["evaluated"] == 1
    assert "policy importance=vital" in vital.footer()
    both = groupgt.evaluate(truth, run, ["recall"], policy={"importance": "vital+okay"})
    assert both["recall"] == groupgt.evaluate(truth, run, ["recall"])["recall"] == (1 / 2 + 1) / 2
    named = groupgt.evaluate(truth, run, ["recall"], policy={"importance": "okay"})
    assert named.truth["q"] == [{"alternatives": ["b"], "name": "aside", "importance": "okay"}]
    assert groupgt.GroundTruth.of(IMPORTANT).under(groupgt.Policy(importance=("okay",))).forms == [None, None]


def test_a_judged_query_without_the_importance_may_count_as_0() -> None:
    truth, run = {**IMPORTANT, "none": []}, {"q": ["a"], "r": ["d"], "none": ["d"]}
    policy = {"importance": ["vital"], "undefined": "zero"}
    found = groupgt.evaluate(truth, run, ["recall"], policy=policy)
    # q has its vital group; r is judged, and has none; nothing is known of the last.
    assert np.isnan(found.values["recall"]).tolist() == [False, False, True]
    assert found["recall"] == 1 / 2
    assert found.truth.select([1, 2]).judgments.defined.tolist() == [True, False]


@pytest.mark.parametrize(
    ("truth", "importance", "words"),
    [
        (
            IMPORTANT,
            ["vitale"],
            "no groups with importance 'vitale'; its groups have vital or okay (did you mean 'vital'?)",
        ),
        ({"q": [["a"]]}, ["vital"], "no groups with importance 'vital'; none of its groups has an importance"),
        (IMPORTANT, [1], "expected a list of importances, such as [vital], found [1]"),
        (IMPORTANT, 5, "expected a list of importances"),
        (IMPORTANT, "vital+", "expected a list of importances"),
    ],
)
def test_importances_that_are_none(truth: Any, importance: Any, words: str) -> None:
    with pytest.raises(groupgt.ConfigError) as error:
        groupgt.evaluate(truth, {"q": ["a"]}, ["recall"], policy={"importance": importance})
    assert words in str(error.value)


def test_importance_is_kept_in_files_that_can_hold_it(tmp_path: Path) -> None:
    from groupgt.formats.write import write_ground_truth

    truth = groupgt.GroundTruth.of({"q": IMPORTANT["q"][:2]})
    assert write_ground_truth(tmp_path / "truth.jsonl", truth, "jsonl") == []
    assert groupgt.read_ground_truth(tmp_path / "truth.jsonl")["q"] == IMPORTANT["q"][:2]
    assert "the importance of groups" in write_ground_truth(tmp_path / "truth.csv", truth, "csv")
    lost = write_ground_truth(tmp_path / "truth.parquet", truth, "parquet")
    assert lost == ["the importance of groups", "the names of groups"]
    assert groupgt.read_ground_truth(tmp_path / "truth.parquet")["q"] == [["a"], ["b"]]


def test_parquet_keeps_texts_and_columns_beside_groups_that_lose_their_names(tmp_path: Path) -> None:
    from groupgt.formats.write import write_ground_truth

    row = {"qid": "q", "query": "which?", "kind": "hard", "retrieval_gt": IMPORTANT["q"][:2]}
    (tmp_path / "truth.jsonl").write_text(json.dumps(row) + "\n")
    write_ground_truth(tmp_path / "truth.parquet", groupgt.read_ground_truth(tmp_path / "truth.jsonl"), "parquet")
    back = groupgt.read_ground_truth(tmp_path / "truth.parquet")
    assert (back["q"], list(back.texts), dict(back.columns)) == ([["a"], ["b"]], ["which?"], {"kind": ["hard"]})


POLICIES: list[dict[str, Any]] = [
    {"level": 2, "undefined": "zero"},
    {"level": 1, "empty_groups": "unmeetable"},
    {"level": 0.5, "empty_groups": "unmeetable", "undefined": "zero"},
]


@pytest.mark.parametrize(
    "policy", [POLICIES[2], *(pytest.param(each, marks=pytest.mark.property) for each in POLICIES[:2])], ids=str
)
def test_every_metric_agrees_with_the_slow_reference(policy: dict[str, Any]) -> None:
    rng = random.Random(7)
    batch = {f"q{number}": random_query(rng) for number in range(60)}
    truth = {qid: groups for qid, (groups, _) in batch.items()}
    run = {qid: ranking for qid, (_, ranking) in batch.items()}
    metrics = [at(each, k) for each in all_metrics() for k in (None, 3)]
    result = groupgt.evaluate(truth, run, metrics, policy=policy, corpus=laws.WORDS)
    asked = {
        "level": policy["level"],
        "unmeetable": policy.get("empty_groups") == "unmeetable",
        "zero": policy.get("undefined") == "zero",
        "highest": max(result.truth.grade.tolist()),
    }
    for text, metric in result.metrics.items():
        for value, (groups, ranking) in zip(result.values[text].tolist(), batch.values()):
            name, convention, parameters, k = metric.name, metric.convention, metric.parameters, metric.cutoff
            expected = reference(groups, ranking, name, convention, dict(parameters), k, **asked)  # type: ignore[arg-type]
            assert (expected is None) == bool(np.isnan(value)), (text, groups, ranking)
            if expected is not None:
                assert abs(value - expected) <= TOLERANCE * max(1, abs(expected)), (text, groups, ranking)
    for number in range(0, 60, 10):
        for row in result.explain_dict(f"q{number}")["metrics"]:
            if row["value"] is not None and row["worked"] is not None:
                worked = eval(row["worked"], {"log2": log2, "min": min})
                assert worked == pytest.approx(row["value"], abs=1e-9), row


@pytest.mark.filterwarnings("ignore:.* not in the corpus")
@pytest.mark.slow
def test_laws_hold_under_them() -> None:
    rng = random.Random(3)
    batch = {f"q{number}": random_query(rng) for number in range(40)}

    def values(batch: Any, metrics: Any, policy: Any) -> Any:
        truth = {qid: groups for qid, (groups, _) in batch.items()}
        run = {qid: ranking for qid, (_, ranking) in batch.items()}
        given = {"level": 2, "empty_groups": "unmeetable", "undefined": "zero", **(policy or {})}
        result = groupgt.evaluate(truth, run, list(metrics), policy=given, corpus=laws.WORDS)
        return {metric: result.values[name] for name, metric in result.metrics.items()}

    metrics = laws.registered(texts=False)
    assert laws.always_bounded(batch, rng, metrics, values) == []
    assert laws.never_falling(batch, rng, values) == []
    for law in (laws.order, laws.repeats, laws.appending, laws.alone):
        assert law(batch, rng, metrics, values) == []


def test_carriers_agree_on_them(tmp_path: Path) -> None:
    rng = random.Random(5)
    batch = {f"q{number}": random_query(rng) for number in range(60)}
    truth = {qid: groups for qid, (groups, _) in batch.items()}
    run = {qid: [*dict.fromkeys(ranking)] for qid, (_, ranking) in batch.items()}
    lines = [json.dumps({"qid": qid, "doc_id": d, "rank": r}) for qid, ds in run.items() for r, d in enumerate(ds, 1)]
    (tmp_path / "run.jsonl").write_text("\n".join(lines) + "\n")
    rows = [f"{qid} Q0 {d} {r} {100 - r} t" for qid, ds in run.items() for r, d in enumerate(ds, 1)]
    (tmp_path / "run.trec").write_text("\n".join(rows) + "\n")
    metrics = ["recall", "ndcg.trec", "bpref", "map.coverage", "alpha_ndcg"]
    policy = {"level": 2, "empty_groups": "unmeetable", "undefined": "zero"}
    expected = groupgt.evaluate(truth, run, metrics, policy=policy)
    for name in ("run.jsonl", "run.trec"):
        for engine in ("auto", "streaming"):
            found = groupgt.evaluate(truth, tmp_path / name, metrics, policy=policy, engine=engine)
            for text in metrics:
                assert found.values[text].tobytes() == expected.values[text].tobytes(), (name, engine, text)


def test_a_query_alone_is_evaluated_as_beside_the_others() -> None:
    groups = [
        {"alternatives": [{"id": "a", "grade": 2}], "importance": "vital"},
        {"alternatives": [{"id": "n", "grade": 0}], "importance": "vital"},
    ]
    other = [{"alternatives": ["b"], "importance": "okay"}]
    policy = groupgt.Policy(unjudged="drop", importance=("vital", "okay"))
    # Without the unjudged u, b is first.
    truth = groupgt.GroundTruth.of({"q": groups, "r": other}, policy=policy).under(policy).select([1])
    assert groupgt.evaluate(truth, {"r": ["u", "b"]}, ["mrr"], policy=policy)["mrr"] == 1
    with pytest.raises(groupgt.ConfigError, match="non-relevant"):
        groupgt.evaluate({"r": other}, {"r": ["u", "b"]}, ["mrr"], policy="unjudged=drop")
