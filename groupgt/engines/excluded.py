"""Removes results that the ground truth excludes and, with the unjudged=drop policy, unjudged results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from groupgt.engines.base import Flat, Labelled
from groupgt.engines.shapes import ids_and_scores
from groupgt.errors import ConfigError, Faults
from groupgt.labellers.base import Labeller
from groupgt.metrics.views import changes
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools
from groupgt.model.policy import Policy
from groupgt.model.ranking import Ranking
from groupgt.model.run import Columns, Lists, Run
from groupgt.model.validity import plain
from groupgt.runtime import pl


def without_excluded(truth: GroundTruth, run: Run) -> Run:
    """Remove the excluded results of each query by original id. `Run.excluded` counts such results."""
    if truth.excluded is None:
        return run
    left_out = {qid: ids for qid, ids in zip(truth.qids, truth.excluded) if ids}
    run = run.loaded
    contents = run.contents
    if isinstance(contents, Lists):
        kept, count = _of_lists(contents, left_out)
        return replace(run, contents=kept, excluded=run.excluded + count)
    assert isinstance(contents, Columns)  # noqa: S101  # what is left
    pairs = [f"{qid}\0{name}" for qid, ids in left_out.items() for name in ids]
    is_out = pl.col("qid").is_in(list(left_out)) & pl.concat_str("qid", "doc", separator="\0").is_in(pairs)
    # Rows without an id are kept, and reported later.
    is_kept = ~is_out.fill_null(value=False)
    removed = contents.frame.filter(~is_kept).select(pl.len())
    count = int(contents.guard(lambda: removed.collect(engine="streaming")).item())
    frame, recheck = contents.frame.filter(is_kept), lambda: without_excluded(truth, contents.recheck())
    return replace(run, contents=replace(contents, frame=frame, recheck=recheck), excluded=run.excluded + count)


def _of_lists(lists: Lists, left_out: Mapping[str, frozenset[str]]) -> tuple[Lists, int]:
    """Remove excluded results and their fields from lists. Anything that is not a ranking stays unchanged."""
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
        is_mapping = isinstance(cells, Mapping)
        rankings[key] = dict(compress(cells.items(), kept)) if is_mapping else list(compress(cells, kept))

    def shortened(columns: Mapping[Any, Sequence[Any]]) -> dict[Any, Sequence[Any]]:
        """Return columns without the cells of removed results. Columns with a different length stay unchanged."""
        kept = {key: kept_of.get(str(key), ()) for key in columns}
        return {
            key: list(compress(cells, kept[key])) if len(kept[key]) == len(cells) else cells
            for key, cells in columns.items()
        }

    if not count:
        return lists, 0
    scores = None if lists.scores is None else shortened(lists.scores)
    lengths = {unit: shortened(columns) for unit, columns in lists.lengths.items()}
    fields = {name: lambda read=read: shortened(read()) for name, read in lists.fields.items()}
    return Lists(rankings, scores, lengths, fields), count


def check_condensed(labeller: Labeller) -> None:
    """Raise `ConfigError` if unjudged results cannot be dropped, because ids do not identify them."""
    if labeller.name != "id":
        raise ConfigError(
            f"unjudged=drop compares ids, but with the {labeller.name} labeller a result with any id may be relevant; "
            "choose unjudged=nonrelevant, or the id labeller"
        )


def condensed(labelled: Labelled, truth: GroundTruth) -> Labelled:
    """Remove unjudged results, but keep the original hits. Raise `ConfigError` if removal would be misleading."""
    if not (truth.has_rejected or truth.judgments.rejected.any()):
        raise ConfigError(
            "unjudged=drop would keep only relevant results, because no document in the ground truth is judged "
            "non-relevant; choose unjudged=nonrelevant"
        )
    hits = labelled.hits
    judged = np.flatnonzero(truth.judgments.is_judged[hits.alternative])
    query, rank = hits.query[judged], hits.rank[judged]
    starts = changes(query, rank)
    length = np.bincount(query[starts], minlength=hits.size)
    before = np.cumsum(length) - length
    width = int(hits.length.max(initial=0)) + 1
    places = (query * width + rank)[starts]
    tied = labelled.tie_query
    first = np.searchsorted(places, tied * width + labelled.tie_first)
    last = np.searchsorted(places, tied * width + labelled.tie_last, side="right")
    # A single result that is left of equal scores ties with none.
    still = last > first + 1
    tied, first, last = tied[still], first[still], last[still]
    return replace(
        labelled,
        hits=replace(
            hits,
            query=query,
            rank=np.cumsum(starts) - before[query],
            alternative=hits.alternative[judged],
            repeat=hits.repeat[judged],
            length=length,
        ),
        tie_query=tied,
        tie_first=first - before[tied] + 1,
        tie_last=last - before[tied],
        # Budgets and contents are measured without unjudged results.
        uncondensed=replace(hits, prefixes={}, contents=None),
    )


def condensed_flat(flat: Flat, truth: GroundTruth, policy: Policy) -> Flat:
    """Return only the rows of judged results if the policy drops unjudged results, otherwise all rows."""
    if policy.unjudged != "drop":
        return flat
    judged = np.array([name in truth.judged_ids[at] for at, name in zip(flat.query.tolist(), flat.ids)], dtype=np.bool_)
    fields = {name: _chosen(column, judged) for name, column in flat.fields.items()}
    return Flat(flat.query[judged], _chosen(flat.ids, judged), fields)


def condensed_ranking(ranking: Ranking, truth: GroundTruth, qid: str, policy: Policy) -> Ranking:
    """Return only the judged results of a query if the policy drops unjudged results, otherwise all results."""
    if policy.unjudged != "drop":
        return ranking
    ids, scores = ranking
    judged = [name in truth.judged_ids[truth.index[qid]] for name in ids]
    return list(compress(ids, judged)), None if scores is None else list(compress(scores, judged))


def _chosen(column: Any, mask: Bools) -> Any:
    return column[mask] if isinstance(column, np.ndarray) else list(compress(column, mask.tolist()))
