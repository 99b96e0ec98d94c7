"""Documents of LangChain, LlamaIndex and Haystack as results: the real classes where they are installed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import groupgt
from groupgt.model.documents import result_of
from groupgt.retrievers.base import checked
from groupgt.retrievers.python import Called

TRUTH = {"q1": [["a"], ["b"]], "q2": [["c"]]}
# Makes a document with an id and a text; with a score, if its library keeps it there.
Make = Callable[..., Any]


def _langchain(name: str | None, text: str, **metadata: Any) -> Any:
    schema = pytest.importorskip("langchain_core.documents")
    return schema.Document(page_content=text, id=name, metadata=metadata)


def _llama_index(name: str, text: str, score: float | None = None) -> Any:
    schema = pytest.importorskip("llama_index.core.schema")
    node = schema.TextNode(id_=name, text=text)
    return node if score is None else schema.NodeWithScore(node=node, score=score)


def _haystack(name: str, text: str, score: float | None = None) -> Any:
    return pytest.importorskip("haystack").Document(id=name, content=text, score=score)


# The attributes of the same classes, where they are not installed.
LIKE: dict[str, Make] = {
    "langchain": lambda name, text: SimpleNamespace(id=name, page_content=text, metadata={}),
    "llama_index": lambda name, text, score=None: SimpleNamespace(
        node_id=name, get_content=lambda: text, metadata={}, score=score
    ),
    "haystack": lambda name, text, score=None: SimpleNamespace(id=name, content=text, meta={}, score=score),
}
REAL: dict[str, Make] = {"langchain": _langchain, "llama_index": _llama_index, "haystack": _haystack}
MAKERS = [pytest.param(make, id=name) for name, make in REAL.items()]
MAKERS += [pytest.param(make, id=f"like {name}") for name, make in LIKE.items()]


@pytest.mark.parametrize("make", MAKERS)
def test_documents_are_results_in_their_order(make: Make) -> None:
    run = {"q1": [make("x", "one"), make("a", "two")], "q2": []}
    found = groupgt.evaluate(TRUTH, run, ["recall@1", "recall@2", "mrr"])
    # Of q1, a is at rank 2 and b is missing: recall (1/2 + 0) ÷ 2, reciprocal rank (1/2 + 0) ÷ 2 ÷ 2.
    assert found.means == {"recall@1": 0.0, "recall@2": 1 / 4, "mrr": 1 / 8}
    assert groupgt.evaluate_runs(TRUTH, {"mine": run}, ["recall@2"])["mine"]["recall@2"] == 1 / 4


@pytest.mark.parametrize("make", MAKERS)
def test_their_texts_are_matched_by_the_text_labeller(make: Make) -> None:
    truth = {"q1": [[{"text": "days of leave"}]]}
    run = {"q1": [make("n7", "Book the train"), make("n8", "30 days of leave")]}
    assert groupgt.evaluate(truth, run, ["mrr"], labeller="text")["mrr"] == 1 / 2


@pytest.mark.parametrize("make", [each for each in MAKERS if "langchain" not in str(each.id)])
def test_their_scores_can_be_a_cutoff(make: Make) -> None:
    run = {"q1": [make("a", "one", 0.9), make("b", "two", 0.4)], "q2": [make("c", "three", 0.6)]}
    # Only a of q1 and c of q2 reach 0.5: (1/2 + 1) ÷ 2.
    assert groupgt.evaluate(TRUTH, run, ["recall@0.5score"])["recall@0.5score"] == 3 / 4


@pytest.mark.parametrize("make", MAKERS)
def test_pairs_of_a_document_and_a_score(make: Make) -> None:
    run = {"q1": [(make("a", "one"), 0.9), (make("b", "two"), 0.4)], "q2": [(make("c", "three"), 0.6)]}
    assert groupgt.evaluate(TRUTH, run, ["recall@0.5score"])["recall@0.5score"] == 3 / 4


@pytest.mark.parametrize("make", [_langchain, LIKE["langchain"]])
def test_documents_without_ids_are_only_matched_by_text(make: Make) -> None:
    run = {"q1": [make(None, "30 days of leave")]}
    with pytest.raises(groupgt.DataError, match="not all of these results have ids, and the id labeller needs ids"):
        groupgt.evaluate({"q1": [["a"]]}, run, ["recall"])
    truth = {"q1": [[{"text": "days of leave"}]]}
    assert groupgt.evaluate(truth, run, ["recall"], labeller="text")["recall"] == 1


def test_an_id_in_the_metadata_counts_if_there_is_no_other() -> None:
    run = {"q1": [_langchain(None, "one", doc_id="a", source="a.pdf"), _langchain("b", "two", doc_id="other")]}
    assert groupgt.evaluate(TRUTH, run, ["recall"])["recall"] == 1 / 2


def test_a_ranking_with_something_else_is_refused_with_its_rank() -> None:
    document = LIKE["haystack"]("a", "one")
    for other in ("b", 7, None):
        with pytest.raises(groupgt.DataError, match="results of query 'q1': expected a document at rank 2, found"):
            groupgt.evaluate(TRUTH, {"q1": [document, other]}, ["recall"])
    for other, words in (
        (LIKE["haystack"]("b", "two", float("nan")), "a finite number as the score at rank 2, found nan"),
        (LIKE["haystack"](None, "two"), "not all of these results have ids"),
    ):
        with pytest.raises(groupgt.DataError, match=words):
            groupgt.evaluate(TRUTH, {"q1": [document, other]}, ["recall"])
    with pytest.raises(groupgt.DataError, match=r"expected an id .* at rank 2"):
        groupgt.evaluate(TRUTH, {"q1": ["b", document]}, ["recall"])


@pytest.mark.parametrize("value", ["a", 7, 0.5, None, {"id": "a"}, ("a", 0.5), ["a"], object()])
def test_what_is_no_document(value: Any) -> None:
    assert result_of(value) is None


@pytest.mark.parametrize("make", MAKERS)
def test_a_function_may_return_them(make: Make) -> None:
    called = Called(lambda query, k: [(make("a", "one"), 0.5), (make("b", "two"), 0.25)][:k], is_single=True)
    answers = checked("mine", ["q1"], called.retrieve(["when?"], 2), 2)
    assert (answers.ids, answers.scores) == ({"q1": ["a", "b"]}, {"q1": [0.5, 0.25]})
