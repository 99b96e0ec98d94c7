"""Tukey's HSD, against SciPy, the t test and a slow permutation of queries."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from groupgt.comparison.contrast import tukey
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import p_values, permutations
from tests.comparison.slowly import (
    NEEDS_SCIPY,
    dyadic,
    ndcg_like,
    tukey_slowly,
)


@pytest.mark.parametrize(("n", "systems"), [(2, 3), (12, 2), (12, 4), (40, 3)])
def test_tukey_by_the_studentized_range(n: int, systems: int) -> None:
    """The residual mean square comes from least squares on indicators of queries and systems."""
    stats = pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    values = ndcg_like(np.random.default_rng(n + systems), (n, systems)) + np.linspace(0, 0.3, systems)
    design = np.zeros((n * systems, n + systems - 1))
    for query, system in itertools.product(range(n), range(systems)):
        design[query * systems + system, query] = 1
        if system:
            design[query * systems + system, n + system - 1] = 1
    squares = float(np.linalg.lstsq(design, values.ravel(), rcond=None)[1][0])
    degrees = n * systems - design.shape[1]
    found = tukey(values, Settings(test="t"))
    for a, b in itertools.product(range(systems), repeat=2):
        q = abs(values[:, a].mean() - values[:, b].mean()) / math.sqrt(squares / degrees / n)
        assert found[a, b] == pytest.approx(stats.studentized_range.sf(q, systems, degrees), abs=1e-8)


def test_tukey_of_two_systems_is_the_t_test() -> None:
    """q = √2 t for two systems, and their p-values are one."""
    pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    values = ndcg_like(np.random.default_rng(1), (25, 2))
    expected = p_values("t", values[:, :1] - values[:, 1:], 1, 0)[0]
    assert tukey(values, Settings(test="t"))[0, 1] == pytest.approx(expected, abs=1e-6)


def test_randomized_tukey_is_a_count_of_drawn_permutations() -> None:
    values = dyadic(12, 4) + np.linspace(0, 0.25, 5)[:4]
    values[3] = 0.5
    orders = np.concatenate(list(permutations(11, 4, 200, 2))).tolist()
    assert tukey(values, Settings(resamples=200, seed=2)).tolist() == tukey_slowly(values, orders)


def test_randomized_tukey_in_other_units() -> None:
    met = np.random.default_rng(4).integers(0, 4, (20, 4)).astype(np.float64)
    thirds, whole = tukey(met / 3, Settings(resamples=500)), tukey(met, Settings(resamples=500))
    assert thirds.tolist() == whole.tolist()


def test_both_tukeys_agree_on_normal_values() -> None:
    pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    values = np.random.default_rng(5).normal(0, 1, (60, 4)) + np.linspace(0, 0.6, 4)
    by_range, drawn = tukey(values, Settings(test="t")), tukey(values, Settings(resamples=4000))
    assert drawn == pytest.approx(by_range, abs=0.03)
    assert np.diag(drawn).tolist() == [1.0] * 4


def test_edges_of_tukey() -> None:
    few = Settings(resamples=99)
    for shape in ((0, 3), (1, 3), (5, 1)):
        assert np.isnan(tukey(np.zeros(shape), few)).all()
    assert tukey(np.ones((5, 3)), few).tolist() == [[1.0] * 3] * 3
    alike = tukey(np.array([[0.25, 0.25, 0.5]] * 6), few)
    assert alike[0, 1] == 1.0
    assert alike[0, 2] == alike[1, 2] < 0.1


def test_edges_of_tukey_by_the_range() -> None:
    pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    ranged = Settings(test="t")
    assert np.isnan(tukey(np.zeros((1, 3)), ranged)).all()
    assert tukey(np.ones((5, 3)), ranged).tolist() == [[1.0] * 3] * 3
    # Nothing is left over: any difference is certain.
    assert tukey(np.array([[0.0, 1.0], [0.25, 1.25]]), ranged).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_tukey_of_many_queries_is_quiet() -> None:
    """SciPy's integral warns with many degrees of freedom; whoever compares systems need not hear of it."""
    pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    values = np.random.default_rng(0).normal(size=(1000, 10))
    assert np.isfinite(tukey(values, Settings(test="t"))).all()
