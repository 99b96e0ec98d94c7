"""One table that several modules look at."""

from __future__ import annotations

import random

import pytest

import groupgt
from tests.comparison.samples import TRUTH, run_of


@pytest.fixture(scope="session")
def table() -> groupgt.Comparison:
    rng = random.Random(5)
    runs = {"plain": run_of(rng, 0.0), "better": run_of(rng, 0.9), "same": run_of(random.Random(5), 0.0)}
    return groupgt.compare(TRUTH, runs, ["recall@2", "mrr.trec", "complete@2"], by=["n_groups"], seed=3)
