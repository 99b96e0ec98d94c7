"""The tables of the page that evaluations of one ground truth fill: systems, questions, slices, details, and figures.

`comparison.report` adds what systems are against one another, `experiment.report` gates, times and versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from groupgt.evaluation import pictures
from groupgt.evaluation.systems import Systems, details, known
from groupgt.evaluation.verdict import best_sentence
from groupgt.model.hits import Ints
from groupgt.render import figures
from groupgt.render.drawing import Figure, replaced
from groupgt.render.page import data

# Questions that the page lists; of more, those that say most.
LISTED = 10_000
# Counts of the population that are told where there are any.
COUNTS = {
    "missing": "queries without results",
    "extra": "results without ground truth",
    "duplicates": "queries with duplicate results",
    "ties": "queries with a tie at a cutoff",
    "repeated_ids": "duplicate ids in a group",
}
# Tables of templates that the page fills in.
FILLED = ("rows", "mean")


def dataset_of(systems: Systems, name: str) -> data.Dataset:
    """The tables of one data set, with all that evaluations know."""
    kept = systems.telling[:LISTED]
    evaluated = bool(systems.evaluations)
    missing = len(systems.qids) - len(kept)
    return {
        "name": name,
        "verdict": [best_sentence(systems)],
        "primary": list(systems.metrics).index(systems.primary),
        "baseline": None,
        "metrics": _metrics(systems),
        "systems": [_system(systems, system) for system in systems.names],
        "failed": [],
        "gates": [],
        "contrasts": [],
        "slices": _slices(systems) if evaluated else [],
        "tests": [],
        "headroom": [],
        "cutoff": "" if systems.cutoff is None else f"@{systems.cutoff}",
        "unsolved": systems.unsolved,
        "facts": facts(systems) if evaluated else [("convention", systems.convention)],
        "drawings": _drawings(systems),
        "questions": _questions(systems, kept),
        "details": details(systems, kept) if evaluated else [],
        "passages": systems.passages,
        "left_out": [f"{missing:,} queries on which systems differ least"] if missing else [],
    }


def facts(systems: Systems) -> list[tuple[str, str]]:
    """What was measured, and under which rules."""
    first, truth = systems.first, systems.first.truth
    judgments = truth.judgments
    found = [
        ("convention", first.convention),
        ("policy", str(first.policy)),
        ("labeller", systems.hide(str(first.labeller))),
        ("queries", f"{len(truth):,}, of which {int(judgments.defined.sum()):,} have a group that can be met"),
        ("groups", f"{len(judgments.group_query):,} with {int(truth.is_relevant.sum()):,} alternatives"),
    ]
    counts = {name: each.counts for name, each in systems.evaluations.items()}
    for kind, title in COUNTS.items():
        told = {name: own[kind] for name, own in counts.items() if own[kind]}
        if not told:
            continue
        texts = [f"{name}: {count:,}" for name, count in told.items()]
        if len(told) == len(counts) and len(set(told.values())) == 1:
            texts = [f"{first.counts[kind]:,}{' in every system' if len(counts) > 1 else ''}"]
        found.append((title, "; ".join(texts)))
    dropped = first.counts["empty_groups"] + first.counts["irrelevant_groups"]
    if dropped:
        found.append(("groups left out", f"{dropped:,} without a relevant alternative"))
    return [*found, ("ground truth", f"SHA-256 {truth.digest}")]


def _metrics(systems: Systems) -> list[data.Metric]:
    return [
        {
            "name": text,
            "label": metric.short(systems.convention),
            "full": str(metric),
            "higher": metric.higher_is_better,
            "bounded": metric.definition.bounded,
            "summary": metric.definition.summary,
            "formula": metric.formula.text,
        }
        for text, metric in systems.metrics.items()
    ]


def _system(systems: Systems, name: str) -> data.System:
    columns = systems.values[name]
    return {
        "name": name,
        "about": "",
        "means": list(systems.means[name].values()),
        "intervals": [systems.intervals.get((name, text)) for text in systems.metrics],
        "queries": [int((~np.isnan(columns[text])).sum()) for text in systems.metrics],
    }


def _slices(systems: Systems) -> list[data.Slice]:
    parts: list[data.Slice] = []
    for place, part in enumerate(systems.first.slices):
        means = [[known(each.slices[place]["means"][text]) for text in systems.metrics] for each in systems.every]
        parts.append({"by": part["by"], "value": part["value"], "queries": part["queries"], "means": means})
    return parts


def _questions(systems: Systems, kept: Ints) -> data.Questions:
    places = np.sort(kept).tolist()
    found: data.Questions = {
        "qids": [systems.qids[at] for at in places],
        "texts": [],
        "groups": [],
        "slices": {},
        "solved": [],
        "counted": [],
        "values": [
            [[known(value) for value in columns[text][places].tolist()] for columns in systems.values.values()]
            for text in systems.metrics
        ],
    }
    if systems.evaluations:
        truth, slicer = systems.first.truth, systems.first.slicer
        solved = [systems.solved(each) for each in systems.every]
        groups = truth.judgments.groups.tolist()
        if truth.texts:
            found["texts"] = [truth.texts[at] for at in places]
        found["groups"] = [groups[at] for at in places]
        found["slices"] = {by: [texts[at] for at in places] for by in slicer.by for texts in [slicer.texts(by)]}
        found["solved"] = [[system for system, column in enumerate(solved) if column[at]] for at in places]
        found["counted"] = truth.judgments.defined[places].tolist()
    return found


def _drawings(systems: Systems) -> dict[str, data.Drawing]:
    """What the page draws: templates where what they show is chosen there."""
    found = {"forest": template(pictures.forest(systems), {systems.label: "$label"})}
    if systems.evaluations:
        found["depth"] = drawing(pictures.depth(systems))
        for unit in pictures.units(systems):
            found[f"depth in {unit}"] = drawing(pictures.depth(systems, unit))
        found |= {"ecdf": drawing(pictures.ecdf(systems)), "groups": template(pictures.groups(systems, 1))}
        if systems.first.slicer.by:
            found["slices"] = template(figures.slices([], systems.about(systems.label), domain=("$low", "$high")))
    return found


def drawing(figure: Figure) -> data.Drawing:
    """A figure with its data, for the page."""
    return {"template": figure.template, "text": figure.text, "headers": figure.headers, "rows": figure.rows}


def template(figure: Figure, texts: Mapping[str, str] | None = None) -> data.Drawing:
    """A figure without its data, which the page fills in; `texts` says which of its texts depend on what is chosen."""
    return {"template": _emptied(replaced(figure.template, texts or {}))}


def _emptied(value: Any) -> Any:
    """A template whose tables of rows are empty."""
    if isinstance(value, dict):
        if value.get("name") in FILLED:
            return {"name": value["name"], "values": []}
        return {key: _emptied(each) for key, each in value.items() if key != "description"}
    return [_emptied(each) for each in value] if isinstance(value, list) else value
