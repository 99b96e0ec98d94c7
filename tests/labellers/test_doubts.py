"""What a labeller can say nothing about is said, and is never just a zero."""

from __future__ import annotations

import gc
import pickle
import weakref
from math import log2
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.evaluation.sources import Sources
from groupgt.labellers import spans
from groupgt.model.ground_truth import GroundTruth
from groupgt.plugins import ours

CHUNKS = {"c1": ("d", 0, 10), "c2": ("d", 10, 20)}
SPANS = {"q": [[{"doc": "d", "start": 0, "end": 10}]]}


def labelled(truth: Any, run: Any, use: str, **options: Any) -> dict[str, float]:
    return groupgt.evaluate(truth, run, ["recall"], labeller={"use": use, "with": options}).means


def test_a_pattern_that_matches_no_result() -> None:
    with pytest.warns(groupgt.GroupgtWarning) as told:
        labelled({"q": [["a#1"]]}, {"q": ["a-1", "b-2"]}, "parents", pattern="(.*)#[0-9]+")
    texts = [str(each.message) for each in told]
    assert any("matches no results, so ids stay unchanged: 'a-1', 'b-2'" in text for text in texts)
    # Some ids may be parents.
    assert labelled({"q": [["a#1"]]}, {"q": ["a#7", "b"]}, "parents", pattern="(.*)#[0-9]+") == {"recall": 1}


def test_results_that_a_table_does_not_have() -> None:
    with pytest.raises(
        groupgt.DataError, match=r"the labeller spans .* has no entry for any result: 'x'. Does its table"
    ):
        labelled(SPANS, {"q": ["x"]}, "spans", chunks=CHUNKS)
    with pytest.warns(groupgt.GroupgtWarning, match=r"the labeller spans .* does not recognize 1 of 2 results: 'x'"):
        assert labelled(SPANS, {"q": ["x", "c1"]}, "spans", chunks=CHUNKS) == {"recall": 1}
    with pytest.raises(groupgt.DataError, match=r"the labeller parents .* has no entry for any result"):
        labelled({"q": [["d"]]}, {"q": ["x"]}, "parents", mapping={"c1": "d"})
    with pytest.raises(groupgt.DataError, match="expected the id of a chunk or a parent in the mapping, found 'z'"):
        labelled({"q": [["z"]]}, {"q": ["c1"]}, "parents", mapping={"c1": "d"})


def test_documents_that_never_meet() -> None:
    other = {"q": [[{"doc": "docs/d", "start": 0, "end": 10}]]}
    absent = r"no ground truth document \('docs/d'\) is in the chunk table, which contains documents such as 'd'"
    with pytest.raises(groupgt.DataError, match=absent):
        labelled(other, {"q": ["c1"]}, "spans", chunks=CHUNKS)
    both = {**SPANS, "p": other["q"]}
    with pytest.warns(groupgt.GroupgtWarning, match="the chunk table has no chunks for 1 of 2 ground truth documents"):
        labelled(both, {"q": ["c1"], "p": ["c1"]}, "spans", chunks=CHUNKS)
    for absent, named in ((3, "'x0', 'x1', 'x2'$"), (4, "'x0', 'x1', 'x2' …$")):
        others = {f"p{number}": [[{"doc": f"x{number}", "start": 0, "end": 1}]] for number in range(absent)}
        with pytest.warns(
            groupgt.GroupgtWarning, match=f"no chunks for {absent} of {absent + 1} ground truth documents: {named}"
        ):
            labelled({**SPANS, **others}, {"q": ["c1"]}, "spans", chunks=CHUNKS)
    frame = pl.DataFrame({"qid": ["q"], "doc_id": ["c1"], "score": [1], "start": [0], "end": [10]})
    with pytest.warns(groupgt.GroupgtWarning, match="the results have 'c1', the ground truth has 'd'; give each"):
        assert labelled(SPANS, frame, "spans") == {"recall": 0}
    assert labelled(SPANS, frame.with_columns(doc=pl.lit("d")), "spans") == {"recall": 1}


@pytest.mark.parametrize(
    ("options", "way"),
    [
        # Two of its four characters lie in each chunk: .5 of the alternative, .2 of a chunk, 2/12 of their union.
        ({"min_overlap": 0.6}, r"lower min_overlap or let several chunks jointly cover an alternative \(joint: true\)"),
        ({"of": "result"}, r"lower min_overlap or divide by the length of the alternative \(of: alternative\)"),
        ({"of": "union"}, r"lower min_overlap or divide by the length of the alternative \(of: alternative\)"),
    ],
)
def test_an_alternative_that_no_chunk_covers_enough(options: dict[str, Any], way: str) -> None:
    truth = {"q": [[{"doc": "d", "start": 8, "end": 12}]]}
    with pytest.warns(groupgt.GroupgtWarning, match=f"1 of 1 alternatives cannot be hit by any result, .*; {way}"):
        assert labelled(truth, {"q": ["c1"]}, "spans", chunks=CHUNKS, **options) == {"recall": 0}


@pytest.mark.parametrize(
    ("truth", "use", "words"),
    [
        (SPANS, "id", "needs alternatives that are ids, but 'd\\[0:10\\]' is a span; .* such as spans"),
        ({"q": [[{"text": "a"}, {"text": "b"}]]}, "id", "'a' is passage text \\(1 of 2 .* such as text"),
        (SPANS, "parents", "is a span"),
        ({"q": [["a"]]}, "spans", "'a' is an id; set `reference` to the table of the judged chunks"),
        ({"q": [[{"text": "a"}]]}, "spans", "'a' is passage text; choose the text labeller"),
        (SPANS, "text", "found the span 'd\\[0:10\\]'; use the spans labeller for spans"),
        ({"q": [["a", "b"]]}, "text", "no text for the alternative 'a', nor for 1 more; .*`reference`"),
    ],
)
def test_alternatives_of_another_kind(truth: Any, use: str, words: str) -> None:
    with pytest.raises(groupgt.DataError, match=words):
        labelled(truth, {"q": ["c1"]}, use)


def test_results_without_a_text() -> None:
    with pytest.raises(groupgt.DataError, match="needs the text of the result 'c1'; specify a corpus") as caught:
        labelled({"q": [[{"text": "a"}]]}, {"q": ["c1", "c2"]}, "text")
    assert caught.value.total == 1
    with pytest.raises(groupgt.DataError, match="the corpus has no text for the result 'c2'"):
        labelled({"q": [[{"text": "a"}]]}, {"q": ["c1", "c2"]}, "text", corpus={"c1": "a"})


def test_what_is_carried_is_told_where_it_is_not() -> None:
    with pytest.raises(
        groupgt.DataError, match=r"expected a parent for every result, found none for 'c1'; options of the"
    ):
        labelled({"q": [["d"]]}, {"q": ["c1"]}, "parents")
    with pytest.raises(
        groupgt.DataError, match=r"doc, start and end, or a chunk table .*found 'c1', and 1 more like it"
    ):
        labelled(SPANS, {"q": ["c1", "c2"]}, "spans")
    with pytest.raises(groupgt.DataError, match=r"found 'c1'$"):
        labelled(SPANS, {"q": ["c1"]}, "spans")


def test_metrics_over_contents_know_what_the_labeller_knows() -> None:
    texts = {"corpus": {"c1": "one two"}, "reference": {"a": "two three"}}
    found = groupgt.evaluate({"q": [["a"]]}, {"q": ["c1"]}, ["token_f1"], labeller={"use": "text", "with": texts})
    assert found["token_f1"] == 0.5  # one word of two on either side
    with pytest.raises(groupgt.DataError, match="use the spans labeller for spans"):
        groupgt.evaluate(SPANS, {"q": ["c1"]}, ["token_f1"], labeller={"use": "spans", "with": {"chunks": CHUNKS}})


@pytest.mark.parametrize("name", ours("labeller"))
def test_the_options_of_each_are_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["list", "labellers"])
    assert f"\n{name} " in capsys.readouterr().out
    main(["list", "labellers", name])
    shown = capsys.readouterr().out
    assert len(shown) > 60
    assert name == "id" or "option" in shown


def test_a_labeller_that_is_none_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["list", "labellers", "span"])
    assert end.value.code == 2
    assert "did you mean 'spans'" in capsys.readouterr().err


def test_worked_formulas_where_one_result_hits_several() -> None:
    """Two places in one chunk: the ideal of two documents is beaten, and every formula still comes to its value."""
    truth = {"q": [[{"doc": "d", "start": 0, "end": 10}], [{"doc": "d", "start": 10, "end": 20}]]}
    chunks = {"both": ("d", 0, 30), "idle": ("d", 30, 60)}
    names = [
        "recall.trec",
        "complete.trec",
        "f1.trec",
        "hits",
        "ndcg.coverage",
        "mrr.coverage",
        "map.trec",
        "ndcg.trec",
    ]
    labeller = {"use": "spans", "with": {"chunks": chunks}}
    found = groupgt.evaluate(truth, {"q": ["both", "idle"]}, names, labeller=labeller)
    assert (found["recall.trec"], found["hits"], found["mrr.coverage"]) == (1, 1, 1)
    for name, metric in found.metrics.items():
        worked = metric.explanation(found.labelled.hits, 0)
        assert eval(worked, {"__builtins__": {}}, {"log2": log2, "min": min}) == pytest.approx(found[name]), worked
    # 2/1 over 1/1 + 1/2 is more than a ranking of single documents reaches.
    assert found.metrics["mrr.coverage"].explanation(found.labelled.hits, 0).startswith("min(1, ")


@pytest.mark.slow
@pytest.mark.parametrize("use", ["id", "text", pytest.param("spans", marks=pytest.mark.property)])
def test_an_evaluation_can_be_pickled_and_is_let_go(use: str) -> None:
    texts = {"c1": "one", "c2": "two"}
    options: dict[str, Any] = {"spans": {"chunks": CHUNKS}, "text": {"corpus": texts, "reference": texts}}.get(use, {})
    truth = groupgt.GroundTruth.of(SPANS if use == "spans" else {"q": [["c1"]]})
    found = groupgt.evaluate(truth, {"q": ["c1"]}, ["recall"], labeller={"use": use, "with": options})
    assert pickle.loads(pickle.dumps(found)).means == found.means == {"recall": 1}
    kept = weakref.ref(truth)
    del truth, found
    gc.collect()
    assert kept() is None


def test_pages_are_carried_with_both_their_ends() -> None:
    old = {"o1": ("d", 1, 1), "o2": ("d", 2, 3)}
    new = {"n1": ("d", 1, 2), "n2": ("d", 3, 3)}
    found = groupgt.rechunk({"q": [["o1"], ["o2"]]}, old, new, unit="pages")
    # n1 has page 1 and one of pages 2 and 3; n2 the other.
    assert found.truth["q"] == [["n1"], ["n1", "n2"]]
    with pytest.raises(groupgt.DataError, match="expected an end after its start"):
        groupgt.rechunk({"q": [["o1"]]}, old, new)


def test_places_without_results_and_without_a_table() -> None:
    labeller = spans.Spans(spans.Options(), Sources())
    with pytest.raises(groupgt.DataError, match="labeller spans: there are no results and no chunk table"):
        labeller.match(GroundTruth.of(SPANS), None)
