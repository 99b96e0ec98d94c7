"""Reads ground truth and runs from user data: mappings, paths and frames."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from groupgt.engines.choice import Engine
from groupgt.engines.measure import in_order
from groupgt.engines.order import Direction
from groupgt.errors import ConfigError, DataError
from groupgt.formats import frames
from groupgt.formats.fields import trial_column
from groupgt.formats.pairing import matched
from groupgt.formats.roles import NO_COLUMNS, Declared
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run, Trials

# Whether higher scores are better: in all runs, or by the name of the run.
Scores = Direction | Mapping[str, Direction]


def as_ground_truth(
    value: Any,
    policy: Policy,
    format: str | None = None,
    engine: Engine | None = None,
    columns: Declared = NO_COLUMNS,
) -> GroundTruth:
    """Read ground truth from a mapping, path, frame or `GroundTruth`.

    `engine` may limit the size of files, and `columns` names columns by their roles.
    """
    if isinstance(value, (str, os.PathLike)):
        qrels = None if format is not None else frames.dataset_named(value)
        if qrels is not None:
            return GroundTruth.of(qrels, policy).under(policy)
        from groupgt.formats import detect

        ceiling = (engine or Engine()).ceiling
        truth = detect.read_ground_truth(value, format, policy, columns=columns, ceiling=ceiling)
    elif isinstance(value, Mapping):
        truth = GroundTruth.of(value, policy)
    elif frames.is_frame(value):
        from groupgt.formats import detect

        truth = detect.read_ground_truth(value, format, policy, columns=columns)
    elif isinstance(value, GroundTruth):
        truth = value
    elif (qrels := frames.truth_in(value)) is not None:
        truth = GroundTruth.of(qrels, policy)
    else:
        kind = type(value).__name__
        raise DataError(
            f"ground truth: expected {{query id: groups}}, {{query id: {{id: grade}}}}, a path or a frame, found {kind}"
        )
    # A mapping may be built query by query; a file or a frame without queries is a mistake.
    if not isinstance(value, (Mapping, GroundTruth)) and not len(truth):
        title = value if isinstance(value, (str, os.PathLike)) else "ground truth"
        raise DataError(f"{title}: the ground truth is empty; expected at least one query")
    return truth.under(policy)


def refuse_swapped(truth: Any, run: Any) -> None:
    """Raise `DataError` if the ground truth contains rankings and the run contains groups."""
    if not (isinstance(truth, Mapping) and isinstance(run, Mapping)):
        return
    ranking, groups = (
        next((row for row in each.values() if isinstance(row, (list, tuple, dict)) and row), None)
        for each in (truth, run)
    )
    if isinstance(ranking, Mapping):
        is_ranking = any(isinstance(cell, float) and not cell.is_integer() for cell in ranking.values())
    else:
        is_ranking = isinstance(ranking, (list, tuple)) and _is_result(ranking[0])
    are_groups = isinstance(groups, (list, tuple)) and isinstance(groups[0], (list, tuple, dict))
    if is_ranking and are_groups and not _is_result(groups[0]):  # type: ignore[index]  # a list, as was seen
        raise DataError(
            "the ground truth contains rankings, the results contain groups; swap them: evaluate(truth, run, metrics)"
        )


def _is_result(cell: Any) -> bool:
    """Return whether a cell is one result: an id, or a pair of an id and a score."""
    is_pair = isinstance(cell, (list, tuple)) and len(cell) == 2 and isinstance(cell[1], (int, float))
    return is_pair or isinstance(cell, (str, int)) or (isinstance(cell, dict) and "id" in cell)


def is_in_files(run: Any) -> bool:
    """Return whether a run is a path, or a list of paths that together form one run."""
    parts = (run if isinstance(run, (list, tuple)) else [run]) or [None]
    return all(isinstance(part, (str, os.PathLike)) for part in parts)


def are_several(value: Any, truth: GroundTruth) -> bool:
    """Return whether a value is `{name: run}`, which would otherwise be read as rankings of unjudged queries."""
    if not isinstance(value, Mapping) or not value:
        return False
    first = next((run for run in value.values() if not isinstance(run, Mapping) or run), None)
    if isinstance(first, Mapping):  # a run, or a ranking {id: score}
        may_be = isinstance(next(iter(first.values())), (list, tuple, Mapping, np.ndarray))
    else:
        # Rankings may be series, which have no columns.
        is_frame = hasattr(type(first), "columns") and frames.is_frame(first)
        may_be = is_frame or isinstance(first, (str, os.PathLike, Run))
    return may_be and str(next(iter(value))) not in truth.index


def as_run(
    value: Any,
    truth: GroundTruth,
    format: str | None = None,
    name: str = "",
    *,
    parts: bool = False,
    qids: list[str] | None = None,
    engine: Engine | None = None,
    columns: Declared = NO_COLUMNS,
    scores: Scores = "descending",
    tool_spans: Mapping[str, str] = NO_COLUMNS,
) -> Run:
    """Read a run from a mapping, a path, several paths (the `parts` of one run), a frame, or a `Run`.

    Results of AutoRAG's nodes are matched in order to `qids`, or to the queries of the ground truth. `columns` names
    columns by their roles; one that this run has not is another run's. `scores` declares whether higher scores are
    better, for all runs or by their names. `tool_spans` are tools that search, in traces. Trials are read one by one.
    """
    if isinstance(value, Trials):
        read = partial(as_run, truth=truth, format=format, name=name, parts=parts, qids=qids, engine=engine)
        return Run.of_trials([read(each, columns=columns, scores=scores, tool_spans=tool_spans) for each in value])
    if columns:
        from groupgt.formats import detect

        names = detect.column_names(value) or ()
        columns = {role: name for role, name in columns.items() if name in names}
    if isinstance(value, Mapping):
        if are_several(value, truth):
            raise ConfigError(
                f"expected one run, {{query id: ranking}}, found several by name ({', '.join(map(str, value))}); pass "
                "one of them, or all to groupgt.evaluate_runs(truth, runs, metrics) or groupgt.compare"
            )
        run = Run.of(value)
    else:
        if is_in_files(value):
            from groupgt.formats import detect
            from groupgt.formats.parts import refuse_many

            how = engine or Engine()
            if not parts:
                refuse_many(value)
            if how.name == "spark":
                from groupgt.engines.remote import run_of_files, session_of

                if trial_column(detect.column_names(value) or (), str(value)):
                    raise ConfigError(f"{value}: the spark engine does not read trials; use another engine")
                value = run_of_files(session_of(how.options.master, how.options.config), value, format)
            else:
                streamed = how.name == "streaming"
                qids = truth.qids if qids is None else qids
                value = detect.unread_run(
                    value,
                    format,
                    parts=True,
                    qids=qids,
                    columns=columns,
                    tool_spans=tool_spans,
                    streamed=streamed,
                    ceiling=how.ceiling,
                )
        elif frames.is_frame(value):
            value = frames.run_of(value, qids=truth.qids, columns=columns)
        elif not isinstance(value, Run):
            results = frames.run_in(value)
            value = Run.of(value if results is None else results)
        if value.trials:
            named = name or value.name
            return Run.of_trials([as_run(each, truth, name=named, scores=scores) for each in value.trials])
        run = matched(value, truth)
    run = replace(run, name=name or run.name)
    ascending = (scores if isinstance(scores, str) else scores.get(run.name)) == "ascending"
    if run.is_remote:
        from groupgt.engines.cluster import on_cluster

        return on_cluster(truth, run, ascending=ascending)
    return in_order(truth, run, ascending=ascending)
