"""Tests whether custom metrics obey the laws that every metric must obey (needs the `test` extra)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from groupgt.errors import ConfigError, GroupgtError, listed, near_names
from groupgt.evaluation.evaluate import evaluate
from groupgt.metrics.base import CONVENTIONS, Definition
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Floats

# Queries by id: the groups as in ground truth, and a ranking.
Batch = Mapping[str, tuple[list[Any], list[str]]]
Changed = dict[str, tuple[list[Any], list[str]]]
# (batch, metrics, policy) → the values of each metric, shape (Q,).
Values = Callable[[Batch, Sequence[Metric], Any], Mapping[Metric, Floats]]
SLACK = 1e-12
KS = (1, 2, 3, 5, 10)
# Their ideal is greedy: rankings can exceed it if groups share documents, and ties are broken by id.
GREEDY = ("alpha_ndcg", "nerr_ia", "nnrbp")


def check_metric(metric: str | Metric, *, laws: Sequence[str] | None = None, examples: int = 100) -> None:
    """Raise `AssertionError` if a metric breaks a law, with the smallest counterexample.

    `laws` may include `bounded`, `order`, `repeats`, `appending`, `alone` and `text` (default: all that apply to the
    metric), and `groupgt.testing.LAWS` describes them. Each law is tested on `examples` reproducible random examples.

    >>> check_metric("recall@5", laws=["bounded", "order"], examples=10)
    >>> check_metric("hits", laws=["repeats"], examples=10)
    """
    try:
        import hypothesis
    except ImportError:
        raise ConfigError("check_metric needs hypothesis: pip install 'groupgt[test]'") from None
    parsed = parse_metric(metric)
    for name in laws or LAWS:
        if name not in LAWS:
            raise ConfigError(f"laws: expected {listed(LAWS)}, found {name!r}{near_names(name, LAWS)}")
    chosen = laws if laws is not None else [name for name, law in LAWS.items() if law.applies(parsed.definition)]
    settings = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    for name in chosen:
        # Few queries and one number for everything random: small counterexamples are found fast.
        ask = settings(hypothesis.given(batches(2), hypothesis.strategies.integers(0, 99))(_test_of(name, parsed)))
        try:
            ask()
        except AssertionError as error:
            text = str(error).partition("\n")[0]
        except hypothesis.errors.Flaky:
            text = f"{parsed}: different values for the same hits"
        else:
            continue
        raise AssertionError(f"the law {name!r} is broken: {LAWS[name].says}\n{text}")


def _test_of(name: str, metric: Metric) -> Callable[[Batch, int], None]:
    def ask(batch: Batch, seed: int) -> None:
        for line in LAWS[name].broken(batch, random.Random(seed), [metric]):  # noqa: S311  # no secret
            raise AssertionError(line)

    return ask


def values_of(batch: Batch, metrics: Sequence[Metric], policy: Any = None) -> Mapping[Metric, Floats]:
    """Return each metric's values on a batch, shape (Q,). An exception counts as a failed assertion."""
    groups_of = {qid: groups for qid, (groups, _) in batch.items()}
    run = {qid: ranking for qid, (_, ranking) in batch.items()}
    try:
        truth = GroundTruth.of(groups_of, harmful_ids={qid: rejected(groups) for qid, groups in groups_of.items()})
        result = evaluate(truth, run, list(metrics), policy=policy, corpus=_texts(batch))
    except GroupgtError as error:
        raise AssertionError(f"{error} for {dict(batch)}") from error
    return {metric: result.values[name] for name, metric in result.metrics.items()}


def _texts(batch: Batch) -> dict[str, str]:
    names = {name for groups, _ in batch.values() for group in groups for name, _ in alternatives(group)}
    names |= {str(name) for _, ranking in batch.values() for name in ranking}
    return {name: f"word{name}" for name in names}


@dataclass(frozen=True)
class Law:
    """A law, with a function that lists violations in a batch and a test of whether the law applies to a metric."""

    says: str
    broken: Callable[[Batch, random.Random, Sequence[Metric]], list[str]]
    applies: Callable[[Definition], bool] = lambda definition: True


def bounded(
    batch: Batch,
    rng: random.Random,
    metrics: Sequence[Metric],
    values: Values = values_of,
    policy: Any = None,
    *,
    shared: bool = False,
) -> list[str]:
    """Check that values are in [0, 1]. Metrics with a greedy ideal may exceed 1 if groups have `shared` documents."""
    broken = []
    for metric, column in values(batch, at(metrics, (None, 1, 3)), policy).items():
        for (groups, ranking), value in zip(batch.values(), column.tolist()):
            may_pass = metric.name in GREEDY and (shared or share_documents(groups))
            highest = np.inf if may_pass else 1.0
            if not np.isnan(value) and not 0.0 <= value <= highest:
                broken.append(f"{metric} = {value!r} for {groups}, {ranking}")
    return broken


def order(batch: Batch, rng: random.Random, metrics: Sequence[Metric], values: Values = values_of) -> list[str]:
    """Check that group order, the order within groups, and id names do not matter."""
    changed: Changed = {}
    for qid, (groups, ranking) in batch.items():
        names = sorted({name for group in groups for name, _ in alternatives(group)} | set(ranking))
        other = dict(zip(names, rng.sample([f"n{number:03d}" for number in range(len(names))], len(names))))
        shuffled = []
        for group in rng.sample(groups, len(groups)):
            cells = [{"id": other[name], "grade": grade} for name, grade in alternatives(group)]
            shuffled.append({"alternatives": rng.sample(cells, len(cells)), "weight": weight(group)})
        changed[qid] = (shuffled, [other[name] for name in ranking])
    cases = at([metric for metric in metrics if metric.name not in GREEDY], (None, 3))
    differences = _differences(batch, cases, values, values(changed, cases, None), SLACK)
    return [f"{case}, and {value!r} for {changed[qid][0]}, {changed[qid][1]}" for _, qid, case, value in differences]


def repeats(batch: Batch, rng: random.Random, metrics: Sequence[Metric], values: Values = values_of) -> list[str]:
    """Check that a repeated result never scores better than a non-relevant result at the same rank."""
    repeated: Changed = {}
    replaced: Changed = {}
    for qid, (groups, ranking) in batch.items():
        if ranking:
            rank = rng.randint(1, len(ranking))
            again = rng.choice(ranking[:rank])
            repeated[qid] = (groups, [*ranking[:rank], again, *ranking[rank:]])
            replaced[qid] = (groups, [*ranking[:rank], "irrelevant", *ranking[rank:]])
    return no_better(repeated, replaced, at(metrics, (None, 3)), values)


def appending(batch: Batch, rng: random.Random, metrics: Sequence[Metric], values: Values = values_of) -> list[str]:
    """Check that appending results to a ranking of k results leaves every value @k the same, bit for bit."""
    longer = appended(batch, rng)
    cases = [metric for metric in at(metrics, KS) if metric.cutoff is not None]
    differences = _differences(batch, cases, values, values(longer, cases, None))
    return [
        f"{case}, and {value!r} for the ranking {longer[qid][1]}"
        for metric, qid, case, value in differences
        if isinstance(metric.cutoff, int) and len(batch[qid][1]) >= metric.cutoff
    ]


def alone(batch: Batch, rng: random.Random, metrics: Sequence[Metric], values: Values = values_of) -> list[str]:
    """Check that a query's value is the same, bit for bit, whichever other queries are evaluated with it."""
    if not batch:
        return []
    qid = rng.choice(list(batch))
    cases, query = at([metric for metric in metrics if not metric.reads_all], (None, 5)), {qid: batch[qid]}
    position = list(batch).index(qid)
    together = {metric: column[position:] for metric, column in values(batch, cases, None).items()}
    others = {other: rows for other, rows in batch.items() if other != qid}
    differences = _differences(query, cases, values, together)
    return [f"{case} alone, and {value!r} beside {others}" for _, _, case, value in differences]


def text(batch: Batch, rng: random.Random, metrics: Sequence[Metric], values: Values = values_of) -> list[str]:
    """Check that a metric's text parses to the same metric under any convention."""
    return [
        f"{metric} under {convention} is read as {parse_metric(str(metric), convention)}"
        for metric in at(metrics, (None, 7))
        for convention in CONVENTIONS
        if parse_metric(str(metric), convention) != metric
    ]


LAWS = {
    "bounded": Law("values lie in [0, 1]", bounded, lambda definition: definition.bounded),
    "order": Law(
        "the order of groups, the order within groups, and the names of ids do not matter",
        order,
        lambda definition: definition.name not in GREEDY,
    ),
    "repeats": Law("a repeated result scores no more than a non-relevant result in its place", repeats),
    "appending": Law(
        "results after the first k do not change any value @k", appending, lambda definition: definition.takes_cutoff
    ),
    "alone": Law("a query's value does not depend on which other queries are evaluated with it", alone),
    "text": Law("the text of a metric is read back as the same metric", text),
}


def batches(most: int = 6) -> Any:
    """Return a hypothesis strategy for up to `most` queries with overlapping groups, grades, weights and repeats."""
    from hypothesis import strategies as st

    ids = st.sampled_from([f"d{number}" for number in range(9)])
    grades = st.one_of(st.sampled_from([-1, 0, 1, 2, 3, 4]), st.floats(min_value=1e-6, max_value=4))
    cells = st.fixed_dictionaries({"id": ids, "grade": grades})
    weights = st.one_of(st.just(1), st.floats(min_value=1e-6, max_value=1e6))
    group = st.one_of(
        st.lists(ids, min_size=1, max_size=4),
        st.fixed_dictionaries({"alternatives": st.lists(cells, min_size=1, max_size=4), "weight": weights}),
    )
    ranking = st.lists(st.one_of(ids, st.sampled_from(["x", "y"])), max_size=10)
    query = st.tuples(st.lists(group, max_size=5), ranking)
    return st.lists(query, min_size=1, max_size=most).map(lambda rows: {f"q{n}": row for n, row in enumerate(rows)})


def at(metrics: Iterable[Metric], ks: Sequence[int | None]) -> list[Metric]:
    """Apply each cutoff to the metrics that use one."""
    cut = [replace(metric, cutoff=k) for metric in metrics for k in ks if metric.definition.takes_cutoff]
    return [*cut, *(metric for metric in metrics if not metric.definition.takes_cutoff)]


def no_better(
    worse: Batch, better: Batch, metrics: Sequence[Metric], values: Values = values_of, slack: float = SLACK
) -> list[str]:
    """Return the violations where `worse` scores higher than `better` (or lower, if lower is better)."""
    broken = []
    first, second = values(worse, metrics, None), values(better, metrics, None)
    for metric in metrics:
        sign = 1 if metric.higher_is_better else -1
        gap = sign * (first[metric] - second[metric])
        limit = slack * np.maximum(1.0, np.abs(second[metric]))
        for position in np.flatnonzero(gap > limit).tolist():
            groups, ranking = list(worse.values())[position]
            other = list(better.values())[position][1]
            high, low = float(first[metric][position]), float(second[metric][position])
            broken.append(f"{metric} = {high!r} for {groups}, {ranking}, and {low!r} for {other}")
    return broken


def appended(batch: Batch, rng: random.Random) -> Changed:
    """Append one to four results to each ranking in a batch."""
    longer = {}
    for qid, (groups, ranking) in batch.items():
        ids = [name for group in groups for name, _ in alternatives(group)]
        longer[qid] = (groups, [*ranking, *rng.choices([*ids, "y1", "y2"], k=rng.randint(1, 4))])
    return longer


def alternatives(group: Any) -> list[tuple[str, float]]:
    """Return (id, grade) for each alternative of a group in any form."""
    cells = group["alternatives"] if isinstance(group, dict) else group
    return [(cell["id"], cell.get("grade", 1)) if isinstance(cell, dict) else (cell, 1) for cell in cells]


def rejected(groups: Sequence[Any]) -> list[str]:
    """Return the ids that are judged non-relevant in every group. Laws treat these ids as harmful."""
    grades: dict[str, float] = {}
    for name, grade in (pair for group in groups for pair in alternatives(group)):
        grades[name] = max(grade, grades.get(name, grade))
    return [name for name, grade in grades.items() if grade == 0]


def weight(group: Any) -> float:
    """Return the weight of a group in any form."""
    return float(group.get("weight", 1)) if isinstance(group, dict) else 1.0


def share_documents(groups: Sequence[Any]) -> bool:
    """Return whether any relevant document is in two groups."""
    relevant = [{name for name, grade in alternatives(group) if grade > 0} for group in groups]
    return sum(map(len, relevant)) > len(set().union(*relevant))


def _differences(
    batch: Batch, metrics: Sequence[Metric], values: Values, after: Mapping[Metric, Floats], slack: float = 0.0
) -> Iterator[tuple[Metric, str, str, float]]:
    """Yield (metric, query, old value as text, new value) where values differ by more than a relative `slack`."""
    before = values(batch, metrics, None)
    for metric in metrics:
        for position, (qid, (groups, ranking)) in enumerate(batch.items()):
            first, second = float(before[metric][position]), float(after[metric][position])
            is_equal = first == second or (np.isnan(first) and np.isnan(second))
            if not is_equal and not abs(first - second) <= slack * max(1.0, abs(first)):
                yield metric, qid, f"{metric} = {first!r} for {groups}, {ranking}", second
