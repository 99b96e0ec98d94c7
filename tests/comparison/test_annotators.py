"""Comparisons over several annotators: the formula by hand, false alarms, and what is said of disagreement."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.cli.main import main
from groupgt.evaluation.estimates import averaged
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

QIDS = [f"q{number}" for number in range(40)]
NAMES = ("anna", "ben", "cleo", "base", "strong")


def truths(seed: int = 0) -> list[dict[str, Any]]:
    """Three annotators who differ in whether b covers the first group."""
    rng = np.random.default_rng(seed)
    return [
        {qid: [[f"{qid}a", f"{qid}b"] if rng.random() < 0.7 else [f"{qid}a"], [f"{qid}c"]] for qid in QIDS}
        for _ in range(3)
    ]


def runs(strong: float, seed: int = 1) -> dict[str, dict[str, list[str]]]:
    rng = np.random.default_rng(seed)
    return {
        name: {
            qid: [f"{qid}{letter}" for letter in "abcdefg" if rng.random() < (skill if letter in "abc" else 0.3)]
            for qid in QIDS
        }
        for name, skill in (("base", 0.4), ("strong", strong))
    }


def test_by_hand() -> None:
    # Three queries, two annotators: d = .75, .5, 0 (mean 5/12); s_q² = .125, 0, 0.
    column = np.array([[[1.0, 0.5]], [[0.5, 0.5]], [[0.0, 0.0]], [[np.nan, 1.0]]])
    found = averaged(column)
    assert found is not None
    # s² = ((4/12)² + (1/12)² + (5/12)²) ÷ 2 = 42/288; the variance is s² ÷ 3 + .125 ÷ 2 ÷ 9.
    assert found.mean == pytest.approx(5 / 12, abs=1e-15)
    assert found.error == pytest.approx(math.sqrt(42 / 288 / 3 + 0.125 / 2 / 9), abs=1e-15)
    assert (found.queries, found.differing) == (3, 2)
    # Two queries differ: the least p is 2^-1.
    assert found.p_value == 0.5
    # t of 2 degrees of freedom at .975: 4.302652729911275.
    low, high = found.at(0.95, (-math.inf, math.inf))
    assert high - found.mean == pytest.approx(4.302652729911275 * found.error, abs=1e-9)
    assert low < 0


def test_an_interval_of_equal_values_has_a_width() -> None:
    """Twenty queries of 1: as if one more had been at either bound, (0 + 1) ÷ 21 ÷ 20; t of 19 is 2.093024."""
    found = averaged(np.ones((20, 1, 2)))
    assert found is not None
    assert found.at(0.95, (0.0, 1.0)) == pytest.approx((1 - 2.093024 / math.sqrt(420), 1.0))
    # A difference that is significant excludes 0, however few queries there are.
    few = averaged(np.full((7, 1, 2), -0.1))
    assert few is not None
    assert few.p_value < 0.05
    assert few.at(0.95, (-1.0, 1.0))[1] < 0


@given(st.integers(2, 12), st.integers(2, 4), st.integers(0, 10**6))
def test_laws(queries: int, annotators: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    column = rng.integers(-4, 5, (queries, 1, annotators)) / 4
    found = averaged(column)
    assert found is not None
    assert 0 < found.p_value <= 1
    # The order of queries and annotators changes nothing; the other way round, neither does p.
    mixed = averaged(column[rng.permutation(queries)][:, :, rng.permutation(annotators)])
    turned = averaged(-column)
    assert mixed is not None
    assert turned is not None
    assert (mixed.mean, mixed.p_value) == (pytest.approx(found.mean), pytest.approx(found.p_value))
    assert turned.p_value == pytest.approx(found.p_value)
    # Annotators who agree leave the variance between queries alone.
    same = averaged(np.repeat(column[:, :, :1], annotators, axis=2))
    assert same is not None
    assert same.error == pytest.approx(column[:, 0, 0].std(ddof=1) / math.sqrt(queries))
    for level in (0.5, 0.95):
        low, high = found.at(level, (-1, 1))
        assert low <= found.mean <= high
        assert (low <= 0 <= high) or found.p_value <= 1 - level


def test_independent_noise_raises_no_alarm() -> None:
    rng = np.random.default_rng(0)
    alarms, trials = 0, 2000
    for _ in range(trials):
        true = rng.integers(-1, 2, (30, 1, 1)) / 2
        noise = (rng.random((30, 1, 3)) < 0.2) * rng.choice([-0.5, 0.5], (30, 1, 3))
        found = averaged(true + noise)
        alarms += found is not None and found.p_value <= 0.05
    assert alarms / trials <= 0.06


def test_a_comparison_over_annotators(snapshot: Snapshot) -> None:
    one, *others = truths()
    comparison = groupgt.compare(one, runs(0.45), ["recall"], annotators=others, resamples=99)
    columns = [groupgt.compare(each, runs(0.45), ["recall"], resamples=9).values for each in truths()]
    deltas = np.stack([values["strong"]["recall"] - values["base"]["recall"] for values in columns], axis=1)
    mean = deltas.mean(axis=1)
    error = math.sqrt(mean.var(ddof=1) / 40 + deltas.var(axis=1, ddof=1).sum() / 3 / 40**2)
    row = comparison["strong"]["recall"]
    assert row.delta == pytest.approx(mean.mean(), abs=1e-12)
    stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    assert row.raw_p_value == pytest.approx(2 * stats.t.sf(abs(mean.mean()) / error, 39), abs=1e-9)
    assert row.mean == pytest.approx(np.stack([values["strong"]["recall"] for values in columns]).mean())
    shown = str(comparison)
    snapshot(shown)
    clear = groupgt.compare(one, runs(0.95), ["recall"], annotators=others, resamples=99)
    snapshot(str(clear))


def test_annotators_who_agree_are_no_reason(snapshot: Snapshot) -> None:
    one, *_ = truths()
    shown = str(groupgt.compare(one, runs(0.45), ["recall"], annotators=[one, one], resamples=99))
    snapshot(shown)
    assert "disagreement (" not in shown


def test_queries_that_not_all_have_judged(snapshot: Snapshot) -> None:
    one, other, _ = truths()
    other = {qid: groups for qid, groups in other.items() if qid != "q0"} | {"elsewhere": [["x"]]}
    comparison = groupgt.compare(one, runs(0.9), ["recall"], annotators=[other], resamples=9)
    assert comparison["strong"]["recall"].queries == 39
    snapshot(str(comparison))
    with snapshot.raises(groupgt.DataError):
        groupgt.compare(one, runs(0.9), ["recall"], annotators=[{"elsewhere": [["x"]]}])
    with snapshot.raises(groupgt.ConfigError):
        groupgt.compare(one, runs(0.9), ["recall"], annotators=[other], audit=one, assume_random=True)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, each in zip(("anna", "ben", "cleo"), truths()):
        lines = (json.dumps({"qid": qid, "retrieval_gt": groups}) + "\n" for qid, groups in each.items())
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    for name, run in runs(0.45).items():
        lines = (json.dumps({"qid": qid, "retrieved_ids": ids}) + "\n" for qid, ids in run.items())
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    anna, ben, cleo, base, strong = (
        str(tmp_path / f"{name}.jsonl") for name in ("anna", "ben", "cleo", "base", "strong")
    )
    others = ["--annotator", ben, "--annotator", cleo]
    main(["compare", anna, base, strong, "-m", "recall", *others, "--by", "n_alternatives", "--pairs", "--details"])
    assert "averaged over 3 annotators" in capsys.readouterr().out
    main(["compare", anna, base, strong, "-m", "recall,dcg", *others, "--format", "json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["queries"] for row in rows] == [40] * 4
