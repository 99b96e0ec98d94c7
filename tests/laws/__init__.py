"""The laws every registered metric obeys, as functions over batches of queries.

Each law takes a batch `{qid: (groups, ranking)}` and says, in words, where it is broken. The suite runs them over
what hypothesis finds, `tests.agreement` over random batches.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import groupgt
from groupgt.metrics.language import Metric, list_metrics, parse_metric

Batch = dict[str, tuple[list[Any], list[str]]]

UNBOUNDED = {"hits", "dcg"}
# The literature's greedy ideal can be beaten where groups share documents.
GREEDY = {"alpha_ndcg", "nerr_ia", "nnrbp"}
NEVER_FALL = {"recall", "hit_rate", "complete", "hits"}
KS = (1, 2, 3, 5, 10)
# A text of one word for every id that the tests of engines and comparisons use.
WORDS = {f"{letter}{number}": f"word{letter}{number}" for letter in "dx" for number in range(1000)}
WORDS |= {f"d{number:04d}": f"wordd{number:04d}" for number in range(2000)}
WORDS |= {letter: f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"}


def registered() -> list[Metric]:
    """Every metric under every convention, with its defaults."""
    return [Metric(each.name, convention) for each in list_metrics() for convention in each.formulas]


def cut(metric: Metric, k: int | None) -> Metric:
    return Metric(metric.name, metric.convention, metric.parameters, k if metric.definition.takes_cutoff else None)


def values(batch: Batch, metrics: list[Metric], duplicates: str = "penalize") -> dict[Metric, np.ndarray]:
    """The values of each metric for a batch, shape (Q,)."""
    truth = {qid: groups for qid, (groups, _) in batch.items()}
    run = {qid: ranking for qid, (_, ranking) in batch.items()}
    result = groupgt.evaluate(truth, run, metrics, policy={"duplicates": duplicates}, corpus=texts(batch))
    return {metric: result.values[text] for text, metric in result.metrics.items()}


def texts(batch: Batch) -> dict[str, str]:
    """A text of one word for every id, for the metrics that read texts."""
    names = {name for groups, ranking in batch.values() for group in groups for name, _ in cells(group)}
    names |= {str(name) for _, ranking in batch.values() for name in ranking}
    return {name: f"word{name}" for name in names}


def cells(group: Any) -> list[tuple[str, float]]:
    """(id, grade) of a group in any shape."""
    listed = group["alternatives"] if isinstance(group, dict) else group
    return [(cell["id"], cell.get("grade", 1)) if isinstance(cell, dict) else (cell, 1) for cell in listed]


def weight(group: Any) -> float:
    return group.get("weight", 1) if isinstance(group, dict) else 1


def shares(groups: list[Any]) -> bool:
    """Whether a relevant document stands in two groups."""
    seen: set[str] = set()
    for group in groups:
        own = {name for name, grade in cells(group) if grade > 0}
        if own & seen:
            return True
        seen |= own
    return False


def bounded(batch: Batch, duplicates: str) -> list[str]:
    """Law 1: values lie in [0, 1]."""
    metrics = [cut(m, k) for m in registered() for k in (None, 1, 3) if m.name not in UNBOUNDED]
    if duplicates == "keep":
        metrics = [m for m in metrics if m.convention == "autorag" and m.name not in ("ndcg", "map")]
    found = []
    for metric, column in values(batch, metrics, duplicates).items():
        for (qid, (groups, ranking)), value in zip(batch.items(), column):
            high = np.inf if metric.name in GREEDY and shares(groups) else 1.0
            if not np.isnan(value) and not 0.0 <= value <= high:
                found.append(f"law 1: {metric} = {value!r} for {groups} {ranking} ({qid})")
    return found


def round_trip(convention: str) -> list[str]:
    """Law 8: a metric's text reads back to it, under any convention in force."""
    metrics = [cut(metric, k) for metric in registered() for k in (None, 7)]
    return [f"law 8: {m}" for m in metrics if parse_metric(str(m), convention) != m]


def repeats(batch: Batch, rng: random.Random) -> list[str]:
    """Law 4: a repeated result scores no more than an irrelevant result in its place."""
    repeated: Batch = {}
    replaced: Batch = {}
    for qid, (groups, ranking) in batch.items():
        if not ranking:
            continue
        place = rng.randint(1, len(ranking))
        again = rng.choice(ranking[:place])
        repeated[qid] = (groups, [*ranking[:place], again, *ranking[place:]])
        replaced[qid] = (groups, [*ranking[:place], "irrelevant", *ranking[place:]])
    metrics = [cut(m, k) for m in registered() for k in (None, 3)]
    return _compare("law 4", repeated, replaced, metrics)


def _compare(law: str, lower: Batch, higher: Batch, metrics: list[Metric], slack: float = 1e-12) -> list[str]:
    """`lower` scores no more than `higher` (no less, where lower is better)."""
    found = []
    first, second = values(lower, metrics), values(higher, metrics)
    for metric in metrics:
        sign = 1 if metric.higher_is_better else -1
        bad = sign * (first[metric] - second[metric]) > slack
        for position in np.flatnonzero(bad):
            qid = list(lower)[position]
            found.append(f"{law}: {metric} {lower[qid]} {first[metric][position]!r} over {second[metric][position]!r}")
    return found


def appending(batch: Batch, rng: random.Random) -> list[str]:
    """Law 5: appended results never lower recall and its kin, and change no metric @k for k ≤ n by a bit."""
    found = []
    longer: Batch = {}
    for qid, (groups, ranking) in batch.items():
        ids = [name for group in groups for name, _ in cells(group)]
        longer[qid] = (groups, [*ranking, *rng.choices([*ids, "y1", "y2"], k=rng.randint(1, 4))])
    whole = [m for m in registered() if m.name in NEVER_FALL]
    found += _compare("law 5", batch, longer, whole, slack=0.0)
    metrics = [cut(m, k) for m in registered() if m.definition.takes_cutoff for k in KS]
    first, second = values(batch, metrics), values(longer, metrics)
    lengths = np.array([len(ranking) for _, ranking in batch.values()])
    for metric in metrics:
        assert isinstance(metric.cutoff, int)
        long_enough = lengths >= metric.cutoff
        same = (first[metric] == second[metric]) | (np.isnan(first[metric]) & np.isnan(second[metric]))
        for position in np.flatnonzero(long_enough & ~same):
            found.append(f"law 5: {metric} of {list(batch.values())[position]} changed by appending")
    return found


def renaming(batch: Batch, rng: random.Random) -> list[str]:
    """Law 3: the order inside a group, the order of groups and the names of ids do not matter."""
    changed: Batch = {}
    for qid, (groups, ranking) in batch.items():
        names = sorted({name for group in groups for name, _ in cells(group)} | set(ranking))
        other = dict(zip(names, rng.sample([f"n{number:03d}" for number in range(len(names))], len(names))))
        shuffled = []
        for group in rng.sample(groups, len(groups)):
            own = [{"id": other[name], "grade": grade} for name, grade in cells(group)]
            shuffled.append({"alternatives": rng.sample(own, len(own)), "weight": weight(group)})
        changed[qid] = (shuffled, [other[name] for name in ranking])
    metrics = [cut(m, k) for m in registered() if m.name not in GREEDY for k in (None, 3)]
    first, second = values(batch, metrics), values(changed, metrics)
    found = []
    for metric in metrics:
        gap = np.abs(first[metric] - second[metric])
        for position in np.flatnonzero(gap > 1e-12):
            qid = list(batch)[position]
            found.append(f"law 3: {metric} {batch[qid]} {first[metric][position]!r} or {second[metric][position]!r}")
    return found


def alone(batch: Batch, rng: random.Random) -> list[str]:
    """Law 9: a query's value does not depend on which other queries are evaluated with it, to the bit."""
    qid = rng.choice(list(batch))
    metrics = [cut(m, k) for m in registered() for k in (None, 5)]
    together, single = values(batch, metrics), values({qid: batch[qid]}, metrics)
    position = list(batch).index(qid)
    return [
        f"law 9: {metric} of {batch[qid]}: {single[metric][0]!r} alone, {together[metric][position]!r} with others"
        for metric in metrics
        if not np.array_equal(single[metric][0], together[metric][position], equal_nan=True)
    ]


def relevant_no_worse(batch: Batch, rng: random.Random) -> list[str]:
    """Law 10: a relevant result never scores less in ndcg.coverage than an irrelevant one in its place."""
    better: Batch = {}
    worse: Batch = {}
    for qid, (groups, ranking) in batch.items():
        wanted = [name for group in groups for name, grade in cells(group) if grade > 0]
        if not wanted:
            continue
        place = rng.randint(0, len(ranking))
        better[qid] = (groups, [*ranking[:place], rng.choice(wanted), *ranking[place:]])
        worse[qid] = (groups, [*ranking[:place], "irrelevant", *ranking[place:]])
    metrics = [parse_metric(f"ndcg.coverage{tail}") for tail in ("", "@3", "(gain=exp)")]
    return _compare("law 10", worse, better, metrics)


def singletons(batch: Batch) -> list[str]:
    """Law 6: over distinct groups of size one, recall and precision are the same in `autorag` and `trec`."""
    simple: Batch = {}
    for qid, (groups, ranking) in batch.items():
        names = dict.fromkeys(name for group in groups for name, grade in cells(group) if grade > 0)
        simple[qid] = ([[name] for name in names], ranking)
    found = []
    pairs = [
        ("recall.autorag@3", "recall.trec@3"),
        ("recall.autorag", "recall.trec"),
        ("recall.coverage", "recall.trec"),
    ]
    pairs.append(("precision.autorag", "precision.trec"))
    metrics = {text: parse_metric(text) for pair in pairs for text in pair}
    columns = values(simple, list(metrics.values()))
    for first, second in pairs:
        gap = np.abs(columns[metrics[first]] - columns[metrics[second]])
        found += [f"law 6: {first} ≠ {second} for {list(simple.values())[at]}" for at in np.flatnonzero(gap > 1e-12)]
    return found


def alpha_one(batch: Batch) -> list[str]:
    """Law 7: alpha_ndcg(alpha=1) = ndcg.coverage without shared documents, with equal weights and grades."""
    plain: Batch = {}
    for qid, (groups, ranking) in batch.items():
        kept: list[Any] = []
        for group in groups:
            own = [name for name, grade in cells(group) if grade > 0]
            if own and not shares([*kept, own]):
                kept.append(own)
        plain[qid] = (kept, ranking)
    found = []
    for tail in ("", "@2", "@5"):
        first, second = parse_metric(f"alpha_ndcg(alpha=1){tail}"), parse_metric(f"ndcg.coverage{tail}")
        columns = values(plain, [first, second])
        gap = np.abs(columns[first] - columns[second])
        found += [f"law 7: {tail} {list(plain.values())[at]}" for at in np.flatnonzero(gap > 1e-12)]
    return found


def ideals(batch: Batch) -> list[str]:
    """Law 2: what is ideal for a metric scores exactly 1 in it, and an ideal without cutoff in recall, complete, map.

    The ideal of `ndcg.coverage` may put an upgrade before a new group where grades differ within a group, and then
    its `map.coverage` is below 1: `[[{a:2, b:8}], [a:7], [c:1]]` with `a, b, c`. So map is asked of the ideal of `mrr`.
    """
    found = []
    for qid, (groups, _) in batch.items():
        relevant = [[(name, grade) for name, grade in cells(group) if grade > 0] for group in groups]
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
        found += _all_one("trec", one, asked)
        if shares(groups):
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
        found += _all_one("coverage ndcg", one, asked)
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
        found += _all_one("coverage mrr", one, asked)
    return found


def _all_one(which: str, one: Batch, asked: list[str]) -> list[str]:
    columns = values(one, [parse_metric(text) for text in asked])
    return [f"law 2, {which}: {m} = {column[0]!r} for {one}" for m, column in columns.items() if column[0] != 1.0]


def broken(rng: random.Random, batch: Batch, duplicates: str) -> list[str]:
    """Every law over one batch; the laws of the default policy only under it."""
    found = bounded(batch, duplicates)
    if duplicates == "penalize":
        few = {qid: batch[qid] for qid in rng.sample(list(batch), min(20, len(batch)))}
        found += repeats(batch, rng) + appending(batch, rng) + renaming(batch, rng) + relevant_no_worse(batch, rng)
        found += singletons(batch) + alpha_one(batch) + alone(batch, rng) + ideals(few)
    return found
