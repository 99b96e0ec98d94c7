"""Tracks groups through pipeline stages, such as retrieved, reranked, prompt and cited, to find where they are lost."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import numpy as np

from groupgt.errors import ConfigError, display
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.names import named
from groupgt.evaluation.options import LabelOptions, Truth, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluated, Evaluation
from groupgt.model.hits import Bools, Ints
from groupgt.options import Doc
from groupgt.render.results import Result

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure

METRIC = "complete.coverage"
# The fields of a stage that are means over trials.
COUNTED = ("covered", "lost", "gained", "complete")
_CUT = re.compile(r"(.+)@(\d{1,9})")


@dataclass(frozen=True)
class Stage:
    """One pipeline stage, with the numbers of groups that it covers within `cutoff`, loses and gains.

    `depth` is the largest number of results that the stage has for a query. A group is `lost` at the stage after the
    last one that covers it, or at the first stage if none covers it; it is `gained` if the previous stage did not cover
    it. With several trials, numbers are means over trials.
    """

    name: str
    cutoff: int | None
    covered: float
    lost: float
    gained: float
    complete: float
    depth: int


@dataclass(frozen=True)
class Stages(Result):
    """Groups of all queries that count, with the stages that cover each group and the stage that loses it.

    `groups` lists dicts with `qid`, `group`, `covered` (one bool per stage) and `lost` (a stage name, or None if the
    last stage covers the group), for each trial if there are several `trials`. `slices` contains the stages for each
    slice; `total` counts groups, and `kept` counts the groups that the last stage covers.
    """

    stages: tuple[Stage, ...]
    groups: list[dict[str, Any]]
    queries: int
    kept: float
    slices: list[dict[str, Any]]
    evaluations: tuple[Evaluated, ...]
    total: int
    trials: int

    def plot(self) -> Figure:
        """Plot the number of groups that each stage covers."""
        return self._teller.plot("stages")


@takes_options(LabelOptions)
def stages(
    truth: Truth,
    runs: Annotated[
        Mapping[str, Any] | Sequence[Any],
        Doc("`{name: run}` in pipeline order, or a list of paths. `PATH@10` and `NAME@10` use the first 10 results."),
    ],
    *,
    by: Sequence[str] | str = (),
    **options: Unpack[LabelOptions],
) -> Stages:
    """Find the stage that loses each group: never retrieved, cut by the reranker, not in the prompt, or not cited.

    A group is lost at the stage after the last one that covers it, or at the first stage if none covers it. All stages
    are evaluated against the same ground truth with the same labeller. If stages have several trials, trials are paired
    across stages in order, and numbers are means over trials. Raises `DataError` or `ConfigError`.

    >>> truth = {"q": [["a", "b"], ["c"], ["d"]]}
    >>> found = stages(truth, {"retrieved": {"q": ["a", "c", "x"]}, "reranked@1": {"q": ["a", "c"]}})
    >>> [(each.name, each.covered, each.lost) for each in found.stages]
    [('retrieved', 2, 1), ('reranked', 1, 1)]
    """
    request = Request.of(METRIC, by=by, **options)
    pairs = runs.items() if isinstance(runs, Mapping) else [("", run) for run in runs]
    parts = [stage_of(name, run, number) for number, (name, run) in enumerate(pairs, 1)]
    return stages_of(request, request.truth_of(truth), parts)


def stage_of(name: str, run: Any, number: int = 0) -> tuple[str, Any, int | None]:
    """Return a stage's name, run and cutoff. The cutoff follows the name or the path."""
    name, cutoff = cut_of(name)
    if not isinstance(run, (str, os.PathLike)):
        return name or f"stage {number}", run, cutoff
    path, of_path = cut_of(str(run))
    if cutoff and of_path:
        raise ConfigError(f"stages: expected one cutoff, found {name}@{cutoff} and {path}@{of_path}; remove one")
    return name, path, cutoff or of_path


def cut_of(text: str) -> tuple[str, int | None]:
    """Split `PATH@10` into the path and the cutoff; there is no cutoff if the full text is an existing path."""
    match = _CUT.fullmatch(text)
    if match is None or Path(text).exists():
        return text, None
    if int(match[2]) < 1:
        raise ConfigError(f"{text}: expected a cutoff above 0, found {display(match[2])}")
    return match[1], int(match[2])


def stages_of(request: Request, truth: Any, parts: Sequence[tuple[str, Any, int | None]]) -> Stages:
    """Compute a pipeline's stages from (name, run, cutoff) of each run; unnamed runs are named after their files."""
    if len(parts) < 2:
        raise ConfigError(f"stages: expected at least two stages, found {len(parts)}")
    pairs = named((name, run) for name, run, _ in parts)
    names, cutoffs = [name for name, _ in pairs], [cutoff for _, _, cutoff in parts]
    evaluations = evaluate_each(request, truth, pairs)
    trials = _trials(evaluations)
    first = evaluations[0]
    query = first.truth.judgments.group_query
    counts: Bools = np.all([each.counting for trial in trials for each in trial], axis=0)[query]
    query = query[counts]
    labels = [first.truth.group_label(group) for group in first.truth.relevant_groups[counts].tolist()]
    found = [_covered(trial, cutoffs)[:, counts] for trial in trials]
    groups: list[dict[str, Any]] = []
    for number, covered in enumerate(found, 1):
        groups += [
            {
                "qid": first.truth.qids[of],
                "group": label,
                "covered": list(map(bool, column)),
                "lost": None if at == len(names) else names[at],
                **({"trial": number} if len(trials) > 1 else {}),
            }
            for of, label, column, at in zip(query.tolist(), labels, covered.T.tolist(), lost_at(covered).tolist())
        ]

    def over_trials(chosen: Bools) -> tuple[Stage, ...]:
        each = [_stages(trial, cutoffs, covered, query, chosen) for trial, covered in zip(trials, found)]
        return tuple(map(_mean, zip(*each)))

    slices = [
        {"by": column, "value": value, "stages": over_trials(mask[query])}
        for column, value, mask in first.slicer
        if mask[query].any()
    ]
    found_stages, queries = over_trials(np.ones(len(query), dtype=np.bool_)), len(np.unique(query))
    kept = found_stages[-1].covered
    return Stages(found_stages, groups, queries, kept, slices, tuple(evaluations), len(query), len(trials))


def _trials(evaluations: Sequence[Evaluated]) -> list[tuple[Evaluation, ...]]:
    """Return the stages of each trial; a stage without trials is the same in all trials."""
    several = {each.name: len(each.repeats) for each in evaluations if each.repeats}
    if len(set(several.values())) > 1:
        counts = ", ".join(f"{name} {count}" for name, count in several.items())
        raise ConfigError(f"stages: expected the same number of trials for each stage with trials, found {counts}")
    size = max(several.values(), default=1)
    return list(zip(*(each.repeats or each.each * size for each in evaluations)))


def _covered(evaluations: Sequence[Evaluation], cutoffs: Sequence[int | None]) -> Bools:
    """Return which groups each stage covers, shape (stages, groups)."""
    hits = (each.labelled.hits for each in evaluations)
    return np.stack([each.covered(each.length if cut is None else cut) for each, cut in zip(hits, cutoffs)])


def _mean(trials: Sequence[Stage]) -> Stage:
    """Return one stage with the means over its trials."""
    if len(trials) == 1:
        return trials[0]
    means: dict[str, Any] = {name: fmean(getattr(each, name) for each in trials) for name in COUNTED}
    return replace(trials[0], depth=max(each.depth for each in trials), **means)


def lost_at(covered: Bools) -> Ints:
    """Return the stage that loses each group, or the number of stages if none does. `covered`: (stages, groups)."""
    return np.where(covered.any(axis=0), len(covered) - covered[::-1].argmax(axis=0), 0)


def _stages(
    evaluations: Sequence[Evaluation], cutoffs: Sequence[int | None], covered: Bools, query: Ints, chosen: Bools
) -> tuple[Stage, ...]:
    stages, lost = [], lost_at(covered)
    of_query = np.bincount(query[chosen], minlength=int(query.max(initial=-1)) + 1)
    for place, (each, cutoff) in enumerate(zip(evaluations, cutoffs)):
        here = covered[place] & chosen
        before = covered[place - 1] if place else np.ones_like(here)
        counts = np.bincount(query[here], minlength=len(of_query))
        complete = int(((counts == of_query) & (of_query > 0)).sum())
        gained = int((here & ~before).sum())
        gone, depth = int(((lost == place) & chosen).sum()), int(each.labelled.hits.length.max(initial=0))
        stages.append(Stage(each.name, cutoff, int(here.sum()), gone, gained, complete, depth))
    return tuple(stages)
