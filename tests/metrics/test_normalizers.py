"""What normalizers are made of: discounts, sums over many ranks, gains of grades and shares, each by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from groupgt.metrics.ideals import (
    DIRECT,
    TABLE,
    _log2_table,
    _tail,
    descending,
    exponential,
    geometric_sum,
    log2,
    power,
    share_of,
    sorted_grades,
)
from groupgt.model.ground_truth import GroundTruth


@pytest.mark.parametrize("ranks", [[1, 2, 3, TABLE - 1], [1, TABLE], [3, 10**12]])
def test_log2_has_the_bits_of_python_in_the_table_and_beyond(ranks: list[int]) -> None:
    assert log2(np.array(ranks)).tolist() == [1.0 / math.log2(rank + 1) for rank in ranks]


def test_the_table_of_discounts_begins_at_rank_1() -> None:
    # Made anew: the one that is used was made by whoever asked first.
    table = _log2_table.__wrapped__().tolist()
    assert table == [math.inf, *(1.0 / math.log2(rank + 1) for rank in range(1, TABLE))]
    assert table[1:4:2] == [1.0, 0.5]


@pytest.mark.parametrize("exponents", [[0, 1, 3], [2, DIRECT], [1, DIRECT + 5]])
def test_powers_have_the_bits_of_python(exponents: list[int]) -> None:
    assert power(0.99999, np.array(exponents)).tolist() == [0.99999**number for number in exponents]


@pytest.mark.parametrize("logarithmic", [True, False], ids=["log2", "inverse"])
@pytest.mark.parametrize("base", [1.0, 0.99999, 0.9999])
def test_a_tail_is_the_sum_of_its_terms(base: float, logarithmic: bool) -> None:
    for k in (DIRECT, DIRECT + 1, DIRECT + 1000, 3 * DIRECT):
        terms = (
            base ** (rank - 1) / (math.log2(rank + 1) if logarithmic else rank) for rank in range(DIRECT + 1, k + 1)
        )
        # What the derivatives at both ends add is some 7e-9 with log2, what the formula leaves out less than 1e-18.
        assert _tail(base, logarithmic, float(k)) == pytest.approx(math.fsum(terms), rel=1e-14, abs=2e-11)


def test_a_tail_that_fades_over_millions_of_ranks() -> None:
    """Σ b^(r−1) ÷ r over all ranks is −ln(1 − b) ÷ b; what the first 65,536 have of it is summed."""
    base = 1 - 1e-6
    first = math.fsum(base**rank / rank for rank in range(1, DIRECT + 1))
    assert _tail(base, False, 1e12) == pytest.approx((-math.log1p(-base) - first) / base, rel=1e-12)


def test_a_tail_that_has_faded_ends() -> None:
    """Σ 0.99^(r−1) beyond rank 65,536 is 0.99^65536 ÷ 0.01, some 1e-284; whatever the sum is divided by."""
    assert 0 < _tail(0.99, False, 1e12) < 1e-280


def test_a_sum_is_continued_by_its_tail() -> None:
    ks = [0, 1, 2, DIRECT, DIRECT + 3]
    expected = [math.fsum(1 / rank for rank in range(1, k + 1)) for k in ks]

    def inverse(rank: np.ndarray) -> np.ndarray:
        return 1.0 / rank

    assert geometric_sum(1.0, inverse, np.array(ks)).tolist() == pytest.approx(expected, rel=1e-13)


def test_gains_keep_their_digits() -> None:
    """2^g − 1 = g·ln 2 + (g·ln 2)² ÷ 2 + …; 2^0.5 − 1 by the power of Python."""
    tiny = 1e-9 * math.log(2)
    assert exponential(1e-9) == pytest.approx(tiny + tiny**2 / 2, rel=1e-15)
    assert exponential(-1e-9) == pytest.approx(-tiny + tiny**2 / 2, rel=1e-15)
    for grade in (0.0, 0.3, 0.5, 0.7, 0.9, 1.0, 3.0, -0.3):
        assert exponential(grade) == 2.0**grade - 1.0
    assert exponential(1e-3) == 2.0**1e-3 - 1.0


@pytest.mark.parametrize(
    ("query", "gain", "ideal"),
    [
        ([0, 0, 1], [2, 1, 5], [(0, 1, 2), (0, 2, 1), (1, 1, 5)]),
        ([0, 0, 1], [1, 2, 5], [(0, 1, 2), (0, 2, 1), (1, 1, 5)]),
        ([1, 0], [2, 3], [(0, 1, 3), (1, 1, 2)]),
        ([0, 2, 1], [3, 2, 1], [(0, 1, 3), (1, 1, 1), (2, 1, 2)]),
        ([0, 0, 0], [1, 1, 2], [(0, 1, 2), (0, 2, 1), (0, 3, 1)]),
        ([], [], []),
    ],
)
def test_gains_are_sorted_within_their_query(
    query: list[int], gain: list[float], ideal: list[tuple[int, int, float]]
) -> None:
    """As (query, rank, gain)."""
    found = descending(np.array(query, dtype=np.int64), np.array(gain, dtype=np.float64))
    assert list(zip(found.query.tolist(), found.rank.tolist(), found.gain.tolist())) == ideal


def test_only_relevant_documents_are_sorted() -> None:
    groups = [[{"id": "a", "grade": 1}, {"id": "b", "grade": 0}, {"id": "c", "grade": 3}, {"id": "d", "grade": -1}]]
    ideal = sorted_grades(GroundTruth.of({"q": groups}).judgments, "linear")
    assert (ideal.rank.tolist(), ideal.gain.tolist()) == ([1, 2], [3.0, 1.0])


def test_a_share_within_rounding_of_a_small_ideal() -> None:
    assert share_of(np.array([math.nextafter(0.5, 0)]), np.array([0.5])).tolist() == [1.0]


def test_shares() -> None:
    below = 3 * (1 - 1e-15)
    reached = [0.0, 1.0, math.nextafter(3, 0), below, math.nextafter(below, 0), 5.0]
    ideal = [0.0, 4.0, 3.0, 3.0, 3.0, 4.0]
    shares = share_of(np.array(reached), np.array(ideal)).tolist()
    assert shares == [0.0, 0.25, 1.0, 1.0, math.nextafter(below, 0) / 3, 1.0]
    assert shares[4] < 1
