"""Define a metric in ten lines, and use it like any other: `python examples/own_metric.py`."""

from typing import Annotated

import numpy as np
from annotated_types import Gt

import groupgt
from groupgt.metrics.views import covered_groups
from groupgt.testing import check_metric


@groupgt.metric("half_life", formula="(Σ over covered groups of 2^((1 − rank) ÷ h)) ÷ m")
def half_life(hits, h: Annotated[float, Gt(0)] = 5.0):
    """Gain of the covered groups, halved every h results."""
    groups = covered_groups(hits)  # one row per covered group, with its query and the rank of its first hit
    worth = np.bincount(groups.query, 2.0 ** ((1 - groups.rank) / h), minlength=hits.size)
    return worth / np.maximum(hits.judgments.groups, 1)


def main() -> None:
    truth = {"q1": [["a", "b"], ["c"]], "q2": [["d"]], "q3": [["e"], ["f"]]}
    early = {"q1": ["a", "c", "x"], "q2": ["d"], "q3": ["e", "x", "f"]}
    late = {"q1": ["x", "a", "c"], "q2": ["x", "y", "d"], "q3": ["e", "x", "f"]}
    print(groupgt.compare(truth, {"late": late, "early": early}, ["half_life", "half_life(h=1)@2"], baseline="late"))
    print(groupgt.evaluate(truth, early, [half_life]).explain("q3"))
    try:
        # Check the laws that every groupgt metric obeys, such as values in [0, 1] for any order of groups.
        check_metric(half_life, examples=20)
    except groupgt.ConfigError as error:  # hypothesis is not installed
        print(error)


if __name__ == "__main__":
    main()
