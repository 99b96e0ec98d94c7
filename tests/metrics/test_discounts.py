"""Sums of discounts, against sums term by term and against closed forms."""

from __future__ import annotations

from math import fsum, log, log2

import numpy as np
import pytest

from groupgt.metrics import ideals

EULER = 0.5772156649015329


@pytest.mark.parametrize("base", [0.0, 0.3, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("k", [0, 1, 2, 7, 1000, 65536])
def test_short_sums_are_sums(base: float, k: int) -> None:
    expected = fsum(base ** (r - 1) / log2(r + 1) for r in range(1, k + 1))
    found = ideals.geometric_sum(base, ideals.log2, np.array([k]))[0]
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.property
@pytest.mark.parametrize("base", [0.5, 0.9999, 0.99999, 1.0])
def test_long_sums_go_on_without_looping(base: float) -> None:
    k = 300_000
    for discount, term in ((ideals.log2, lambda r: 1 / log2(r + 1)), (ideals.inverse, lambda r: 1 / r)):
        expected = fsum(base ** (r - 1) * term(r) for r in range(1, k + 1))
        assert ideals.geometric_sum(base, discount, np.array([k]))[0] == pytest.approx(expected, rel=1e-12)


def test_what_only_counts_at_the_first_rank_never_grows() -> None:
    for discount in (ideals.log2, ideals.inverse):
        assert ideals.geometric_sum(0.0, discount, np.array([1, 300_000, 10**12])).tolist() == [1.0, 1.0, 1.0]


def test_the_harmonic_number_of_a_trillion() -> None:
    k = 10**12
    found = ideals.geometric_sum(1.0, ideals.inverse, np.array([k]))[0]
    assert found == pytest.approx(log(k) + EULER + 1 / (2 * k), rel=1e-13)


def test_several_k_at_once_keep_their_places() -> None:
    k = np.array([3, 10**12, 0, 3, 70_000])
    found = ideals.geometric_sum(0.5, ideals.log2, k)
    alone = [ideals.geometric_sum(0.5, ideals.log2, np.array([each]))[0] for each in k.tolist()]
    assert found.tolist() == alone


def test_large_ranks_do_not_make_large_tables() -> None:
    ranks = np.array([1, 10**9, 3])
    assert ideals.log2(ranks).tolist() == [1.0, 1 / log2(10**9 + 1), 0.5]
    assert ideals.power(0.5, np.array([0, 10**9])).tolist() == [1.0, 0.0]
