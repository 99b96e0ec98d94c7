"""Times: one kind on an axis, intervals of medians, and a front that joins only what differs beyond them."""

from __future__ import annotations

import random
from typing import Any

import pytest

import groupgt
from groupgt.comparison.systems import Systems
from groupgt.experiment.timing import Median, Timing, median_interval, of_one_kind
from groupgt.report.times import NOISE, figure

TRUTH = {f"q{number}": [["a"]] for number in range(4)}


def timing(name: str, alone: list[float], batched: list[float]) -> Timing:
    return Timing("set", name, 0.0, alone, batched, {})


def test_an_interval_by_hand() -> None:
    # Of 10 values: P(B < 2) = 11/1024 = .0107 and P(B < 3) = 56/1024 = .0547, so the second from either end.
    values = [float(value) for value in range(1, 11)]
    assert median_interval(values) == (2.0, 9.0)
    assert median_interval(values[::-1]) == (2.0, 9.0)
    # Of 6: P(B < 1) = 1/64 = .0156; of 5: 1/32 = .0313, more than .025.
    assert median_interval(values[:6]) == (1.0, 6.0)
    assert median_interval(values[:5]) is None
    # At a level of 90%: of 5 values .0313 is less than .05.
    assert median_interval(values[:5], 0.9) == (1.0, 5.0)


def test_it_covers_the_median() -> None:
    rng = random.Random(0)
    covered = 0
    for _ in range(2000):
        low, high = median_interval([rng.expovariate(1.0) for _ in range(30)]) or (0, 0)
        covered += low <= 0.6931471805599453 <= high
    # Exactly 1 - 2 P(B < 10) = .9572 for n = 30.
    assert 0.945 < covered / 2000 < 0.97


def test_one_kind_alone() -> None:
    both, batched = timing("both", [5.0] * 6, [1.0] * 6), timing("batched", [], [2.0] * 6)
    assert of_one_kind({"one": both, "two": both}) == (
        "alone",
        {"one": Median(5.0, 5.0, 5.0), "two": Median(5.0, 5.0, 5.0)},
    )
    kind, medians = of_one_kind({"both": both, "batched": batched})
    assert kind == "batched"
    assert {name: each.ms for name, each in medians.items()} == {"both": 1.0, "batched": 2.0}
    assert of_one_kind({}) == ("alone", {})


def systems() -> Systems:
    """`best` finds all, `good` half, `poor` none."""
    runs = {
        name: {qid: ["a" if number < hits else "x"] for number, qid in enumerate(TRUTH)}
        for name, hits in (("best", 4), ("good", 2), ("poor", 0))
    }
    return Systems.of({name: groupgt.evaluate(TRUTH, run, ["recall"], name=name) for name, run in runs.items()})


def fronts(**medians: tuple[float, float, float]) -> dict[str, Any]:
    drawn = figure(systems(), ("alone", {name: Median(*each) for name, each in medians.items()}))
    assert drawn is not None
    assert {row["system"] for row in drawn.spec["data"]["values"]} == set(medians)
    lines = drawn.spec["title"]["subtitle"]
    return {row["system"]: row["front"] for row in drawn.spec["data"]["values"]} | {"noise": NOISE in lines}


@pytest.mark.parametrize(
    ("poor", "front"),
    [
        # Faster beyond the intervals, so that its speed may be worth its quality.
        ((1.0, 0.9, 1.1), "yes"),
        # The interval touches that of the best: no faster that anybody can tell.
        ((8.0, 7.0, 9.5), "no"),
    ],
)
def test_a_front_joins_what_differs_beyond_intervals(poor: tuple[float, float, float], front: str) -> None:
    found = fronts(best=(10.0, 9.0, 11.0), good=(30.0, 29.0, 31.0), poor=poor)
    assert found == {"best": "yes", "good": "no", "poor": front, "noise": False}


def test_a_range_smaller_than_intervals_is_noise() -> None:
    found = fronts(best=(1.0, 0.5, 2.0), good=(1.1, 0.6, 2.1), poor=(0.9, 0.4, 1.9))
    assert found == {"best": "yes", "good": "no", "poor": "no", "noise": True}


def test_every_point_has_its_name() -> None:
    drawn = figure(systems(), ("batched", {name: Median(1.0, 1.0, 1.0) for name in ("best", "good", "poor")}))
    assert drawn is not None
    assert [layer["encoding"]["y"]["field"] for layer in drawn.spec["layer"]] == ["system", "system"]
    # One system a line, the best first.
    assert [row["system"] for row in drawn.spec["data"]["values"]] == ["best", "good", "poor"]
    assert "in batches" in str(drawn.spec)
