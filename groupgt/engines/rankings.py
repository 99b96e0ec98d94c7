"""Rankings read back from a run, whatever carries it: for explaining one query, and for writing all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groupgt.engines.base import not_remote
from groupgt.engines.lists import in_order, places_in_order, ranking_of, ties_of
from groupgt.errors import Faults
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Remote, Run
from groupgt.runtime import pl

Ranking = tuple[list[str], Sequence[float] | None]


def ranking_for(run: Run, qid: str, policy: Policy) -> Ranking:
    """The ids of one query, best first, and the scores that ordered them, read again from where the run came from."""
    run = run.resolved
    if isinstance(run.contents, Remote):
        from groupgt.engines.spark.plan import fetch

        found = _ordered(fetch(run.contents, qid, None), run.contents.tie, policy)
    elif isinstance(run.contents, Columns):
        columns = run.contents
        rows = columns.guard(lambda: columns.frame.filter(pl.col("qid") == qid).collect(engine="streaming"))
        found = _ordered(rows, columns.tie, policy)
    else:
        key = next((key for key in run.rankings if str(key) == qid), qid)
        found = _in_memory(run, key, policy)
    if policy.duplicates == "drop":
        return list(dict.fromkeys(found[0])), None
    return found


def all_rankings(run: Run, policy: Policy) -> Iterator[tuple[str, Ranking]]:
    """Every query of a run with its ranking, in the order of the run."""
    run = run.resolved
    not_remote(run, "all rankings")
    if not isinstance(run.contents, Columns):
        for key in run.rankings:
            yield str(key), _in_memory(run, key, policy)
        return
    columns = run.contents
    try:
        wanted = list(dict.fromkeys(("qid", "doc", "score", columns.tie)))
        frame = columns.guard(lambda: columns.frame.select(wanted).collect(engine="streaming"))
        doubtful = bool(frame.null_count().sum_horizontal().item()) or not frame["score"].is_finite().all()
    except (pl.exceptions.PolarsError, OSError):
        doubtful = True
    if doubtful:
        yield from all_rankings(columns.checked, policy)
        return
    for (qid,), rows in frame.group_by("qid", maintain_order=True):
        yield str(qid), _ordered(rows, columns.tie, policy)


def _ordered(rows: pl.DataFrame, tie: str, policy: Policy) -> Ranking:
    ids, scores = rows["doc"].to_list(), rows["score"].to_list()
    places = places_in_order(rows[tie].to_list(), scores, policy)
    return [ids[place] for place in places], [scores[place] for place in places]


def _in_memory(run: Run, key: str, policy: Policy) -> Ranking:
    faults = Faults()
    ids, scores = ranking_of(run.rankings.get(key), policy, faults, f"results of query {str(key)!r}")
    faults.stop()
    if run.lists.scores is not None and key in run.lists.scores:
        return in_order(ids, run.lists.scores[key], ties_of(run, policy))
    return ids, scores
