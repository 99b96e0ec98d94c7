"""Counts the groups that each search of a run covers, the searches that cover no new group, and repeated queries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from groupgt.engines.budgets import cumulative_lengths
from groupgt.engines.carriers import local_carrier_of
from groupgt.evaluation.misses import whole
from groupgt.evaluation.result import Evaluated, Evaluation
from groupgt.model.values import CALLS, Lengths, normal_text

# Numbers of calls may be anything that increases, such as times.
MOST_CALLS = 100


@dataclass(frozen=True)
class Call:
    """Searches with the same call number: how many queries reach this call, and how many groups are covered after it.

    `nothing_new` counts the searches that covered no further group. `repeated` counts the searches with a query text
    that was searched for before, or is None if no query texts are known. With several trials, all numbers are means
    over trials.
    """

    call: int
    queries: float
    covered: float
    groups: float
    nothing_new: float
    repeated: float | None


def calls_of_run(evaluation: Evaluated) -> list[Call]:
    """Return a run's calls in order, over the queries that count, or an empty list if its results have no calls."""
    of_trials = [calls for each in evaluation.each if (calls := _of_run(each))]
    longest = max(map(len, of_trials), default=0)
    return [_mean_call([_at(calls, call) for calls in of_trials]) for call in range(1, longest + 1)]


def _at(calls: Sequence[Call], call: int) -> Call:
    """Return the numbers for a call, even if it is beyond the last call."""
    if call <= len(calls):
        return calls[call - 1]
    last = calls[-1]
    return replace(last, call=call, queries=0, nothing_new=0, repeated=None if last.repeated is None else 0)


def _mean_call(calls: Sequence[Call]) -> Call:
    def mean(name: str) -> float | None:
        values = [value for each in calls if (value := getattr(each, name)) is not None]
        return whole(math.fsum(values) / len(values)) if values else None

    means: dict[str, Any] = {each.name: mean(each.name) for each in fields(Call)[1:]}
    return replace(calls[0], **means)


def _of_run(evaluation: Evaluation) -> list[Call]:
    truth, run, policy, hits = evaluation.truth, evaluation.run, evaluation.policy, evaluation.labelled.hits
    if run.is_remote or (run.original is not None and policy.duplicates == "drop"):
        return []
    if not local_carrier_of(run.by_original_ids, "reading calls").carries(CALLS):
        return []
    cumulative = cumulative_lengths(truth, run, policy, Lengths(), CALLS)
    texts = [[] if run.traces is None else run.traces.searches.get(qid, []) for qid in truth.qids]
    last = np.maximum(cumulative.spent(hits.length), list(map(len, texts)))
    query, counts = hits.judgments.group_query, evaluation.populations.counting
    begin = cumulative.start[query]
    first = (cumulative.total[begin + hits.first_ranks] - cumulative.total[begin])[counts[query]]
    query = query[counts[query]]
    repeated = [call for position in np.flatnonzero(counts).tolist() for call in _repeated(texts[position])]
    calls = []
    for call in range(1, min(int(last[counts].max(initial=0)), MOST_CALLS) + 1):
        made = int((last[counts] >= call).sum())
        new = len(np.unique(query[first == call]))
        covered = int(((first > 0) & (first <= call)).sum())
        again = repeated.count(call) if any(texts) else None
        calls.append(Call(call, made, covered, len(first), made - new, again))
    return calls


def _repeated(texts: Sequence[str | None]) -> Iterator[int]:
    """Yield the number of each search that repeats an earlier text, ignoring case and white space."""
    seen = set()
    for call, text in enumerate(texts, 1):
        plain = normal_text(text or "").lower()
        if plain and plain in seen:
            yield call
        seen.add(plain)
