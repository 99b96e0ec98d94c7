"""The sum of many doubles, in a few passes: the bits of `math.fsum`."""

import math

import numpy as np
import pytest

from groupgt.model.hits import Floats
from groupgt.model.values import means_over_trials, summed

RNG = np.random.default_rng(11)
SHARES = RNG.random(300)
SPREAD = 10.0 ** RNG.integers(-320, 250, 300)


@pytest.mark.parametrize(
    "values",
    [
        SHARES,
        1 / RNG.integers(1, 200, 1000),
        SHARES * SPREAD,
        (SHARES - 0.5) * SPREAD,
        np.concatenate((SHARES, -SHARES[::-1])),
        np.concatenate((SHARES * 1e16, SHARES, SHARES * -1e16, SHARES * 1e-16)),
        np.full(3, 5e-324),
        np.full(5, -1e300),
        np.array([2.0**53, 1.0, 1.0]),
        np.array([math.inf, 1.0]),
        np.zeros(4),
        np.array([-0.0]),
        np.zeros(0),
    ],
)
def test_it_is_the_exact_sum_rounded_once(values: Floats) -> None:
    assert summed(values).hex() == math.fsum(values.tolist()).hex()


def test_what_has_no_sum_is_refused_as_fsum_refuses_it() -> None:
    with pytest.raises(OverflowError):
        summed(np.array([1e308, 1e308]))


def test_means_over_trials_leave_out_nan() -> None:
    assert means_over_trials(np.array([[0.1, 0.0], [0.1, np.nan], [0.1, 1.0]])).tolist() == [0.1, 0.5]
