"""Report how much the means of systems vary by chance over trials, and plot the noisiest queries."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems, finite
from groupgt.evaluation.estimates import Noise
from groupgt.evaluation.result import Evaluated
from groupgt.evaluation.trials import noise_of, of_single_trials, values_in_trials
from groupgt.model.values import means_over_trials
from groupgt.render import figures
from groupgt.render.columns import jsonable
from groupgt.render.document import Block
from groupgt.render.drawing import Figure
from groupgt.render.tables import DIGITS, Table, counted, fixed, shortlist, span
from groupgt.report.means import about

# Queries in a figure.
SHOWN = 30


def noises(evaluation: Evaluated, confidence: float = 0.95) -> dict[str, Noise]:
    """Return the noise of every metric that has any, keyed by metric text. `mean` is the mean that decisions use.

    A count over trials, such as `pass_at`, has the noise of the metric that it counts.
    """
    single = of_single_trials(evaluation)
    each = {text: noise_of(single, text, confidence) for text in single.values_per_query}
    return {
        text if evaluation.metrics[text].passes is None else single.label_of(text): replace(
            noise, mean=single.means[text]
        )
        for text, noise in each.items()
        if noise is not None
    }


def noise_dicts(evaluation: Evaluated, confidence: float = 0.95) -> dict[str, dict[str, Any]]:
    """Return the noise of every metric as plain Python objects. `mean` is the mean that decisions use."""
    plain = {name: jsonable(noise) for name, noise in noises(evaluation, confidence).items()}
    if evaluation.audit is not None or evaluation.annotators:
        labels = noises(replace(evaluation, audit=None, annotators=()), confidence)
        for name, noise in plain.items():
            noise |= {"mean_by_labels": finite(labels[name].mean), "mean": finite(noise["mean"])}
    return plain


def of_systems(systems: Systems) -> dict[str, Evaluated]:
    """Return the systems with trials, by name."""
    return {name: each for name, each in systems.evaluations.items() if each.repeats}


def counts_note(systems: Systems) -> str:
    """Explain what counts of queries mean if any system has trials. Otherwise, the text is empty."""
    has_trials = systems.failures is not None and max(systems.failures.trials) > 1
    return "Counts of complete, lost and gained queries are means over trials." if has_trials else ""


def blocks(
    evaluations: Mapping[str, Evaluated], metrics: Sequence[str], settings: Settings | None = None, digits: int = 4
) -> Iterator[Block]:
    """Yield a table of the noise in systems with trials, and a sentence on the noise in the first metric."""
    settings = settings or Settings()
    rows: list[list[Any]] = []
    lines: list[str] = []
    level = f"{100 * settings.confidence:g}% CI"
    headers = ["trials of", "metric", "mean", level, "two runs differ by up to", "queries that change"]
    for name, evaluation in ((name, of_single_trials(each)) for name, each in evaluations.items()):
        of_metrics = noises(evaluation, settings.confidence)
        # A metric and a count over its trials are one.
        texts = {evaluation.metrics[text]: text for text in metrics if text in of_metrics}
        chosen = {text: of_metrics[text] for text in texts.values()}
        row_of = _alone(evaluation, list(chosen), settings).row_of if chosen else {}
        for text, noise in chosen.items():
            row, changing = row_of[evaluation.name, text], f"{noise.changing:.1f} of {noise.queries:,}"
            cells = [fixed(row.mean, digits), span(row.interval, digits), fixed(noise.floor, digits), changing]
            rows.append([name, evaluation.label_of(text), *cells])
        lines += [_in_words(evaluation, text, noise, settings, digits) for text, noise in [*chosen.items()][:1]]
    if rows:
        yield Table(headers, rows)
        if built := [name for name, each in evaluations.items() if each.is_build]:
            how = "t with one degree of freedom per build, less one per system"
            covered = f"p-values and intervals of {shortlist(built)} cover other builds as well ({how})"
            lines.append(f"{covered}. In slices and other pairs, they cover only these builds")
        lines.append("counts of lost, gained and complete queries are means over trials; ranks are medians")
        yield "\n".join(lines)


def sentences(systems: Systems) -> list[str]:
    """Return how far two runs of each system with trials may differ in the primary metric."""
    every = map(of_single_trials, systems.every)
    measured = [(each, noise_of(each, systems.primary, systems.settings.confidence)) for each in every]
    return [_in_words(each, systems.primary, noise, systems.settings) for each, noise in measured if noise is not None]


def _alone(evaluation: Evaluated, texts: Sequence[str], settings: Settings) -> Systems:
    """Return a table of one system and some metrics, with the same means and intervals as in all other tables."""
    name, metrics = evaluation.name, {text: evaluation.metrics[text] for text in texts}
    values = {name: {text: evaluation.values[text] for text in texts}}
    measured = (evaluation.truth.qids, metrics, evaluation.convention, values, texts[0], {name: evaluation})
    return Systems(*measured, baseline=name, settings=settings)


def _in_words(evaluation: Evaluated, text: str, noise: Noise, settings: Settings, digits: int = DIGITS) -> str:
    """Describe how much two runs of a system may differ by chance."""
    runs = f"Two runs of {evaluation.name} on these {counted(noise.queries, 'query')} differ by up to"
    cases = f"in {evaluation.label_of(text)} in {100 * settings.confidence:.3g}% of cases"
    return f"{runs} {fixed(noise.floor, digits)} {cases}, so a smaller change between two runs is noise."


def vary(systems: Systems) -> bool:
    """Return whether the primary metric has values in the trials of any system."""
    return any(values_in_trials(each, systems.primary) is not None for each in systems.every)


def figure(systems: Systems) -> Figure:
    """Draw the values of the noisiest queries over the trials of each system, by the primary metric."""
    values = {name: values_in_trials(each, systems.primary) for name, each in systems.evaluations.items()}
    varying = {name: each for name, each in values.items() if each is not None}
    variances = [np.where(np.isnan(each), 0.0, each - means_over_trials(each)) ** 2 for each in varying.values()]
    noisiest = np.argsort(-sum(each.mean(axis=0) for each in variances), kind="stable")[:SHOWN].tolist()
    rows = [
        {"query": systems.qids[query], "system": name, "value": value, "times": times}
        for name, each in varying.items()
        for query in noisiest
        for value, times in sorted(Counter(each[:, query].tolist()).items())
        if not math.isnan(value)
    ]
    floors, level = [], systems.settings.confidence
    for name in varying:
        if (noise := noise_of(systems.evaluations[name], systems.primary, level)) is not None:
            rest = f"{100 * (1 - level):.3g}%"
            floors.append(f"two runs of {name} differ by more than {fixed(noise.floor)} in {rest} of cases")
    return figures.trials(rows, about(systems, note=f"the {len(noisiest)} noisiest queries"), floors)
