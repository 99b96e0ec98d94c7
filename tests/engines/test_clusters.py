"""Results on a cluster are measured as those of a frame: one law, and the faults that only a cluster has."""

from __future__ import annotations

import random
import re
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import groupgt
from groupgt.evaluation.sources import labeller_of
from tests.engines import fake
from tests.engines.fake import Rows
from tests.labellers.slow import World, frame_of
from tests.labellers.test_against_loops import LARGE

pytest.importorskip("pyarrow", reason="the extra groupgt[frames] is not installed")

METRICS = ["recall@3", "precision", "mrr", "ndcg@5", "map", "judged@3"]
# Not AutoRAG's arithmetic, which is all that duplicates=keep takes.
OTHERS = ["ndcg.coverage@5", "mrr.coverage", "map.trec", "alpha_ndcg@5", "bpref"]
BUDGETS = [[], ["recall@60tokens"], ["precision@90chars", "judged@90chars"], ["recall@2calls"], ["recall@2.5score"]]
CONTENTS = ["recall.contents", "f1.contents@3"]
POLICIES = st.fixed_dictionaries(
    {
        "duplicates": st.sampled_from(("penalize", "penalize", "drop", "drop", "keep", "error")),
        "ties": st.sampled_from(("id", "input")),
        "missing": st.sampled_from(("zero", "zero", "skip", "skip", "error")),
        "extra": st.sampled_from(("ignore", "ignore", "ignore", "error")),
        "unjudged": st.sampled_from(("nonrelevant", "nonrelevant", "drop")),
        "undefined": st.sampled_from(("skip", "zero")),
        "empty_groups": st.sampled_from(("error", "unmeetable")),
        "level": st.sampled_from((None, None, 1, 2)),
    }
)
SHAPES = ("score", "tied", "rank", "calls", "nested", "distance")
# What is looked for among the first results, or in all of them, is another thing on a cluster.
SAMPLED = ("nearly match", "no result is from a ground truth document", "does not recognize", "matches no results")


@pytest.fixture(autouse=True, scope="module")
def cluster() -> Iterator[None]:
    with fake.cluster():
        yield


def results(world: World, rng: random.Random, shape: str) -> pl.DataFrame:
    """The rows of a world, shuffled, with lengths, and in the order of scores, ranks, calls or lists."""
    rows = frame_of(world.run, rng)
    size = len(rows)
    lengths = {unit: [rng.randint(0, 50) for _ in range(size)] for unit in ("tokens", "chars")}
    rows = rows.with_columns(**{unit: pl.Series(cells, dtype=pl.Int64) for unit, cells in lengths.items()})
    if shape == "tied":
        return rows.with_columns((pl.col("score") / 3).floor())
    if shape == "rank":
        return rows.with_columns(rank=pl.col("score").rank(descending=True).over("qid").cast(pl.Int64)).drop("score")
    if shape == "calls":
        return rows.with_columns(call=pl.Series([rng.randint(1, 3) for _ in range(size)], dtype=pl.Int64))
    if shape == "nested" and "start" not in rows.columns:
        names = {"doc_id": "retrieved_ids", "text": "retrieved_contents", "parent": "retrieved_parents"}
        names |= {unit: f"retrieved_{unit}" for unit in lengths} | {"score": "retrieve_scores"}
        lists = [pl.col(name).alias(names[name]) for name in rows.columns if name in names]
        return rows.sort("score", descending=True).group_by("qid", maintain_order=True).agg(lists)
    return rows


def kinds(lines: list[str]) -> set[str]:
    """Errors without the names and numbers in which those of one kind differ."""
    return {re.sub(r"\(.* (times|like this); also at .*|'[^']*'|-?[0-9][0-9.,]*", "", line).rstrip() for line in lines}


def has_ties(rows: pl.DataFrame, ties: str) -> bool:
    names = {"qid", "score", "call", *(["doc_id"] if ties == "id" else [])}
    columns = [name for name in rows.columns if name in names]
    return "score" in rows.columns and bool(rows.select(columns).is_duplicated().any())


def outcome(truth: Any, run: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """All that an evaluation says, or the error without numbers of rows; and the warnings."""
    found: dict[str, Any] = {"lines": []}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            evaluation = groupgt.evaluate(truth, run, **asked)
        except groupgt.GroupgtError as error:
            lines = [re.sub(r": row [0-9]+(?=: |, |\))", "", line) for line in error.faults]
            return {"lines": sorted(lines)}
        hits = evaluation.labelled.hits
        found["values"] = {text: column.view(np.int64).tolist() for text, column in evaluation.values.items()}
        found["hits"] = [getattr(hits, name).tolist() for name in ("query", "rank", "alternative", "repeat", "length")]
        found["counts"] = evaluation.counts
        found["footer"] = evaluation.footer()
        if evaluation.labelled.present.any():
            qid = evaluation.truth.qids[int(np.argmax(evaluation.labelled.present))]
            found["explained"] = evaluation.explain(qid)
    texts = {str(each.message) for each in caught if issubclass(each.category, groupgt.GroupgtWarning)}
    found["warnings"] = sorted(text for text in texts if not any(part in text for part in SAMPLED))
    return found


def chosen(world: World, rng: random.Random, names: list[str], share: float) -> dict[str, list[str]]:
    """For some queries, a few results that no group names."""
    texts = {qid: str(groups) for qid, groups in world.truth.items() if rng.random() < share}
    return {
        qid: [name for name in rng.sample(names, min(3, len(names))) if name not in text] for qid, text in texts.items()
    }


def same(world: World, rng: random.Random, policy: dict[str, Any], shape: str, budget: list[str]) -> None:
    rows = results(world, rng, shape)
    if shape == "rank" and "score" in "".join(budget):
        budget = []  # refused without looking at rows, and elsewhere because of what ranks look like
    ids = rows["doc_id" if "doc_id" in rows.columns else "retrieved_ids"].explode().unique().sort().to_list()
    labeller = labeller_of(world.labeller).name
    if labeller != "id":
        policy = {**policy, "unjudged": "nonrelevant"}
    out = chosen(world, rng, ids, 0.3)
    named = [name for names in out.values() for name in names]
    harmful = chosen(world, rng, [name for name in ids if name not in named], 0.3) if labeller == "id" else {}
    truth = groupgt.GroundTruth.of(world.truth, {"empty_groups": "drop"}, excluded_ids=out, harmful_ids=harmful)
    asked: dict[str, Any] = {
        "metrics": [*METRICS, *(OTHERS if policy["duplicates"] != "keep" else []), *budget],
        "convention": "autorag",
        "policy": policy,
        "labeller": world.labeller,
        "corpus": world.corpus,
        "scores": "ascending" if shape == "distance" else "descending",
    }
    if labeller == "id":
        asked["metrics"] += ["harmful@3"]
    expected = outcome(truth, rows, asked)
    for bucket in (1, 7, 500):
        found = outcome(truth, Rows(rows), {**asked, "engine": {"use": "auto", "with": {"bucket": bucket}}})
        if any("have no order" in line for line in found["lines"]):
            assert has_ties(rows, policy["ties"])
        elif bucket < 500 and expected["lines"]:
            # Each bucket says what is wrong in it first.
            assert kinds(expected["lines"]) <= kinds(found["lines"])
        else:
            assert found == expected


@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.integers(0, 2**32), st.sampled_from(sorted(LARGE)), POLICIES, st.sampled_from(SHAPES), st.sampled_from(BUDGETS)
)
def test_a_cluster_says_what_a_frame_says(
    seed: int, which: str, policy: dict[str, Any], shape: str, budget: list[str]
) -> None:
    rng = random.Random(seed)
    same(LARGE[which](rng), rng, policy, shape, budget)


TRUTH = {"q1": [["a", "b"], ["c"]], "q2": [["d"]]}
FRAME = pl.DataFrame({"qid": ["q1", "q1", "q2"], "doc_id": ["a", "x", "d"], "score": [0.9, 0.8, 0.5]})


def test_a_worker_without_groupgt_or_with_another_version_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    version = groupgt.__version__
    real = fake.FakeFrame.each

    def elsewhere(module: Any) -> Any:
        def each(*given: Any) -> Iterator[Any]:
            with monkeypatch.context() as patch:
                patch.setitem(sys.modules, "groupgt", module)
                answers = list(real(*given))
            yield from answers

        return each

    other = types.ModuleType("groupgt")
    other.__version__ = "0.0.9"  # type: ignore[attr-defined]
    for module, told in ((None, "no groupgt"), (other, "groupgt 0.0.9")):
        monkeypatch.setattr(fake.FakeFrame, "each", elsewhere(module))
        message = f"results: expected groupgt {version} on every cluster worker, found {told}; install that version"
        with pytest.raises(groupgt.ConfigError, match=re.escape(message)):
            groupgt.evaluate(TRUTH, Rows(FRAME), ["mrr"])


def test_only_hits_counts_and_a_few_names_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real = fake.FakeFrame.each

    def each(*given: Any) -> Iterator[Any]:
        for bucket, data in real(*given):
            sizes.append(len(data))
            yield bucket, data

    monkeypatch.setattr(fake.FakeFrame, "each", each)
    for others in (10, 10_000):
        ids = ["a", *(f"a document of no group {number}" for number in range(others))]
        rows = pl.DataFrame({"qid": ["q1"] * len(ids), "doc_id": ids, "rank": range(len(ids))})
        assert groupgt.evaluate(TRUTH, Rows(rows), ["mrr"])["mrr"] == 0.25
    assert sizes[0] == pytest.approx(sizes[1], abs=100)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (FRAME.rename({"qid": "query"}), "results on a cluster need a column of query ids"),
        (FRAME.drop("score"), "score"),
        (FRAME.with_columns(score=pl.lit("high")), "expected numbers in the 'score' column"),
        (FRAME.with_columns(trial=1), "trials cannot stay on a cluster"),
        (FRAME.drop("score").with_columns(rank=pl.Series([1, 2, 1])), "a score threshold needs a score"),
    ],
)
def test_what_a_cluster_cannot_read_is_refused_at_once(
    rows: pl.DataFrame, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake.FakeFrame, "each", None)
    with pytest.raises(groupgt.GroupgtError, match=told):
        groupgt.evaluate(TRUTH, Rows(rows), ["recall@0.5score"])


def test_the_order_of_rows_decides_nothing() -> None:
    tied = FRAME.with_columns(score=1.0)
    with pytest.raises(groupgt.ConfigError, match=r"no order that .* \(ties=input\) of query 'q1'; choose ties=id, or"):
        groupgt.evaluate(TRUTH, Rows(tied), ["mrr"], policy={"ties": "input"})
    assert groupgt.evaluate(TRUTH, Rows(tied), ["mrr"])["mrr"] == groupgt.evaluate(TRUTH, tied, ["mrr"])["mrr"]
    # Results of one document that differ in what is matched.
    places = pl.DataFrame({"qid": ["q"] * 2, "doc_id": ["d"] * 2, "score": [1.0] * 2, "start": [0, 9], "end": [5, 12]})
    truth = {"q": [[{"doc": "d", "start": 0, "end": 5}]]}
    with pytest.raises(groupgt.ConfigError, match="equal scores and ids of query 'q'; add a rank column"):
        groupgt.evaluate(truth, Rows(places), ["mrr"], labeller="spans")
    ranked = places.drop("score").with_columns(rank=pl.Series([2, 1]))
    assert groupgt.evaluate(truth, Rows(ranked), ["mrr"], labeller="spans")["mrr"] == 0.5


def test_metrics_over_contents() -> None:
    rows = FRAME.with_columns(contents=pl.Series(["cat owl", "dog", "cat"]))
    metrics = ["token_precision@2", "token_recall", "token_f1"]
    corpus = {"a": "cat owl", "b": "cat", "c": "dog dog", "d": "cat cow"}
    expected = groupgt.evaluate(TRUTH, rows, metrics, corpus=corpus)
    assert groupgt.evaluate(TRUTH, Rows(rows), metrics, corpus=corpus).means == expected.means
    assert expected["token_f1"] > 0


def test_trials_and_ground_truth_on_a_cluster() -> None:
    other = FRAME.with_columns(score=-pl.col("score"))
    metrics = ["mrr", "complete(pass_at=2)"]
    expected = groupgt.evaluate_runs(TRUTH, {"a": [FRAME, other]}, metrics)["a"]
    rows = pl.DataFrame({"qid": list(TRUTH), "retrieval_gt": list(TRUTH.values())})
    found = groupgt.evaluate_runs(rows, {"a": [Rows(FRAME), Rows(other)]}, metrics)["a"]
    assert found.means == expected.means
    assert found.counts == expected.counts
