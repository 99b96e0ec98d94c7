"""Rankings for tables of two dozen questions."""

from __future__ import annotations

import random

QUERIES = [f"q{number:02d}" for number in range(24)]
TRUTH = {qid: [["a", "b"], ["c"]] for qid in QUERIES}


def run_of(rng: random.Random, quality: float) -> dict[str, list[str]]:
    """Rankings of five, the better the more often a and c come first."""
    found = {}
    for qid in QUERIES:
        ids = ["a", "b", "c", "x", "y"]
        found[qid] = sorted(ids, key=lambda name: rng.random() - quality * (name in "ac"))
    return found
