"""Applies cutoffs by length, search call or score. Computes how many results fit, and the cost of the first k."""

from __future__ import annotations

from collections.abc import Collection, Hashable

import numpy as np

from groupgt.engines.base import Flat, LocalCarrier
from groupgt.engines.calls import calls_between
from groupgt.engines.carriers import local_carrier_of
from groupgt.engines.excluded import condensed_flat
from groupgt.engines.order import WAY_OUT, rises
from groupgt.errors import ConfigError, DataError, Faults
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Floats, Ints
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.values import CALLS, SCORE, Budget, Lengths, is_order_only
from groupgt.records import record

ONLY_ORDER = "a score threshold needs a score for every result, but these results are only ranked"


@record
class CumulativeLengths:
    """Cumulative lengths of all results in rank order, with the `start` of each query, shape (Q + 1,).

    The length of the first r results of query q is total[start[q] + r] − total[start[q]].
    """

    start: Ints
    total: Ints

    def depth(self, amount: int) -> Ints:
        """Return how many results of each query fit within the budget, shape (Q,)."""
        first, last = self.start[:-1], self.start[1:]
        return np.minimum(np.searchsorted(self.total, self.total[first] + amount, side="right") - 1, last) - first

    def spent(self, rank: Ints) -> Ints:
        """Return the total length of the first `rank` results of each query, shape (Q,)."""
        first = self.start[:-1]
        spent: Ints = self.total[first + rank] - self.total[first]
        return spent


def depths(
    truth: GroundTruth,
    run: Run,
    policy: Policy,
    lengths: Lengths,
    budgets: Collection[Budget],
    *,
    in_part: bool = False,
) -> dict[Hashable, Ints]:
    """Return how many results per query fit each budget. With `in_part`, scores may look like ranks (by chance)."""
    units = {budget.unit for budget in budgets} - {SCORE}
    cumulative = {unit: cumulative_lengths(truth, run, policy, lengths, unit) for unit in units}
    fitting: dict[Hashable, Ints] = {}
    for budget in budgets:
        if budget.unit == SCORE:
            query, scores = scores_of(truth, run, policy, in_part=in_part)
            fitting[budget] = np.bincount(query[scores >= run.sign * budget.amount], minlength=len(truth))
        else:
            fitting[budget] = cumulative[budget.unit].depth(int(budget.amount))
    return fitting


def scores_of(truth: GroundTruth, run: Run, policy: Policy, *, in_part: bool = False) -> tuple[Ints, Floats]:
    """Return each result's query and score, sorted by query and rank, with distances negated, or raise `DataError`."""
    _refuse_renamed_drop(run, policy, "scores")
    carrier = local_carrier_of(run.by_original_ids, "a score threshold")
    flat = condensed_flat(carrier.flat(truth, policy, carrier.score_field), truth, policy)
    scores, rank = flat.fields[carrier.score_field], flat.rank
    if None in scores or (not in_part and is_order_only(scores, rank)):
        raise DataError(f"{run.title}: {ONLY_ORDER}")
    column = np.array(scores, dtype=np.float64)
    rising = rises(flat.query, column)
    if len(rising):
        where = f"{run.title}: query {truth.qids[flat.query[rising[0]]]!r}"
        before, after = run.sign * column[rising[0]], run.sign * column[rising[0] + 1]
        order, way = ("rising", "") if run.ascending else ("falling", f"; {WAY_OUT}")
        what = f"a score threshold needs results in order of {order} score, found {before:g} before {after:g}"
        raise DataError(f"{where}: {what}{way}")
    return flat.query, column


def cumulative_lengths(truth: GroundTruth, run: Run, policy: Policy, lengths: Lengths, unit: str) -> CumulativeLengths:
    """Return the cumulative lengths of the results in rank order."""
    _refuse_renamed_drop(run, policy, "lengths")
    carrier = local_carrier_of(run.by_original_ids, f"a budget in {unit}")
    if unit == CALLS:
        flat = condensed_flat(_flat_with_calls(truth, run, carrier, policy), truth, policy)
        calls = calls_between(flat.fields[CALLS], flat.rank)
    elif lengths.has(unit):
        flat = condensed_flat(carrier.flat(truth, policy), truth, policy)
        calls = flat.measured(lambda ids: lengths.of(unit, ids))
    else:
        field = _field_of(carrier, run, lengths, unit)
        flat = condensed_flat(carrier.flat(truth, policy, field), truth, policy)
        calls = flat.fields[field] if field == unit else _counted(truth, run, flat, lengths, unit)
    return CumulativeLengths(*(np.append(0, np.cumsum(column)) for column in (flat.sizes(len(truth)), calls)))


def _refuse_renamed_drop(run: Run, policy: Policy, values: str) -> None:
    """Raise `ConfigError` if `values` belong to original ids but repeats are dropped by the labeller's ids."""
    if run.original is not None and policy.duplicates == "drop":
        what = f"{values} belong to original ids, but duplicates=drop removes results by the labeller's ids"
        raise ConfigError(f"{run.title}: {what}; choose duplicates=penalize, or the id labeller")


def _flat_with_calls(truth: GroundTruth, run: Run, carrier: LocalCarrier, policy: Policy) -> Flat:
    """Return the results with the calls that returned them. A run without results needs no calls."""
    if carrier.carries(CALLS):
        return carrier.flat(truth, policy, CALLS)
    flat = carrier.flat(truth, policy)
    if len(flat.query):
        what = "a cutoff in calls needs the call number of every result, but these results have no call numbers"
        way = 'add a call column to rows, retrieved_calls to lists of ids, or {"id": …, "call": 1} in Python'
        raise DataError(f"{run.title}: {what}; {way}")
    return Flat(flat.query, flat.docs, {CALLS: np.zeros(0, dtype=np.int64)})


def _field_of(carrier: LocalCarrier, run: Run, lengths: Lengths, unit: str) -> str:
    """Return the field that determines lengths: the unit itself or, if a tokenizer is set, the text."""
    if unit == "chars" and carrier.carries(unit):
        return unit
    if (unit == "chars" or lengths.count is not None) and carrier.carries("text"):
        return "text"
    if carrier.carries(unit):
        return unit
    way = "a corpus" if unit == "chars" else f"a corpus with a {unit} column, or a corpus and a tokenizer"
    what = f"a budget in {unit} needs the length of every result, but these results have no lengths"
    raise DataError(f"{run.title}: {what}; specify {way} (--corpus, --tokenizer; lengths= in Python)")


def _counted(truth: GroundTruth, run: Run, flat: Flat, lengths: Lengths, unit: str) -> Ints:
    """Compute the lengths of results from their text, or raise a `DataError` that lists queries with missing text."""
    texts = flat.fields["text"]
    if None in texts:
        faults = Faults()
        without = np.array([text is None for text in texts], dtype=np.bool_)
        sizes, lacking = flat.sizes(len(truth)), np.bincount(flat.query[without], minlength=len(truth))
        for query in np.flatnonzero(lacking).tolist():
            what = f"expected a length in {unit} (a whole number from 0) for each of {sizes[query]:,} results"
            faults.add(f"{run.title}: query {truth.qids[query]!r}", f"{what}, found {sizes[query] - lacking[query]:,}")
        faults.fail(DataError)
    return np.array(lengths.measure(unit, texts), dtype=np.int64)
