"""Means corrected by an audit: the formula by hand, another library, and what is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.cli.main import main
from groupgt.evaluation.estimates import corrected, normal_quantile, of_column, wilson
from groupgt.model.sample import entry, sample_fault, sample_of
from tests.snapshots import Snapshot

QIDS = [f"q{number}" for number in range(40)]


def data(seed: int = 0, size: int = 15) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, list[str]]]:
    """A model's ground truth, the lines of an audit of a recorded sample, and a run."""
    rng = random.Random(seed)
    truth = {qid: [[f"{qid}a", f"{qid}b"], [f"{qid}c"]] for qid in QIDS}
    judged = {qid: [group for group in groups if rng.random() > 0.2] for qid, groups in truth.items()}
    sample = sample_of(QIDS, size, seed)
    lines = [{"qid": qid, "retrieval_gt": truth[qid], "sample": entry(sample, qid)} for qid in sample["order"]]
    return judged, lines, {qid: rng.sample([f"{qid}{letter}" for letter in "abcdefg"], 4) for qid in QIDS}


def written(folder: Path, lines: list[dict[str, Any]]) -> Path:
    path = folder / "audit.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_by_hand() -> None:
    # Twelve queries, the first four audited. f: 1 1 0 0 | 1 1 1 1 0 0 0 0, Y: 1 0 0 0.
    f = np.array([1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0], dtype=float)
    y = np.array([1, 0, 0, 0], dtype=float)
    found = corrected(f, y, np.arange(12) < 4, (0.0, 1.0))
    # c: deviations of Y are 3/4, -1/4 (three times), of f 1/2, 1/2, -1/2, -1/2: (3/8 - 1/8 + 1/8 + 1/8) / 4 = 1/8.
    # v: twelve values of 0 and 1, mean 1/2: 12/4 / 11 = 3/11.  lambda = 1/8 / ((1 + 4/8) * 3/11) = 11/36.
    weight = 11 / 36
    assert found.weight == pytest.approx(weight, abs=1e-15)
    # corrected = lambda * 1/2 + mean(Y - lambda f) = lambda / 2 + 1/4 - lambda / 2 = 1/4.
    assert found.mean == pytest.approx(0.25, abs=1e-15)
    # r: 1 - w, -w, 0, 0, mean 1/4 - w/2; squares sum to (1 - w)^2 + w^2 - 4 (1/4 - w/2)^2; and 2 h^2 = 1/2.
    spread = ((1 - weight) ** 2 + weight**2 - 4 * (0.25 - weight / 2) ** 2 + 0.5) / 5
    variance = weight**2 * (3 / 11) / 8 + spread / 4
    # t of 3 degrees of freedom at .975: 3.182446305284263.
    assert found.interval[1] == pytest.approx(min(0.25 + 3.182446305284263 * variance**0.5, 1), abs=1e-9)
    assert found.interval[0] == 0
    # Without the model: Y has squares of 3/4; (3/4 + 1/2) / 5 = 1/4.
    assert found.effective == pytest.approx(0.25 / variance, abs=1e-12)
    assert (found.judged, found.audited, found.sample, found.queries) == (0.5, 0.25, 4, 12)


def test_without_others_or_differences_the_model_has_no_weight() -> None:
    rng = np.random.default_rng(0)
    values = rng.random(20)
    everything = corrected(values, values**2, np.ones(20, dtype=bool), (0.0, 1.0))
    assert (everything.weight, everything.mean) == (0, pytest.approx((values**2).mean()))
    constant = corrected(np.full(30, 0.4), values, np.arange(30) < 20, (0.0, 1.0))
    assert (constant.weight, constant.mean) == (0, pytest.approx(values.mean()))
    assert constant.effective == pytest.approx(20)


@given(st.integers(10, 40), st.integers(0, 60), st.integers(0, 10**6))
def test_laws(size: int, others: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    f, y = rng.integers(0, 5, size + others) / 4, rng.integers(0, 5, size) / 4
    is_audited = rng.permutation(size + others) < size
    found = corrected(f, y, is_audited, (0.0, 1.0))
    assert 0 <= found.weight <= 1
    assert 0 <= found.interval[0] <= found.interval[1] <= 1
    assert found.interval[1] > found.interval[0]
    # A model that is always right leaves an unbiased mean of everything at weight 1.
    perfect = corrected(f, f[is_audited], is_audited, (0.0, 1.0))
    assert perfect.mean == pytest.approx(
        perfect.weight * f[~is_audited].mean() + (1 - perfect.weight) * f[is_audited].mean() if others else f.mean()
    )
    # Both sides turned round: the same with the ends exchanged.
    turned = corrected(1 - f, 1 - y, is_audited, (0.0, 1.0))
    assert turned.mean == pytest.approx(1 - found.mean, abs=1e-12)
    assert turned.interval == pytest.approx((1 - found.interval[1], 1 - found.interval[0]), abs=1e-12)


@pytest.mark.peers
def test_the_mean_is_that_of_ppi_python() -> None:
    ppi = pytest.importorskip("ppi_py", reason="ppi-python is not installed")
    rng = np.random.default_rng(0)
    for _ in range(50):
        size, others = int(rng.integers(10, 60)), int(rng.integers(20, 200))
        truth = rng.random(size + others)
        f = np.clip(truth + rng.normal(0, rng.choice([0.05, 0.3, 1.0]), size + others), 0, 1)
        y = (truth[:size] > 0.5).astype(float)
        found = corrected(f, y, np.arange(size + others) < size, (0.0, 1.0))
        theirs = ppi.ppi_mean_pointestimate(y, f[:size], f[size:], lam=found.weight)
        assert found.mean == pytest.approx(float(np.squeeze(theirs)), abs=1e-9)
        # Their interval from our parts: z for t, both variances ÷ their counts, and without the term in h.
        spread = (found.error**2 - found.weight**2 * f.var(ddof=1) / others) * size
        without_h = (spread * (size + 1) - 2 * 0.5**2) / size
        error = (found.weight**2 * f[size:].var() / others + without_h / size) ** 0.5
        ends = ppi.ppi_mean_ci(y, f[:size], f[size:], alpha=0.05, lam=found.weight)
        reach = normal_quantile(0.95) * error
        assert np.squeeze(ends).tolist() == pytest.approx([found.mean - reach, found.mean + reach], abs=1e-9)


def test_an_evaluation_with_an_audit(tmp_path: Path, snapshot: Snapshot) -> None:
    judged, lines, run = data()
    metrics = ["recall@4", "complete@4", "ndcg@4"]
    options: Any = {"convention": "coverage"}
    result = groupgt.evaluate(judged, run, metrics, audit=written(tmp_path, lines), **options)
    audit = groupgt.evaluate({line["qid"]: line["retrieval_gt"] for line in lines}, run, metrics, **options)
    plain = groupgt.evaluate(judged, run, metrics, **options)
    assert result.means_by_labels() == plain.means
    assert result.means == {text: each.mean for text, each in result.corrected.items()}
    for text, each in result.corrected.items():
        assert each.audited == pytest.approx(audit[text])
        # A query that only the annotator gives an answer leaves the model's mean as it is.
        assert each.judged == pytest.approx(plain[text])
        assert each.interval[0] < each.mean < each.interval[1]
    shown = str(result)
    assert "corrected by an audit of 15 of 40 queries, a recorded random sample" in shown
    assert result.to_dict()["corrected"]["recall@4"]["sample"] == 15
    with snapshot.raises(groupgt.ConfigError):
        _ = plain.corrected
    # The order of lines does not matter.
    again = groupgt.evaluate(judged, run, ["recall@4"], audit=written(tmp_path, lines[::-1]), **options)
    assert again.corrected["recall@4"] == result.corrected["recall@4"]


UNDEFINED: list[dict[str, Any]] = [
    *({"qid": f"n{number}", "retrieval_gt": [], "answerable": False} for number in range(6)),
    *({"qid": f"u{number}", "retrieval_gt": []} for number in range(4)),
]


def read(folder: Path, rows: list[dict[str, Any]]) -> groupgt.GroundTruth:
    return groupgt.read_ground_truth(written(folder, rows))


@pytest.mark.parametrize("policy", ["missing=zero", "missing=skip"])
def test_the_same_labels_leave_every_mean_as_it_is(policy: str, tmp_path: Path) -> None:
    judged, _, run = data()
    rows = [{"qid": qid, "retrieval_gt": groups} for qid, groups in judged.items()] + UNDEFINED
    found = {qid: ids for qid, ids in run.items() if qid not in ("q1", "q2")} | {"n1": ["z"], "u1": ["z"]}
    metrics = ["recall@4", "redundancy@4", "ndcg@4"]
    audit = read(tmp_path, rows)
    result = groupgt.evaluate(audit, found, metrics, audit=audit, assume_random=True, policy=policy)
    for text, each in result.corrected.items():
        labels = pytest.approx(result.means_by_labels()[text])
        assert (each.mean, each.judged, result[text]) == (labels, labels, labels)
        assert each.queries == each.sample == result.counted(text)
    # With a sample, the mean of the model's labels is still that of the evaluation.
    some = read(tmp_path, [row for number, row in enumerate(rows) if number % 2])
    result = groupgt.evaluate(audit, found, metrics, audit=some, assume_random=True, policy=policy)
    for text, each in result.corrected.items():
        assert each.judged == pytest.approx(result.means_by_labels()[text])
        assert each.queries == result.counted(text)


def test_queries_that_only_one_side_gives_an_answer(tmp_path: Path) -> None:
    # Twelve queries, all audited; every answer is found. The truth declares n unanswerable, the annotator a0.
    gold = {f"a{number}": [["x"]] for number in range(11)}
    rows = [{"qid": qid, "retrieval_gt": groups} for qid, groups in gold.items()]
    declared: dict[str, Any] = {"retrieval_gt": [], "answerable": False}
    audit = read(tmp_path, [{"qid": "a0", **declared}, *rows[1:], {"qid": "n", "retrieval_gt": [["x"], ["y"]]}])
    truth = read(tmp_path, [*rows, {"qid": "n", **declared}])
    run = {qid: ["x"] for qid in truth.qids}
    found = groupgt.evaluate(truth, run, ["recall"], audit=audit, assume_random=True).corrected["recall"]
    # The annotator's values: 0 for a0, ten times 1, and 1/2 for n; the model's mean is over a0 to a10.
    assert (found.audited, found.judged, found.queries) == (pytest.approx(10.5 / 12), 1.0, 12)


def test_no_bias_where_the_model_misses_answers() -> None:
    """Of 400 queries the model declares a fifth unanswerable at random; the mean over all is estimated without bias."""
    rng = np.random.default_rng(5)
    errors = []
    for _ in range(300):
        y = (rng.random(400) < 0.5).astype(float)
        f = np.where(rng.random(400) < 0.9, y, 1 - y)
        f[rng.random(400) < 0.2] = np.nan
        column = np.stack([f, np.where(np.arange(400) < 100, y, np.nan)], axis=1)
        estimate = of_column(column)
        assert estimate is not None
        errors.append(estimate.mean - 0.5)
    # One estimate has a standard error of about .035, so 300 have one of .002: .008 is four of them.
    assert abs(np.mean(errors)) < 0.008


def test_what_is_no_audit(tmp_path: Path, snapshot: Snapshot) -> None:
    judged, lines, run = data()

    def refused(lines: list[dict[str, Any]], expected: str, **options: Any) -> None:
        with pytest.raises(groupgt.GroupgtError) as error:
            groupgt.evaluate(judged, run, ["recall"], audit=written(tmp_path, lines), **options)
        assert expected in str(error.value)

    refused(lines[:9], "expected at least 10 audited queries, found 9")
    refused([*lines, {**lines[0], "qid": "other"}], "audit: query 'other' is not in the audited ground truth")
    bare = [{key: line[key] for key in ("qid", "retrieval_gt")} for line in lines]
    refused(
        bare,
        "but the audit does not record which sample its queries come from; draw one with groupgt sample",
    )
    refused(
        [{**lines[0], "sample": {**lines[0]["sample"], "seed": 8}}, *lines[1:]],
        "the audit mixes queries from several samples",
    )
    refused(lines[1:], "its queries are not the first 14 in the order of seed 0")
    for line in lines:
        line["sample"] = {**line["sample"], "of": 50}
    refused(lines, "the audit is a sample of 50 queries, but the ground truth has 40")
    result = groupgt.evaluate(judged, run, ["recall"], audit=written(tmp_path, bare), assume_random=True)
    snapshot(str(result))


def test_assisted_queries_are_counted(tmp_path: Path) -> None:
    judged, lines, run = data()
    for place, line in enumerate(lines):
        line |= {"assisted": True} if place < 3 else {}
    note = "3 audited queries judged with prior judgments in view, not independently"
    assert note in str(groupgt.evaluate(judged, run, ["recall"], audit=written(tmp_path, lines)))


def test_a_prefix_of_a_sample_is_a_sample() -> None:
    sample = sample_of(QIDS, 20, seed=3)
    assert sample["order"] == sample_of(QIDS[::-1], 20, seed=3)["order"]
    for size in (10, 13, 20):
        qids = sample["order"][:size]
        assert sample_fault(qids, [entry(sample, qid) for qid in qids], QIDS) is None


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    judged, lines, run = data()
    rows = [{"qid": qid, "retrieval_gt": groups} for qid, groups in judged.items()]
    (tmp_path / "judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    results = [{"qid": qid, "retrieved_ids": ids} for qid, ids in run.items()]
    for name in ("one", "two"):
        text = "".join(json.dumps(row) + "\n" for row in results)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    words = [str(tmp_path / name) for name in ("judged.jsonl", "one.jsonl", "two.jsonl")]
    main(["evaluate", *words, "-m", "recall@4", "--audit", str(written(tmp_path, lines)), "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert [set(each["corrected"]["recall@4"]) >= {"mean", "interval", "effective"} for each in told["runs"]] == [
        True
    ] * 2
    main(["evaluate", *words, "-m", "recall@4", "--audit", str(tmp_path / "audit.jsonl")])
    assert "model's labels" in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        main(["evaluate", *words, "--assume-random"])
    assert end.value.code == 2
    snapshot(capsys.readouterr().err)


def test_a_sample_that_is_judged_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "queries.tsv").write_text("".join(f"{qid}\tquery {qid}\n" for qid in QIDS), encoding="utf-8")
    main(["sample", str(tmp_path / "queries.tsv"), "--size", "12", "--seed", "5", "--out", str(tmp_path / "s.jsonl")])
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text(encoding="utf-8").splitlines()]
    assert lines[0] == {"qid": lines[0]["qid"], "query": f"query {lines[0]['qid']}", "sample": lines[0]["sample"]}
    judged, _, run = data()
    path = written(tmp_path, [{**line, "retrieval_gt": [[f"{line['qid']}a"]]} for line in lines[:11]])
    found = groupgt.evaluate(judged, run, ["recall@4"], audit=path)
    assert "corrected by an audit of 11 of 40 queries, a recorded random sample" in str(found)


def test_values_per_query_say_that_they_follow_the_labels(tmp_path: Path) -> None:
    truth, lines, run = data()
    table = groupgt.compare(truth, {"one": run, "two": run}, ["recall@2"], audit=written(tmp_path, lines))
    one = table.evaluations["one"]
    name = "recall@2 by labels"
    assert one.per_query.columns == ["qid", name]
    assert table.per_query.columns == ["run", "qid", name]
    values = [value for value in one.to_dict(per_query=True)["per_query"][name] if value is not None]
    assert sum(values) / len(values) == pytest.approx(one.means_by_labels()["recall@2"])
    assert one.means["recall@2"] != pytest.approx(one.means_by_labels()["recall@2"])


def test_wilson_by_hand() -> None:
    assert wilson(0.9, 10, 0.95) == pytest.approx((0.5958, 0.9821), abs=5e-5)


def test_an_audit_leaves_metrics_of_harm_as_they_are(tmp_path: Path) -> None:
    """3 of the 12 first results are harmful, so `clean` is 9/12."""
    rows = [json.dumps({"qid": f"q{n}", "retrieval_gt": [["a"]], "harmful_ids": ["h"]}) + "\n" for n in range(12)]
    truth, human = tmp_path / "truth.jsonl", tmp_path / "human.jsonl"
    truth.write_text("".join(rows))
    human.write_text("".join(rows[:10]))
    run = {f"q{n}": ["h" if n < 3 else "a"] for n in range(12)}
    found = groupgt.evaluate(truth, run, ["clean@1", "recall@1"], audit=human, assume_random=True)
    assert found.means["clean@1"] == 9 / 12
    assert list(found.corrected) == ["recall@1"]
    runs = {"run": run, "other": {qid: ["a"] for qid in run}}
    plain = groupgt.compare(truth, runs, ["clean@1"])
    audited = groupgt.compare(truth, runs, ["clean@1", "recall@1"], audit=human, assume_random=True)
    assert audited["other"]["clean@1"] == plain["other"]["clean@1"]
