"""The laws of metrics, with every labeller: what holds over ids holds over places, texts, vectors and verdicts."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import groupgt
from groupgt import testing
from groupgt.labellers import embedding, likeness, spans
from groupgt.metrics.language import Metric, parse_metric
from groupgt.plugins import ours
from tests import laws
from tests.labellers import slow

# Alternatives are d0 … d8, side by side; each has two halves. A result is one of them, a half, or two neighbours; with
# a mark it is another result that says the same. What is left says nothing of any.
TOKENS = [f"d{number}" for number in range(9)]
EXACT = [*TOKENS, "x0", "x1", "y1", "y2", "irrelevant"]
HALVES = [f"{name}/{half}" for name in TOKENS for half in (1, 2)]
PAIRS = [f"{one}+{two}" for one, two in itertools.pairwise(TOKENS)]
MARKED = [f"{name}'" for name in [*TOKENS, *HALVES, *PAIRS]]
NAMES = [*EXACT, *HALVES, *PAIRS, *MARKED]


def halves(name: str) -> range:
    """Which halves of alternatives a result says, numbered through."""
    plain = name.removesuffix("'")
    if not plain.startswith("d"):
        return range(0)
    whole, _, half = plain.partition("/")
    numbers = [int(each[1:]) for each in whole.split("+")]
    first, last = 2 * numbers[0], 2 * numbers[-1] + 2
    return range(first + int(half) - 1, first + int(half)) if half else range(first, last)


@dataclass
class Kit:
    """A labeller with what it calls the alternatives and the results of the laws."""

    labeller: Any
    alternative: Callable[[str], Any] = str
    result: Callable[[str], Any] = str
    corpus: Any = None


def ids(salt: str) -> Kit:
    return Kit("id", lambda name: salt + name, lambda name: salt + name)


def parent(name: str) -> str:
    """The alternative that a result says most of; itself where it printed no message."""
    said = halves(name)
    return f"d{said[0] // 2}" if said else name


def parents_by_pattern(salt: str) -> Kit:
    labeller = {"use": "parents", "with": {"pattern": "(.*)#[0-9]+"}}
    return Kit(labeller, lambda name: f"{salt}{name}#77", lambda name: f"{salt}{parent(name)}#{NAMES.index(name)}")


def parents_by_mapping(salt: str) -> Kit:
    mapping = {salt + name: f"parent of {parent(name)}" for name in NAMES}
    return Kit({"use": "parents", "with": {"mapping": mapping}}, lambda name: salt + name, lambda name: salt + name)


def parents_carried(salt: str) -> Kit:
    return Kit("parents", str, lambda name: {"id": salt + name, "parent": parent(name)})


def place(name: str, salt: str, unit: str = "chars") -> tuple[str, int, int]:
    """Ten characters for each half, one more before and behind what is marked; in pages the last is in it."""
    said = halves(name)
    more, beyond = name.endswith("'"), unit != "chars"
    if not said:
        return salt + name, 100, 110
    return salt + "doc", 100 + 10 * said[0] - more, 110 + 10 * said[-1] + more - beyond


def spans_carried(salt: str, **options: Any) -> Kit:
    def cell(name: str) -> dict[str, Any]:
        return dict(zip(("doc", "start", "end"), place(name, salt, options.get("unit", "chars")), strict=True))

    return Kit({"use": "spans", "with": {"min_overlap": 0.9, **options}}, cell, cell)


def spans_of_a_table(salt: str, **options: Any) -> Kit:
    given = {"min_overlap": 0.9, "chunks": {salt + name: place(name, salt) for name in NAMES}, **options}
    kit = spans_carried(salt)
    return Kit({"use": "spans", "with": given}, kit.alternative, lambda name: salt + name)


def words(name: str) -> str:
    """A word of one letter for each half; what is marked is written otherwise."""
    said = " ".join(chr(ord("a") + half) * 6 for half in halves(name)) or "zzzzzz yy"
    return f"({said.upper().replace(' ', ', ')})" if name.endswith("'") else said


def texts(salt: str, **options: Any) -> Kit:
    return Kit(
        {"use": "text", "with": options},
        lambda name: {"text": words(name)},
        lambda name: {"id": salt + name, "text": words(name)},
    )


def texts_of_a_corpus(salt: str) -> Kit:
    corpus = {salt + name: words(name) for name in NAMES}
    given = {"method": "token_recall", "threshold": 0.5, "reference": {name: words(name) for name in TOKENS}}
    return Kit({"use": "text", "with": given}, str, lambda name: salt + name, corpus)


def vectors(salt: str) -> Kit:
    """A dimension for each half: a half, or two neighbours, are at 45 degrees from an alternative."""
    # What has no half at all has a dimension of its own: a vector of zeros is near to nothing.
    rows = {name: [*(float(half in halves(name)) for half in range(18)), float(not halves(name))] for name in NAMES}
    documents = {salt + name: [value * (3 if name.endswith("'") else 1) for value in row] for name, row in rows.items()}
    given = {"threshold": 0.7, "documents": documents, "alternatives": {name: rows[name] for name in TOKENS}}
    return Kit({"use": "embedding", "with": given}, str, lambda name: salt + name)


def judged(salt: str) -> Kit:
    def judge(pairs: Any) -> list[bool]:
        said = [(halves(pair.alternative), halves(pair.result.removeprefix(salt))) for pair in pairs]
        return [bool(theirs) and theirs[0] in mine and theirs[-1] in mine for theirs, mine in said]

    return Kit({"use": "code", "with": {"target": judge}}, str, lambda name: salt + name)


KITS: dict[str, Callable[[str], Kit]] = {
    "id": ids,
    "parents: pattern": parents_by_pattern,
    "parents: mapping": parents_by_mapping,
    "parents: carried": parents_carried,
    "spans: carried": spans_carried,
    "spans: carried, in pages": lambda salt: spans_carried(salt, unit="pages"),
    "spans: carried, joint": lambda salt: spans_carried(salt, joint=True),
    "spans: table": spans_of_a_table,
    "spans: table, joint": lambda salt: spans_of_a_table(salt, joint=True, min_overlap=1),
    "spans: table, of result": lambda salt: spans_of_a_table(salt, of="result", min_overlap=0.4),
    "spans: table, of union": lambda salt: spans_of_a_table(salt, of="union", min_overlap=0.4),
    "text: contained": texts,
    "text: token_recall": texts_of_a_corpus,
    "embedding": vectors,
    "code": judged,
}


if find_spec("rapidfuzz") is not None:
    KITS["text: partial_ratio"] = lambda salt: texts(salt, method="partial_ratio")


def test_every_labeller_is_held_to_the_laws() -> None:
    """A new one needs a kit here."""
    assert {name.partition(":")[0] for name in KITS} == set(ours("labeller"))
    for name, make in KITS.items():
        labeller = make("").labeller
        assert name.partition(":")[0] == (labeller if isinstance(labeller, str) else labeller["use"])


# ---- the laws, told of another labeller -------------------------------------------------------------------------


@dataclass
class Told:
    """What the laws are told instead of the values of ids."""

    kit: Kit
    carrier: str = "lists"

    def truth(self, batch: testing.Batch) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for qid, (groups, _) in batch.items():
            found[qid] = []
            for group in groups:
                own = []
                for name, grade in testing.alternatives(group):
                    cell = self.kit.alternative(name)
                    own.append({**(cell if isinstance(cell, dict) else {"id": cell}), "grade": grade})
                found[qid].append({"alternatives": own, "weight": testing.weight(group)})
        return found

    def run(self, batch: testing.Batch) -> Any:
        run = {qid: [self.kit.result(name) for name in ranking] for qid, (_, ranking) in batch.items()}
        if self.carrier == "lists":
            return run
        return slow.frame_of(run, random.Random(3) if self.carrier == "shuffled" else None)

    def values(self, batch: testing.Batch, metrics: Sequence[Metric], policy: Any = None) -> dict[Metric, Any]:
        with warnings.catch_warnings():
            # Most of these results hit nothing, and nothing may be all there is.
            warnings.simplefilter("ignore", groupgt.GroupgtWarning)
            truth, run, kit = self.truth(batch), self.run(batch), self.kit
            found = groupgt.evaluate(truth, run, list(metrics), labeller=kit.labeller, corpus=kit.corpus, policy=policy)
        return {metric: found.values[text] for text, metric in found.metrics.items()}


def of_hits() -> list[Metric]:
    """Every registered metric of hits under any labeller: none that reads texts, and none of harm, which needs ids."""
    return [metric for metric in laws.registered(texts=False) if metric.definition.queries != "harmful"]


# ---- batches ----------------------------------------------------------------------------------------------------

GRADES = st.one_of(st.sampled_from([-1, 0, 1, 2, 3, 4]), st.floats(min_value=1e-6, max_value=4))
WEIGHTS = st.one_of(st.just(1), st.floats(min_value=1e-6, max_value=1e6))
CELLS = st.fixed_dictionaries({"id": st.sampled_from(TOKENS), "grade": GRADES})
GROUPS = st.one_of(
    st.lists(st.sampled_from(TOKENS), min_size=1, max_size=4),
    st.fixed_dictionaries({"alternatives": st.lists(CELLS, min_size=1, max_size=4), "weight": WEIGHTS}),
)


def batches(names: list[str]) -> st.SearchStrategy[testing.Batch]:
    queries = st.tuples(st.lists(GROUPS, max_size=4), st.lists(st.sampled_from(names), max_size=9))
    return st.lists(queries, min_size=1, max_size=4).map(lambda rows: {f"q{n}": row for n, row in enumerate(rows)})


def random_batch(rng: random.Random, names: list[str], queries: int) -> testing.Batch:
    batch: testing.Batch = {}
    for number in range(queries):
        groups: list[Any] = []
        for _ in range(rng.choice((0, 1, 2, 2, 3, 4))):
            own = rng.choices(TOKENS, k=rng.randint(1, 4))
            cells = [{"id": name, "grade": rng.choice((-1, 0, 0.5, 1, 1, 2, 3))} for name in own]
            graded = {"alternatives": cells, "weight": rng.choice((0.3, 1, 2, 7.5))}
            groups.append(graded if rng.random() < 0.4 else own)
        batch[f"q{number}"] = (groups, rng.choices(names, k=rng.choice((0, 1, 2, 3, 5, 8, 12))))
    return batch


WHICH = st.sampled_from(list(KITS))
RNGS = st.randoms(use_true_random=False)
pytestmark = pytest.mark.property
law = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def broken(which: str, batch: testing.Batch, rng: random.Random, *, many: bool) -> list[str]:
    """The laws that need no more than another labeller; 2 and 7 are of results that hit one alternative.

    With `many`, results may hit several groups, and those over a greedy ideal may pass 1.
    """
    values, metrics = Told(KITS[which]("")).values, of_hits()
    found = laws.always_bounded(batch, rng, metrics, values, shared=many)
    for law_of_any in (testing.repeats, testing.appending, testing.alone):
        found += law_of_any(batch, rng, metrics, values)
    found += laws.never_falling(batch, rng, values)
    found += laws.relevant_no_worse(batch, rng, values) + laws.singletons(batch, values)
    if not many:
        found += laws.alpha_one(batch, values)
        found += laws.ideals({qid: batch[qid] for qid in rng.sample(list(batch), min(6, len(batch)))}, values)
    return found


@pytest.mark.parametrize("which", KITS)
def test_every_law_of_many_queries(which: str) -> None:
    rng = random.Random(which)
    assert broken(which, random_batch(rng, EXACT, 60), rng, many=False) == []
    assert broken(which, random_batch(rng, NAMES, 60), rng, many=True) == []


@law
@given(WHICH, batches(EXACT), RNGS)
def test_every_law_where_a_result_hits_one_alternative(which: str, batch: testing.Batch, rng: random.Random) -> None:
    assert broken(which, batch, rng, many=False) == []


@law
@given(WHICH, batches(NAMES), RNGS)
def test_every_law_where_results_hit_what_they_will(which: str, batch: testing.Batch, rng: random.Random) -> None:
    assert broken(which, batch, rng, many=True) == []


# ---- laws that speak of more than ids ---------------------------------------------------------------------------


def values_of(which: str, batch: testing.Batch, carrier: str = "lists", salt: str = "") -> dict[Metric, Any]:
    metrics = testing.at(of_hits(), (None, 1, 3))
    return Told(KITS[which](salt), carrier).values(batch, metrics)


def differing(first: dict[Metric, Any], second: dict[Metric, Any], slack: float = 0.0) -> list[str]:
    """The metrics whose values are not the same: to the bit, where there is no slack."""
    return [
        str(metric)
        for metric in first
        if not np.allclose(first[metric], second[metric], rtol=0, atol=slack, equal_nan=True)
    ]


@pytest.mark.parametrize("which", KITS)
def test_where_a_result_hits_one_alternative_every_labeller_is_as_ids(which: str) -> None:
    """Nothing but hits passes to metrics: one that hits what ids would hit gives the same bits."""
    batch = random_batch(random.Random(which), EXACT, 60)
    assert differing(values_of("id", batch), values_of(which, batch)) == []


@pytest.mark.parametrize("which", KITS)
def test_lists_and_frames_give_the_same_bits(which: str) -> None:
    batch = random_batch(random.Random(which), NAMES, 60)
    listed = values_of(which, batch)
    for carrier in ("sorted", "shuffled"):
        assert differing(listed, values_of(which, batch, carrier)) == [], carrier


@pytest.mark.parametrize("which", KITS)
def test_working_in_small_blocks_changes_no_bit(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = random_batch(random.Random(which), NAMES, 60)
    whole = values_of(which, batch)
    for module, size in ((spans, 2), (likeness, 30), (embedding, 7)):
        monkeypatch.setattr(module, "BLOCK", size)
    assert differing(whole, values_of(which, batch)) == []


@pytest.mark.parametrize("which", KITS)
def test_order_and_names_do_not_matter(which: str) -> None:
    """Of groups, of the alternatives in them, and of whatever is called by an id."""
    rng = random.Random(which)
    batch = random_batch(rng, NAMES, 60)
    shuffled: testing.Batch = {}
    for qid, (groups, ranking) in batch.items():
        mixed = []
        for group in rng.sample(groups, len(groups)):
            cells = [{"id": name, "grade": grade} for name, grade in testing.alternatives(group)]
            mixed.append({"alternatives": rng.sample(cells, len(cells)), "weight": testing.weight(group)})
        shuffled[qid] = (mixed, ranking)
    found = differing(values_of(which, batch), values_of(which, shuffled, salt="other/"), slack=1e-12)
    assert [name for name in found if parse_metric(name).name not in testing.GREEDY] == []


@pytest.mark.parametrize("which", KITS)
def test_with_nothing_to_look_at_values_are_zero_or_undefined(which: str) -> None:
    """Neither queries without groups nor rankings without results are at fault."""
    lower = {metric for metric in of_hits() if not metric.higher_is_better}
    cases: list[tuple[testing.Batch, list[float]]] = [
        ({}, []),
        ({"q": ([], [])}, [np.nan]),
        ({"q": ([], ["d1"])}, [np.nan]),
        ({"q": ([["d1"]], [])}, [0]),
    ]
    for batch, none in cases:
        for carrier in ("lists", "sorted"):
            for metric, column in values_of(which, batch, carrier).items():
                expected = [np.nan] * len(none) if Metric(metric.name, metric.convention) in lower else none
                if metric.definition.queries != "answerable":
                    expected = [np.nan] * len(none)  # no query is declared to have no answer
                if metric.name == "num_rel" and none == [0]:
                    expected = [1]  # a count of the ground truth, whatever is returned
                assert np.array_equal(column, expected, equal_nan=True), (metric, batch, carrier)


def test_how_another_query_spells_a_text_does_not_matter() -> None:
    """Equal gains of greedy ideals go by the text of an alternative: as its own query has it."""
    groups = [[{"text": text} for text in own] for own in (["aa", "dd"], ["aa", "ff"], ["dd"], ["ff"])]
    other = [[{"text": "FF"}, {"text": "DD"}]]
    run = {"q": [{"text": "dd"}, {"text": "ee"}]}
    asked = [*testing.GREEDY, "alpha_ndcg@2"]
    alone = groupgt.evaluate({"q": groups}, run, asked, labeller="text")
    together = groupgt.evaluate({"other": other, "q": groups}, run, asked, labeller="text")
    for name, column in alone.values.items():
        assert column[0] == together.values[name][1], name
    assert together.truth["q"] == groups


def test_a_verdict_is_of_one_query() -> None:
    """The same result and the same alternative are asked about once for each query."""
    labeller = {"use": "code", "with": {"target": lambda pairs: [pair.qid == "q2" for pair in pairs]}}
    found = groupgt.evaluate({"q1": [["a"]], "q2": [["a"]]}, {"q1": ["c"], "q2": ["c"]}, ["mrr"], labeller=labeller)
    assert found.values["mrr"].tolist() == [0, 1]
