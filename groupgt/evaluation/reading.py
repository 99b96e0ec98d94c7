"""Reads ground truth and runs from user data: mappings, paths and frames."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, Unpack

import numpy as np

from groupgt.engines.choice import Engine, Streaming, engine_of
from groupgt.engines.measure import in_order
from groupgt.engines.order import check_direction
from groupgt.errors import ConfigError, DataError, refuse
from groupgt.evaluation.options import DEFAULTS, EvaluateOptions, QueryOptions, takes_options
from groupgt.evaluation.slices import where
from groupgt.formats import frames
from groupgt.formats.fields import trial_column
from groupgt.formats.pairing import matched
from groupgt.formats.roles import NO_COLUMNS, Declared, Kind, check_declared
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run, Trials
from groupgt.options import Doc, check_ranges, limits, options_of

# What the default options mean: they need not be read.
DEFAULT_POLICY, DEFAULT_ENGINE = Policy.of(None), Engine()
NO_FILE = "applies to files, but no run is a file; remove this option"
# Options that are numbers within a range.
RANGED = frozenset(name for name, option in options_of(EvaluateOptions).items() if limits(option.hint))


@dataclass(frozen=True)
class Reading:
    """How to read ground truth and runs, with all `options` by name, as given."""

    options: EvaluateOptions = field(default_factory=lambda: DEFAULTS)
    policy: Policy = DEFAULT_POLICY
    engine: Engine = DEFAULT_ENGINE

    @classmethod
    def of(cls, **options: Unpack[EvaluateOptions]) -> Reading:
        """Check the given options, and raise `ConfigError` if any are invalid."""
        if not RANGED.isdisjoint(options):
            check_ranges(EvaluateOptions, options)
        if options.get("assume_random") and options.get("audit") is None:
            raise ConfigError("assume_random: this option requires audit; add an audit, or remove assume_random")
        if "scores" in options:
            check_direction(options["scores"])
        if "truth_columns" in options:
            options["truth_columns"] = check_declared(options["truth_columns"], "truth")
        if "run_columns" in options:
            options["run_columns"] = check_declared(options["run_columns"], "run")
        return cls(
            {**DEFAULTS, **options},
            Policy.of(options["policy"]) if "policy" in options else DEFAULT_POLICY,
            engine_of(options["engine"]) if "engine" in options else DEFAULT_ENGINE,
        )

    def but(self, **options: Unpack[EvaluateOptions]) -> Reading:
        """Return a copy with some options changed."""
        changed: EvaluateOptions = {**self.options, "policy": self.policy, "engine": self.engine, **options}
        return Reading.of(**changed)

    def truth(self, value: Any) -> GroundTruth:
        """Read ground truth from a mapping, path, frame or `GroundTruth`, and select its queries."""
        return self.selected(self.whole_truth(value))

    def selected(self, truth: GroundTruth) -> GroundTruth:
        """Select the queries that are evaluated."""
        conditions, limit = self.options["where"], self.options["limit"]
        selected = where(truth, conditions) if conditions else truth
        return selected if limit is None or limit >= len(selected) else selected.select(range(limit))

    def whole_truth(self, value: Any) -> GroundTruth:
        """Read ground truth with all of its queries, such as an annotator's."""
        named, columns = self.options["truth_format"], self.options["truth_columns"]
        is_path = isinstance(value, (str, os.PathLike))
        qrels = frames.dataset_named(value) if is_path and named is None else None
        if named is not None and not is_path:
            raise ConfigError("truth_format: applies to files, but this ground truth is not a file; remove this option")
        if isinstance(value, (GroundTruth, Mapping)):
            _require(columns, [value], "truth")
        if isinstance(value, GroundTruth):
            truth = value
        elif qrels is None and (is_path or frames.is_frame(value)):
            from groupgt.formats import detect

            truth = detect.read_ground_truth(value, named, self.policy, columns=columns, ceiling=self.engine.ceiling)
        elif isinstance(value, Mapping):
            truth = GroundTruth.of(value, self.policy)
        elif (read := frames.truth_in(value if qrels is None else qrels, self.policy, columns)) is not None:
            truth = read
        else:
            what = "expected {query id: groups}, {query id: {id: grade}}, a path or a frame"
            raise DataError(f"ground truth: {what}, found {type(value).__name__}")
        # A mapping may be built query by query; a file or a frame without queries is a mistake.
        if not isinstance(value, (Mapping, GroundTruth)) and not len(truth):
            title = value if is_path else "ground truth"
            raise DataError(f"{title}: the ground truth is empty; expected at least one query")
        return truth.under(self.policy)

    def annotation(self, value: Any) -> GroundTruth:
        """Read another annotator's ground truth in any format. The file may lack declared columns of other files."""
        columns = _there(self.options["truth_columns"], value)
        return self.but(truth_format=None, truth_columns=columns).whole_truth(value)

    def require_columns(self, runs: Iterable[Any]) -> None:
        """Raise `ConfigError` for an option that applies to none of these runs, such as the name of a column."""
        runs = list(runs)
        parts = chain.from_iterable(run if isinstance(run, (list, tuple)) else [run] for run in runs)
        if not any(map(is_in_files, parts)):
            refuse(
                ((name, NO_FILE) for name in ("run_format", "tool_spans", "parts") if self.options.get(name)),
                ConfigError,
            )
        _require(self.options["run_columns"], runs, "run")

    def results(self, value: Any, qids: list[str] | None = None) -> Run:
        """Read results unchanged, from a mapping, a path, several paths (`parts`), a frame, a `Run`, or trials."""
        columns = _there(self.options["run_columns"], value)
        if is_in_files(value):
            return self._in_files(value, columns, qids)
        if isinstance(value, Run):
            return value
        if frames.is_frame(value):
            return frames.run_of(value, qids=qids, columns=columns)
        found = None if isinstance(value, Mapping) else frames.run_in(value)
        if found is None and isinstance(value, list) and value and all(map(_is_run, value)):
            return Run.of_trials([self.results(each, qids) for each in value])
        return Run.of(value if found is None else found)

    def _in_files(self, value: Any, columns: Declared, qids: list[str] | None) -> Run:
        from groupgt.formats import detect
        from groupgt.formats.parts import refuse_many, refuse_one

        named, engine = self.options["run_format"], self.engine
        (refuse_one if self.options["parts"] else refuse_many)(value)
        if engine.name == "spark":
            from groupgt.engines.remote import run_of_files, session_of

            if trial_column(detect.column_names(value) or (), str(value)):
                raise ConfigError(f"{value}: the spark engine does not read trials; use another engine")
            return run_of_files(session_of(engine.options.master, engine.options.config), value, named)
        return detect.unread_run(
            value,
            named,
            qids=qids,
            columns=columns,
            tool_spans=self.options["tool_spans"],
            streamed=engine.name == "streaming",
            ceiling=engine.ceiling,
        )

    def run(self, value: Any, truth: GroundTruth, name: str = "") -> Run:
        """Read a run, match it to the ground truth and sort it.

        AutoRAG's node results have no query ids, but follow the order of the queries in the ground truth file.
        """
        if isinstance(value, Trials):
            return Run.of_trials([self.run(each, truth, name) for each in value])
        if are_several(value, truth):
            what = f"expected one run, {{query id: ranking}}, found several by name ({', '.join(map(str, value))})"
            way = "pass one run, or pass all runs to groupgt.evaluate_runs(truth, runs, metrics) or groupgt.compare"
            raise ConfigError(f"{what}; {way}")
        run = self.results(value, truth.file_order)
        name = name or self.options["name"] or run.name
        if run.trials:
            return Run.of_trials([self.run(each, truth, name) for each in run.trials])
        run = replace(matched(run, truth), name=name)
        ascending = self.is_ascending(name)
        if run.is_remote:
            from groupgt.engines.cluster import on_cluster

            return on_cluster(truth, run, ascending=ascending)
        return in_order(truth, run, ascending=ascending)

    def is_ascending(self, name: str) -> bool:
        """Return whether the scores of the run with this name are distances."""
        scores = self.options["scores"]
        return (scores if isinstance(scores, str) else scores.get(name)) == "ascending"


@takes_options(QueryOptions)
def read_ground_truth(
    path: Annotated[Any, Doc("A path, a URL or a frame; files may be compressed with gzip or zstd.")],
    format: Annotated[
        str | None,
        Doc(
            "autorag (parquet), jsonl, json (as written by ranx), trec (qrels), trec-subtopics, trec-no-iter, beir, "
            "csv, or a benchmark format such as freshstack (default: detected)."
        ),
    ] = None,
    policy: Policy | str | Sequence[str] | dict[str, Any] | None = None,
    *,
    columns: Annotated[
        Declared,
        Doc('Column name for each role, such as `{"qid": "id"}` (default: the usual names).'),
    ] = NO_COLUMNS,
    ceiling: Annotated[int, Doc("Memory limit in bytes; 0 for none.")] = 0,
    **options: Unpack[QueryOptions],
) -> GroundTruth:
    """Read ground truth from a file, a BEIR folder or a frame.

    Raises `DataError` with the file, the line, and the expected and actual content.
    """
    engine = Engine(options=Streaming(ceiling or ""))
    reading = Reading.of(truth_format=format, policy=policy, truth_columns=columns, engine=engine, **options)
    return reading.truth(path)


def read_run(
    path: Any,
    format: str | None = None,
    *,
    parts: bool = False,
    qids: list[str] | None = None,
    columns: Declared = NO_COLUMNS,
    tool_spans: Mapping[str, str] = NO_COLUMNS,
    streamed: bool = False,
    ceiling: int = 0,
) -> Run:
    """Read the results of one system. Large files are not loaded; the evaluation streams them.

    Args:
        path: A path, a URL (`s3://`, `gs://`, `hf://`, …) or a frame; with `parts`, a folder, glob or list of files.
        format: trec, jsonl, json (as written by ranx), csv, parquet (long or nested) or autorag (node output)
            (default: detected).
        parts: Whether several files form one run, whose queries may span files.
        qids: The query order for results without query ids, such as AutoRAG node output.
        columns: Column name for each role, such as `{"doc_id": "chunk"}` (default: the usual names).
        tool_spans: For traces, the tools that search, each with the path to the ids in its result.
        streamed: Whether to stream even small files.
        ceiling: Memory limit in bytes; 0 for none.
    """
    reading = Reading.of(
        run_format=format,
        run_columns=columns,
        parts=parts,
        tool_spans=tool_spans,
        engine=Engine("streaming" if streamed else "auto", Streaming(ceiling or "")),
    )
    reading.require_columns(path if isinstance(path, (list, tuple)) else [path])
    run = reading.results(path, qids)
    return run.loaded if run.in_memory else run


def _require(columns: Declared, values: Sequence[Any], kind: Kind) -> None:
    if columns:
        from groupgt.formats.detect import require_columns

        require_columns(columns, values, kind)


def _there(columns: Declared, value: Any) -> Declared:
    """Return the declared columns that exist in a file or frame."""
    if not columns:
        return columns
    from groupgt.formats.detect import declared_in

    return declared_in(columns, [value])


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
        what = "the ground truth contains rankings, and the results contain groups"
        raise DataError(f"{what}; swap the two, as in evaluate(truth, run, metrics)")


def _is_result(cell: Any) -> bool:
    """Return whether a cell is one result: an id, or a pair of an id and a score."""
    is_pair = isinstance(cell, (list, tuple)) and len(cell) == 2 and isinstance(cell[1], (int, float))
    return is_pair or isinstance(cell, (str, int)) or (isinstance(cell, dict) and "id" in cell)


def is_in_files(run: Any) -> bool:
    """Return whether a run is a path, or a list of paths that together form one run."""
    parts = (run if isinstance(run, (list, tuple)) else [run]) or [None]
    return all(isinstance(part, (str, os.PathLike)) for part in parts)


def _is_run(value: Any) -> bool:
    """Return whether an item in a list can be one trial's run: rankings by query, not a record."""
    if isinstance(value, Mapping):
        return not any(isinstance(ranking, str) for ranking in value.values())
    return isinstance(value, Run) or frames.is_frame(value)


def are_several(value: Any, truth: GroundTruth) -> bool:
    """Return whether a value is `{name: run}`, which would otherwise be read as rankings for unjudged queries."""
    if not isinstance(value, Mapping) or not value:
        return False
    first = next((run for run in value.values() if not isinstance(run, Mapping) or run), None)
    if isinstance(first, Mapping):  # a run, or a ranking {id: score}
        may_be = isinstance(next(iter(first.values())), (list, tuple, Mapping, np.ndarray))
    else:
        # Rankings may be series, which have no columns.
        has_columns = hasattr(type(first), "columns") or hasattr(type(first), "column_names")
        may_be = (has_columns and frames.is_frame(first)) or isinstance(first, (str, os.PathLike, Run))
    return may_be and str(next(iter(value))) not in truth.index
