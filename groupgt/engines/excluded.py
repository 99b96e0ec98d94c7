"""Removes results that the ground truth excludes for their query, before a run is used for anything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

from groupgt.engines.shapes import ids_and_scores
from groupgt.errors import ConfigError, Faults
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.run import Columns, Lines, Lists, Run
from groupgt.model.validity import plain
from groupgt.runtime import pl


def without_excluded(truth: GroundTruth, run: Run) -> Run:
    """Remove the excluded results of each query by original id; `Run.excluded` counts them.

    Raises `ConfigError` for results that stay on a cluster.
    """
    if truth.excluded is None:
        return run
    if run.is_remote:
        raise ConfigError(
            f"{run.title}: the ground truth has excluded_ids, which cannot be removed from results on a cluster; "
            "remove them there, or write the results to parquet and name the files"
        )
    left_out = {qid: ids for qid, ids in zip(truth.qids, truth.excluded) if ids}
    contents = run.contents.columns.contents if isinstance(run.contents, Lines) else run.contents
    if isinstance(contents, Lists):
        kept, count = _of_lists(contents, left_out)
        return replace(run, contents=kept, excluded=run.excluded + count)
    assert isinstance(contents, Columns)  # noqa: S101  # what is left
    is_kept = _is_kept(left_out)
    removed = contents.frame.filter(~is_kept).select(pl.len())
    count = int(contents.guard(lambda: removed.collect(engine="streaming")).item())
    columns = replace(
        contents,
        frame=contents.frame.filter(is_kept),
        recheck=lambda: without_excluded(truth, contents.recheck()),
    )
    return replace(run, contents=columns, excluded=run.excluded + count)


def _is_kept(left_out: Mapping[str, frozenset[str]]) -> pl.Expr:
    """Return an expression that keeps rows without exclusion; rows without an id are kept and reported later."""
    pairs = [f"{qid}\0{name}" for qid, ids in left_out.items() for name in ids]
    is_out = pl.col("qid").is_in(list(left_out)) & pl.concat_str("qid", "doc", separator="\0").is_in(pairs)
    return ~is_out.fill_null(value=False)


def _of_lists(lists: Lists, left_out: Mapping[str, frozenset[str]]) -> tuple[Lists, int]:
    """Remove excluded results and their fields from lists; anything that is not a ranking stays unchanged."""
    rankings: dict[Any, Any] = dict(lists.rankings)
    kept_of: dict[str, list[bool]] = {}
    count = 0
    for key, ranking in lists.rankings.items():
        out = left_out.get(str(key))
        if not out:
            continue
        faults = Faults()
        ids, _ = ids_and_scores(ranking, faults, "")
        kept = [name not in out for name in ids]
        if faults or all(kept):
            continue
        count += len(kept) - sum(kept)
        kept_of[str(key)] = kept
        cells = plain(ranking)
        if isinstance(cells, Mapping):
            rankings[key] = dict(compress(cells.items(), kept))
        else:
            rankings[key] = list(compress(cells, kept))

    def shortened(columns: Mapping[Any, Sequence[Any]]) -> dict[Any, Sequence[Any]]:
        """Return columns without the cells of removed results; columns with a different length stay unchanged."""
        return {
            key: list(compress(cells, kept_of[str(key)]))
            if len(kept_of.get(str(key), ())) == len(cells) and str(key) in kept_of
            else cells
            for key, cells in columns.items()
        }

    if not count:
        return lists, 0
    return (
        Lists(
            rankings,
            None if lists.scores is None else shortened(lists.scores),
            {unit: shortened(columns) for unit, columns in lists.lengths.items()},
            {name: lambda read=read: shortened(read()) for name, read in lists.fields.items()},  # type: ignore[misc]  # bound now
        ),
        count,
    )
