"""Finds, before a run, the smallest drop or gain that a gate can detect, using an earlier run's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from groupgt.comparison.draws import SLACK
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import p_values
from groupgt.experiment.config import Gate
from groupgt.experiment.gates import decided
from groupgt.metrics.language import Metric
from groupgt.model.hits import Bools, Floats

# Simulated runs, and resamples of the test in each.
COPIES, RESAMPLES = 1000, 999
# Fewer copies are simulated of more values than this.
MOST_VALUES = 4_000_000
# The probability with which a gate must react.
CHANCE = 0.8
# Share of queries that change both ways between two runs, if it was not measured.
BOTH_WAYS = 0.1
# Halvings of the interval in which the smallest change lies.
STEPS = 10


@dataclass(frozen=True)
class Detectable:
    """The smallest changes in a `mean` that a gate detects with probability `CHANCE`, or None if there are none.

    `one_way` applies if queries only drop (or only gain), `both_ways` if a `share` of them also changes in both
    directions without net effect.
    """

    queries: int
    mean: float
    one_way: float | None
    both_ways: float | None
    share: float


def has_limits(metric: Metric, *, is_gain: bool) -> bool:
    """Return True if a query's value can only change so far: down to 0 or, with a bounded metric, up to 1."""
    return metric.definition.bounded or metric.higher_is_better != is_gain


def share_of_changes(runs: Sequence[Floats]) -> float:
    """Return the share of queries that differ between two runs, or `BOTH_WAYS` if no two runs differ."""
    if len(runs) < 2:
        return BOTH_WAYS
    differences = runs[0] - runs[1]
    differences = differences[~np.isnan(differences)]
    return float((np.abs(differences) > SLACK).mean()) or BOTH_WAYS if len(differences) else BOTH_WAYS


def detectable(
    gate: Gate, values: Floats, metric: Metric, settings: Settings, comparisons: int = 1, share: float = BOTH_WAYS
) -> Detectable:
    """Simulate a gate on a drop or gain with values from an earlier run, shape (n,), without NaN.

    In each simulated run, n queries are drawn with replacement. For a drop of X, a query loses its entire value with
    probability X ÷ mean (a gain raises it to the best value). A `share` of the other queries doubles or loses its
    value. The gate itself decides, with a corrected p-value multiplied by the number of `comparisons`.
    """
    values = np.sort(values)  # draws do not depend on the order of queries
    count, is_gain = len(values), gate.min_gain is not None
    copies = max(min(COPIES, MOST_VALUES // max(count, 1)), 100)
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([settings.seed, 4, count])))
    uniform = random.random((4, count, copies))
    drawn = values[(uniform[0] * count).astype(np.int64)]
    # What each query can lose, or gain; and by how much it changes without net effect, at 0 like the others.
    to_zero = metric.higher_is_better != is_gain
    rooms = drawn if to_zero else 1 - drawn
    room = float((values if to_zero else 1 - values).mean())
    others = values[np.abs(values) > SLACK]
    sizes = np.where(np.abs(drawn) > SLACK, np.abs(drawn), np.abs(others).mean() if len(others) else 0.0)
    settings = replace(settings, resamples=RESAMPLES)
    factor = comparisons if is_gain and settings.corrects != "none" else 1

    def is_detected(change: float, both_ways: float) -> bool:
        hit = uniform[1] < change / room
        noise = np.where(uniform[3] < 0.5, sizes, -sizes) * (~hit & (uniform[2] < both_ways))
        passed = _passed(gate, np.where(hit, -rooms if is_gain else rooms, noise), settings, factor)
        return float((passed if is_gain else ~passed).mean()) >= CHANCE

    def least(both_ways: float) -> float | None:
        low, high = 0.0, room
        if high <= SLACK or not is_detected(high, both_ways):
            return None
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if is_detected(middle, both_ways) else (middle, high)
        return high

    return Detectable(count, float(values.mean()), least(0.0), least(share), share)


def _passed(gate: Gate, lost: Floats, settings: Settings, factor: int) -> Bools:
    """Decide a gate for each column of losses, shape (n, C). The test runs only where it affects the decision."""
    means = lost.mean(axis=0)
    is_beyond, passed = decided(gate, means, np.zeros(len(means), dtype=np.bool_))
    tested = np.flatnonzero([gate.reads_test(is_beyond=each) for each in is_beyond.tolist()])
    if len(tested):
        # Equal columns have equal p-values: sorted, those of a metric with few values are often equal.
        columns = np.sort(lost[:, tested].T, axis=1)
        places: dict[bytes, int] = {}
        place = [places.setdefault(column.tobytes(), len(places)) for column in columns]
        distinct = columns[np.unique(place, return_index=True)[1]].T
        p = p_values(settings.test, distinct, settings.resamples, settings.seed)[place] * factor
        direction = means[tested] < 0 if gate.min_gain is not None else means[tested] > 0
        passed[tested] = decided(gate, means[tested], (p <= settings.alpha) & direction)[1]
    return passed
