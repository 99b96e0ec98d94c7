"""Compute the gap between wins and losses that a test detects if all differences have the same size."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from groupgt.comparison.draws import in_errors
from groupgt.evaluation.estimates import normal_quantile, student_quantile
from groupgt.model.hits import Floats, Ints

# Up to this many differences, the bootstrap test is computed; with more, it is close enough to the t test.
FEW_DIFFERENCES = 50
# Up to this many differences, some of which are tied, SciPy's Wilcoxon test tries every sign.
ALL_SIGNS = 13
# Numbers this many standard deviations from the expected number are omitted from sums.
FAR = 8
# Replaces the logarithm of 0, so that its product with 0 is 0.
NEVER = -1e9
# Numbers of trials with a table of factorials.
IN_TABLE = 1 << 14
# p-values that equal alpha in exact arithmetic are significant.
TIE = 1e-9


def least_by_signs(queries: int, differing: Ints, alpha: float) -> Ints:
    """Return the least gap at which p = 2 P(losses or fewer), binomial with 1/2, is at most alpha.

    If all sizes are equal, this is the randomization test's p. The gap exceeds `differing` if no gap is large enough.
    """
    return np.array([_least_by_signs(m, alpha) for m in differing.tolist()], dtype=np.int64)


@lru_cache(maxsize=1 << 14)
def _least_by_signs(differing: int, alpha: float) -> int:
    losses = int((chances(np.arange(differing // 2 + 1), differing, 0.5).cumsum() <= alpha / 2 * (1 + TIE)).sum()) - 1
    return differing + 2 if losses < 0 else differing - 2 * losses


@lru_cache(maxsize=1)
def _log_factorials() -> Floats:
    return np.array([math.lgamma(number + 1) for number in range(IN_TABLE)])


def chances(numbers: Ints, trials: Ints | int, share: float) -> Floats:
    """Return the binomial probabilities of numbers of successes. From `IN_TABLE` on, `trials` must be one number."""
    inside = (numbers >= 0) & (numbers <= trials)
    numbers = np.where(inside, numbers, 0)
    if np.max(trials) < IN_TABLE:
        logs = _log_factorials()
        ways = logs[trials] - logs[numbers] - logs[trials - numbers]
    else:
        last = np.arange(1, numbers.max() + 1)
        ways = np.concatenate([[0.0], np.cumsum(np.log((trials - last + 1) / last))])[numbers]
    won, lost = (math.log(chance) if chance > 0 else NEVER for chance in (share, 1 - share))
    return np.where(inside, np.exp(ways + numbers * won + (trials - numbers) * lost), 0.0)


def likely(trials: int, share: float) -> Ints:
    """Return the numbers of successes whose probability is not negligible."""
    middle, reach = trials * share, FAR * math.sqrt(trials * share * (1 - share)) + FAR
    return np.arange(max(math.floor(middle - reach), 0), min(math.ceil(middle + reach), trials) + 1)


def least_by_ranks(queries: int, differing: Ints, alpha: float) -> Ints:
    """Return Wilcoxon's least detectable gap if all ranks are tied, from signs or, for large m, from z = gap ÷ √m."""
    by_z = _even_with(normal_quantile(1 - alpha) * np.sqrt(differing), differing)
    return np.where(differing <= ALL_SIGNS, least_by_signs(queries, differing, alpha), by_z)


def least_by_t(queries: int, differing: Ints, alpha: float) -> Ints:
    """Return the least gap for which t² = gap² (n − 1) ÷ (n m − gap²) exceeds the squared quantile of Student's t."""
    if queries < 2:
        return differing + 2
    bound = student_quantile(1 - alpha, queries - 1) ** 2
    return _even_with(np.sqrt(bound * queries * differing / (queries - 1 + bound)), differing)


def _even_with(gaps: Floats, differing: Ints) -> Ints:
    """Round gaps up to positive integers with the same parity as the number of differing queries."""
    integers = np.maximum(np.ceil(gaps * (1 - TIE)).astype(np.int64), 1)
    return integers + (integers - differing) % 2


@lru_cache(maxsize=4096)
def gaps_by_resamples(queries: int, differing: int, alpha: float) -> tuple[int, ...]:
    """Return all gaps that the bootstrap test detects for one number of differing queries.

    Even the widest gap may be undetectable. With 11 wins and one tie, a third of all resamples have no variance, so
    their t is infinite.
    """
    gaps = range(differing, 0, -2)
    return tuple(gap for gap in gaps if _p_by_resamples(queries, differing, gap) <= alpha * (1 + TIE))


def _p_by_resamples(queries: int, differing: int, gap: int) -> float:
    """Return the share of resamples (of the centred differences) whose t is at least as extreme as the observed t."""
    # The number of differing queries drawn, and the wins among them.
    counts = likely(queries, differing / queries)[:, None]
    wins = np.arange(counts[-1, 0] + 1)[None, :]
    chance = chances(counts, queries, differing / queries) * chances(wins, counts, (differing + gap) / 2 / differing)
    lead = 2 * wins - counts
    centred, gaps = counts * queries - lead**2, np.array([gap])
    t = in_errors(lead - gap, np.sqrt(np.maximum(centred, 0)), 0.0)
    observed = in_errors(gaps, np.sqrt(np.maximum(differing * queries - gaps**2, 0)), 0.0)
    return float(chance[t >= observed[0] * (1 - TIE)].sum())
