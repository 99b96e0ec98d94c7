"""Report data sets that share queries, with their means side by side and tests of their differences."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from groupgt.comparison.across import Across
from groupgt.comparison.contrast import Contrast, comparisons
from groupgt.comparison.systems import finite
from groupgt.evaluation.result import Evaluated
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.outcome import Outcome
from groupgt.metrics.language import Metric
from groupgt.model.values import Budget
from groupgt.options import as_dict
from groupgt.render.columns import csv_cells, csv_headers, jsonable
from groupgt.render.document import Detail, Item, Verdict
from groupgt.render.page.data import Sentence
from groupgt.render.results import Teller
from groupgt.render.tables import DIGITS, Grid, Table, counted, fixed
from groupgt.report.contrasts import beside_grid, beside_rows, how_tested, marks_in, verdict_by
from groupgt.report.differences import Other, changes
from groupgt.report.sentences import sentence_of, warning

# Number of systems for which the best data set is reported.
SYSTEMS = 3
# Maximum ratio of mean chunk lengths at which a cutoff is still a fair measure.
SIMILAR = 1.1


class AcrossTeller(Teller[Across]):
    """Report how each system's results differ between the baseline data set and every other data set."""

    @property
    def title(self) -> str:
        """The page title."""
        return f"against {self.result.baseline}"

    def blocks(self) -> list[Item]:
        """Return the full report, starting with the verdict."""
        return [Verdict(list(sentences(self.result))), *tables(self.result)]

    def csv_rows(self) -> Grid:
        """Return headers and one row per system, data set and metric."""
        first = ["system", "dataset", "metric", "mean", "baseline", "baseline_mean"]
        headers = [*first, *csv_headers(Contrast), "significant"]
        places, metrics, baseline = self.result.places, self.result.metrics, self.result.baseline
        return headers, [
            [*places[name], str(metrics[text]), here, baseline, there, *csv_cells(each), int(each.significant)]
            for name, text, there, here, each in beside_rows(self.result)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, with None for undefined values, as in results.json."""
        result = self.result
        rows = list[dict[str, Any]]()
        for name, text, there, here, each in beside_rows(result):
            system, dataset = result.places[name]
            row = {"system": system, "dataset": dataset, "metric": text, "mean": finite(here)}
            more = {"baseline_mean": finite(there), "significant": each.significant, "against": jsonable(each)}
            rows.append(row | more)
        return {
            "baseline": result.baseline,
            "primary": result.primary,
            "settings": asdict(result.settings),
            "rows": rows,
            "queries": {
                name: {"qids": len(each.qids), "alone": each.alone, "absent": each.absent, "reworded": each.reworded}
                for name, each in result.shared.items()
            },
        }


def sentences(result: Across) -> Iterator[Sentence]:
    """Describe differences in the primary metric. Warn if different chunk sizes make that metric unfair."""
    metric, sizes = result.metrics[result.primary], result.sizes
    other = Other("than on ", "", result.baseline)
    yield from changes(result.contrasts(), other, result.label, result.settings)
    if sizes and isinstance(metric.cutoff, int):
        small, large = (choose(sizes, key=sizes.__getitem__) for choose in (min, max))
        if sizes[large] > SIMILAR * sizes[small]:
            about = int(float(f"{metric.cutoff * sizes[small]:.1g}"))
            lengths = f"{sizes[large]:,.0f} characters in {large}, but {sizes[small]:,.0f} in {small}"
            budget = f"Use a budget, such as {_under(metric, max(about, 1), result.convention)}"
            yield warning(f"chunks average {lengths}, so {result.label} favors longer chunks. {budget}")


def _under(metric: Metric, chars: int, convention: str) -> str:
    return replace(metric, cutoff=Budget(chars, "chars")).short(convention)


def tables(result: Across) -> Iterator[Item]:
    """Yield tables (primary metric first), a note on excluded queries, and the significance test."""
    shown: list[Table] = []
    for text in sorted(result.metrics, key=lambda text: text != result.primary):
        label = result.metrics[text].label(text, result.convention)
        headers = [label, "dataset", "queries", f"mean on {result.baseline}", "mean"]
        shown.append(beside_grid(result, text, headers, result.places))
    yield from shown[:1]
    yield from map(Detail, shown[1:])
    notes = []
    for name, shared in result.shared.items():
        parts = [(shared.alone, f"only in {name}"), (shared.absent, f"only in {result.baseline}")]
        parts.append((len(shared.reworded), f"with different text ({', '.join(shared.reworded[:3])})"))
        if left := [f"{counted(count, 'query')} {where}" for count, where in parts if count]:
            notes.append(f"{name}: left out {', '.join(left)}")
    if notes:
        yield "\n".join(notes)
    test = how_tested(result.settings, comparisons(result.contrasts().values()), marks=marks_in(shown[:1]))
    several = len(result.metrics) > 1
    yield f"against {result.baseline}: {test}{verdict_by(result.label) if several else ''}"


def verdict_of(outcome: Outcome) -> Iterator[Sentence]:
    """Describe tested differences between data sets or, if there are none, each system's best and worst data set."""
    if outcome.across is not None:
        yield from sentences(outcome.across)
        return
    sets = {name: by_system for name, by_system in outcome.evaluations.items() if by_system}
    primary = outcome.experiment.config.evaluate.primary
    truths = {next(iter(by_system.values())).truth.digest for by_system in sets.values()}
    if len(sets) < 2 or len(truths) > 1 or primary is None:
        return
    first = next(iter(next(iter(sets.values())).values()))
    text = first.text_of(primary)
    label, higher = first.label_of(text), first.metrics[text].higher_is_better
    for system in list(dict.fromkeys(name for by_system in sets.values() for name in by_system))[:SYSTEMS]:
        means = {name: each[system].means[text] for name, each in sets.items() if system in each}
        ordered = sorted(filter(lambda name: math.isfinite(means[name]), means), key=means.__getitem__, reverse=higher)
        most, least = (fixed(means[name], DIGITS) for name in (ordered[0], ordered[-1])) if ordered else ("", "")
        if most != least:
            best = ["", system, " does best on data set ", ordered[0], f" ({label} {most}) and worst on "]
            yield sentence_of("note", *best, ordered[-1], f" ({least}), over the same queries.")


def sharing(experiment: Experiment) -> list[list[str]]:
    """Group data sets that differ only in their corpus. Leave out groups with a single data set."""
    kinds: dict[str, list[str]] = {}
    for name, dataset in experiment.config.datasets.items():
        if dataset.corpus is not None:
            truth = str(experiment.at(dataset.ground_truth))
            same = as_dict(replace(dataset, corpus=None, ground_truth=truth))
            kinds.setdefault(json.dumps(same, sort_keys=True), []).append(name)
    return [names for names in kinds.values() if len(names) > 1]


def blocks(experiment: Experiment, evaluations: Mapping[str, Mapping[str, Evaluated]]) -> Iterator[Item]:
    """Yield a table of all means, best first, for each group of data sets that share everything but the corpus."""
    for names in sharing(experiment):
        rows = {(name, system): each for name in names for system, each in evaluations[name].items()}
        if len({name for name, _ in rows}) < 2:
            continue
        first = next(iter(rows.values()))
        yield f"{', '.join(names)}: one ground truth, {len(names)} corpora"
        ordered = list(rows.items())
        if (primary := experiment.config.evaluate.primary) is not None:
            text = first.text_of(primary)
            ordered.sort(key=lambda row: first.metrics[text].worth(row[1].means[text]), reverse=True)
        lines = [[*place, *each.means.values()] for place, each in ordered]
        yield ["dataset", "system", *map(first.label_of, first.metrics)], lines
        if experiment.across is not None:
            continue
        # @k favors larger chunks, since it counts results and not their length.
        counts = [metric for metric in first.metrics.values() if isinstance(metric.cutoff, int)]
        budgets = [first.label_of(text) for text, metric in first.metrics.items() if metric.budget]
        if counts and budgets:
            metrics = ", ".join(budgets)
            yield f"chunks differ in size, so prefer {metrics}, which give every corpus the same amount of text"
        elif counts:
            example = _under(counts[0], 4000, first.convention)
            yield f"chunks differ in size, and @k favors larger ones; add a metric with a budget ({example})"
