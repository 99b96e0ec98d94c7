"""BM25: the library's scores in a stable order, and what any retriever returns is checked."""

from __future__ import annotations

from pathlib import Path

import bm25s
import pytest

import groupgt
from groupgt.formats.corpus import read_corpus
from groupgt.options import options_from
from groupgt.retrievers.base import Corpus, Setting, checked
from groupgt.retrievers.bm25 import BM25, Options

HANDBOOK = Path(__file__).parents[2] / "examples" / "handbook"


@pytest.mark.parametrize("options", [Options(), Options(k1=0.7, b=0.3, variant="bm25l", stopwords="english")])
def test_bm25_is_a_plain_loop_over_the_librarys_scores(options: Options) -> None:
    corpus = Corpus.of(read_corpus(HANDBOOK / "corpus.jsonl"))
    truth = groupgt.read_ground_truth(HANDBOOK / "questions.jsonl")
    queries = [text or "" for text in truth.texts or []]
    found = BM25(Setting(corpus), options).retrieve(queries, 20)
    model = bm25s.BM25(k1=options.k1, b=options.b, method=options.variant)
    stop = None if options.stopwords == "none" else options.stopwords
    split = {"stopwords": stop, "return_ids": False, "show_progress": False}
    model.index(bm25s.tokenize(corpus.texts, **split), show_progress=False)
    for words, ranking in zip(bm25s.tokenize(queries, **split), found):
        scores = model.get_scores([word for word in words if word in model.vocab_dict]).tolist()
        order = sorted((-score, place) for place, score in enumerate(scores) if score > 0)[:20]
        assert list(ranking) == [(corpus.ids[place], -score) for score, place in order]


def test_bm25_breaks_ties_by_position_and_leaves_out_what_scores_nothing() -> None:
    corpus = Corpus(["z", "a", "m", "x"], ["ferry fares", "ferry fares", "ferry fares", "harbour rules"])
    bm25 = BM25(Setting(corpus), Options())
    for k in (1, 2, 3, 10):
        assert [name for name, _ in bm25.retrieve(["ferry"], k)[0]] == ["z", "a", "m"][:k]
    assert list(bm25.retrieve(["nothing known", ""], 5)) == [[], []]


def test_stemming() -> None:
    pytest.importorskip("Stemmer", reason="the extra groupgt[retrieval] is not installed")
    corpus = Corpus(["a"], ["cancelled sailings"])
    assert BM25(Setting(corpus), Options(stemmer="english")).retrieve(["cancelling a sailing"], 1)[0]
    with pytest.raises(groupgt.ConfigError, match="did you mean 'english'"):
        options_from(Options, {"stemmer": "englisch"})


@pytest.mark.parametrize(
    ("rankings", "words"),
    [
        ([], "expected 1 rankings"),
        ([None], "expected a list of results"),
        ([[("a", float("nan"))]], "finite score at rank 1"),
        ([[1.5]], "at rank 1, found 1.5"),
        ([["a"] * 6], "at most 5"),
    ],
)
def test_what_a_retriever_returns_is_checked(rankings: list, words: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(groupgt.RetrieverError, match=words):
        checked("mine", ["q"], rankings, 5)
