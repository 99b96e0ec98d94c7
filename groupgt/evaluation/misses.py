"""Reports groups that a run missed, coverage by group, and queries responsible for a mean below its minimum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.errors import ConfigError, Faults, MetricError, display, first_of, printable
from groupgt.metrics import views
from groupgt.metrics.base import Cut
from groupgt.model.hits import Bools, Ints
from groupgt.model.validity import finite_number, is_integer
from groupgt.model.values import total
from groupgt.render.results import Result
from groupgt.render.tables import ALTERNATIVES, counted, fixed, snippet

if TYPE_CHECKING:
    from groupgt.evaluation.result import Evaluation
    from groupgt.render.drawing import Figure

# Maximum number of groups shown per query, those not covered first, and of rows of the table by group number.
GROUPS = 10


@dataclass(frozen=True)
class Misses(Result):
    """Worst queries with their groups, and coverage by group number.

    `queries` lists dicts with `qid`, `query`, `coverage`, `results` and `groups`. Each group has `group`, `rank` (None
    without a hit), `covered` (within k) and `alternatives`. `by_group` has one dict per group number. `texts` maps ids
    to texts that are shown next to the ids.
    """

    k: int
    queries: list[dict[str, Any]]
    by_group: list[dict[str, Any]]
    incomplete: int
    evaluated: int
    evaluation: Evaluation = field(repr=False, compare=False)
    texts: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def run(self) -> str:
        """Name of the run."""
        return self.evaluation.name

    def plot(self) -> Figure:
        """Plot the groups of the listed queries by the rank of their first hit."""
        return self._teller.plot("groups")


def _groups_of(evaluation: Evaluation, query: int, top: int) -> list[dict[str, Any]]:
    """Return the groups of one query as plain Python: `group`, `rank`, `covered` and `alternatives`."""
    truth, ranks = evaluation.truth, evaluation.labelled.hits.first_ranks
    of_query = views.part_of(truth.judgments.group_query, query)
    return [
        {
            "group": truth.group_label(group),
            "rank": rank or None,
            "covered": 0 < rank <= top,
            "alternatives": [name for name, _ in truth.alternatives_of(group)],
        }
        for group, rank in zip(truth.relevant_groups[of_query].tolist(), ranks[of_query].tolist())
    ]


def check_misses(k: int, worst: int) -> None:
    """Raise `ConfigError` for invalid numbers."""
    faults = Faults()
    for option, value in (("k", k), ("worst", worst)):
        if not is_integer(value) or value < 1:
            faults.add(option, f"expected a whole number above 0, found {display(value)}")
    faults.stop(ConfigError)


def misses_of(evaluation: Evaluation, k: int = 10, worst: int = 20, texts: Mapping[str, str] | None = None) -> Misses:
    """Find the queries that miss the most within k, sorted by covered weight, then by how late groups are hit."""
    check_misses(k, worst)
    truth, hits = evaluation.truth, evaluation.labelled.hits
    judgments = truth.judgments
    rank, covered = hits.first_ranks, hits.covered(k)
    weight = total(judgments.group_query, judgments.weight * covered, len(truth))
    coverage = np.divide(weight, judgments.total_weight, out=np.ones(len(truth)), where=judgments.total_weight > 0)
    earliness = total(judgments.group_query, (rank > 0) / np.maximum(rank, 1), len(truth))
    complete = np.bincount(judgments.group_query[covered], minlength=len(truth)) == judgments.groups
    counts = evaluation.counting & (judgments.groups > 0)  # queries that count as 0 without a group miss none
    incomplete = np.flatnonzero(counts & ~complete)
    order = np.lexsort((incomplete, earliness[incomplete], coverage[incomplete]))
    queries = [
        {
            "qid": truth.qids[query],
            "query": truth.texts[query] if truth.texts else None,
            "coverage": float(coverage[query]),
            "results": int(hits.length[query]),
            "groups": _groups_of(evaluation, query, k),
        }
        for query in incomplete[order][:worst].tolist()
    ]
    by_group = _coverage_by_number(judgments.group_query, rank, covered, counts)
    return Misses(k, queries, by_group, len(incomplete), int(counts.sum()), evaluation, texts or {})


def place_of(group: dict[str, Any], results: int, k: int) -> str:
    """Describe where a group is covered."""
    if not group["alternatives"]:
        return "cannot be met"
    if group["rank"] is None:
        if results == 1:
            return "not its only result"
        return f"not among its {results:,} results" if results else "no results"
    return f"rank {group['rank']:,}" + ("" if group["covered"] else f" (beyond {k:,})")


def _coverage_by_number(group_query: Ints, rank: Ints, covered: Bools, counted: Bools) -> list[dict[str, Any]]:
    """Return, for each group number within a query, the share of groups covered within k and at any rank."""
    number = views.nth(group_query)
    of_counted = counted[group_query]
    most = int(number.max(initial=0)) + 1
    masks = of_counted, of_counted & covered, of_counted & (rank > 0)
    columns = [np.bincount(number[mask], minlength=most).tolist() for mask in masks]
    return [
        {"number": nth, "groups": size, "covered": within / size, "anywhere": anywhere / size}
        for nth, (size, within, anywhere) in enumerate(zip(*columns))
        if size
    ]


# A mean that is short only by rounding does not fall short.
SLACK = 1e-12
# Maximum number of queries shown with what they miss, and of further ones shown only by id.
IN_FULL, BY_ID = 10, 20
LONGEST_QUERY = 60


def shortfalls(evaluation: Evaluation, least: Mapping[str, float]) -> str:
    """Return a message for each mean below its required minimum; empty if there are none."""
    parts = []
    for text, number in _checked(evaluation, least).items():
        mean = evaluation.means[text]
        if math.isnan(mean):
            parts.append(f"{text}: no mean, because there are no queries to evaluate; expected at least {number:g}")
        elif mean < number - SLACK:
            parts.append("\n".join(_shortfall(evaluation, text, number)))
    return printable("\n\n".join(parts))


def _checked(evaluation: Evaluation, least: Mapping[str, float]) -> dict[str, float]:
    """Return the required minimums by metric text; raise an error if any is invalid."""
    if not isinstance(least, Mapping):
        raise ConfigError(f"expected {{metric: number}}, such as {{'recall@10': 0.9}}, found {display(least)}")
    metrics, numbers = Faults(), Faults()
    required: dict[str, float] = {}
    for spelling, value in least.items():
        try:
            text = evaluation.text_of(spelling)
        except MetricError as error:
            metrics.merge(error)
            continue
        metric, number = evaluation.metrics[text], finite_number(value)
        if metric.definition.aggregate is not None:
            metrics.add(text, f"has no value per query; compare .means[{text!r}] with a limit")
        elif not metric.higher_is_better:
            metrics.add(text, f"lower is better, so a minimum does not apply; compare .means[{text!r}] with a limit")
        elif number is None or number < 0:
            numbers.add(text, f"expected a number of at least 0, found {display(value)}")
        elif metric.definition.bounded and number > 1:
            numbers.add(text, f"lies between 0 and 1 and never reaches {number:g}")
        else:
            required[text] = number
    metrics.stop(MetricError)
    numbers.stop(ConfigError)
    return required


def _shortfall(evaluation: Evaluation, text: str, number: float) -> Iterator[str]:
    """Describe one metric: its mean, and the queries below the required minimum, lowest first."""
    values, truth = evaluation.values[text], evaluation.truth
    population = f"{counted(evaluation.counted(text), 'query', 'queries')}, convention {evaluation.convention}"
    yield f"{text}: {fixed(evaluation.means[text])}, expected at least {number:g} ({population})"
    below = np.flatnonzero(values < number - SLACK)  # NaN, which does not count, is never below
    below = below[np.argsort(values[below], kind="stable")]
    yield f"{counted(len(below), 'query is', 'queries are')} below {number:g}, lowest first:"
    top = Cut.at(evaluation.labelled.hits, evaluation.metrics[text].cutoff).top
    for query in below[:IN_FULL].tolist():
        query_text = truth.texts[query] if truth.texts else None
        quoted = f" “{snippet(query_text, LONGEST_QUERY)}”" if query_text else ""
        yield f"  {truth.qids[query]}{quoted}: {fixed(values[query])}, {_missed(evaluation, query, int(top[query]))}"
    if rest := [truth.qids[query] for query in below[IN_FULL:].tolist()]:
        yield f"  and {len(rest):,} more: {', '.join(rest[:BY_ID])}{' …' if len(rest) > BY_ID else ''}"


def _missed(evaluation: Evaluation, query: int, top: int) -> str:
    """List the groups that a query misses, with the rank of each, or the ranks at which all groups are covered."""
    if evaluation.populations.unanswerable[query]:
        return f"declared unanswerable, with {counted(top, 'result')}"
    groups = _groups_of(evaluation, query, top)
    unmet = [group for group in groups if not group["covered"]]
    if not unmet:
        return f"every group is covered, at rank {', '.join(str(group['rank']) for group in groups)}"
    results = int(evaluation.labelled.hits.length[query])
    missed = []
    for group in unmet:
        named = f" ({first_of(group['alternatives'], ALTERNATIVES, ' or ')})" if group["alternatives"] else ""
        missed.append(f"misses {group['group']}{named}: {place_of(group, results, top)}")
    return first_of(missed, GROUPS, "; ")
