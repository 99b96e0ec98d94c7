"""Rankings in memory give the same bits, messages and warnings with and without the compiled module."""

from __future__ import annotations

import random
import warnings
from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt import native
from groupgt.engines.lists import _Probe
from groupgt.model.run import Run
from tests.native.fuzz import Text

needs_module = pytest.mark.skipif(native.built is None, reason="groupgt._native is not built, or turned off")

PLAIN = [f"d{number}" for number in range(12)] + ["a b", "doc_0001234", "문서_1", "é", "🦜", "x" * 300]
ODD = [" ", "", " d1", "d1 ", "d\t1", "d\x00", "\x7f", "\x85d", "\u2028", "\u3000d", "\ufeffd1", "\ud800", "d\udfff"]
OTHER = [
    1,
    7,
    np.int64(3),
    True,
    None,
    2.0,
    b"d1",
    Text("d1"),
    Text("문서_1"),
    ("d1",),
    ["d1", "d2", "d3"],
    {"id": "d1"},
]
SCORES = [0.0, -0.0, 1.0, 1, 2, 0.5, 1e308, 5e-324, -3, 2**53, 2**53 + 1, 2**53 - 1, float(2**53), np.float64(0.5)]
NO_SCORES = [10**400, float("nan"), float("inf"), True, "1", None]


def rankings(names: st.SearchStrategy[Any], scores: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Every shape of a ranking, of few names, so that they repeat."""
    pairs = st.tuples(names, scores)
    hashable = names.filter(lambda name: not isinstance(name, (list, dict)))
    return st.one_of(
        st.lists(names, max_size=40),
        st.lists(names, max_size=8).map(tuple),
        st.lists(names, max_size=8).map(np.array) if names is plain else st.none(),
        st.lists(pairs, max_size=8),
        st.lists(pairs.map(list), max_size=8),
        st.lists(pairs | names, max_size=8),
        st.dictionaries(hashable, scores, max_size=20),
        st.lists(pairs, max_size=8, unique_by=lambda pair: str(pair[0])).map(
            lambda cells: dict(cells) if all(isinstance(cell[0], str) for cell in cells) else cells
        ),
    )


plain = st.sampled_from(PLAIN)
odd = st.sampled_from([*PLAIN, *ODD, *OTHER])
finite = st.sampled_from(SCORES) | st.floats(allow_nan=False, allow_infinity=False)
qids = st.sampled_from(["q1", "q2", "q3", "질문", "q\t4", "5", "q\ud800"])
truths = st.dictionaries(
    qids,
    st.lists(st.lists(plain | st.sampled_from(ODD[2:5]), min_size=1, max_size=40), max_size=4),
    min_size=1,
    max_size=5,
)
runs = st.dictionaries(
    qids | st.sampled_from(["other", 5, Text("q1")]),
    rankings(plain, finite) | rankings(plain, finite) | rankings(odd, finite | st.sampled_from(NO_SCORES)),
    max_size=6,
)
policies = st.fixed_dictionaries(
    {
        "duplicates": st.sampled_from(["penalize", "keep", "drop", "error"]),
        "ties": st.sampled_from(["id", "input"]),
        "missing": st.sampled_from(["zero", "skip", "error"]),
        "extra": st.sampled_from(["ignore", "error"]),
    }
)
METRICS = ["recall@3", "precision", "ndcg@5", "map", "mrr", "hits", "ndcg.trec", "alpha_ndcg.coverage@4"]
BUDGETS = ["recall@9chars", "ndcg@30chars"]


def outcome(truth: Any, run: Any, metrics: list[str], **options: Any) -> tuple[Any, ...]:
    """All that a user sees: values and counts, or the faults; and what was warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            evaluation = groupgt.evaluate(truth, run, metrics, **options)
        except groupgt.GroupgtError as error:
            return type(error), str(error), error.total, [str(each.message) for each in told]
    hits, labelled = evaluation.labelled.hits, evaluation.labelled
    columns = (hits.query, hits.rank, hits.alternative, hits.repeat, hits.length, labelled.present)
    return (
        {name: column.tobytes() for name, column in evaluation.values.items()},
        evaluation.counts,
        [(column.dtype, column.tolist()) for column in columns],
        {*zip(labelled.tie_query.tolist(), labelled.tie_first.tolist(), labelled.tie_last.tolist())},
        (labelled.extra_names, labelled.no_match),
        [str(each.message) for each in told],
    )


def both(truth: Any, run: Any, metrics: list[str], **options: Any) -> tuple[Any, ...]:
    """The outcome with the module; the one without it is the same."""
    first = outcome(truth, run, metrics, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "built", None)
        assert first == outcome(truth, run, metrics, **options)
    return first


@needs_module
@given(truths, runs, policies, st.sampled_from([METRICS, METRICS[:6] + BUDGETS]))
def test_any_ranking(truth: Any, run: Any, policy: dict[str, str], metrics: list[str]) -> None:
    convention = "autorag"
    asked = [name for name in metrics if policy["duplicates"] != "keep" or "." not in name]
    lengths = {name: "x" * (at % 7) for at, name in enumerate([*PLAIN, *ODD])}
    both(truth, run, asked, policy=policy, convention=convention, lengths=lengths)


@needs_module
@given(truths, st.data(), policies)
def test_scores_beside_lists(truth: Any, data: st.DataObject, policy: dict[str, str]) -> None:
    lists = data.draw(st.dictionaries(qids, st.lists(plain, max_size=20), max_size=5))
    kinds = st.sampled_from([list, list, tuple, np.array])
    scores = {
        qid: data.draw(kinds)(data.draw(st.lists(finite, min_size=len(ids), max_size=len(ids))))
        for qid, ids in lists.items()
        if data.draw(st.booleans())
    }
    both(truth, Run.of(lists, scores=scores), METRICS[:6], policy=policy)


@needs_module
@pytest.mark.parametrize("labeller", ["parents", "spans", "text"])
def test_every_labeller(labeller: str) -> None:
    rng = random.Random(labeller)
    names = [f"d{number}" for number in range(40)]
    options: dict[str, Any] = {"corpus": {name: f"the text of {name[:2]} {name}" for name in names}}
    if labeller == "parents":
        groups: Any = [["d1", "d2"], ["d3", "d9"]]
        options["labeller"] = {"use": "parents", "with": {"mapping": {name: name[:2] for name in names}}}
    elif labeller == "spans":
        groups = [[{"doc": "a", "start": 5, "end": 25}], [{"doc": "b", "start": 0, "end": 8}]]
        chunks = {name: ("ab"[at % 2], at // 2 * 3, at // 2 * 3 + 6) for at, name in enumerate(names)}
        options["labeller"] = {"use": "spans", "with": {"chunks": chunks}}
    else:
        groups = [[{"text": "the text of d1"}, {"text": "d22"}], [{"text": "d7"}]]
        options["labeller"] = "text"
    truth = {f"q{number}": groups for number in range(20)}
    run: dict[str, Any] = {}
    for qid in truth:
        ids = rng.choices(names, k=20)
        run[qid] = rng.choice((ids, dict.fromkeys(ids, 1.0), [(name, rng.random()) for name in ids]))
    assert isinstance(outcome(truth, run, ["mrr"], **options)[0], dict)
    assert both(truth, run, ["recall@5", "map", "ndcg"], **options)[2][0][1]


@needs_module
@pytest.mark.parametrize("policy", ["penalize", "keep", "drop", "error"])
def test_only_what_is_not_plain_is_read_in_python(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    read: list[list[int]] = []
    original = _Probe.by_reading

    def by_reading(self: _Probe, truth: Any, matches: Any, numbers: list[int], length: Any) -> Any:
        read.append(numbers)
        return original(self, truth, matches, numbers, length)

    monkeypatch.setattr(_Probe, "by_reading", by_reading)
    truth = {f"q{number}": [["a", "b"], ["c"]] for number in range(6)}
    run = {"q0": ["a"], "q1": [7, "a"], "q2": {"a": 0.5, "c": 1}, "q3": np.array(["a", "b"])}
    run |= {"q4": (("x", 2.0), ("c", None))}
    evaluation = groupgt.evaluate(truth, run, ["recall"], policy={"duplicates": policy})
    assert evaluation.values["recall"].tolist() == [0.5, 0.5, 1.0, 0.5, 0.5, 0.0]
    assert read == [[1, 3]]
    groupgt.evaluate(truth, {qid: ["a", "c"] for qid in truth}, ["recall"], policy={"duplicates": policy})
    assert read == [[1, 3]]
    if policy == "drop":
        groupgt.evaluate(truth, {"q0": ["a", "c"], "q1": ["x", "x"]}, ["recall"], policy={"duplicates": policy})
        assert read == [[1, 3], [1]]


@needs_module
def test_results_beyond_ascii_keep_no_second_copy() -> None:
    truth = {f"질문_{number}": [[f"문서_{number}"]] for number in range(50)}
    run = {qid: [f"문서_{number}" for number in range(60)] for qid in truth}
    size = sum(ranking.__sizeof__() + sum(map(str.__sizeof__, ranking)) for ranking in run.values())
    assert groupgt.evaluate(truth, run, ["hit_rate"])["hit_rate"] == 1.0
    # The first that each call meets keeps its UTF-8.
    assert sum(ranking.__sizeof__() + sum(map(str.__sizeof__, ranking)) for ranking in run.values()) - size < 100


@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_result_behind_a_query_with_hits(blank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blank is the only one that is probed for in its query, whose scores are fewer than those before."""
    monkeypatch.setattr(native, "built", None)
    truth, run = {"one": [["a"]], "two": [["b"]]}, {"one": {"x": 0.9, "y": 0.8, "a": 0.5}, "two": {blank: 1.0}}
    with pytest.raises(groupgt.DataError, match="query 'two'") as caught:
        groupgt.evaluate(truth, run, ["mrr"])
    assert "blank" in str(caught.value)


class Name(str, Enum):  # noqa: UP042  # one whose str() is not its text
    A = "a"


@pytest.mark.parametrize("built", [native.built, None], ids=["as it is", "without the module"])
@pytest.mark.parametrize("held", [[Name.A], (Name.A,), [(Name.A, 1.0)], {Name.A: 1.0}], ids=repr)
@pytest.mark.parametrize("beside", [["x"], ("x",), None], ids=repr)
def test_a_text_of_another_type_is_its_text_whatever_lies_beside(
    built: object, held: Any, beside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "built", built)
    run = {"one": held} if beside is None else {"one": held, "two": beside}
    assert groupgt.evaluate({"one": [["a"]], "two": [["x"]]}, run, ["mrr"]).values["mrr"][0] == 1
    assert groupgt.GroundTruth.of({"one": [[Name.A]]}).ids == ["a"]


@pytest.mark.parametrize("built", [native.built, None], ids=["as it is", "without the module"])
@pytest.mark.parametrize("wrong", [5, 2.5, "a\x01b", object])
@pytest.mark.parametrize("doubtful", ["a\x01", "g  h", "a\u00a0b"])
def test_what_is_no_ranking_is_told_beside_a_doubtful_id(
    built: object, wrong: Any, doubtful: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "built", built)
    with pytest.raises(groupgt.DataError) as caught:
        groupgt.evaluate({"one": [["a"]], "two": [["x"]]}, {"one": wrong, "two": [doubtful]}, ["mrr"])
    told = str(caught.value).splitlines()
    assert "query 'one': expected a list of ids" in told[0]
    assert ["query 'two'" in line for line in told[1:]] == [True] * (doubtful == "a\x01")
