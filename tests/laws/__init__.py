"""The laws of every registered metric, beside those that `groupgt.testing` asks of any metric.

Each law takes a batch `{qid: (groups, ranking)}` and says, in words, where it is broken; `values` is what evaluates.
The suite runs them over what hypothesis finds, `tests.agreement` over random batches.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from groupgt.metrics.catalogue import CATALOGUE
from groupgt.metrics.language import Metric, parse_metric
from groupgt.testing import (
    Batch,
    Values,
    alone,
    alternatives,
    appended,
    appending,
    at,
    bounded,
    no_better,
    order,
    rejected,
    repeats,
    share_documents,
    values_of,
    weight,
)

NEVER_FALL = {"recall", "hit_rate", "complete", "hits"}
# A text of one word for every id that the tests of engines and comparisons use.
WORDS = {f"{letter}{number}": f"word{letter}{number}" for letter in "dx" for number in range(1000)}
WORDS |= {f"d{number:04d}": f"wordd{number:04d}" for number in range(2000)}
WORDS |= {letter: f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"}


def registered(*, texts: bool = True) -> list[Metric]:
    """Every metric of ours under every convention, with its defaults; without `texts` none that reads them."""
    known = [each for each in CATALOGUE.values() if (texts or not each.reads_texts) and each.aggregate is None]
    return [Metric(each.name, convention) for each in known for convention in each.formulas]


def with_words() -> list[Metric]:
    """Every metric of ours with each word that a parameter takes instead of its default."""
    return [
        Metric(metric.name, metric.convention, ((parameter.name, word),))
        for metric in registered()
        for parameter in metric.formula.parameters
        for word in parameter.choices
        if word != parameter.default
    ]


def always_bounded(
    batch: Batch, rng: random.Random, metrics: list[Metric], values: Values = values_of, *, shared: bool = False
) -> list[str]:
    """Law 1, under every policy on duplicates; those that AutoRAG's arithmetic lets pass 1 are left out there."""
    inside = [metric for metric in metrics if metric.definition.bounded]
    kept = [metric for metric in inside if metric.convention == "autorag" and metric.name not in ("ndcg", "map")]
    found = []
    for duplicates, asked in (("penalize", inside), ("drop", inside), ("keep", kept)):
        found += bounded(batch, rng, asked, values, {"duplicates": duplicates}, shared=shared)
    return found


def never_falling(batch: Batch, rng: random.Random, values: Values = values_of) -> list[str]:
    """Law 5: appended results never lower recall and its kin."""
    metrics = [metric for metric in registered() if metric.name in NEVER_FALL]
    return no_better(batch, appended(batch, rng), metrics, values, slack=0.0)


def removing_harm(batch: Batch, rng: random.Random, values: Values = values_of) -> list[str]:
    """A ranking without one of its harmful results is at least as clean."""
    less = {}
    for qid, (groups, ranking) in batch.items():
        places = [place for place, name in enumerate(ranking) if name in rejected(groups)]
        out = rng.choice(places) if places else len(ranking)
        less[qid] = (groups, [*ranking[:out], *ranking[out + 1 :]])
    return no_better(batch, less, at([parse_metric("clean")], (None, 1, 3)), values, slack=0.0)


def condensed(batch: Batch, values: Values = values_of) -> list[str]:
    """Dropping unjudged results equals a run without them: those of no grade, and those of negative grades alone."""
    judged = {"judged": ([["a"], [{"id": "n", "grade": 0}]], ["n", "a"])}
    whole: dict[str, Any] = {**judged, **batch}
    left: dict[str, Any] = {}
    for qid, (groups, ranking) in whole.items():
        names = {name for group in groups for name, grade in alternatives(group) if grade >= 0}
        left[qid] = (groups, [name for name in ranking if name in names])
    metrics = at(registered(texts=False), (None, 3))
    dropped, without = values(whole, metrics, {"unjudged": "drop"}), values(left, metrics, None)
    rows = list(whole.values())
    return [
        f"{metric} = {dropped[metric][place]!r}, and {without[metric][place]!r} without them: {rows[place]}"
        for metric in metrics
        for place in np.flatnonzero(np.nan_to_num(dropped[metric], nan=-1) != np.nan_to_num(without[metric], nan=-1))
    ]


def relevant_no_worse(batch: Batch, rng: random.Random, values: Values = values_of) -> list[str]:
    """Law 10: a relevant result never scores less in ndcg.coverage than an irrelevant one in its place."""
    better: dict[str, Any] = {}
    worse: dict[str, Any] = {}
    for qid, (groups, ranking) in batch.items():
        wanted = [name for group in groups for name, grade in alternatives(group) if grade > 0]
        if not wanted:
            continue
        place = rng.randint(0, len(ranking))
        better[qid] = (groups, [*ranking[:place], rng.choice(wanted), *ranking[place:]])
        worse[qid] = (groups, [*ranking[:place], "irrelevant", *ranking[place:]])
    metrics = [parse_metric(f"ndcg.coverage{tail}") for tail in ("", "@3", "(gain=exp)")]
    return no_better(worse, better, metrics, values)


def singletons(batch: Batch, values: Values = values_of) -> list[str]:
    """Law 6: over distinct groups of size one, recall and precision are the same in `autorag` and `trec`."""
    simple: dict[str, Any] = {}
    for qid, (groups, ranking) in batch.items():
        names = dict.fromkeys(name for group in groups for name, grade in alternatives(group) if grade > 0)
        simple[qid] = ([[name] for name in names], ranking)
    found = []
    pairs = [
        ("recall.autorag@3", "recall.trec@3"),
        ("recall.autorag", "recall.trec"),
        ("recall.coverage", "recall.trec"),
    ]
    pairs.append(("precision.autorag", "precision.trec"))
    metrics = {text: parse_metric(text) for pair in pairs for text in pair}
    columns = values(simple, list(metrics.values()), None)
    for first, second in pairs:
        gap = np.abs(columns[metrics[first]] - columns[metrics[second]])
        found += [f"law 6: {first} ≠ {second} for {list(simple.values())[at]}" for at in np.flatnonzero(gap > 1e-12)]
    return found


def alpha_one(batch: Batch, values: Values = values_of) -> list[str]:
    """Law 7: alpha_ndcg(alpha=1) = ndcg.coverage without shared documents, with equal grades."""
    plain: dict[str, Any] = {}
    for qid, (groups, ranking) in batch.items():
        kept: list[Any] = []
        for group in groups:
            own = [name for name, grade in alternatives(group) if grade > 0]
            if own and not share_documents([*kept, own]):
                kept.append({"alternatives": own, "weight": weight(group)})
        plain[qid] = (kept, ranking)
    found = []
    for tail in ("", "@2", "@5"):
        first, second = parse_metric(f"alpha_ndcg(alpha=1){tail}"), parse_metric(f"ndcg.coverage{tail}")
        columns = values(plain, [first, second], None)
        gap = np.abs(columns[first] - columns[second])
        found += [f"law 7: {tail} {list(plain.values())[at]}" for at in np.flatnonzero(gap > 1e-12)]
    return found


def ideals(batch: Batch, values: Values = values_of) -> list[str]:
    """Law 2: what is ideal for a metric scores exactly 1 in it, and an ideal without cutoff in recall, complete, map.

    The ideal of `ndcg.coverage` may put an upgrade before a new group where grades differ within a group, and then
    its `map.coverage` is below 1: `[[{a:2, b:8}], [a:7], [c:1]]` with `a, b, c`. So map is asked of the ideal of `mrr`.
    """
    found = []
    for qid, (groups, _) in batch.items():
        relevant = [[(name, grade) for name, grade in alternatives(group) if grade > 0] for group in groups]
        if not any(relevant):
            continue
        best: dict[str, float] = {}
        for own in relevant:
            for name, grade in own:
                best[name] = max(best.get(name, 0), grade)
        by_grade = sorted(best, key=lambda name: -best[name])
        one = {qid: (groups, by_grade)}
        asked = [
            "recall.trec",
            "complete.trec",
            "map.trec",
            "mrr.trec",
            "ndcg.trec",
            "ndcg.trec@2",
            "ndcg.trec(gain=exp)@3",
        ]
        found += _all_one("trec", one, asked, values)
        if share_documents(groups):
            continue
        order = sorted(
            (-weight(group) * max(g for _, g in own), max(own, key=lambda cell: cell[1])[0])
            for group, own in zip(groups, relevant)
            if own
        )
        one = {qid: (groups, [name for _, name in order])}
        asked = [
            "recall.coverage",
            "complete.coverage",
            "map.coverage",
            "ndcg.coverage",
            "ndcg.coverage@1",
            "ndcg.coverage@2",
        ]
        found += _all_one("coverage ndcg", one, asked, values)
        order = sorted((-weight(group), own[0][0]) for group, own in zip(groups, relevant) if own)
        one = {qid: (groups, [name for _, name in order])}
        asked = [
            "recall.coverage",
            "complete.coverage",
            "map.coverage",
            "mrr.coverage",
            "mrr.coverage@1",
            "mrr.coverage@3",
        ]
        found += _all_one("coverage mrr", one, asked, values)
    return found


def _all_one(which: str, one: Batch, asked: list[str], values: Values) -> list[str]:
    columns = values(one, [parse_metric(name) for name in asked], None)
    return [f"law 2, {which}: {m} = {column[0]!r} for {one}" for m, column in columns.items() if column[0] != 1.0]


def broken(rng: random.Random, batch: Batch) -> list[str]:
    """Every law over one batch."""
    metrics = registered()
    few = {qid: batch[qid] for qid in rng.sample(list(batch), min(20, len(batch)))}
    found = always_bounded(batch, rng, metrics) + never_falling(batch, rng) + relevant_no_worse(batch, rng)
    found += removing_harm(batch, rng)
    for law in (order, repeats, appending, alone):
        found += law(batch, rng, metrics)
    return found + singletons(batch) + alpha_one(batch) + ideals(few) + condensed(few)
