"""Report which means of a run are below their minimum, which queries are responsible, and which groups they miss."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from groupgt.comparison.draws import SLACK
from groupgt.errors import ConfigError, Faults, MetricError, display, first_of, printable
from groupgt.evaluation.misses import Failures, failures_of
from groupgt.evaluation.result import Evaluated
from groupgt.metrics.base import Cut
from groupgt.model.validity import finite_number
from groupgt.render.tables import ALTERNATIVES, counted, fixed, snippet
from groupgt.report.misses import GROUPS, place_of

# Maximum number of queries shown with what they miss, and of further ones shown only by id.
IN_FULL, BY_ID = 10, 20
LONGEST_QUERY = 60


def shortfalls(evaluation: Evaluated, least: Mapping[str, float]) -> str:
    """Return a message for each mean below its required minimum, or an empty text if there are none."""
    parts = []
    for text, number in _checked(evaluation, least).items():
        mean = evaluation.means[text]
        if math.isnan(mean):
            parts.append(f"{text}: no mean, because there are no queries to evaluate; expected at least {number:g}")
        elif mean < number - SLACK:
            parts.append("\n".join(_shortfall(evaluation, text, number)))
    return printable("\n\n".join(parts))


def _checked(evaluation: Evaluated, least: Mapping[str, float]) -> dict[str, float]:
    """Return the required minimums by metric text. Raise an error if any minimum is invalid."""
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


def _shortfall(evaluation: Evaluated, text: str, number: float) -> Iterator[str]:
    """Describe one metric: its mean, and the queries below the required minimum, lowest first."""
    values, truth = evaluation.values[text], evaluation.truth
    population = f"{counted(evaluation.counted(text), 'query', 'queries')}, convention {evaluation.convention}"
    yield f"{text}: {fixed(evaluation.means[text])}, expected at least {number:g} ({population})"
    below = np.flatnonzero(values < number - SLACK)  # NaN, which does not count, is never below
    below = below[np.argsort(values[below], kind="stable")]
    yield f"{counted(len(below), 'query is', 'queries are')} below {number:g}, lowest first:"
    failures = failures_of({evaluation.name: evaluation}, evaluation.metrics[text].cutoff)
    top = evaluation.averaged(lambda hits: Cut.at(hits, failures.cutoff).top)
    for query in below[:IN_FULL].tolist():
        query_text = truth.texts[query] if truth.texts else None
        quoted = f" “{snippet(query_text, LONGEST_QUERY)}”" if query_text else ""
        missed = _missed(evaluation, failures, query, int(top[query]))
        yield f"  {truth.qids[query]}{quoted}: {fixed(values[query])}, {missed}"
    if rest := [truth.qids[query] for query in below[IN_FULL:].tolist()]:
        yield f"  and {len(rest):,} more: {', '.join(rest[:BY_ID])}{' …' if len(rest) > BY_ID else ''}"


def _missed(evaluation: Evaluated, failures: Failures, query: int, top: int) -> str:
    """List the groups that a query misses, with the rank of each, or the ranks at which all groups are covered."""
    if evaluation.populations.unanswerable[query]:
        return f"declared unanswerable, with {counted(top, 'result')}"
    groups = [(group, place) for group in failures.groups_of(query) for place in group.places.values()]
    unmet = [group for group, place in groups if not place.is_covered]
    if not unmet:
        return f"every group is covered, at rank {', '.join(str(place.rank) for _, place in groups)}"
    results = int(evaluation.averaged(lambda hits: hits.length)[query])
    missed = []
    for group in unmet:
        named = f" ({first_of(group.alternatives, ALTERNATIVES, ' or ')})" if group.alternatives else ""
        missed.append(f"misses {group.group}{named}: {place_of(group, results, top)}")
    return first_of(missed, GROUPS, "; ")
