"""Every labeller finds the hits that plain loops find, in lists and in frames, whatever the options."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import groupgt
from groupgt import testing
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.labellers.likeness import METHODS
from tests.agreement import all_metrics, at
from tests.labellers import slow
from tests.labellers.slow import World, fill, named
from tests.reference import reference

KS = (None, 1, 3)
MEASURES = list(slow.measures(slow.Truth(["a"], [0], [1], [1]), [], 1, None) or ())
ASKED = [f"{name}{'' if k is None else f'@{k}'}" for name in MEASURES for k in KS]
ASKED += ["mrr.coverage", "map.coverage", "ndcg.coverage@3", "alpha_ndcg", "bpref", "judged@3"]
RNGS = st.randoms(use_true_random=False)

pytestmark = pytest.mark.property
loops = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def evaluated(world: World, run: Any, duplicates: str, metrics: Any, ties: str = "id") -> groupgt.Evaluation:
    with warnings.catch_warnings():
        # Results that a table does not know are meant here, and so are queries that nothing hits.
        warnings.simplefilter("ignore", groupgt.GroupgtWarning)
        policy = {"duplicates": duplicates, "ties": ties}
        return groupgt.evaluate(world.truth, run, metrics, labeller=world.labeller, policy=policy, corpus=world.corpus)


def rows_of(result: groupgt.Evaluation) -> list[tuple[int, int, int, bool]]:
    """(query, rank, alternative, repeat) of every hit."""
    hits = result.labelled.hits
    columns = (hits.query, hits.rank, hits.alternative, hits.repeat)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def expected_of(world: World, duplicates: str) -> tuple[list[Any], list[tuple[slow.Truth, list[slow.Row], int]]]:
    """The rows of all queries, alternatives numbered through; and for each query what its measures need."""
    rows, queries = [], []
    before = 0
    for number, (qid, groups) in enumerate(world.truth.items()):
        truth = slow.read_truth(world.slow, groups)
        results = slow.read_ranking(world.slow, world.run.get(qid, []), duplicates)
        own = world.slow.decide(truth.what, results)
        rows += [(number, rank, before + alternative, repeat) for rank, alternative, repeat in own]
        queries.append((truth, own, len(results)))
        before += len(truth.what)
    return rows, queries


def same_bits(first: groupgt.Evaluation, second: groupgt.Evaluation) -> bool:
    return all(
        np.array_equal(column.view(np.int64), second.values[text].view(np.int64))
        for text, column in first.values.items()
    )


def check(world: World, rng: random.Random, duplicates: str) -> None:
    """Hits are those of the loops, values too; frames, sorted or shuffled, give the same bits as lists."""
    rows, queries = expected_of(world, duplicates)
    asked = [name for name in ASKED if duplicates != "keep" or ".autorag" in name]
    listed = evaluated(world, world.run, duplicates, asked)
    assert rows_of(listed) == rows
    assert listed.labelled.hits.length.tolist() == [length for _, _, length in queries]
    for shuffled in (None, rng):
        framed = evaluated(world, slow.frame_of(world.run, shuffled), duplicates, asked)
        assert rows_of(framed) == rows
        assert framed.labelled.hits.length.tolist() == listed.labelled.hits.length.tolist()
        assert same_bits(listed, framed)
        assert framed.counts == listed.counts
    for number, query in enumerate(queries):
        for k in KS:
            wanted = slow.measures(*query, k)
            for name in MEASURES:
                text = name if k is None else f"{name}@{k}"
                expected = np.nan if wanted is None else wanted[name]
                value = listed.values[text][number] if text in asked else expected
                assert value == pytest.approx(expected, abs=1e-12, nan_ok=True), (name, k, query)


def check_reference(world: World) -> None:
    """Every metric is what the reference says, where each result first hits one alternative at most."""
    kinds = [(metric, metric.definition) for metric in all_metrics()]
    of_hits = [metric for metric, about in kinds if not about.reads_texts and about.queries != "harmful"]
    metrics = [at(metric, k) for metric in of_hits for k in (None, 2)]
    _, queries = expected_of(world, "penalize")
    result = evaluated(world, world.run, "penalize", metrics)
    highest = max(result.truth.grade.tolist(), default=1)
    for number, query in enumerate(queries):
        ids = slow.as_ids(*query)
        if ids is None:
            continue
        for text, metric in result.metrics.items():
            if metric.name in testing.GREEDY and testing.share_documents(ids[0]):
                continue  # equal gains go by the names of alternatives, which are others here
            k = metric.cutoff if isinstance(metric.cutoff, int) else None
            parameters = dict(metric.parameters)
            expected = reference(*ids, metric.name, metric.convention, parameters, k, highest=highest)
            value = result.values[text][number]
            expected = np.nan if expected is None else expected
            assert value == pytest.approx(expected, abs=1e-12, nan_ok=True), (text, query)


# ---- ids and parents --------------------------------------------------------------------------------------------


def before_sign(name: str) -> str:
    """What stands before the last `#` and digits; the name itself where they are missing."""
    parent, sign, number = name.rpartition("#")
    return parent if sign and parent and number and set(number) <= set("0123456789") else name


def before_dash(name: str) -> str:
    """What stands before the first dash, where there is one and something before it."""
    parent, dash, _ = name.partition("-")
    return parent if dash and parent else name


PATTERNS = {"(.*)#[0-9]+": before_sign, "([^-]*)-.*": before_dash}
IDS = [f"{doc}{tail}" for doc in ("a", "b", "c-1", "d#2") for tail in ("", "#1", "#2", "#x", "#1x", "-1#3")]
IDS += ["#1", "-x"]


def parents_world(rng: random.Random, how: str, queries: int) -> World:
    ids = rng.sample(IDS, 12)
    if how == "id":
        world = World("id", slow.Parents())
        fill(world, rng, queries, lambda: rng.choice(ids), lambda: rng.choice(ids))
    elif how == "carried":
        world = World("parents", slow.Parents(carried=True))
        parents = {name: rng.choice("abcd") for name in ids}
        cells = [{"id": name, "parent": parent} for name, parent in parents.items()]
        fill(world, rng, queries, lambda: rng.choice("abcde"), lambda: rng.choice(cells))
    elif how == "mapping":
        mapping = {name: rng.choice(["a", "p1", "p2", "p3"]) for name in ids}
        twin = slow.Parents(lambda name: mapping.get(name, name))
        world = World({"use": "parents", "with": {"mapping": mapping}}, twin)
        parents_too = [*ids, *mapping.values()]
        fill(world, rng, queries, lambda: rng.choice(parents_too), lambda: rng.choice([*parents_too, "stranger"]))
    else:
        world = World({"use": "parents", "with": {"pattern": how}}, slow.Parents(PATTERNS[how]))
        fill(world, rng, queries, lambda: rng.choice(ids), lambda: rng.choice(ids))
    return world


WAYS = ["id", "carried", "mapping", *PATTERNS]


# ---- spans ------------------------------------------------------------------------------------------------------

SHARES = (0.5, 1, 0.1, 0.25, 0.3, 0.6, 0.7, 1e-6)
SPANS = [
    {"of": of, "joint": joint, "unit": unit, "places": places}
    for of, joint in (("alternative", False), ("alternative", True), ("result", False), ("union", False))
    for unit in ("chars", "pages", "lines")
    for places in ("carried", "under span", "table")
]


def spans_world(rng: random.Random, options: dict[str, Any], queries: int, far: int) -> World:
    """Places up to `far`; alternatives are places, or ids of a reference where there is one."""
    empty = 0 if options["unit"] == "chars" else -1

    def place(docs: str = "dd[ef") -> slow.Place:
        start = rng.randint(0, far - 1)
        return rng.choice(docs), start, rng.randint(start + 1 + empty, far)

    def cell(where: slow.Place) -> dict[str, Any]:
        return dict(zip(("doc", "start", "end"), where, strict=True))

    given = {name: value for name, value in options.items() if name != "places"}
    given["min_overlap"] = rng.choice(SHARES)
    world = World({"use": "spans", "with": given}, slow.Spans(**given))
    assert isinstance(world.slow, slow.Spans)
    alternative: Callable[[], Any] = lambda: cell(place())  # noqa: E731  # one of several
    if rng.random() < 0.4:
        world.slow.reference = {f"j{number}": place() for number in range(8)}
        given["reference"] = world.slow.reference
        by_name, by_place = named(rng, given["reference"]), alternative
        alternative = lambda: by_name() if rng.random() < 0.7 else by_place()  # noqa: E731
    if options["places"] == "table":
        world.slow.table = {f"c{number}": place("ddefg") for number in range(rng.randint(2, 15))}
        given["chunks"] = world.slow.table
        results = named(rng, {**given["chunks"], "stranger": None})
        fill(world, rng, queries, alternative, results)
        if "no ground truth" in world.run:
            world.run["no ground truth"] = ["c0"]
        # Where the table knew none of the judged documents, the labeller would refuse it.
        world.slow.table.update({f"known {doc}": (doc, 0, 1) for doc in "[ef" if rng.random() < 0.5})
        world.slow.table["known d"] = ("d", 0, 1)
        world.truth["knows d"] = [[cell(("d", 0, 1))]]
    elif options["places"] == "under span":
        fill(world, rng, queries, alternative, lambda: {"id": f"c{rng.randint(0, 3)}", "span": cell(place("ddefg"))})
    else:
        fill(world, rng, queries, alternative, lambda: cell(place("ddefg")))
    return world


# ---- texts ------------------------------------------------------------------------------------------------------

WORDS = ["thirty", "Thirty", "days", "DAYS", "of", "leave", "lea\u00adve", "fine", "ﬁne", "straße", "STRASSE"]
WORDS += ["strasse", "北京", "首", "é", "e\u0301", "É", "Ａ", "a", "ab", "42", "x\u200by"]
BETWEEN = [" ", " ", "\n", ", ", " – ", "\u00a0", "-", "… ", "\u3000", " (", "。", " \t "]
TEXTS = [
    {"method": method, "case_sensitive": case, "punctuation": signs, "texts": texts}
    for method in ("contained", *(("partial_ratio",) if slow.RAPIDFUZZ else ()), "token_recall")
    for case in (False, True)
    for signs in (False, True)
    for texts in ("carried", "only", "corpus", "at hand")
]


def some_text(rng: random.Random, words: list[str], most: int) -> str:
    text = rng.choice(words)
    for _ in range(rng.randint(0, most - 1)):
        text += rng.choice(BETWEEN) + rng.choice(words)
    return text + rng.choice(["", "", ".", "!", " "])


def text_world(rng: random.Random, options: dict[str, Any], queries: int) -> World:
    """Few words, so that texts have much in common; results carry their texts, are texts, or stand in a corpus."""
    words = rng.sample(WORDS, rng.randint(3, 7))
    given = {name: value for name, value in options.items() if name != "texts"}
    # No score of so few words comes near the first three.
    thresholds = (0.511, 0.743, 0.907) if given["method"] == "partial_ratio" else (0.5, 0.75, 2 / 3, 1)
    given["threshold"] = rng.choice(thresholds)
    results = {f"c{number}": some_text(rng, words, 9) for number in range(10)} | {"blank": rng.choice(["", " ", "…"])}
    judged = {f"j{number}": some_text(rng, words, 4) for number in range(5)}
    judged |= {name: text for name, text in results.items() if slow.normalized(text)}
    twin = slow.Text(texts=results | judged, **given)
    world = World({"use": "text", "with": given}, twin)
    by_name = named(rng, judged)
    given["reference"] = judged

    def alternative() -> Any:
        return by_name() if rng.random() < 0.3 else {"text": some_text(rng, words, 4)}

    if options["texts"] == "carried":
        cells: list[Any] = [{"id": name, "text": text} for name, text in results.items()]
    elif options["texts"] == "only":
        cells = [{"text": text} for text in results.values() if text.strip()]
        twin.texts = {**twin.texts, **{cell["text"]: cell["text"] for cell in cells}}
    else:
        cells = list(results)
        if options["texts"] == "corpus":
            given["corpus"] = results
        else:
            world.corpus = results
    fill(world, rng, queries, alternative, lambda: rng.choice(cells))
    return world


# ---- vectors and judges -----------------------------------------------------------------------------------------


class Encoders(Sources):
    """Files and functions, and a model that knows these texts."""

    vectors_of: dict[str, list[float]]

    def encoder(self, model: str) -> Callable[[list[str]], Any]:
        return lambda texts: np.array([self.vectors_of[text] for text in texts], dtype=np.float64)


def embedding_world(rng: random.Random, how: str, queries: int) -> World:
    """Small numbers in three dimensions; from tables, or made of texts by a model."""

    def vectors(letter: str) -> dict[str, list[float]]:
        def vector() -> list[float]:
            return [rng.randint(-2, 4) + 0.5, *(float(rng.randint(-2, 4)) for _ in range(2))]

        return {f"{letter}{number}": vector() for number in range(8)}

    documents, alternatives = vectors("c"), vectors("j")
    scores = [abs(slow.Embedding(0, documents, alternatives).score(c, j)) for c in documents for j in alternatives]
    near = (0.8123, 0.512, 0.953, 0.0713)
    threshold = rng.choice([each for each in near if all(abs(score - each) > 1e-6 for score in scores)])
    twin = slow.Embedding(threshold, documents, alternatives)
    cells: list[Any] = list(documents)
    if how == "tables":
        given = {"threshold": threshold, "documents": documents, "alternatives": alternatives}
        world = World({"use": "embedding", "with": given}, twin)
    else:
        sources = Encoders()
        made = {f"d: text {name}": vector for name, vector in documents.items()}
        sources.vectors_of = made | {f"a: text {name}": vector for name, vector in alternatives.items()}
        given = {"threshold": threshold, "model": "m", "document_prefix": "d: ", "alternative_prefix": "a: "}
        given["reference"] = {name: f"text {name}" for name in alternatives}
        if how == "corpus":
            given["corpus"] = {name: f"text {name}" for name in documents}
        else:
            cells = [{"id": name, "text": f"text {name}"} for name in documents]
        world = World(labeller_of({"use": "embedding", "with": given}, sources), twin)
    fill(world, rng, queries, named(rng, alternatives), lambda: rng.choice(cells))
    return world


def code_world(rng: random.Random, how: str, queries: int) -> World:
    """A judge that answers by the book, and says so where it is asked what it should not be, or twice."""
    results, judged = [f"c{number}" for number in range(8)], [f"j{number}" for number in range(8)]
    book: dict[tuple[str, str], float] = {
        (result, alternative): rng.choice([True, False, False, 0, 0.25, 0.5, 0.75, 1])
        for result in results
        for alternative in judged
    }
    size = rng.choice([1, 3, 32])
    asked: set[Any] = set()

    def judge(pairs: Any) -> list[Any]:
        assert 0 < len(pairs) <= size
        for pair in pairs:
            assert pair.query is None
            assert pair.result_text == (None if how == "ids" else f"text {pair.result}")
            assert pair.alternative_text == (None if how == "ids" else f"text {pair.alternative}")
            key = (pair.qid, pair.result, pair.alternative)
            assert key not in asked
            asked.add(key)
        return [book[pair.result, pair.alternative] for pair in pairs]

    threshold = rng.choice((0.5, 0.25, 0.75, 1.0, 0.3))
    given: dict[str, Any] = {"target": judge, "batch_size": size, "threshold": threshold}
    cells: list[Any] = list(results)
    if how != "ids":
        given["reference"] = {name: f"text {name}" for name in judged}
    if how == "corpus":
        given["corpus"] = {name: f"text {name}" for name in results}
    if how == "carried":
        cells = [{"id": name, "text": f"text {name}"} for name in results]
    # One labeller for all carriers: what was judged once is not asked again.
    world = World(labeller_of({"use": "code", "with": given}), slow.Code(book, threshold))
    fill(world, rng, queries, lambda: rng.choice(judged), lambda: rng.choice(cells))
    return world


# ---- tests ------------------------------------------------------------------------------------------------------

POLICIES = st.sampled_from(["penalize", "drop", "keep"])
SOURCES = ["ids", "corpus", "carried"]
VECTORS = ["tables", "corpus", "carried"]


@loops
@given(RNGS, st.sampled_from(WAYS), POLICIES)
def test_parents(rng: random.Random, how: str, duplicates: str) -> None:
    check(parents_world(rng, how, 4), rng, duplicates)


@loops
@given(RNGS, st.sampled_from(SPANS), POLICIES)
def test_spans(rng: random.Random, options: dict[str, Any], duplicates: str) -> None:
    check(spans_world(rng, options, 4, 9), rng, duplicates)


@loops
@given(RNGS, st.sampled_from(TEXTS), POLICIES)
def test_texts(rng: random.Random, options: dict[str, Any], duplicates: str) -> None:
    check(text_world(rng, options, 4), rng, duplicates)


@loops
@given(RNGS, st.sampled_from(VECTORS), POLICIES)
def test_vectors(rng: random.Random, how: str, duplicates: str) -> None:
    check(embedding_world(rng, how, 4), rng, duplicates)


@loops
@given(RNGS, st.sampled_from(SOURCES), POLICIES)
def test_judges(rng: random.Random, how: str, duplicates: str) -> None:
    check(code_world(rng, how, 4), rng, duplicates)


# A larger world for every labeller and every combination of its options.
LARGE: dict[str, Callable[[random.Random], World]] = {
    **{f"parents {how}": partial(parents_world, how=how, queries=40) for how in WAYS},
    **{f"spans {options}": partial(spans_world, options=options, queries=40, far=30) for options in SPANS},
    **{f"text {options}": partial(text_world, options=options, queries=40) for options in TEXTS},
    **{f"embedding {how} {n}": partial(embedding_world, how=how, queries=40) for how in VECTORS for n in range(4)},
    **{f"code {how}": partial(code_world, how=how, queries=40) for how in SOURCES},
}


@pytest.mark.skipif(
    not slow.RAPIDFUZZ, reason="the extra groupgt[text] is not installed: partial_ratio is not compared"
)
def test_every_method_is_compared() -> None:
    assert {options["method"] for options in TEXTS} == set(METHODS)


@pytest.mark.parametrize("which", LARGE)
def test_larger_worlds(which: str) -> None:
    rng = random.Random(which)
    world = LARGE[which](rng)
    check(world, rng, rng.choice(["penalize", "drop", "keep"]))
    if rng.random() < 0.5:
        check_reference(world)


def test_equal_scores_are_ordered_alike_in_both_carriers() -> None:
    rng = random.Random(5)
    for ties in ("id", "input"):
        for name, world in ((name, make(rng)) for name, make in LARGE.items()):
            if not all(isinstance(cell, str) for ranking in world.run.values() for cell in ranking):
                continue
            scored = {q: {cell: rng.choice((0.5, 1, 2)) for cell in cells} for q, cells in world.run.items()}
            rows = [(qid, doc, float(score)) for qid, own in scored.items() for doc, score in own.items()]
            frame = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")
            first, second = (evaluated(world, run, "penalize", ASKED, ties) for run in (scored, frame))
            assert rows_of(first) == rows_of(second), (name, ties)
            assert same_bits(first, second), (name, ties)


@pytest.mark.parametrize("qids", ["q1", "q2", "q1 q2", "q2 q1", "q3", "q4"])
def test_an_id_and_a_text_that_are_spelled_alike_are_two(qids: str) -> None:
    labeller = {"use": "text", "with": {"reference": {"cat": "a dog barks"}}}
    of_id, of_text = "cat", {"text": "cat"}
    truth = {"q1": [[of_id]], "q2": [[of_text]], "q3": [[of_text, of_id]], "q4": [[of_text], [of_id]]}
    run = [{"id": "c1", "text": "The cat."}, {"id": "c2", "text": "A dog barks."}]
    asked = {qid: truth[qid] for qid in qids.split()}
    found = groupgt.evaluate(asked, dict.fromkeys(asked, run), ["mrr.trec", "hits"], labeller=labeller)
    expected = {"q1": (1 / 2, 1), "q2": (1, 1), "q3": (1, 2), "q4": (1, 2)}
    assert list(zip(*found.values.values(), strict=True)) == [expected[qid] for qid in asked]


def test_what_is_exactly_enough_is_a_hit() -> None:
    vectors = {"threshold": 0.96, "documents": {"c": [3, 4]}, "alternatives": {"a": [4, 3]}}
    assert groupgt.label([["a"]], ["c"], labeller={"use": "embedding", "with": vectors}).tolist() == [1]
