"""`use: tfidf`, `use: lsa` and `use: bm25`: each is a slow loop over its library's own figures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.formats.corpus import read_corpus
from groupgt.options import choices, options_from, options_of
from groupgt.retrievers import bm25, tfidf
from groupgt.retrievers.base import Corpus, Ranking, Setting

HANDBOOK = Path(__file__).parents[2] / "examples" / "handbook"
QUERIES = ["When does the last ferry leave?", "ferry", "refund of a cancelled sailing", "zzz qqq", ""]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.of(read_corpus(HANDBOOK / "corpus.jsonl"))


@pytest.fixture
def sklearn() -> Any:
    return pytest.importorskip("sklearn", reason="the extra groupgt[retrieval] is not installed")


def dot(one: list[float], other: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def cosine(one: list[float], other: list[float]) -> float:
    lengths = math.sqrt(dot(one, one)) * math.sqrt(dot(other, other))
    return dot(one, other) / lengths if lengths else 0.0


def agree(ranking: Ranking, expected: list[float], ids: list[str], near: float) -> None:
    """Every document that is found has its score, none that is better is left out, and equal ones go by position."""
    position = {name: place for place, name in enumerate(ids)}
    assert [score for _, score in ranking] == pytest.approx([expected[position[name]] for name, _ in ranking], abs=near)
    assert list(ranking) == sorted(ranking, key=lambda pair: (-pair[1], position[pair[0]]))
    left = [score for name, score in zip(ids, expected) if name not in dict(ranking)]
    assert not ranking or not left or max(left) <= ranking[-1][1] + near


@pytest.mark.usefixtures("sklearn")
@pytest.mark.parametrize("options", [tfidf.Options(), tfidf.Options(ngrams=2, sublinear=False, stopwords="english")])
def test_tfidf_is_a_slow_loop(corpus: Corpus, options: tfidf.Options) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    found = tfidf.TfIdf(Setting(corpus), options).retrieve(QUERIES, 15)
    words = TfidfVectorizer(
        ngram_range=(1, options.ngrams),
        sublinear_tf=options.sublinear,
        stop_words=None if options.stopwords == "none" else options.stopwords,
        token_pattern=r"\b\w+\b",
    )
    documents = words.fit_transform(corpus.texts).toarray().tolist()
    for query, ranking in zip(words.transform(QUERIES).toarray().tolist(), found, strict=True):
        scores = [dot(query, document) for document in documents]
        agree(ranking, scores, corpus.ids, 1e-12)
        assert len(ranking) == min(15, sum(score > 0 for score in scores))


@pytest.mark.usefixtures("sklearn")
def test_lsa_is_a_slow_loop(corpus: Corpus) -> None:
    from sklearn.decomposition import TruncatedSVD

    options = tfidf.LsaOptions(dimensions=20, stopwords="english")
    found = tfidf.LSA(Setting(corpus, seed=5), options).retrieve(QUERIES, 188)
    words, matrix = tfidf.vectorized(options, corpus.texts)
    reduced = TruncatedSVD(20, random_state=5)
    documents = reduced.fit_transform(matrix).tolist()
    for query, ranking in zip(reduced.transform(words.transform(QUERIES)).tolist(), found, strict=True):
        agree(ranking, [cosine(query, document) for document in documents], corpus.ids, 1e-6)
    assert [len(ranking) for ranking in found] == [188, 188, 188, 0, 0]


@pytest.mark.usefixtures("sklearn")
def test_the_seed_decides(corpus: Corpus) -> None:
    one, again, other = (tfidf.LSA(Setting(corpus, seed=seed), tfidf.LsaOptions(dimensions=8)) for seed in (1, 1, 2))
    assert one.retrieve(QUERIES, 20) == again.retrieve(QUERIES, 20)
    assert one.retrieve(QUERIES, 20) != other.retrieve(QUERIES, 20)


TWINS = Corpus(list("zaymb"), ["ferry fares", "harbour rules and gates", "ferry fares", "Fares! Ferry?", "old ferry"])


@pytest.mark.usefixtures("sklearn")
def test_identical_documents_have_identical_scores() -> None:
    for made in (
        tfidf.TfIdf(Setting(TWINS), tfidf.Options()),
        tfidf.LSA(Setting(TWINS), tfidf.LsaOptions(dimensions=3)),
    ):
        for k in range(1, 6):
            ranking = made.retrieve(["ferry fares"], k)[0]
            assert [name for name, _ in ranking][:3] == ["z", "y", "m"][:k]
            assert len({score for _, score in ranking[:3]}) == 1


@pytest.mark.usefixtures("sklearn")
def test_neighbours_in_a_batch_change_nothing(corpus: Corpus) -> None:
    for made in (
        tfidf.TfIdf(Setting(corpus), tfidf.Options()),
        tfidf.LSA(Setting(corpus), tfidf.LsaOptions(dimensions=30)),
    ):
        alone = [made.retrieve([query], 188)[0] for query in QUERIES]
        assert made.retrieve(QUERIES, 188) == alone


@pytest.mark.usefixtures("sklearn")
def test_more_dimensions_than_there_are() -> None:
    with pytest.raises(groupgt.RetrieverError) as error:
        tfidf.LSA(Setting(TWINS), tfidf.LsaOptions(dimensions=5))
    # words: ferry, fares, harbour, rules, and, gates, old
    assert str(error.value) == "dimensions: expected at most 4 for a corpus of 5 documents and 7 words, found 5"
    # Where the file does not say how many, a small corpus has as many as it can.
    few, most = (tfidf.LSA(Setting(TWINS), options) for options in (tfidf.LsaOptions(), tfidf.LsaOptions(dimensions=4)))
    assert few.retrieve(["ferry fares"], 5) == most.retrieve(["ferry fares"], 5)


@pytest.mark.usefixtures("sklearn")
def test_a_corpus_without_words() -> None:
    for texts in (["", " "], ["the", "of the"]):
        own = Setting(Corpus(["a", "b"], texts))
        for make in (
            lambda own=own: tfidf.TfIdf(own, tfidf.Options(stopwords="english")),
            lambda own=own: tfidf.LSA(own, tfidf.LsaOptions(stopwords="english")),
        ):
            with pytest.raises(groupgt.RetrieverError, match="the corpus cannot be indexed: empty vocabulary"):
                make()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ngrams": 0}, "ngrams: expected a whole number from 1 to 5, found 0"),
        ({"stopwords": "german"}, "stopwords: expected none or english, found 'german'"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    for kind in (tfidf.Options, tfidf.LsaOptions):
        with pytest.raises(groupgt.ConfigError, match=words):
            options_from(kind, options)
    with pytest.raises(groupgt.ConfigError, match="dimensions: expected a whole number of at least 1, found 0"):
        options_from(tfidf.LsaOptions, {"dimensions": 0})


@pytest.mark.parametrize("variant", choices(options_of(bm25.Options)["variant"].hint))
@pytest.mark.parametrize("stemmer", ["none", "english"])
def test_bm25_finds_passages_with_a_word_and_no_others(corpus: Corpus, variant: str, stemmer: str) -> None:
    if stemmer != "none":
        pytest.importorskip("Stemmer", reason="the extra groupgt[retrieval] is not installed")
    made = bm25.BM25(Setting(corpus), bm25.Options(variant=variant, stemmer=stemmer))
    texts = made._words(corpus.texts)
    for query, ranking in zip(QUERIES, made.retrieve(QUERIES, 188), strict=True):
        words = set(made._words([query])[0])
        having = {name for name, own in zip(corpus.ids, texts) if words & set(own)}
        found = {name for name, _ in ranking}
        # robertson gives nothing for a word that half of the passages have
        assert found <= having if variant == "robertson" else found == having
        assert list(ranking) == sorted(ranking, key=lambda pair: (-pair[1], corpus.ids.index(pair[0])))


@pytest.mark.parametrize("variant", choices(options_of(bm25.Options)["variant"].hint))
def test_bm25_gives_equal_passages_equal_scores(variant: str) -> None:
    made = bm25.BM25(Setting(TWINS), bm25.Options(variant=variant))
    for k in range(1, 6):
        ranking = made.retrieve(["fares fares harbour"], k)[0]
        names = [name for name, _ in ranking]
        assert [name for name in names if name != "a"] == ["z", "y", "m"][: len(names) - ("a" in names)]
        assert "b" not in names


def test_bm25_of_a_corpus_without_words() -> None:
    with pytest.raises(groupgt.RetrieverError, match="the corpus cannot be indexed: no passage contains a word"):
        bm25.BM25(Setting(Corpus(["a", "b"], ["", "a !"])), bm25.Options())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k1": -1.0}, "k1: expected a number from 0 to 1,000, found -1"),
        ({"b": 1.5}, "b: expected a number from 0 to 1, found 1.5"),
        ({"variant": "bm25"}, "did you mean 'bm25"),
        ({"stopwords": "germann"}, "did you mean 'german'"),
    ],
)
def test_options_of_bm25_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=words):
        options_from(bm25.Options, options)
