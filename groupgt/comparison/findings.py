"""What a comparison found, each part worked out when it is first asked for; `display` shows it, `result` is both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from groupgt.comparison.contrast import Row, Scored, rows_of
from groupgt.comparison.draws import SLACK
from groupgt.comparison.failures import Failures, Headroom, cutoff_of, failures_of, headroom_of
from groupgt.comparison.pairs import Pair, pairs_of
from groupgt.comparison.power import Power, power_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.slices import Slice, reversals, slices_of, too_many
from groupgt.evaluation.result import Evaluation
from groupgt.metrics.language import Metric
from groupgt.render.numbers import counted

# More than this are counted and not named.
NAMED = 5


@dataclass(frozen=True, eq=False, repr=False)
class Findings:
    """Systems side by side, held against a baseline query by query.

    `evaluations` is empty where values were read from result folders; slices, failures and headroom then are too.
    """

    baseline: str
    settings: Settings
    systems: list[Scored]
    evaluations: dict[str, Evaluation]
    footer: list[str]

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics by the text asked."""
        return self.systems[0].metrics

    @property
    def convention(self) -> str:
        """The convention in force."""
        return self.systems[0].convention

    @cached_property
    def labels(self) -> dict[str, str]:
        """What tables call each metric: without the convention in force."""
        return {text: metric.short(self.convention) for text, metric in self.metrics.items()}

    @cached_property
    def rows(self) -> list[Row]:
        """A row for each system and metric, in their order."""
        return rows_of(self.systems, self.baseline, self.settings)

    @cached_property
    def slices(self) -> list[Slice]:
        """The comparison within each slice of `by`."""
        evaluation = next(iter(self.evaluations.values()), None)
        return slices_of(self.systems, self.baseline, self.settings, evaluation.slicer) if evaluation else []

    @cached_property
    def left_out(self) -> dict[str, int]:
        """Columns of `by` with too many values to compare in each, and how many they have."""
        evaluation = next(iter(self.evaluations.values()), None)
        return too_many(evaluation.slicer) if evaluation else {}

    @cached_property
    def pairs(self) -> list[Pair]:
        """Every two systems by every metric, with Tukey's HSD; none unless `settings.pairs` asks for them."""
        return pairs_of(self.systems, self.settings) if self.settings.pairs else []

    @cached_property
    def failures(self) -> Failures | None:
        """Who meets which group within the largest cutoff asked; None where only values are known."""
        cutoff = cutoff_of([metric.cutoff for metric in self.metrics.values()])
        return failures_of(self.evaluations, cutoff) if self.evaluations else None

    @cached_property
    def headroom(self) -> list[Headroom]:
        """For each metric what a perfect choice among the systems, or all their results together, would reach."""
        return headroom_of(self.evaluations, self.failures, list(self.metrics)) if self.failures is not None else []

    @cached_property
    def warnings(self) -> list[str]:
        """What keeps a reader from concluding too much: few queries that differ, or that count for one alone."""
        return [*_missing(self.evaluations), *_weak(self.rows, self.settings, self.baseline, self.labels)]

    def power(self, *, difference: float | None = None, wanted: float = 0.8) -> list[Power]:
        """How large a difference these questions show, and how many show a wanted one, for each row; needs SciPy."""
        return power_of(self.rows, self.settings, difference=difference, wanted=wanted)

    def reversals(self) -> list[tuple[Row, Slice, Row]]:
        """Slices in which a system gains where it loses over all, or the other way round."""
        return list(self._reversals)

    @cached_property
    def _reversals(self) -> list[tuple[Row, Slice, Row]]:
        return list(reversals(self.rows, self.slices, self.metrics))


def _missing(evaluations: Mapping[str, Evaluation]) -> list[str]:
    """Runs that lack results of queries, which then count as failures."""
    lines = []
    for name, evaluation in evaluations.items():
        missing, total = evaluation.counts["missing"], int(evaluation.truth.judgments.defined.sum())
        if missing and evaluation.policy.missing == "zero":
            lines.append(
                f"warning: {name} has no results for {missing:,} of {counted(total, 'query', 'queries')}, "
                "which count as zero (policy missing=zero; missing=skip leaves them out)"
            )
    return lines


def _weak(rows: Sequence[Row], settings: Settings, baseline: str, labels: Mapping[str, str]) -> list[str]:
    """Comparisons in which too few queries differ for the test to reach alpha, and queries that count for one alone."""
    compared = [row for row in rows if row.against is not None and not math.isnan(row.raw_p_value)]
    # The smallest p of a comparison is multiplied by their number, but Holm's last by 1 alone.
    factor = len(compared) if settings.correction == "bonferroni" else 1
    # The smallest p of m queries that differ is 2 ÷ 2^m, times the number of comparisons.
    needed = max(1, math.ceil(1 + math.log2(max(factor, 1) / settings.alpha) - SLACK))
    lines = []
    few = [f"{row.system} in {labels[row.metric]} ({row.differ:,})" for row in compared if row.differ < needed]
    if few:
        lines.append(
            f"warning: fewer than {needed} queries differ, so that no randomization test can reach alpha "
            f"{settings.alpha:g}: {_some(few)}"
        )
    least = (1 / (1 + settings.resamples)) * factor
    if least > settings.alpha and settings.draws:
        lines.append(
            f"warning: {settings.resamples:,} resamples cannot show a p below {least:.2g} over {factor:,} comparisons; "
            "draw more"
        )
    alone = [f"{row.system} in {labels[row.metric]} {row.unpaired:,}" for row in rows if row.against and row.unpaired]
    if alone:
        lines.append(
            f"queries that count for one of the two alone are left out of deltas: {_some(alone)} against {baseline}"
        )
    return lines


def _some(names: Sequence[str]) -> str:
    more = f" … and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
