"""Comparisons corrected by an audit: the formula again, tests that agree with intervals, gates, result folders."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.comparison.contrast import Contrast
from groupgt.evaluation.estimates import reach_at
from groupgt.model.sample import entry, sample_of
from groupgt.report.comparison import dataset_of
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

QIDS = [f"q{number}" for number in range(120)]
SKILL = {"weak": 0.3, "middle": 0.5, "strong": 0.8}


def data(seed: int = 1, size: int = 40) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
    """The lines of a model's ground truth, those of an audit of a recorded sample, and three runs."""
    rng = random.Random(seed)
    truth = {qid: [[f"{qid}a", f"{qid}b"], [f"{qid}c"]] for qid in QIDS}
    judged = [
        {
            "qid": qid,
            "retrieval_gt": [[name for name in group if rng.random() < 0.9] + [f"{qid}x"] for group in groups],
            "type": rng.choice("ab"),
            "rare": "few" if number < 12 else "many",
        }
        for number, (qid, groups) in enumerate(truth.items())
    ]
    sample = sample_of(QIDS, size, seed)
    human = [{"qid": qid, "retrieval_gt": truth[qid], "sample": entry(sample, qid)} for qid in sample["order"]]
    runs = {
        name: {
            qid: sorted(
                (f"{qid}{letter}" for letter in "abcdefx"),
                key=lambda each: rng.random() - (skill if each[-1] in "abc" else 0),
            )
            for qid in QIDS
        }
        for name, skill in SKILL.items()
    }
    return judged, human, runs


def written(folder: Path) -> dict[str, Any]:
    """The three as files; the runs by name."""
    judged, human, runs = data()
    for name, lines in (
        ("judged", judged),
        ("human", human),
        *((name, [{"qid": qid, "retrieved_ids": ids} for qid, ids in run.items()]) for name, run in runs.items()),
    ):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return {name: folder / f"{name}.jsonl" for name in runs}


def compared(folder: Path, **options: Any) -> groupgt.Comparison:
    runs = written(folder)
    metrics = options.pop("metrics", ["recall@3", "complete@3", "ndcg@5"])
    audit = {"audit": folder / "human.jsonl", **options}
    return groupgt.compare(folder / "judged.jsonl", runs, metrics, baseline="weak", resamples=99, **audit)


def reference(f: list[float], y: dict[int, float], half: float) -> tuple[float, float]:
    """The corrected mean and its standard error, in plain Python; `y` has the audited values by position."""
    n, others = len(y), [value for at, value in enumerate(f) if at not in y]
    ys, fs = list(y.values()), [f[at] for at in y]
    mean = sum(f) / len(f)
    v = sum((value - mean) ** 2 for value in f) / (len(f) - 1)
    c = sum((a - sum(ys) / n) * (b - sum(fs) / n) for a, b in zip(ys, fs)) / n
    weight = min(max(c / ((1 + n / len(others)) * v), 0), 1)
    rest = [a - weight * b for a, b in zip(ys, fs)]
    r = sum(rest) / n
    spread = (sum((value - r) ** 2 for value in rest) + 2 * half**2) / (n + 1)
    return weight * sum(others) / len(others) + r, math.sqrt(weight**2 * v / len(others) + spread / n)


@pytest.mark.parametrize("metric", ["recall@3", "complete@3", "ndcg@5"])
def test_means_and_differences_follow_the_formula(tmp_path: Path, metric: str) -> None:
    comparison = compared(tmp_path)
    judged = {name: comparison.values[name][metric] for name in SKILL}
    _, human, runs = data()
    truth = {line["qid"]: line["retrieval_gt"] for line in human}
    audited = {name: groupgt.evaluate(truth, run, [metric], policy="extra=ignore") for name, run in runs.items()}
    places = [QIDS.index(qid) for qid in truth]
    known = {name: dict(zip(places, each.values[metric].tolist())) for name, each in audited.items()}
    for name in SKILL:
        mean, error = reference(judged[name].tolist(), known[name], 0.5)
        row = comparison[name][metric]
        assert row.mean == pytest.approx(mean, abs=1e-12)
        # 2.0227 is the .975 quantile of Student's t with 39 degrees of freedom.
        assert row.interval[0] == pytest.approx(max(mean - 2.0226909 * error, 0), abs=1e-6)
        assert row.queries == len(QIDS)
        if name != "weak":
            difference = (judged[name] - judged["weak"]).tolist()
            own = {at: known[name][at] - known["weak"][at] for at in places}
            delta, error = reference(difference, own, 0.25)
            assert row.delta == pytest.approx(delta, abs=1e-12)
            stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
            assert row.raw_p_value == pytest.approx(2 * stats.t.sf(abs(delta) / error, 39), abs=1e-9)


def test_stars_intervals_and_sentences_agree(tmp_path: Path, snapshot: Snapshot) -> None:
    comparison = compared(tmp_path, by=["type", "rare"], pairs=True)
    contrasts: list[Contrast] = [row.against for row in comparison.rows if row.against is not None]
    contrasts += [row.against for part in comparison.slices for row in part.rows if row.against is not None]
    contrasts += [pair.against for pair in comparison.pairs]
    seen = set()
    for contrast in contrasts:
        low, high = contrast.delta_interval
        seen.add((contrast.significant, math.isnan(low)))
        assert contrast.significant == (contrast.p_value <= 0.05)
        if not math.isnan(low):
            assert contrast.significant == (not low <= 0 <= high)
            assert low < contrast.delta < high
    assert seen == {(True, False), (False, False), (False, True)}
    # Twelve queries are `few`, of which fewer than ten are audited: nothing is concluded.
    few = next(part for part in comparison.slices if part.value == "few")
    assert all(math.isnan(row.mean) and not row.significant for row in few.rows)
    assert "pairs: p-values corrected (Holm)" in str(comparison)
    assert comparison.headroom == []
    shown = str(comparison)
    snapshot(shown.splitlines()[0])
    assert (
        "t test of differences corrected by the audit, p-values corrected (Holm) for 2 comparisons per metric" in shown
    )
    assert "corrected by an audit of 40 of 120 queries, a recorded random sample" in shown
    assert "each difference is corrected on its own" in shown


def test_listing_more_metrics_changes_nothing(tmp_path: Path) -> None:
    alone = compared(tmp_path, metrics=["recall@3"])
    among = compared(tmp_path, metrics=["recall@3", "complete@3", "ndcg@5", "dcg@5"])
    for name in SKILL:
        assert alone[name]["recall@3"] == among[name]["recall@3"]
    # A metric that is not between 0 and 1 is not corrected, and nothing is concluded from it.
    assert math.isnan(among["strong"]["dcg@5"].mean)
    assert "not corrected: dcg@5" in str(among)


def test_no_change_where_both_truths_are_the_same(tmp_path: Path) -> None:
    runs = written(tmp_path)
    lines = (tmp_path / "judged.jsonl").read_text(encoding="utf-8").splitlines()
    sample = sample_of(QIDS, 60, 3)
    human = [json.loads(line) | {"sample": entry(sample, qid)} for line, qid in zip(lines, QIDS)]
    audit = [line for line in human if line["qid"] in sample["order"]]
    (tmp_path / "same.jsonl").write_text("".join(json.dumps(line) + "\n" for line in audit), encoding="utf-8")
    comparison = groupgt.compare(tmp_path / "judged.jsonl", runs, ["recall@3"], audit=tmp_path / "same.jsonl")
    plain = groupgt.compare(tmp_path / "judged.jsonl", runs, ["recall@3"])
    for name in SKILL:
        corrected = comparison.evaluations[name].corrected["recall@3"]
        assert corrected.judged == pytest.approx(plain[name]["recall@3"].mean)
        assert corrected.interval[0] < corrected.judged < corrected.interval[1]


def test_how_wide_intervals_will_be(tmp_path: Path, snapshot: Snapshot) -> None:
    comparison = compared(tmp_path)
    # With as many audited queries as there are, the width is that of the interval itself.
    column = comparison.tested["middle"]["recall@3"]
    low, high = comparison["middle"]["recall@3"].interval
    assert reach_at(column, 40) == pytest.approx((high - low) / 2, abs=1e-12)
    power = comparison.audit_power()
    assert [(each.system, each.metric) for each in power.widths[:3]] == [(name, "recall@3") for name in SKILL]
    for each in power.widths:
        assert list(each.of_mean) == [20, 50, 100]  # 200 are more than there are
        assert each.of_mean[20] > each.of_mean[50] > each.of_mean[100]
    assert power.widths[0].of_delta == {}
    snapshot(str(power))
    with snapshot.raises(groupgt.ConfigError):
        comparison.power()
    with snapshot.raises(groupgt.ConfigError):
        groupgt.compare(tmp_path / "judged.jsonl", written(tmp_path), ["recall"], resamples=9).audit_power()


EXPERIMENT = """
version: 1
name: audited
datasets:
  one: {ground_truth: judged.jsonl, audit: human.jsonl}
systems:
  weak: {use: results, with: {path: weak.jsonl}}
  middle: {use: results, with: {path: middle.jsonl}}
  strong: {use: results, with: {path: strong.jsonl}}
evaluate: {metrics: [recall@3, dcg@3], by: [rare]}
compare: {baseline: weak, resamples: 99}
gate:
  - {system: strong, metric: recall@3, min: 0.8}
  - {system: strong, metric: recall@3, min_gain: 0.1, must: significant}
  - {system: strong, metric: recall@3, slice: {rare: few}, max_drop: 0.5}
  - {system: weak, metric: dcg@3, min: 0.1}
  - {system: weak, metric: recall@3, against: previous, max_drop: 0.5}
"""


def test_an_experiment_decides_by_corrected_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    written(tmp_path)
    (tmp_path / "audited.yaml").write_text(EXPERIMENT, encoding="utf-8")
    outcome = groupgt.run_experiment(tmp_path / "audited.yaml")
    comparison = groupgt.compare(
        tmp_path / "judged.jsonl",
        {name: tmp_path / f"{name}.jsonl" for name in SKILL},
        ["recall@3"],
        audit=tmp_path / "human.jsonl",
        resamples=99,
    )
    gates = outcome.gates
    assert [gate.passed for gate in gates] == [True, True, False, False, True]
    assert gates[0].value == comparison["strong"]["recall@3"].mean
    assert gates[1].value == comparison["strong"]["recall@3"].delta
    snapshot(gates[1].reason)
    assert [gate.problem for gate in gates[2:4]] == ["few audited"] * 2
    order = sorted(SKILL, key=lambda name: -comparison[name]["recall@3"].mean)
    assert list(outcome.evaluations["one"]) == order
    assert outcome.folder is not None
    results = json.loads((outcome.folder / "results.json").read_text(encoding="utf-8"))
    assert results["datasets"]["one"]["systems"][0]["corrected"]["recall.autorag@3"]["sample"] == 40
    # The result folder has the audit, so that it compares in the same way again.
    capsys.readouterr()
    main(["compare", str(outcome.folder), "-m", "recall@3", "--format", "json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    there = {row["system"]: row["mean"] for row in rows}
    assert there == pytest.approx({name: comparison[name]["recall@3"].mean for name in SKILL})
    main(["report", str(outcome.folder)])
    snapshot(capsys.readouterr().out)
    # A previous run has no correction to compare with.
    (tmp_path / "again.yaml").write_text(EXPERIMENT.replace("name: audited", "name: again"), encoding="utf-8")
    again = groupgt.run_experiment(tmp_path / "again.yaml", against=outcome.folder)
    snapshot(again.gates[4].reason)


def test_what_an_experiment_refuses(tmp_path: Path) -> None:
    written(tmp_path)
    lines = (tmp_path / "human.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "human.jsonl").write_text("".join(lines[1:]), encoding="utf-8")
    (tmp_path / "audited.yaml").write_text(EXPERIMENT, encoding="utf-8")
    with pytest.raises(groupgt.GroupgtError, match=r"audited.yaml:5:\d+: datasets.one.audit: expected a random sample"):
        groupgt.run_experiment(tmp_path / "audited.yaml")
    assumed = EXPERIMENT.replace("audit: human.jsonl", "audit: human.jsonl, assume_random: true")
    (tmp_path / "audited.yaml").write_text(assumed, encoding="utf-8")
    outcome = groupgt.run_experiment(tmp_path / "audited.yaml")
    assert "assumed to be a random sample" in str(outcome)
    across = assumed.replace("baseline: weak", "across: datasets, baseline: one").partition("gate:")[0]
    across = across.replace("systems:\n", "  two: {ground_truth: judged.jsonl}\nsystems:\n")
    (tmp_path / "audited.yaml").write_text(across, encoding="utf-8")
    with pytest.raises(groupgt.GroupgtError, match=r"cannot correct differences between data sets \(compare.across\)"):
        groupgt.run_experiment(tmp_path / "audited.yaml")


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(path) for path in written(tmp_path).values()]
    words = [str(tmp_path / "judged.jsonl"), *runs, "-m", "recall@3", "--audit", str(tmp_path / "human.jsonl")]
    main(["compare", *words, "--details"])
    assert "delta by model's labels" in capsys.readouterr().out
    main(["power", *words, "--format", "csv"])
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert header == "run,metric,figure,20,50,100"
    assert first.startswith("weak,recall@3,mean,0.")
    comparison = compared(tmp_path)
    for shown in (comparison.summary(), "\n".join(comparison.footer), "\n".join(comparison.to_dict()["population"])):
        assert "corrected by an audit of 40 of 120 queries, a recorded random sample" in shown
    page = dataset_of(comparison, "judged")
    assert "corrected by an audit of 40 of 120 queries, a recorded random sample" in page["tests"]
    assert page["systems"][2]["means"][0] == comparison["strong"]["recall@3"].mean


def test_corrected_means_of_builds_cover_other_builds() -> None:
    """The table of corrected means and JSON have the interval of the table of systems."""
    truth = {f"q{n}": [[f"a{n}"]] for n in range(30)}
    rows = [
        {"qid": qid, "build": build, "retrieved_ids": [f"a{qid[1:]}" if (n * build) % 3 else "x"]}
        for build in (1, 2)
        for n, qid in enumerate(truth)
    ]
    audit = {qid: truth[qid] if n % 4 else [["x"]] for n, qid in enumerate(list(truth)[:14])}
    options: dict[str, Any] = {"audit": audit, "assume_random": True}
    evaluation = groupgt.evaluate(truth, pl.DataFrame(rows), ["recall@5"], **options)
    others = {qid: ["a" + qid[1:]] for qid in truth}
    table = groupgt.compare(truth, {"s": pl.DataFrame(rows), "other": others}, ["recall@5"], **options)
    assert evaluation.to_dict()["corrected"]["recall@5"]["interval"] == list(table["s"]["recall@5"].interval)
    assert evaluation.corrected["recall@5"].interval != table["s"]["recall@5"].interval
