"""Build the page of a data set from its systems and from data that an experiment or result folders add."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from groupgt.comparison.contrast import Contrast, Key, Row
from groupgt.comparison.draws import SLACK
from groupgt.comparison.systems import Systems, finite, interval
from groupgt.evaluation.misses import whole
from groupgt.evaluation.result import Evaluated
from groupgt.experiment.outcome import Against, GateResult
from groupgt.metrics.language import Metric
from groupgt.model.hits import Floats, Ints
from groupgt.render import figures
from groupgt.render.bars import Axis
from groupgt.render.columns import columns_of, texts_of
from groupgt.render.document import typeset
from groupgt.render.drawing import Figure, drawing, template
from groupgt.render.page import data
from groupgt.render.tables import fixed, minus, span
from groupgt.report import contrasts, differences, headroom, priorities, standings, trials
from groupgt.report.curves import depth_curves, ecdf, units
from groupgt.report.decision import Decision, decide
from groupgt.report.means import about, corrected_notes, evaluated_of
from groupgt.report.misses import details, groups_figure

# Maximum number of queries on the page; beyond it, the most informative ones are listed.
LISTED = 10_000
# Colors of heat maps.
STEPS = 6
# Counts of the population that are shown if not 0.
COUNTS = {
    "unanswerable": "queries declared unanswerable",
    "undefined": "queries without ground truth",
    "missing": "queries without results",
    "extra": "results without ground truth",
    "duplicates": "queries with duplicate results",
    "ties": "queries with a tie at a cutoff",
    "repeated_ids": "duplicate ids in a group",
}


@dataclass(frozen=True)
class Added:
    """What an experiment or result folders add to the systems of a data set. Several data sets may share one `axis`."""

    decision: Decision | None = None
    population: str = ""
    notes: Sequence[data.Sentence] | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    judged: Sequence[GateResult] = ()
    gates: Sequence[data.Gate] = ()
    gates_title: str = ""
    axis: Axis | None = None
    against: Against | None = None
    previous: data.Previous | None = None
    outcomes: data.Outcomes | None = None
    facts: Sequence[tuple[str, str]] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)


def dataset_of(systems: Systems, name: str, added: Added = Added()) -> data.Dataset:
    """Return the page data of one data set, including all its evaluations."""
    kept = systems.most_telling[:LISTED]
    evaluated, is_compared = bool(systems.evaluations), len(systems.names) > 1 and bool(systems.baseline)
    missing = len(systems.qids) - len(kept)
    decision = added.decision or decide(systems)
    place = decision.place(systems)
    subject = "" if place is None else systems.names[place]
    notes = typeset(differences.notes(systems, decision.note)) if added.notes is None else list(added.notes)
    return {
        "name": name,
        "decision": decision.page,
        "population": added.population or evaluated_of(systems),
        "notes": notes,
        "standings": standings.page_table(systems, added.judged, added.about, added.axis),
        "first": priorities.page_part(systems, decision, added.against),
        "gates_title": added.gates_title,
        "primary": list(systems.metrics).index(systems.primary),
        "baseline": systems.names.index(systems.baseline) if is_compared else None,
        "subject": place,
        "metrics": [
            {
                "name": text,
                "label": systems.labels[text],
                "full": str(metric),
                "order": "down" if metric.higher_is_better else "up",
                "best": [place for place, name in enumerate(systems.names) if systems.is_best(name, text)],
                "bounded": metric.definition.bounded,
                "summary": metric.definition.summary,
                "formula": metric.formula.text,
            }
            for text, metric in systems.metrics.items()
        ],
        "systems": [
            {
                "name": system,
                "about": added.about.get(system, ""),
                "means": list(means.values()),
                "texts": list(map(fixed, means.values())),
                "intervals": [systems.intervals.get((system, text)) for text in systems.metrics],
                "spans": [span(systems.intervals.get((system, text))) for text in systems.metrics],
                "steps": [step_of(mean, metric) for mean, metric in zip(means.values(), systems.metrics.values())],
                "queries": [systems.queries_of(system, text) for text in systems.metrics],
            }
            for system, means in systems.means.items()
        ],
        "failed": list(systems.failed.items()),
        "gates": list(added.gates),
        "contrasts": {
            "names": list(columns_of(Contrast)),
            "heads": [column.heading for column in columns_of(Contrast).values()],
            "rows": list(_contrasts(systems)) if is_compared else [],
        },
        "slices": [
            {
                "by": parts[0]["by"],
                "value": parts[0]["value"],
                "queries": parts[0]["queries"],
                "means": [[finite(part["means"][text]) for text in systems.metrics] for part in parts],
                "texts": [[fixed(part["means"][text], 2) for text in systems.metrics] for part in parts],
            }
            for parts in zip(*(each.slices for each in systems.every))
        ],
        "tests": _tests(systems),
        "headroom": headroom.page_rows(systems) if is_compared else [],
        "previous": added.previous,
        "outcomes": added.outcomes,
        "trials_note": trials.counts_note(systems),
        "cutoff": "" if systems.cutoff is None else f"@{systems.cutoff}",
        "facts": [*(facts(systems) if evaluated else [("convention", systems.convention)]), *added.facts],
        "drawings": {**_drawings(systems, subject), **{name: drawing(each) for name, each in added.figures.items()}},
        "questions": _questions(systems, kept),
        "details": details(systems, kept) if evaluated else [],
        "passages": systems.passages,
        "left_out": [f"{missing:,} queries on which systems differ least"] if missing else [],
    }


def facts(systems: Systems) -> list[tuple[str, str]]:
    """Describe what was measured and by which rules."""
    first, truth = systems.first, systems.first.truth
    judgments, defined = truth.judgments, int(first.populations.defined.sum())
    lines = [
        ("convention", first.convention),
        ("policy", str(first.policy)),
        ("labeller", systems.hide(str(first.labeller))),
        ("queries", f"{len(truth):,}, of which {defined:,} have a group that can be covered"),
        ("groups", f"{len(judgments.group_query):,} with {int(truth.is_relevant.sum()):,} alternatives"),
    ]
    counts = {name: each.counts for name, each in systems.evaluations.items()}
    for kind, title in COUNTS.items():
        affected = {name: count for name, counts_of in counts.items() if (count := counts_of.get(kind))}
        texts = [f"{name}: {count:,}" for name, count in affected.items()]
        if len(affected) == len(counts) and len(set(affected.values())) == 1:
            texts = [f"{first.counts[kind]:,}{' in every system' if len(counts) > 1 else ''}"]
        lines += [(title, "; ".join(texts))] if affected else []
    if dropped := first.counts["empty_groups"] + first.counts["irrelevant_groups"]:
        lines.append(("groups ignored", f"{dropped:,} without a relevant alternative"))
    return [*lines, ("ground truth", f"SHA-256 {truth.digest}")]


def _questions(systems: Systems, kept: Ints) -> data.Questions:
    places = np.sort(kept).tolist()
    qids, values = [systems.qids[at] for at in places], []
    for text, metric in systems.metrics.items():
        values.append(_values(np.stack([columns[text][places] for columns in systems.shown.values()]), metric))
    by_labels = systems.basis == "audit"
    table = data.Questions(
        qids=qids, texts=[], groups=[], slices={}, complete=[], out={}, by_labels=by_labels, values=values
    )
    if systems.evaluations:
        truth, slicer = systems.first.truth, systems.first.slicer
        groups = truth.judgments.groups.tolist()
        if truth.texts:
            table["texts"] = [truth.texts[at] for at in places]
        table["groups"] = [groups[at] for at in places]
        table["slices"] = {by: [texts[at] for at in places] for by in slicer.by for texts in [slicer.texts(by)]}
        if failures := systems.failures:
            shares = np.where(failures.counting, failures.solved, 0.0)[places].tolist()
            table["complete"] = [list(map(whole, row)) for row in shares]
        table["out"] = {str(place): text for place, at in enumerate(places) if (text := why_out(systems.every, at))}
    return table


def _values(table: Floats, metric: Metric) -> data.Values:
    """Return the values of a metric, shape (S, Q), with all texts and steps that the page shows."""
    is_defined = np.isfinite(table)
    numbers, places = np.unique(table[is_defined], return_inverse=True)
    cells = np.full(table.shape, -1)
    cells[is_defined] = places
    levels: Ints = np.cumsum(np.diff(numbers, prepend=numbers[:1]) > SLACK)
    spreads: list[float | None] = []
    if len(table) > 1:
        lowest = np.where(is_defined, table, np.inf).min(axis=0)
        highest = np.where(is_defined, table, -np.inf).max(axis=0)
        spreads = [finite(value) if value >= 0 else None for value in (highest - lowest).tolist()]
    return {
        "numbers": numbers.tolist(),
        "texts": list(map(fixed, numbers.tolist())),
        "levels": (levels if metric.higher_is_better else -levels).tolist(),
        "steps": [step_of(value, metric) for value in numbers.tolist()],
        "cells": cells.tolist(),
        "spreads": spreads,
        "spread_texts": list(map(fixed, spreads)),
    }


def step_of(value: float | None, metric: Metric) -> int | None:
    """Return the step of a value in heat maps, from 0 (worst) to 5 (best), or None if the metric is unbounded."""
    if value is None or not metric.definition.bounded:
        return None
    return max(0, min(STEPS - 1, math.floor((value if metric.higher_is_better else 1 - value) * STEPS)))


def why_out(evaluations: Sequence[Evaluated], query: int) -> str:
    """Explain why a system is not evaluated on a query. If all are evaluated, the text is empty."""
    populations = evaluations[0].populations
    if populations.unanswerable[query]:
        return "This query is declared unanswerable, so it counts only in metrics for unanswerable queries."
    if populations.undefined[query]:
        if not evaluations[0].truth.judgments.groups[query]:
            return "This query has no ground truth, so no mean includes it. Set answerable: false if it has no answer."
        return "No group of this query can be covered, so all means exclude it."
    if not all(each.populations.counting[query] for each in evaluations):
        return "Systems without results for this query exclude it from their means (policy missing=skip)."
    return ""


def _drawings(systems: Systems, subject: str) -> dict[str, data.Drawing]:
    """Return the page's figures, as templates if their content depends on choices made on the page."""
    drawings: dict[str, data.Drawing] = {}
    if systems.evaluations:
        drawings["depth"] = drawing(depth_curves(systems, subject=subject))
        for unit in units(systems):
            drawings[f"depth in {unit}"] = drawing(depth_curves(systems, unit, subject=subject))
        drawings |= {"ecdf": drawing(ecdf(systems, subject)), "groups": template(groups_figure(systems, 1))}
        if systems.first.slicer.by:
            drawings["slices"] = template(figures.slices([], about(systems), domain=("$low", "$high")))
    if len(systems.names) > 1 and systems.baseline:
        drawings |= contrasts.templates(systems)
    return drawings


def _contrasts(systems: Systems) -> Iterator[list[Any]]:
    """Yield all differences in both orders: from the baseline, between all other pairs, and within slices."""
    names, metrics = systems.names, list(systems.metrics)

    def of_baseline(rows: Sequence[Row]) -> dict[Key, Contrast]:
        return {(row.system, systems.baseline, row.metric): row.against for row in rows if row.against is not None}

    overall = of_baseline(systems.rows) | dict(systems.others)
    others = (systems.settings, contrasts.pairs_per_metric(systems), contrasts.of_pairs(systems))
    against = (systems.settings, contrasts.family_sizes(systems.rows)[0], systems.settings.corrects)
    families = [(-1, overall)]
    if systems.slices:
        places = {(part["by"], part["value"]): place for place, part in enumerate(systems.first.slices)}
        families += [(places[part.by, part.value], of_baseline(part.rows)) for part in systems.slices]
    for within, family in chain(families, systems.others_within()):
        for (first, second, text), each in family.items():
            how = against if second == systems.baseline else others
            whole = overall.get((first, second, text))
            is_reversal = each.significant and whole is not None and whole.delta * each.delta < 0
            for a, b, contrast in ((first, second, each), (second, first, each.turned)):
                is_said = within < 0 and contrast.pairs
                yield [
                    *(names.index(a), names.index(b), metrics.index(text), within),
                    *(finite(contrast.delta), interval(contrast.delta_interval)),
                    *([contrast.wins, contrast.ties, contrast.losses], list(map(minus, texts_of(contrast)))),
                    *(contrast.standing, is_reversal),
                    typeset([differences.of_two(a, b, contrast, systems.labels[text], *how)])[0] if is_said else None,
                ]


def _tests(systems: Systems) -> list[str]:
    """Explain how differences were tested, for the footer of the page's tables."""
    settings = systems.settings
    about = list(corrected_notes(systems.first, compared=len(systems.names) > 1)) if systems.evaluations else []
    about += trials.sentences(systems)
    intervals = f"{100 * settings.confidence:g}% {contrasts.INTERVALS[systems.basis]}"
    if len(systems.names) < 2:
        return [*([intervals] if systems.intervals else []), *about]
    test = f"{contrasts.described(settings, systems.basis)}; significant at alpha {settings.alpha:g}; {intervals}"
    of_baseline = contrasts.corrected_over(settings, *contrasts.family_sizes(systems.rows))
    lines = [*about, test, f"p-values against the baseline: {of_baseline}"]
    if systems.others:
        families = len({text for *_, text in systems.others})
        pairs = contrasts.pairs_per_metric(systems)
        of_others = contrasts.corrected_over(settings, pairs, families, contrasts.of_pairs(systems))
        lines.append(f"p-values of other pairs: {of_others}")
    return lines
