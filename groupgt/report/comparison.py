"""Report a `Comparison` as a verdict, tables and footer, as exported rows, and as a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from groupgt.comparison.compare import Comparison
from groupgt.comparison.contrast import Contrast, comparisons
from groupgt.comparison.systems import Systems
from groupgt.evaluation.estimates import Noise
from groupgt.experiment.outcome import Against, GateResult
from groupgt.model.values import nulls
from groupgt.render import tables
from groupgt.render.columns import csv_cells, csv_headers, jsonable
from groupgt.render.document import Detail, Folded, Heading, Item, Verdict, bare, document
from groupgt.render.drawing import Drawable
from groupgt.render.page.page import single_page
from groupgt.render.results import Teller
from groupgt.render.tables import DIGITS, Grid, fixed
from groupgt.report import contrasts, differences, headroom, priorities, slices, standings, trials
from groupgt.report.contrasts import MEANINGS, corrected_over, how_tested, marks_in, resampling, verdict_by
from groupgt.report.decision import Decision, decide
from groupgt.report.drawings import of_comparison
from groupgt.report.means import as_requested, below_means, corrected_blocks, corrected_notes, population
from groupgt.report.page import dataset_of
from groupgt.report.paper import latex_of
from groupgt.report.sentences import grouped
from groupgt.report.tracking import tracked


class ComparisonTeller(Teller[Comparison]):
    """Present a comparison, starting with the verdict."""

    @property
    def title(self) -> str:
        """The page title."""
        return f"against {self.result.baseline}"

    main_figure = "means"

    def blocks(self) -> list[Item]:
        """Return the full report, starting with the verdict."""
        comparison = self.result
        decision = decide(comparison.by())
        blocks: list[Item] = [*decided(comparison.by(), decision), *items(comparison)]
        # Counted from evaluations, or read from result folders.
        if comparison.population:
            blocks.append("\n".join(comparison.population))
        if not comparison.evaluations:
            return [*blocks, priorities.foot(comparison.by(), decision)]
        if untested := "\n".join(_untested(comparison)):
            blocks.append(untested)
        blocks += below_means(comparison.every, [comparison.convention], comparison.primary)
        blocks += corrected_blocks(comparison.every, compared=True)
        if comparison.basis == "annotators":
            blocks.append("\n".join(corrected_notes(comparison.first)))
        return [*blocks, Detail(f"policy {comparison.first.policy}"), priorities.foot(comparison.by(), decision)]

    def table(self, style: str = tables.DEFAULT) -> str:
        """Return one table per metric."""
        return document(list(contrasts.grids(self.result, list(self.result.metrics))), style)

    def summary(self) -> str:
        """Return a Markdown summary for a pull request: the verdict and change from the baseline."""
        systems = self.result.by()
        decision = decide(systems)
        return document([Heading(self.title), *decided(systems, decision), *changed(systems, decision)], "github")

    def latex(self, *, digits: int, against: Sequence[str], caption: str) -> str:
        """Return a LaTeX table for a paper."""
        return latex_of(self.result, digits, against, caption)

    def footer(self) -> list[str]:
        """Return lines that describe what was measured."""
        return population_of(self.result)

    def warnings(self) -> list[str]:
        """Return warnings that limit the conclusions."""
        return differences.warnings(self.result)

    def figures(self, metric: str | None = None) -> Drawable:
        """Return the available figures by name."""
        return of_comparison(self.result.by(metric), self.result)

    def page(self, metric: str | None = None, corpus: Mapping[str, str] | None = None) -> bytes:
        """Return the HTML page."""
        title = self.title if len(self.result.names) > 1 else self.result.baseline
        return single_page(dataset_of(self.result.by(metric, passages=corpus or {}), title))

    def metrics(self) -> dict[str, float]:
        """Return the means of each system as a flat dict."""
        return tracked(([name], means) for name, means in self.result.means.items())

    def noises(self) -> dict[str, dict[str, Noise]]:
        """Return how much each metric varies between a system's trials, for systems with trials."""
        confidence = self.result.settings.confidence
        return {name: trials.noises(each, confidence) for name, each in trials.of_systems(self.result).items()}

    def csv_rows(self) -> Grid:
        """Return headers and one row per system and metric, over all queries (empty `by`) and for each slice."""
        comparison = self.result
        first = ["by", "slice", "run", "metric", "mean", "low", "high", "queries"]
        headers = [*first, "baseline", *csv_headers(Contrast), "significant"]
        rows: list[list[Any]] = []
        of_slices = ((part.by, part.value, row) for part in comparison.slices for row in part.rows)
        for by, value, row in (*(("", "", row) for row in comparison.rows), *of_slices):
            against: list[Any] = [None] * (len(headers) - len(first))
            if row.against is not None:
                against = [comparison.baseline, *csv_cells(row.against), int(row.significant)]
            metric = str(comparison.metrics[row.metric])
            rows.append([by, value, row.system, metric, row.mean, *row.interval, row.queries, *against])
        return headers, rows

    def frame_rows(self) -> Grid:
        """Return the CSV rows with metric names as requested."""
        return as_requested(self.csv_rows(), self.result.metrics)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, with None for undefined values."""
        comparison, confidence = self.result, self.result.settings.confidence
        noise = {name: trials.noise_dicts(each, confidence) for name, each in trials.of_systems(comparison).items()}
        return {
            "decision": decide(comparison.by()).to_dict(),
            "baseline": comparison.baseline,
            "convention": comparison.convention,
            "settings": asdict(comparison.settings),
            "metrics": {text: str(metric) for text, metric in comparison.metrics.items()},
            "comparisons": comparisons(row.against for row in comparison.rows),
            "rows": jsonable(comparison.rows),
            "pairs": jsonable(comparison.pairs),
            "slices": jsonable(comparison.slices),
            "reversals": [
                {"system": row.system, "metric": row.metric, "by": part.by, "value": part.value}
                for row, part, _ in comparison.reversals()
            ],
            "failures": nulls(comparison.failures and comparison.failures.to_dict()),
            "headroom": jsonable(comparison.headroom),
            **({"trials": noise} if noise else {}),
            "warnings": self.warnings(),
            **({"run_warnings": list(comparison.warned)} if comparison.warned else {}),
            "population": population_of(comparison),
        }


def decided(systems: Systems, decision: Decision) -> Iterator[Item]:
    """Yield the decision and the notes on it."""
    yield decision.card
    yield Verdict(list(differences.notes(systems, decision.note)))


def items(
    comparison: Systems, metrics: Sequence[str] | None = None, *, brief: bool = False, gates: Sequence[GateResult] = ()
) -> Iterator[Item]:
    """Yield the table of systems, other tables (as details, unless they were requested), and the test used."""
    chosen = list(comparison.metrics if metrics is None else metrics)
    above: list[Item] = [standings.table(comparison.by(), gates)]
    means, has_others = contrasts.leaderboards(comparison.by()), len(comparison.by().metrics) > 1
    above += means if has_others and not brief else map(Detail, means)
    above += trials.blocks(comparison.evaluations, [comparison.primary], comparison.settings, DIGITS)
    for section in (contrasts.grids, contrasts.pairs, slices.deltas, headroom.blocks):
        is_shown = section in (contrasts.pairs, slices.deltas) and not brief
        above += [item if is_shown else Detail(bare(item)) for item in section(comparison, chosen)]
    yield from above
    yield from _footer(comparison, above, details=brief)


def changed(
    comparison: Systems, decision: Decision, gates: Sequence[GateResult] = (), against: Against | None = None
) -> Iterator[Item]:
    """Yield the items of a pull request summary: the table of systems, and the queries to look at first."""
    rows = standings.standings(comparison, gates)
    best = [row for row in rows if row.kind != "baseline"][: standings.BEST]
    shown = [row for row in rows if row in best or row.kind == "baseline" or row.name == decision.system]
    yield standings.markdown_table(comparison, shown)
    if len(shown) < len(rows):
        yield Folded(f"All {len(rows):,} systems", [standings.markdown_table(comparison, rows)])
    yield from priorities.folded(comparison, decision, against)
    if note := standings.lost_and_gained_note(comparison, rows):
        yield f"{note} ▲▼: significant."
    if noise := trials.sentences(comparison):
        yield "\n".join(noise)
    if note := trials.counts_note(comparison):
        yield note
    if comparison.basis:
        yield "\n".join(corrected_notes(comparison.first, compared=True))


def population_of(comparison: Systems) -> list[str]:
    """Describe what was measured, using evaluations or notes from result folders."""
    if not comparison.evaluations:
        return list(comparison.population)
    measured = population(comparison.every, [comparison.convention])
    return [*measured, *corrected_notes(comparison.first, compared=True), *comparison.population]


def _footer(comparison: Systems, above: Sequence[Item], *, details: bool) -> Iterator[Item]:
    """Explain the test and the marks in tables. Put notes that only the details need among the details."""
    settings = comparison.settings
    shown = marks_in(item for item in above if not isinstance(item, Detail))
    several = len(comparison.by().metrics) > 1
    test = how_tested(settings, *contrasts.family_sizes(comparison.rows), marks=shown, basis=comparison.basis)
    yield Detail(f"against {comparison.baseline}: {test}{verdict_by(comparison.label) if several else ''}")
    how = "" if settings.draws or comparison.basis else resampling(settings)
    of_details = [f"{100 * settings.confidence:g}% {contrasts.INTERVALS[comparison.basis]} of means{how}"]
    of_details += [f"{mark} {MEANINGS[mark]}" for mark in marks_in(above) if mark not in shown]
    lines = list(_other_families(comparison))
    if lines and not details:
        yield "\n".join(lines)
    yield Detail("\n".join([*of_details, *(lines if details else [])]))


def _untested(comparison: Systems) -> Iterator[str]:
    """Report metrics that give only one number per run, so that no test applies."""
    first = comparison.first
    labels = {name: each.means_by_labels() for name, each in comparison.evaluations.items()}
    for text in (text for text in first.metrics if text not in first.values_per_query):
        means = ", ".join(f"{name} {fixed(each[text], DIGITS)}" for name, each in labels.items())
        yield f"{first.label_of(text)} is not tested, because it has no values per query: {means}"


def _other_families(comparison: Systems) -> Iterator[str]:
    """Describe how p-values for slices and for all pairs are corrected, and any reason why none can be significant."""
    settings, primary = comparison.settings, comparison.primary
    families: list[tuple[str, str, tuple[int, int], dict[Any, Contrast]]] = []
    for by, rows in grouped((part.by, (part.value, row)) for part in comparison.slices for row in part.rows).items():
        tested = {(part, row.system): row.against for part, row in rows if row.metric == primary and row.against}
        families.append((f"slices by {by}", settings.corrects, contrasts.family_sizes(row for _, row in rows), tested))
    if pairs := comparison.pairs:
        tested = {(each.first, each.second): each.against for each in pairs if each.metric == primary}
        sizes = math.comb(len(comparison.names), 2), len(comparison.metrics)
        families.append(("pairs", contrasts.of_pairs(comparison), sizes, tested))
    for what, correction, sizes, tested in families:
        reason = "" if comparison.basis else contrasts.beyond(tested, settings, correction)
        if correction != "none" or reason:
            why = f"; none can be significant, because {reason}" if reason else ""
            yield f"{what}: p-values {corrected_over(settings, *sizes, correction)}{why}"
