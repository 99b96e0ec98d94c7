"""Sentence, star, interval, gate and p-value are one decision, for every test and any number of queries."""

from __future__ import annotations

import copy
import math
import random
from typing import Any, get_args

import numpy as np
import pytest

import groupgt
from groupgt.comparison.contrast import contrasts_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import TESTS, CorrectionName
from groupgt.errors import MetricError
from groupgt.experiment.config import Gate
from groupgt.experiment.gates import _relative
from groupgt.experiment.outcome import GateResult
from groupgt.render.tables import BETTER, WORSE
from groupgt.report.contrasts import delta_text
from groupgt.report.decision import decide
from tests.comparison.slowly import NEEDS_SCIPY
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

CORRECTIONS: list[Any] = [None, *get_args(CorrectionName)]
CUTOFF = "recall.coverage@3"


def compared(drawn: random.Random, queries: int, **settings: Any) -> groupgt.Comparison:
    """Compares three runs that find one to three of three groups, each run as good as it happens to be."""
    truth = {f"q{n}": [["a"], ["b"], ["c"]] for n in range(queries)}
    base = {qid: drawn.randint(0, 3) for qid in truth}
    runs = {}
    for name in ("base", "one", "two"):
        shift, kept = drawn.choice([-1, 0, 1, 3]), drawn.choice([0.0, 0.5, 0.9])
        found = {
            qid: met if drawn.random() < kept else min(3, max(0, drawn.randint(0, 3) + shift))
            for qid, met in base.items()
        }
        runs[name] = {qid: ["a", "b", "c"][:met] + ["x", "y", "z"][met:] for qid, met in found.items()}
    return groupgt.compare(truth, runs, [CUTOFF], resamples=drawn.choice([19, 99, 999]), **settings)


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("test", list(TESTS))
def test_one_decision(test: Any, correction: Any) -> None:
    if TESTS[test].needs_scipy:
        pytest.importorskip("scipy", reason=NEEDS_SCIPY)
    drawn, seen = random.Random(f"{test} {correction}"), set()
    for queries in (*range(1, 21), 29, 40):
        table = compared(drawn, queries, test=test, correction=correction, pairs=True)
        alpha, evaluation = table.settings.alpha, table.evaluations["one"]
        for each in [pair.against for pair in table.pairs] + [row.against for row in table.rows if row.against]:
            low, high = each.delta_interval
            assert math.isnan(low) or each.significant == (not low <= 0 <= high)
            assert each.significant == (each.p_value <= alpha)
            assert delta_text(each).endswith((BETTER, WORSE)) == each.significant
            seen.add((each.standing, math.isnan(low)))
        standings = {contrast.standing for contrast in table.against_baseline.values()}
        state = "gain" if "better" in standings else "loss" if "worse" in standings else ""
        decided = decide(table.by()).state
        assert decided.startswith(state) if state else not decided.startswith(("gain", "loss"))
        for name in ("one", "two"):
            contrast = table[name][CUTOFF].against
            assert contrast is not None
            assert contrast.standing == table.kind(name)
            for gate, passes in (
                (
                    Gate(system=name, metric=CUTOFF, max_drop=0.0, unless="not_significant"),
                    contrast.standing != "worse",
                ),
                (Gate(system=name, metric=CUTOFF, min_gain=0.0, must="significant"), contrast.standing == "better"),
            ):
                blank = GateResult(1, name, "own", gate, passed=False)
                result = _relative(blank, "base", evaluation, [contrast], table.settings)
                lost = -contrast.delta
                within = lost <= 0 if gate.unless else lost <= 0 and passes
                assert result.passed == (within or (gate.unless is not None and passes))
    kinds = {standing for standing, _ in seen}
    assert kinds == {"better", "worse", "not significant"}
    assert (("better", True) in seen) == (test == "wilcoxon")


def test_all_differences_equal(snapshot: Snapshot) -> None:
    """Two queries, both gained: t would divide by 0, and every resample of the centred differences is 0."""
    pytest.importorskip("scipy", reason=NEEDS_SCIPY)
    truth = {f"q{n}": [["a"]] for n in range(2)}
    runs = {"base": {qid: ["z", "a"] for qid in truth}, "new": {qid: ["a"] for qid in truth}}
    for test in ("t", "bootstrap"):
        table = groupgt.compare(truth, runs, ["mrr"], test=test)  # type: ignore[arg-type]
        contrast = table["new"]["mrr"].against
        assert contrast is not None
        assert math.isnan(contrast.p_value)
        assert math.isnan(contrast.delta_interval[0])
        said = " ".join(str(table).split())
        snapshot(said)
        assert "significantly" not in said


def test_few_differing_queries_recommend_the_default() -> None:
    pytest.importorskip("scipy", reason=NEEDS_SCIPY)
    truth = {f"q{n}": [["a"]] for n in range(30)}
    runs = {"base": {qid: ["a"] for qid in truth}, "new": {qid: ["z" if n < 9 else "a"] for n, qid in enumerate(truth)}}
    line = "fewer than 15 queries differ (new 9), too few for the wilcoxon test. The default, --test randomization, is"
    assert any(line in each for each in groupgt.compare(truth, runs, ["mrr"], test="wilcoxon").warnings)
    assert not any("--test" in each for each in groupgt.compare(truth, runs, ["mrr"]).warnings)


def test_wilcoxon_speaks_of_ranks(snapshot: Snapshot) -> None:
    """Many small gains and few large losses: the ranks are won, the mean is lost."""
    pytest.importorskip("scipy", reason=NEEDS_SCIPY)
    gains, losses = 20, 8
    truth = {f"q{n}": [["a"], ["b"], ["c"]] for n in range(gains + losses)}
    base = {qid: ["a", "x", "y"] if n < gains else ["a", "b", "c"] for n, qid in enumerate(truth)}
    new = {qid: ["a", "b", "y"] if n < gains else ["x", "y", "z"] for n, qid in enumerate(truth)}
    table = groupgt.compare(truth, {"base": base, "new": new}, [CUTOFF], test="wilcoxon", alpha=0.9)
    contrast = table["new"][CUTOFF].against
    assert contrast is not None
    # 20 × 1/3 − 8 × 1 < 0, and 20 × 10.5 = 210 against 8 × 24.5 = 196: (210 − 196) ÷ 406.
    assert contrast.delta == pytest.approx(-4 / 3 / 28)
    assert contrast.ranks == pytest.approx(14 / 406)
    assert (contrast.standing, contrast.favors) == ("better", 1)
    snapshot(str(table).splitlines()[0])


def test_a_table_by_another_baseline(snapshot: Snapshot) -> None:
    """What was printed for one baseline is not remembered for another one."""
    truth = {f"q{n}": [["a"]] for n in range(10)}
    runs = {"one": {qid: ["a" if qid == "q0" else "z"] for qid in truth}, "two": {qid: ["a"] for qid in truth}}
    table = groupgt.compare(truth, runs, ["recall@2"], baseline="one")
    turned = table.by(baseline="two")
    snapshot(str(each).splitlines()[0] for each in (table, turned))
    assert [row.delta for row in turned.rows] == [-0.9, None]
    assert table.by(settings=Settings(alpha=0.0001)).rows[1].significant is False
    # Another primary metric or other texts change no comparison.
    assert table.by(passages={"a": "text"}).rows is table.rows


def test_correlated_columns_are_no_other_family() -> None:
    """A contrast is the same whether it is asked for alone or with itself, uncorrected."""
    values = {name: {CUTOFF: np.random.default_rng(at).random(18)} for at, name in enumerate("ab")}
    table = compared(random.Random(1), 5)
    settings = Settings(correction="none", resamples=99)
    one = contrasts_of(values, table.metrics, [("a", "b")], settings)
    twice = contrasts_of(values, table.metrics, [("a", "b"), ("b", "a")], settings)
    assert one["a", "b", CUTOFF] == twice["a", "b", CUTOFF]
    assert twice["b", "a", CUTOFF].p_value == one["a", "b", CUTOFF].p_value


def test_what_has_no_values_per_query_is_left_untested(snapshot: Snapshot) -> None:
    truth = {f"q{n}": [["a"], ["b"]] for n in range(8)}
    runs = {"x": {qid: ["a", "z"] for qid in truth}, "y": {qid: ["a", "b"] for qid in truth}}
    table = groupgt.compare(truth, runs, ["gm_map", "recall@2"])
    assert list(table.metrics) == list(table.by().metrics) == ["recall@2"]
    # AP of a and no b is 1/2, and its geometric mean, too.
    snapshot(str(table))
    for metrics, primary in ((["gm_map"], None), (["gm_map", "recall@2"], "gm_map")):
        with snapshot.raises(MetricError):
            groupgt.compare(truth, runs, metrics, primary=primary)


def test_figures_name_the_level() -> None:
    truth = {f"q{n}": [["a"], ["b"]] for n in range(8)}
    runs = {name: {qid: ["a", "b" if n % 3 else "z"] for qid in truth} for n, name in enumerate(("x", "y", "z"))}
    table = groupgt.compare(truth, runs, ["recall@2"], confidence=0.9, correction="bonferroni", alpha=0.1)
    titles = {name: table.plot(name).template["title"]["text"] for name in ("means", "differences")}
    # Two comparisons: 1 − .1 ÷ 2.
    assert titles == {"means": "Means with 90% CI", "differences": "Differences against x with 95% CI"}
    assert "Means of recall@2 with 90% CI: x 0.5000" in table.plot("means").text
    assert table.plot("queries").text.endswith(", 95% CI.")


def test_results_cannot_be_changed() -> None:
    result = groupgt.evaluate({"q": [["a"]]}, {"q": ["a"]}, ["mrr"])
    with pytest.raises(ValueError, match="read-only"):
        result.values["mrr"][0] = 0.0
    for results in (result.values, result.means):
        with pytest.raises(TypeError, match="cannot be changed"):
            results["mrr"] = 0.0  # type: ignore[assignment]
        with pytest.raises(TypeError, match="cannot be changed"):
            results.clear()
        assert copy.deepcopy(results) == results
    assert dict(result.means) == {"mrr": 1.0}
