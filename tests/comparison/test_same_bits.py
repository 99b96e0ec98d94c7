"""What is drawn for a table is the same bits whatever the blocks, the threads and the machine."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from groupgt.comparison import draws
from groupgt.comparison import intervals as intervals_module
from groupgt.comparison.draws import halves, resampled_counts, signs
from groupgt.comparison.intervals import intervals
from groupgt.comparison.pairs import step_down
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import p_values
from tests.comparison.slowly import (
    WIDE,
    bootstrapped_slowly,
    dyadic,
    everything,
    interval_slowly,
    order_of_draws,
    step_down_slowly,
)


def test_golden_values() -> None:
    """What any machine and any NumPy must find for one seed: thousandths are counts of drawn patterns.

    Recorded on Linux (x86-64) with NumPy 2.4.6; each is found again by the slow references of this file.
    """
    differences = dyadic(30, 3) + np.array([1, 2, 3]) / 16
    coins = np.concatenate(list(halves(30, 999, 7))).tolist()
    counts = np.concatenate(list(resampled_counts(30, 999, 7))).tolist()
    # The 30 queries differ for all three.
    drawn = np.concatenate(list(signs(30, 999, 7))).tolist()
    columns = differences.T.tolist()
    far = [
        sum(abs(sum(d if c else -d for d, c in zip(each, row))) >= abs(sum(each)) for row in coins)
        for each in map(order_of_draws, columns)
    ]
    assert [1 + each for each in far] == [282, 82, 1]
    assert p_values("randomization", differences, 999, 7).tolist() == [0.282, 0.082, 0.001]
    assert [bootstrapped_slowly(each, counts)[0] for each in columns] == [0.24, 0.054, 0.002]
    assert p_values("bootstrap", differences, 999, 7).tolist() == [0.24, 0.054, 0.002]
    stepped = step_down_slowly(columns, drawn, [0.0] * 3)
    found = step_down(list(differences.T), np.zeros(3), Settings(resamples=999, seed=7))
    assert stepped == found.tolist() == [0.292, 0.128, 0.004]
    ends = np.array(
        [[-0.058317830943, 0.201673791725], [-0.000716230826, 0.246826560724], [0.082309058211, 0.268683432267]]
    )
    assert np.array([interval_slowly(each, WIDE, 0.95, counts) for each in columns]) == pytest.approx(ends, abs=2e-12)
    assert intervals(differences, WIDE, 0.95, 999, 7) == pytest.approx(ends, abs=2e-12)


@pytest.mark.slow
def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = everything()
    # Nothing is kept, so that all is drawn again: in small blocks, and row by row.
    monkeypatch.setattr(draws, "KEPT", 0)
    monkeypatch.setattr(draws, "AT_ONCE", 1000)
    monkeypatch.setattr(intervals_module, "AT_ONCE", 12_000)
    assert everything() == whole
    monkeypatch.setattr(draws, "IN_BLOCKS", 10)
    assert everything() == whole


@pytest.mark.property
def test_threads_do_not_matter() -> None:
    program = (
        "import hashlib, struct\n"
        "from tests.comparison.slowly import everything\n"
        "found = everything()\n"
        "print(hashlib.sha256(struct.pack(f'{len(found)}d', *found)).hexdigest())\n"
    )
    seen = set()
    for threads in ("1", "2"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads)}
        seen.add(
            subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True).stdout
        )
    assert len(seen) == 1
