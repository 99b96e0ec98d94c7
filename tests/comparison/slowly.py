"""Slow references in plain Python for what is drawn, tested and bounded, and the data they are tried on.

They share nothing with what they check but the numbers that are drawn, and those are drawn a second time here, by the
published algorithms of SeedSequence and PCG64 in Python's own integers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from groupgt.comparison.intervals import intervals, normal_quantile, student_quantile
from groupgt.comparison.pairs import step_down
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import p_values
from groupgt.model.hits import Floats

UNIT = (0.0, 1.0)
WIDE = (-1.0, 1.0)
NEEDS_SCIPY = "SciPy is the other implementation here: pip install 'groupgt[stats]'"
NEEDS_STATSMODELS = "statsmodels is the other implementation here: pip install statsmodels"
M32, M64, M128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1


def words_of(entropy: Sequence[int]) -> Iterator[int]:
    """PCG64 (XSL RR 128/64; O'Neill 2014) of NumPy's SeedSequence (after O'Neill's seed_seq_fe) of small integers."""
    factor = 0x43B0D7E5

    def hashed(value: int, multiplier: int) -> int:
        nonlocal factor
        value ^= factor
        factor = factor * multiplier & M32
        value = value * factor & M32
        return value ^ value >> 16

    pool = [hashed(entropy[i] if i < len(entropy) else 0, 0x931E8875) for i in range(4)]
    for source in range(4):
        for target in range(4):
            if source != target:
                mixed = (0xCA01F9DD * pool[target] - 0x4973F715 * hashed(pool[source], 0x931E8875)) & M32
                pool[target] = mixed ^ mixed >> 16
    factor = 0x8B51F9DD
    small = [hashed(pool[i % 4], 0x58F38DED) for i in range(8)]
    a, b, c, d = (small[i] | small[i + 1] << 32 for i in range(0, 8, 2))
    multiplier, increment = 0x2360ED051FC65DA44385DF649FCCF645, ((c << 64 | d) << 1 | 1) & M128
    state = ((increment + (a << 64 | b)) * multiplier + increment) & M128
    while True:
        state = (state * multiplier + increment) & M128
        folded, turn = (state >> 64 ^ state) & M64, state >> 122
        yield (folded >> turn | folded << (64 - turn)) & M64 if turn else folded


def numbers_below(source: Iterator[int], each: int, bound: int) -> list[int]:
    """The low half of a word comes first; a row begins with a new word."""
    found: list[int] = []
    for word in itertools.islice(source, -(-each // 2)):
        found += [(word & M32) * bound >> 32, (word >> 32) * bound >> 32]
    return found[:each]


def dyadic(n: int, width: int = 1) -> Floats:
    """Sixteenths from −8/16 to 8/16 by a formula."""
    rows = [[((7 * i * i + 3 * i + 5 * c * i + c) % 17 - 8) / 16 for c in range(width)] for i in range(n)]
    return np.array(rows, dtype=np.float64).reshape(n, width)


def ndcg_like(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """15% zeros, 25% ones and a beta(2, 1.5) between them: its mean is 0.25 + 0.6 × 2/3.5."""
    kind = rng.random(shape)
    return np.where(kind < 0.15, 0.0, np.where(kind < 0.4, 1.0, rng.beta(2, 1.5, shape)))


NDCG_MEAN = 0.25 + 0.6 * 2 / 3.5


def randomized_slowly(differences: Sequence[Fraction]) -> Fraction:
    observed = abs(sum(differences))
    signs = list(itertools.product((1, -1), repeat=len(differences)))
    far = sum(abs(sum(s * d for s, d in zip(each, differences))) >= observed for each in signs)
    return Fraction(far, len(signs))


def order_of_draws(column: Sequence[float]) -> list[float]:
    """The values in the order of their draws: from the end with the shorter tail, or by the sign of the sum."""
    up = sorted(column)
    for one, other in zip(up, reversed(up)):
        gap = (one - up[0]) - (up[-1] - other)
        if abs(gap) > 1e-12 * max(map(abs, up)):
            return up if gap > 0 else up[::-1]
    return up[::-1] if math.fsum(up) < 0 else up


def bootstrapped_slowly(column: Sequence[float], counts: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The p-value, and how close the nearest t came to the observed one."""
    column, n = order_of_draws(column), len(column)
    mean = math.fsum(column) / n

    def t(values: Sequence[float]) -> float:
        own = math.fsum(values) / n
        variance = math.fsum((value - own) ** 2 for value in values) / (n - 1)
        if variance < 1e-12:
            return math.inf if abs(own) > 1e-12 else 0.0
        return abs(own) / math.sqrt(variance / n)

    observed, far, nearest = t(column), 0, math.inf
    for row in counts:
        again = t([value - mean for value, count in zip(column, row) for _ in range(int(count))])
        far += again >= observed
        nearest = min(nearest, abs(again - observed))
    return (1 + far) / (1 + len(counts)), nearest


def step_down_slowly(
    columns: Sequence[Sequence[float]], signs: Sequence[Sequence[float]], raw: Sequence[float]
) -> list[float]:
    """Pairs from the largest T down, each against the largest T of what is left, one pattern of signs after another.

    No p-value is below that of the pair alone.
    """

    def statistic(column: Sequence[float], row: Sequence[float]) -> float:
        return abs(math.fsum(s * d for s, d in zip(row, column))) / math.sqrt(math.fsum(d * d for d in column))

    observed = [statistic(column, [1.0] * len(column)) for column in columns]
    order = sorted(range(len(columns)), key=lambda place: -observed[place])
    drawn = [[statistic(column, row) for column in columns] for row in signs]

    def maxima(places: Sequence[int]) -> list[float]:
        return sorted((max(row[place] for place in places) for row in drawn), reverse=True)

    p_values, least = [0.0] * len(columns), 0.0
    for at, place in enumerate(order):
        far = sum(each >= observed[place] * (1 - 1e-9) for each in maxima(order[at:]))
        p_values[place] = least = max(least, (1 + far) / (1 + len(signs)), raw[place])
    return p_values


def interval_slowly(
    column: Sequence[float], bounds: tuple[float, float], level: float, counts: Sequence[Sequence[float]]
) -> tuple[float, float]:
    """What the docstring of `groupgt.comparison.intervals` says, with loops; roots are found by halving."""
    column, n = order_of_draws(column), len(column)
    low, high = bounds

    def moments(values: Sequence[float]) -> tuple[float, float]:
        mean = math.fsum(values) / n
        return mean, math.fsum((value - mean) ** 2 for value in values) / (n - 1)

    def largest(mean: float) -> float:
        return (mean - low) * (high - mean)

    def share(mean: float, variance: float) -> float:
        return 1.0 if largest(mean) < 1e-12 else variance / largest(mean)

    def statistic(mean: float, variance: float, centre: float) -> float:
        square = variance if math.isinf(high) else share(mean, variance) * largest(centre)
        if square < 1e-12:
            return math.inf if abs(mean - centre) > 1e-12 else 0.0
        return abs(mean - centre) / math.sqrt(square / n)

    mean, variance = moments(column)
    drawn = sorted(
        statistic(*moments([value for value, count in zip(column, row) for _ in range(int(count))]), mean)
        for row in counts
    )
    # The level × (R + 1)-th smallest: as many of R + 1 exchangeable statistics lie below it.
    student = student_quantile(level, n - 1)
    quantile = min(max(drawn[math.ceil(level * (len(drawn) + 1)) - 1], normal_quantile(level)), 1.25 * student)
    if variance < 1e-12:
        quantile = student
        if not math.isinf(high):
            # As if one more value had been at either bound, but never more than values within the bounds can vary.
            one_more = ((mean - low) ** 2 + (high - mean) ** 2) / (n + 1)
            variance = min(one_more, largest(mean) * n / (n - 1))
    if math.isinf(high):
        half = quantile * math.sqrt(variance / n)
        return mean - half, mean + half

    def end(inside: float, outside: float) -> float:
        for _ in range(200):
            middle = (inside + outside) / 2
            if (mean - middle) ** 2 <= quantile**2 * share(mean, variance) * largest(middle) / n:
                inside = middle
            else:
                outside = middle
        return inside

    return end(mean, low), end(mean, high)


def everything() -> list[float]:
    """All that is drawn for one table of 57 queries and 80 columns."""
    values = np.concatenate([dyadic(57, 40), ndcg_like(np.random.default_rng(0), (57, 40))], axis=1)
    found = [intervals(values, WIDE, 0.95, 1000, 1), p_values("randomization", values, 1000, 1)]
    stepped = step_down(list(values[:, :5].T - 0.1), np.zeros(5), Settings(resamples=300, seed=1))
    found += [p_values("bootstrap", values, 1000, 1), stepped]
    return [float(each) for part in found for each in part.ravel()]
