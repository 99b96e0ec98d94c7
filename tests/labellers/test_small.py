"""Each labeller over a few results, with what it finds worked out by hand, and every way it can refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.labellers import embedding, text
from groupgt.labellers.base import Labeller, Results, all_ids
from groupgt.labellers.likeness import Normalization
from groupgt.labellers.spans import first_covered
from groupgt.model.ground_truth import GroundTruth

TEXTS = {"c1": "Thirty days of leave.", "c2": "Thirty", "c3": "leave of absence"}


def hits(groups: list[Any], ranking: list[Any], use: str, **options: Any) -> list[Any]:
    """A row for each group: which results hit it, each alternative by its first."""
    found: list[Any] = groupgt.label(groups, ranking, labeller={"use": use, "with": options}, groups=True).tolist()
    return found


def recall(truth: Any, run: Any, labeller: Any) -> float:
    return groupgt.evaluate(truth, run, ["recall"], labeller=labeller)["recall"]


def refused(truth: Any, run: Any, use: str, **options: Any) -> str:
    with pytest.raises(groupgt.DataError) as caught:
        recall(truth, run, {"use": use, "with": options})
    return str(caught.value)


# ---- vectors ------------------------------------------------------------------------------------------------------

VECTORS = {"c1": [3.0, 4.0], "c2": [1.0, 0.0], "c3": [0.0, 2.0]}


class Encoder(Sources):
    """Looks vectors up by the whole text, and remembers what it was asked."""

    vectors_of: Mapping[str, Sequence[float]]
    asked: list[list[str]]

    def encoder(self, model: str) -> Callable[[list[str]], Any]:
        def encode(texts: list[str]) -> Any:
            self.asked.append(texts)
            return [self.vectors_of[text] for text in texts]

        return encode


def encoder(vectors: Mapping[str, Sequence[float]]) -> Encoder:
    sources = Encoder()
    sources.vectors_of, sources.asked = vectors, []
    return sources


@pytest.mark.parametrize(("threshold", "expected"), [(0.61, 0.0), (0.6, 0.5), (0.8, 0.0), (1e-3, 0.5)])
def test_a_cosine_must_reach_the_threshold(threshold: float, expected: float) -> None:
    """(3, 4) and (1, 0) have the cosine 3 ÷ 5; (0, 2) and (−1, 0) have 0."""
    options = {"threshold": threshold, "documents": VECTORS, "alternatives": {"a": [1.0, 0.0], "b": [-1.0, 0.0]}}
    assert recall({"q": [["a"], ["b"]]}, {"q": ["c3", "c1"]}, {"use": "embedding", "with": options}) == expected


def test_lengths_of_vectors_do_not_matter() -> None:
    """Not even where squares overflow or vanish."""
    for scale in (1e-200, 1.0, 1e200):
        documents = {"c1": [3 * scale, 4 * scale]}
        options = {"threshold": 0.96, "documents": documents, "alternatives": {"a": [4.0, 3.0]}}
        assert recall({"q": [["a"]]}, {"q": ["c1"]}, {"use": "embedding", "with": options}) == 1.0
        options["threshold"] = 0.9600001
        assert recall({"q": [["a"]]}, {"q": ["c1"]}, {"use": "embedding", "with": options}) == 0.0


def test_a_model_makes_vectors_of_texts_once_and_after_their_prefixes() -> None:
    sources = encoder({"d: one": [1, 0], "d: two": [0, 1], "a: ein": [2, 0]})
    given = {"model": "m", "corpus": {"c1": "one", "c2": "two"}, "reference": {"a": "ein", "b": "ein"}}
    given |= {"document_prefix": "d: ", "alternative_prefix": "a: "}
    labeller = labeller_of({"use": "embedding", "with": given}, sources)
    assert recall({"p": [["a"]], "q": [["b"]]}, {"p": ["c1", "c2"], "q": ["c2"]}, labeller) == 0.5
    assert sources.asked == [["d: one", "d: two"], ["a: ein"]]
    assert recall({"p": [["b"]]}, {"p": ["c1"]}, labeller) == 1.0
    assert len(sources.asked) == 2
    shown = "document prefix 'd: ', alternative prefix 'a: '"
    assert str(labeller) == f"embedding (cosine ≥ 0.8, model m, {shown})"


def test_nothing_to_look_up_is_no_hit() -> None:
    options = {"documents": VECTORS, "alternatives": {"a": [1.0, 0.0]}}
    assert recall({"q": [["a"]]}, {"q": []}, {"use": "embedding", "with": options}) == 0.0
    labeller = labeller_of({"use": "embedding", "with": {"model": "m", "reference": {"a": "x"}}}, encoder({"x": [1]}))
    assert recall({"q": [["a"]]}, {"q": []}, labeller) == 0.0


@pytest.mark.parametrize(
    ("documents", "alternatives", "words"),
    [
        ({"c2": [1, 0]}, {"a": [1, 0]}, "result 'c1': has no vector in `documents`"),
        ({"c1": [1, 0]}, {"b": [1, 0]}, "alternative 'a': has no vector in `alternatives`"),
        (
            {"c1": [1, 0, 0]},
            {"a": [1, 0]},
            "vectors with the same number of dimensions, found 3 for results and 2 for alternatives",
        ),
        ({"c1": [1, "x"]}, {"a": [1, 0]}, "`documents`: expected vectors (lists of numbers), all of the same length"),
        ({"c1": [1, float("nan")]}, {"a": [1, 0]}, "`documents`: the vector for 'c1' contains NaN or infinity"),
        ({"c1": [0, 0]}, {"a": [1, 0]}, "`documents`: the vector for 'c1' is "),
        ({"c1": [1, 0]}, {"a": [0.0, 0.0]}, "`alternatives`: the vector for 'a' is "),
    ],
)
def test_vectors_that_are_none(documents: Any, alternatives: Any, words: str) -> None:
    assert words in refused({"q": [["a"]]}, {"q": ["c1"]}, "embedding", documents=documents, alternatives=alternatives)


def test_a_model_that_says_nothing_of_a_text() -> None:
    given = {"model": "m", "corpus": {"c1": "one"}, "reference": {"a": "ein"}}
    labeller = labeller_of({"use": "embedding", "with": given}, encoder({"one": [1, 0], "ein": [0, 0]}))
    with pytest.raises(groupgt.DataError, match="the model 'm': the vector for 'ein' is "):
        recall({"q": [["a"]]}, {"q": ["c1"]}, labeller)


def test_blocks_of_pairs_are_all_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "BLOCK", 2)
    options = {"documents": VECTORS, "alternatives": {"a": [3, 4], "b": [5, 0], "c": [0, 5]}}
    assert recall({"q": [["a"], ["b"], ["c"]]}, {"q": ["c1", "c2", "c3"]}, {"use": "embedding", "with": options}) == 1


def test_the_slack_of_a_cosine_has_its_end() -> None:
    """3 ÷ 5 is a hit where it is asked for with a billionth more, and none beyond."""
    options = {"documents": VECTORS, "alternatives": {"a": [1.0, 0.0]}}
    assert 0.6 + 1e-9 - 1e-9 == 0.6
    for threshold, expected in ((0.6 + 1e-9, [[1]]), (0.6 + 1.1e-9, [[0]])):
        assert hits([["a"]], ["c1"], "embedding", **options, threshold=threshold) == expected


def test_where_vectors_come_from() -> None:
    """A path, a model, or a mapping, which may be empty: none of them is missing."""
    options = [
        embedding.Options(documents="d.npz", alternatives="a.npz"),
        embedding.Options(documents={}, alternatives={}),
        embedding.Options(model="m"),
    ]
    assert [list(given.clashes()) for given in options] == [[], [], []]
    missing = [clash.option for clash in embedding.Options(documents={"c1": [1]}).clashes()]
    assert missing == ["alternatives"]
    assert refused({"q": [["a"]]}, {"q": ["c1"]}, "embedding", documents={}, alternatives={}).endswith(
        "result 'c1': has no vector in `documents`"
    )


def test_vectors_beside_nothing_that_was_judged() -> None:
    options = {"documents": VECTORS, "alternatives": {}}
    labeller = labeller_of({"use": "embedding", "with": options}, Sources())
    assert labeller.match(GroundTruth.of({"q": []}), Results(np.array([0]), ["c1"], [None])).keys == []


# ---- texts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case_sensitive", "punctuation", "said", "expected"),
    [
        (False, False, "Straße,  ＡＢＣ!", "strasse abc"),
        (True, False, "Straße,  ＡＢＣ!", "Straße ABC"),
        (False, True, "a-b c", "a - b c"),
        (False, False, "a-b c", "a b c"),
        (False, False, "cat\u200bnip a\u00a0b\x1fc\u2028d", "catnip a b c d"),
        (False, False, "漢字 kana かな", "漢 字 kana か な"),
        (False, False, "นี้", "นี้"),
    ],
)
def test_texts_are_normalized(case_sensitive: bool, punctuation: bool, said: str, expected: str) -> None:
    normal = Normalization(case_sensitive, punctuation)
    assert normal(said) == expected
    assert ("case kept" in str(normal), "punctuation kept" in str(normal)) == (case_sensitive, punctuation)


@pytest.mark.skipif(find_spec("rapidfuzz") is None, reason="needs the extra groupgt[text]")
@pytest.mark.parametrize(
    ("said", "threshold", "expected"),
    [
        # Eight of ten letters of the alternative in the best place of a longer result.
        ("xx abcdefgh yy zz", 0.8, 1.0),
        ("xx abcdefgh yy zz", 0.9, 0.0),
        # In a shorter result the plain ratio: 2 · 4 ÷ (4 + 10).
        ("abcd", 0.57, 1.0),
        ("abcd", 0.58, 0.0),
    ],
)
def test_partial_ratio(said: str, threshold: float, expected: float) -> None:
    options = {"method": "partial_ratio", "threshold": threshold}
    found = recall(
        {"q": [[{"text": "abcdefghij"}]]}, {"q": [{"id": "c", "text": said}]}, {"use": "text", "with": options}
    )
    assert found == expected


def test_texts_that_say_nothing_are_refused() -> None:
    nothing = {"q": [[{"text": "?!"}, {"text": "leave"}]], "p": [[{"text": "..."}]]}
    words = refused(nothing, {"q": ["c1"]}, "text", corpus=TEXTS)
    assert "the alternative '?!'" in words
    assert "the alternative '...'" in words
    blank = refused({"q": [["a"]]}, {"q": ["c1"]}, "text", corpus=TEXTS, reference={"a": " "})
    assert "query 'q': the text of the alternative 'a' is blank" in blank
    spans = {"q": [[{"doc": "d", "start": 0, "end": 5}]]}
    assert "use the spans labeller for spans" in refused(spans, {"q": ["c1"]}, "text", corpus=TEXTS)


def test_partial_ratio_needs_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "find_spec", lambda name: None)
    with pytest.raises(groupgt.ConfigError, match="partial_ratio needs RapidFuzz: pip install 'groupgt"):
        labeller_of({"use": "text", "with": {"method": "partial_ratio"}}, Sources())
    labeller_of({"use": "text", "with": {"method": "contained"}}, Sources())


@pytest.mark.parametrize(("method", "shown"), [("contained", "contained"), ("token_recall", "token_recall ≥ 0.9")])
def test_how_texts_are_compared_is_shown(method: str, shown: str) -> None:
    text = str(labeller_of({"use": "text", "with": {"method": method}}, Sources()))
    assert text.startswith(f"text ({shown}; NFKC, case folded, punctuation dropped, ")


# ---- spans and parents --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "given", "words"),
    [
        ("spans", {"min_overlap": 9.99e-7}, "expected a share of at least 1/1,000,000, found 9.99e-07"),
        ("spans", {"joint": True, "of": "result"}, "of=result measures each result alone"),
        ("parents", {"column": "page"}, "names a column of a mapping, but no mapping is given"),
    ],
)
def test_options_that_clash(use: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(groupgt.ConfigError) as caught:
        labeller_of({"use": use, "with": given}, Sources())
    assert words in str(caught.value)


def test_alternatives_that_are_no_spans() -> None:
    chunks = {"c1": ("d", 0, 10)}
    empty = {"q": [[{"doc": "d", "start": 5, "end": 5}]], "p": [["judged"]], "o": [[{"text": "words"}]]}
    words = refused(empty, {"q": ["c1"]}, "spans", chunks=chunks)
    assert "expected a span that ends after its start, found" in words
    assert "'judged' is an id; set `reference` to the table of the judged chunks" in words
    assert "'words' is passage text; choose the text labeller" in words
    with_reference = refused({"p": [["judged"]]}, {"p": ["c1"]}, "spans", chunks=chunks, reference={"c2": ("d", 0, 1)})
    assert "the alternative 'judged' is not in the reference" in with_reference
    text = refused({"p": [[{"text": "words"}]]}, {"p": ["c1"]}, "spans", chunks=chunks, reference={"c2": ("d", 0, 1)})
    assert "'words' is passage text; choose the text labeller" in text


def test_a_mapping_says_which_chunks_are_of_a_parent() -> None:
    """c2 is of the same parent as the alternative c1; d2 names a parent itself; what the mapping lacks stays itself."""
    mapping = {"c1": "d1", "c2": "d1", "c3": "d2", "x": "d3"}
    assert hits([["c1"], ["d2"]], ["x", "c2", "c3", "c1"], "parents", mapping=mapping) == [[0, 1, 0, 0], [0, 0, 1, 0]]
    labeller = labeller_of({"use": "parents", "with": {"mapping": mapping}}, Sources())
    assert labeller.names(["c3", "d2", "other"]) == ["d2", "d2", "other"]


def test_what_a_mapping_does_not_know() -> None:
    """A chunk of the mapping is known, and so is a parent; an empty mapping is one, and knows nothing."""
    assert labeller_of({"use": "parents", "with": {"mapping": {"c": "d"}}}).unknown_ids(["c", "d", "x"]) == ["x"]
    assert labeller_of({"use": "parents", "with": {"mapping": {}}}).unknown_ids(["c"]) == ["c"]
    assert labeller_of("parents").unknown_ids(["c"]) == []


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, "parents (from the results)"),
        ({"mapping": {}}, "parents (a mapping)"),
        ({"pattern": "(.*)#"}, "parents (pattern (.*)#)"),
    ],
)
def test_where_parents_come_from_is_shown(given: dict[str, Any], shown: str) -> None:
    assert str(labeller_of({"use": "parents", "with": given})) == shown


def test_parents_of_another_column(tmp_path: Path) -> None:
    (tmp_path / "pages.csv").write_text("id,page\nc1,p1\nc2,p1\n")
    options = {"mapping": str(tmp_path / "pages.csv"), "column": "page"}
    assert hits([["p1"]], ["c2", "c1"], "parents", **options) == [[1, 0]]


@pytest.mark.parametrize("pattern", ["(.*)#[0-9]+", "(?:(.+)#[0-9]+)?.*"])
def test_a_pattern_that_leaves_nothing_leaves_the_id(pattern: str) -> None:
    labeller = labeller_of({"use": "parents", "with": {"pattern": pattern}}, Sources())
    assert labeller.names(["a#1", "#7", "b"]) == ["a", "#7", "b"]


def test_an_id_in_several_groups_hits_them_all_and_its_second_result_none() -> None:
    """b is the 2nd and the 3rd alternative; it comes at ranks 1 and 2, and a, the 1st, at 3."""
    labeller = labeller_of("id", Sources())
    truth = GroundTruth.of({"q": [["a", "b"], ["b"]]})
    matches = labeller.match(truth, None)  # type: ignore[arg-type]
    a, b, _ = matches.targets
    zero, ranks = np.zeros(3, dtype=np.int64), np.arange(1, 4)
    _, rank, alternative, repeat = labeller.settle(truth, matches, zero, ranks, np.array([b, b, a]))
    assert (rank.tolist(), alternative.tolist()) == ([1, 1, 2, 2, 3], [1, 2, 1, 2, 0])
    assert repeat.tolist() == [False, False, True, True, False]


def test_pages_are_counted_with_both_their_ends() -> None:
    """Results that carry their pages: the second is one of the two that were judged, the first none."""
    truth = {"q": [[{"doc": "d", "start": 3, "end": 4}]]}
    run = {"q": [{"id": "c1", "doc": "d", "start": 2, "end": 2}, {"id": "c2", "doc": "d", "start": 4, "end": 4}]}
    for least, expected in ((0.5, 1.0), (0.6, 0.0)):
        options = {"unit": "pages", "min_overlap": least}
        assert recall(truth, run, {"use": "spans", "with": options}) == expected


def test_nothing_covers_what_has_no_length() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    found = first_covered(nothing, nothing, nothing, np.array([3]))
    assert [part.tolist() for part in found] == [[], []]


def test_other_alternatives_than_ids_are_told_by_kind() -> None:
    truth = GroundTruth.of({"q": [[{"text": "one"}, {"text": "two"}, "d"], [{"doc": "d", "start": 0, "end": 1}]]})
    with pytest.raises(groupgt.DataError) as caught:
        all_ids(truth, "id")
    lines = str(caught.value).splitlines()
    assert (
        "'one' is passage text (1 of 2 such alternatives); choose another labeller, such as text"
        in lines[0] + lines[-2]
    )
    assert "is a span; choose another labeller, such as spans" in str(caught.value)
    plain = GroundTruth.of({"q": [["a"]]})
    assert all_ids(plain, "id") is plain


# ---- what all have in common --------------------------------------------------------------------------------------


def test_a_labeller_renames_where_it_says_so() -> None:
    class Column(Labeller):
        column = "parent"

    assert not Labeller().renames
    assert Column().renames
    assert Labeller().names(["A"]) == ["A"]
    with pytest.raises(NotImplementedError):
        Labeller().match(GroundTruth.of({"q": [["a"]]}), None)  # type: ignore[arg-type]


# ---- judges -------------------------------------------------------------------------------------------------------


async def slowly(pairs: Sequence[Any]) -> list[bool]:
    return [True for _ in pairs]


def interrupted(pairs: Sequence[Any]) -> Iterator[bool]:
    raise KeyboardInterrupt


def test_a_judge_that_is_async_is_refused() -> None:
    labeller = labeller_of({"use": "code", "with": {"target": slowly}}, Sources(TEXTS | {"a": "a"}))
    with pytest.raises(groupgt.DataError, match="it is async"):
        recall({"q": [["a"]]}, {"q": ["c1"]}, labeller)


def test_a_judge_that_is_interrupted_ends_the_run() -> None:
    labeller = labeller_of({"use": "code", "with": {"target": interrupted}}, Sources(TEXTS | {"a": "a"}))
    with pytest.raises(KeyboardInterrupt):
        recall({"q": [["a"]]}, {"q": ["c1"]}, labeller)
