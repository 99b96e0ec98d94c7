"""Compute the gap between wins and losses that a test detects if all differences have one size. Needs SciPy."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from groupgt.comparison.draws import in_errors, scipy_stats
from groupgt.model.hits import Floats, Ints

# Up to this many differences, the bootstrap test is computed; with more, it is close enough to the t test.
FEW_DIFFERENCES = 50
# Up to this many differences, some of which are tied, SciPy's Wilcoxon test tries every sign.
ALL_SIGNS = 13
# Terms less likely than this are omitted from sums.
NEGLIGIBLE = 1e-12
# p-values that equal alpha in exact arithmetic are significant.
TIE = 1e-9


def least_by_signs(queries: int, differing: Ints, alpha: float) -> Ints:
    """Return the least gap at which p = 2 P(losses or fewer), binomial with 1/2, is at most alpha.

    For equal sizes, this is the randomization test's p. The gap exceeds `differing` if no gap is large enough.
    """
    losses = scipy_stats("power").binom.ppf(alpha / 2 * (1 + TIE), differing, 0.5).astype(np.int64) - 1
    return np.where(losses < 0, differing + 2, differing - 2 * losses)


def least_by_ranks(queries: int, differing: Ints, alpha: float) -> Ints:
    """Return Wilcoxon's least detectable gap if all ranks are tied, from signs or, for large m, from z = gap ÷ √m."""
    by_z = _even_with(float(scipy_stats("power").norm.isf(alpha / 2)) * np.sqrt(differing), differing)
    return np.where(differing <= ALL_SIGNS, least_by_signs(queries, differing, alpha), by_z)


def least_by_t(queries: int, differing: Ints, alpha: float) -> Ints:
    """Return the least gap for which t² = gap² (n − 1) ÷ (n m − gap²) exceeds the squared quantile of Student's t."""
    if queries < 2:
        return differing + 2
    bound = float(scipy_stats("power").t.isf(alpha / 2, queries - 1)) ** 2
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
    binom = scipy_stats("power").binom
    # The number of differing queries drawn, and the wins among them.
    counts = np.arange(int(binom.isf(NEGLIGIBLE, queries, differing / queries)) + 1)[:, None]
    wins = np.arange(len(counts))[None, :]
    chance = binom.pmf(counts, queries, differing / queries) * binom.pmf(
        wins, counts, (differing + gap) / 2 / differing
    )
    lead = 2 * wins - counts
    centred, gaps = counts * queries - lead**2, np.array([gap])
    t = in_errors(lead - gap, np.sqrt(np.maximum(centred, 0)), 0.0)
    observed = in_errors(gaps, np.sqrt(np.maximum(differing * queries - gaps**2, 0)), 0.0)
    return float(chance[t >= observed[0] * (1 - TIE)].sum())
