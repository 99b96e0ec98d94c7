"""What is drawn is what the published algorithms draw, is fair, and is added up exactly."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from groupgt.comparison.draws import halves, on_grid, resampled_counts, signs
from tests.comparison.slowly import (
    numbers_below,
    words_of,
)


def test_the_words_are_those_of_numpy() -> None:
    # First line of NumPy's own numpy/random/tests/data/pcg64-testset-1.csv, seeded with 0xdeadbeaf.
    assert next(words_of([0xDEADBEAF])) == 0x60D24054E17A0698
    mine = list(itertools.islice(words_of([3, 2, 40]), 5))
    assert np.random.PCG64(np.random.SeedSequence([3, 2, 40])).random_raw(5).tolist() == mine


@pytest.mark.parametrize("n", [1, 2, 7, 63, 64, 65, 130])
def test_coins_are_the_bits_of_the_words(n: int) -> None:
    source = words_of([5, 1, n])
    expected = []
    for _ in range(9):
        row = list(itertools.islice(source, -(-n // 64)))
        expected.append([float(row[i // 64] >> i % 64 & 1) for i in range(n)])
    assert np.concatenate(list(halves(n, 9, 5))).tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 7, 40, 101])
def test_counts_are_those_of_numbers_below_n(n: int) -> None:
    source = words_of([5, 2, n])
    rows = [numbers_below(source, n, n) for _ in range(9)]
    expected = [[float(row.count(query)) for query in range(n)] for row in rows]
    assert np.concatenate(list(resampled_counts(n, 9, 5))).tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 5, 14])
def test_few_signs_are_all_patterns_but_the_observed(n: int) -> None:
    """Of a pattern and its opposite one, and neither of the two that flip all or nothing."""
    rows = {tuple(row) for block in signs(n, 99, 5) for row in block.tolist()}
    both = rows | {tuple(-each for each in row) for row in rows}
    assert both == set(itertools.product((1.0, -1.0), repeat=n)) - {(1.0,) * n, (-1.0,) * n}
    assert len(rows) == 2 ** (n - 1) - 1


def test_many_signs_are_the_coins() -> None:
    (coins,), (drawn,) = halves(15, 9, 5), signs(15, 9, 5)
    assert (drawn == np.where(coins == 1, 1.0, -1.0)).all()


def test_draws_are_fair() -> None:
    # 200,000 coins: 4 standard errors of the mean are 4 × 0.5 ÷ √200,000.
    coins = np.concatenate(list(halves(20, 10_000, 0)))
    assert abs(coins.mean() - 0.5) < 4 * 0.5 / math.sqrt(coins.size)
    counts = np.concatenate(list(resampled_counts(20, 10_000, 0)))
    assert (counts.sum(axis=1) == 20).all()
    # A count is binomial(20, 1/20): mean 1, variance 0.95.
    assert np.abs(counts.mean(axis=0) - 1).max() < 4 * math.sqrt(0.95 / 10_000)


def test_sums_on_the_grid_are_exact() -> None:
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e6, 1e12):
        column = rng.normal(0, scale, (999, 1))
        exact = on_grid(column)
        assert np.abs(exact - column).max() <= max(2.0**-41, scale * 5 * 999 * 2.0**-51)
        total = sum(Fraction(each) for each in exact.ravel().tolist())
        assert Fraction(float(exact.sum())) == total == Fraction(float(exact[::-1].cumsum()[-1]))
