"""Answers beside retrieval: values by hand, a slow reference, laws, and what is refused or left out."""

from __future__ import annotations

import json
import math
import random
import re
import runpy
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.cli.main import main
from groupgt.errors import DataError
from groupgt.evaluation.outcomes import (
    Level,
    Outcomes,
    concordance_of,
    excess_of,
    net_of,
    outcomes_of,
    ranked,
    share_of,
)
from groupgt.formats.answers import read_answers
from groupgt.report.experiment import page_of
from tests.comparison.slowly import NEEDS_SCIPY
from tests.snapshots import Snapshot

# Words that turn an association into something else.
CAUSAL = r"caus|because|due to|effect|impact|explain|attribut|lead[s]? to|drive|improve|reason|thanks to|owing|so that"
ANSWERS = Path(__file__).parents[2] / "examples" / "answers"
CELLS = ((True, True), (True, False), (False, True), (False, False))


def data(counts: tuple[int, int, int, int]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Truth, run and answers of queries that are (complete, correct), (complete, wrong), (incomplete, correct), …."""
    kinds = [kind for kind, count in zip(CELLS, counts) for _ in range(count)]
    truth = {f"q{n}": [[f"a{n}"], [f"b{n}"]] for n in range(len(kinds))}
    run = {f"q{n}": [f"a{n}", *([f"b{n}"] if complete else ["x"])] for n, (complete, _) in enumerate(kinds)}
    return truth, run, {f"q{n}": int(correct) for n, (_, correct) in enumerate(kinds)}


def plain(count: int) -> Level:
    return Level(0.95, np.ones(count, dtype=np.int64))


def test_by_hand(snapshot: Snapshot) -> None:
    """31 of 34 where retrieval is complete, 21 of 48 where it is not: 27 of 30 wrong answers are incomplete."""
    found = groupgt.outcomes(*data((31, 3, 21, 27)))
    shares = {name: (share.part, share.whole) for name, share in found.shares.items() if name != "difference"}
    assert shares == {"complete": (31, 34), "incomplete": (21, 48), "wrong": (27, 30), "correct": (21, 52)}
    # Wilson at 33 queries, p = 31/34 = .9118, z = 1.96: c = z²/33 = .1164,
    # (.9118 + .0582 ± √(.1164 · .9118 · .0882 + .1164²/4)) / 1.1164 = (.9700 ± .1130) / 1.1164.
    assert found.shares["complete"].interval == pytest.approx((0.7676, 0.9701), abs=2e-4)
    # And at 47, p = .4375: c = .0817, (.4375 + .0409 ± √(.0817 · .2461 + .0017)) / 1.0817 = (.4784 ± .1475) / 1.0817.
    assert found.shares["incomplete"].interval == pytest.approx((0.3058, 0.5786), abs=2e-4)
    # Newcombe: .4743 − √((.9118 − .7676)² + (.5786 − .4375)²) = .4743 − .2018;
    # .4743 + √((.9701 − .9118)² + (.4375 − .3058)²) = .4743 + .1440.
    assert found.shares["difference"].value == pytest.approx(31 / 34 - 21 / 48)
    assert found.shares["difference"].interval == pytest.approx((0.2725, 0.6183), abs=3e-4)
    # Of 52 · 30 pairs, 31 · 27 have the correct query complete and the wrong one not; 31 · 3 + 21 · 27 are ties.
    assert next(iter(found.metrics.values())).value == pytest.approx((31 * 27 + (31 * 3 + 21 * 27) / 2) / (52 * 30))
    assert found.refused.keys() == {"excess"}
    assert str(found).startswith(
        "When retrieval is complete at 10, 31 of 34 answers are correct; when it is not, 21 of 48."
    )
    snapshot(str(found))


def test_excess_by_hand() -> None:
    """90 queries of 120 are complete, 9 of them wrong; of the other 30, 21 are wrong."""
    wrong, complete = np.array([1.0] * 9 + [0.0] * 81 + [1.0] * 21 + [0.0] * 9), np.array([1.0] * 90 + [0.0] * 30)
    share = excess_of(wrong, complete, wrong * complete, plain(120))
    # P(wrong) = 30/120 = .25, P(wrong | complete) = .1: 1 − .1/.25 = .6; 30 − 120 · .1 = 18 of 30 wrong answers.
    assert (share.value, share.part, share.whole) == pytest.approx((0.6, 18, 30))
    # Influence on log(.4): complete and wrong 1/9 − 1/30 − 0, i.e. (1 − .1)/9 − (1 − .25)/30 = .075; complete and
    # correct −.1/9 + .25/30 = −.00278; incomplete and wrong −.025; incomplete and correct .25/30 = .00833.
    # Σ i² = 9 · .005625 + 81 · .0000077 + 21 · .000625 + 9 · .0000694 = .065; SE = √(.065 · 120/119) = .25602.
    ends = 1 - 0.4 * math.exp(1.959964 * 0.25602), 1 - 0.4 * math.exp(-1.959964 * 0.25602)
    assert share.interval == pytest.approx(ends, abs=1e-4)


def test_net_by_hand() -> None:
    """12 of 20 answers are correct; gold context has 6 of the 8 wrong ones right, and 1 of the 12 others wrong."""
    score = np.array([1.0] * 12 + [0.0] * 8)
    oracle = np.array([1.0] * 11 + [0.0] + [1.0] * 6 + [0.0] * 2)
    share = net_of(score, oracle, plain(20))
    # (17/20 − 12/20) / (8/20) = 5/8. Residuals o − y − 5/8 (1 − y): −1 once, 0 eleven times, 3/8 six times, −5/8 twice:
    # Σ = 1 + .84375 + .78125 = 2.625; with one more query 3.625. SE = √(3.625 · 20/19) / 8 = .24418; t(19) = 2.0930.
    assert (share.value, share.part, share.whole) == (0.625, 5, 8)
    assert share.interval == pytest.approx((0.625 - 2.0930 * 0.24418, 1.0), abs=1e-4)
    # Gross: 6 of 8.
    gold = {f"q{n}": value for n, value in enumerate(oracle.tolist())}
    gross = groupgt.outcomes(*data((12, 0, 0, 8)), oracle=gold).shares["gross"]
    assert (gross.part, gross.whole) == (6, 8)


def slow_share(part: list[float], whole: list[float], answers: int, *, binary: bool) -> tuple[float, float, float]:
    """The module's docstring, query by query."""
    from scipy import stats

    total = sum(whole)
    p = sum(part) / total
    n = total**2 / sum(each**2 for each in whole)
    variance = sum(((a - p * b) / total) ** 2 for a, b in zip(part, whole)) * n / (n - 1)
    size = n
    if 0 < p < 1 and variance > 0:
        size = max(p * (1 - p) / variance, n - 1)
        size = min(size, answers) if binary else size
    single = answers == sum(each > 0 for each in whole)
    z = stats.norm.ppf(0.975) if binary and single else stats.t.ppf(0.975, round(n) - 1)
    middle, half = p + z * z / 2 / size, z * math.sqrt(p * (1 - p) / size + z * z / 4 / size**2)
    return p, (middle - half) / (1 + z * z / size), (middle + half) / (1 + z * z / size)


@given(st.integers(0, 10**6), st.integers(5, 30), st.sampled_from([(1, 1), (3, 1), (1, 4), (2, 3)]))
def test_shares_against_the_slow_reference(seed: int, count: int, how: tuple[int, int]) -> None:
    """Several answers, scores in steps, and queries on both sides."""
    pytest.importorskip("scipy", reason=NEEDS_SCIPY)
    rng, (each, steps) = random.Random(seed), how
    wholes, parts = [], []
    for _ in range(count):
        inside = [rng.random() < 0.7 for _ in range(each)]
        scores = [rng.randint(0, steps) / steps for _ in range(each)]
        wholes.append(sum(inside) / each)
        parts.append(sum(score for score, is_in in zip(scores, inside) if is_in) / each)
    used = sum(whole > 0 for whole in wholes)
    level = Level(0.95, np.full(count, each), steps == 1)
    if used < 5:
        with pytest.raises(DataError, match=f"expected at least 5 queries, found {used}"):
            share_of(np.array(parts), np.array(wholes), level)
        return
    share = share_of(np.array(parts), np.array(wholes), level)
    expected = slow_share(parts, wholes, used * each, binary=steps == 1)
    assert (share.value, *share.interval) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=20))
def test_concordance_against_all_pairs(rows: list[tuple[int, int]]) -> None:
    values, scores = np.array(rows, dtype=np.float64).T
    pairs = [(a, b) for a, b in product(rows, rows) if a[1] > b[1]]
    if not pairs:
        return
    expected = sum(1.0 if a[0] > b[0] else 0.5 if a[0] == b[0] else 0.0 for a, b in pairs) / len(pairs)
    found, influence = concordance_of(values, scores)
    assert found == pytest.approx(expected)
    # An influence is what leaving out a query changes, to first order: C is the same whichever way pairs are counted.
    assert influence.sum() == pytest.approx(0, abs=1e-9)


def test_the_standard_error_is_that_of_delong() -> None:
    """For 0/1: C's variance is S₁₀/m + S₀₁/n over placements; here up to the factor n/(n − 1) of each class."""
    rng = np.random.default_rng(0)
    score = (rng.random(60) < 0.6) * 1.0
    values = score + rng.normal(size=60)
    found, influence = concordance_of(values, score)
    right, wrong = values[score == 1], values[score == 0]
    wins = (right[:, None] > wrong).mean(axis=1), (right[:, None] > wrong).mean(axis=0)
    assert found == pytest.approx(wins[0].mean())
    expected = sum(((each - found) ** 2).sum() / len(each) ** 2 for each in wins)
    assert (influence**2).sum() == pytest.approx(expected)


def test_a_winner_beats_every_other_metric() -> None:
    rng = np.random.default_rng(1)
    score = np.repeat([1.0, 0.0], 40)
    columns = {"good": score + rng.normal(size=80) / 2, "poor": rng.normal(size=80), "flat": np.zeros(80)}
    shares, winner = ranked(columns, score, plain(80))
    assert (next(iter(shares)), winner) == ("good", "good")
    assert shares["flat"].interval == (0.5, 0.5)
    # Of two equal metrics, neither beats the other, and a single one has nothing to beat.
    assert ranked({"a": columns["good"], "b": columns["good"]}, score, plain(80))[1] is None
    assert ranked({"a": columns["good"]}, score, plain(80))[1] is None
    with pytest.raises(DataError, match="expected a metric with values for answered queries, found none"):
        ranked({}, score, plain(80))


@given(st.integers(0, 10**6))
def test_names_and_orders_change_nothing(seed: int) -> None:
    rng = random.Random(seed)
    truth, run, answers = data((9, 8, 5, 9))
    rows = [(qid, score if rng.random() < 0.5 else rng.random()) for qid, score in answers.items() for _ in range(2)]
    before = groupgt.outcomes(truth, run, pl.DataFrame(rows, schema=["qid", "correct"], orient="row"))
    names = dict(zip(truth, rng.sample(range(10**6), len(truth))))
    rng.shuffle(rows)
    shuffled = rng.sample(list(truth), len(truth))
    after = groupgt.outcomes(
        {f"n{names[qid]}": truth[qid] for qid in shuffled},
        {f"n{names[qid]}": run[qid] for qid in reversed(shuffled)},
        pl.DataFrame([(f"n{names[qid]}", score) for qid, score in rows], schema=["qid", "correct"], orient="row"),
    )
    assert (after.shares, after.metrics, after.winner, after.refused) == (
        before.shares,
        before.metrics,
        before.winner,
        before.refused,
    )


def some(qids: Callable[[str], bool]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda answers: {qid: score for qid, score in answers.items() if qids(qid)}


FULL = (31, 3, 21, 27)
# What happens to shares and what is told, by what is unusual: answers, oracle, refused, left out, text.
JOINTS: dict[str, tuple[tuple[int, int, int, int], dict[str, Any], set[str], dict[str, int], str]] = {
    "unknown ids": (FULL, {"more": {"zz": 1, "zy": 0}}, {"excess"}, {"unknown": 2}, "31 of 34"),
    "no answer": (FULL, {"fewer": 4}, {"excess"}, {"unanswered": 4}, "27 of 30"),
    "no judgment": (FULL, {"more": {"q0": None}}, {"excess"}, {"unjudged": 1, "unanswered": 1}, "30 of 33"),
    "several answers": (FULL, {"more": {"q0": [1, 0, 0, 0]}}, {"excess"}, {}, "answers score 0.890 (34 queries)"),
    "scores": (FULL, {"more": {"q0": 0.25}}, {"excess"}, {}, "answers score 0.890 (34 queries)"),
    "truth values": (FULL, {"more": {"q0": True, "q1": np.bool_(True)}}, {"excess"}, {}, "31 of 34"),
    "all correct": ((20, 0, 20, 0), {}, {"wrong", "excess", "metrics"}, {}, "20 of 20"),
    "all wrong": ((0, 20, 0, 20), {}, {"correct", "excess", "metrics"}, {}, "0 of 20"),
    "few complete": ((2, 2, 10, 20), {}, {"complete", "excess"}, {}, "2 of 4"),
    "few incomplete": ((20, 10, 2, 2), {}, {"incomplete", "excess"}, {}, "2 of 4"),
    "five a side": ((3, 2, 5, 10), {}, {"excess"}, {}, "3 of 5"),
    "seven in a class": ((3, 10, 4, 10), {}, {"excess", "metrics"}, {}, "3 of 13"),
    "always complete": ((20, 10, 0, 0), {}, {"incomplete", "excess"}, {}, "complete at 10 for every answered query"),
    "never complete": ((0, 0, 20, 10), {}, {"complete", "excess"}, {}, "incomplete at 10 for every answered query"),
    "enough for the excess": ((60, 6, 20, 20), {}, set(), {}, "60 of 66"),
    "wrong and complete too few": ((60, 4, 20, 20), {}, {"excess"}, {}, "60 of 64"),
    "oracle": (FULL, {"oracle": lambda answers: dict.fromkeys(answers, 1)}, {"excess"}, {}, "upper bound"),
    "oracle on failures alone": (
        FULL,
        {"oracle": lambda answers: {qid: 1 for qid, score in answers.items() if not score}},
        {"excess", "net"},
        {},
        "found it tried on 30 of 30 wrong and 0 of 52 correct answers",
    ),
    "oracle on few": (FULL, {"oracle": some(lambda qid: qid in ("q0", "q81"))}, {"excess", "gross", "net"}, {}, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", JOINTS)
def test_joints(name: str) -> None:
    counts, changes, refused, left_out, said = JOINTS[name]
    truth, run, answers = data(counts)
    oracle = changes["oracle"](answers) if "oracle" in changes else None
    answers = dict(list(answers.items())[changes.get("fewer", 0) :]) | changes.get("more", {})
    found = groupgt.outcomes(truth, run, answers, oracle=oracle)
    assert (set(found.refused), dict(found.left_out)) == (refused, left_out)
    assert said in str(found)
    assert found.shares.keys() | refused >= {"complete", "incomplete", "wrong", "correct", "excess"}
    for share in found.shares.values():
        assert share.interval[0] <= share.value <= share.interval[1]
    assert re.findall(CAUSAL, found.text("github") + json.dumps(found.to_dict()), re.IGNORECASE) == []
    assert len(found.csv_rows()[1]) == 4 + len(found.shares) + len(found.metrics)


def test_queries_without_a_complete_ranking_to_speak_of() -> None:
    """Unanswerable and undefined queries are no side, even if answered; missing ones are incomplete, or left out."""
    truth, run, answers = data(FULL)
    truth |= {"u": [], "m": [["z"]]}
    rows = [{"qid": qid, "retrieval_gt": groups} for qid, groups in truth.items()]
    frame = pl.DataFrame([{**row, "answerable": True} for row in rows] + [{"qid": "n", "answerable": False}])
    answers |= {"u": 1, "m": 1, "n": 1}
    for policy, left_out, whole in (
        ("missing=zero", {"unanswerable": 1, "undefined": 1}, 49),
        ("missing=skip", {"unanswerable": 1, "undefined": 2}, 48),
    ):
        found = groupgt.outcomes(frame, run, answers, policy=policy)
        assert dict(found.left_out) == left_out
        assert found.shares["incomplete"].whole == whole


def test_nothing_to_set_beside() -> None:
    truth, run, _ = data((5, 5, 5, 5))
    with pytest.raises(DataError, match="expected queries of the ground truth, such as 'q0', found 'zz'"):
        groupgt.outcomes(truth, run, {"zz": 1})
    with pytest.raises(DataError, match="expected answers to queries with ground truth and results, found none"):
        groupgt.outcomes(truth | {"u": []}, run, {"u": 1})
    with pytest.raises(groupgt.ConfigError, match="confidence: expected a number above 0 and below 1, found 1"):
        groupgt.outcomes(truth, run, {"q0": 1}, confidence=1)


def write(folder: Path) -> tuple[Path, Path, Outcomes]:
    truth, run, answers = data(FULL)
    lines = [json.dumps({"qid": qid, "query": f"what {qid}?", "retrieval_gt": groups}) for qid, groups in truth.items()]
    (folder / "qa.jsonl").write_text("\n".join(lines))
    lines = [json.dumps({"qid": qid, "retrieved_ids": ids}) for qid, ids in run.items()]
    (folder / "run.jsonl").write_text("\n".join(lines))
    return folder / "qa.jsonl", folder / "run.jsonl", groupgt.outcomes(truth, run, answers)


def shape(kind: str, answers: dict[str, int]) -> tuple[str, str]:
    """A file's name and text."""
    if kind == "jsonl":
        return "answers.jsonl", "\n".join(
            json.dumps({"question_id": qid, "is_correct": bool(y)}) for qid, y in answers.items()
        )
    if kind == "csv":
        return "answers.csv", "query_id,correct\n" + "".join(
            f"{qid},{'true' if y else '0.0'}\n" for qid, y in answers.items()
        )
    if kind == "ragas":
        rows = [{"user_input": f"What  {qid}?", "response": "", "answer_correctness": y} for qid, y in answers.items()]
        return "ragas.json", json.dumps(
            {"samples": [{**row, "user_input": row["user_input"].replace("W", "w")} for row in rows]}
        )
    return "named.csv", "id,score\n" + "".join(f"{qid},{y}\n" for qid, y in answers.items())


@pytest.mark.parametrize("kind", ["jsonl", "csv", "ragas", "declared"])
def test_files(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    truth, run, expected = write(tmp_path)
    name, text = shape(kind, data(FULL)[2])
    (tmp_path / name).write_text(text)
    columns = ["--columns", "correct=score"] if kind == "declared" else []
    main(["outcomes", str(truth), str(run), str(tmp_path / name), *columns, "--format", "json"])
    shown = json.loads(capsys.readouterr().out)
    assert {name: share["value"] for name, share in shown["shares"].items()} == {
        name: share.value for name, share in expected.shares.items()
    }


def test_frames_of_every_kind() -> None:
    pytest.importorskip("pyarrow", reason="the extra groupgt[frames] is not installed")
    truth, run, answers = data(FULL)
    columns = {"qid": list(answers), "correct": list(answers.values())}
    frame = pl.DataFrame(columns)
    for each in (frame, frame.lazy(), frame.to_arrow(), frame.to_pandas(), answers):
        assert groupgt.outcomes(truth, run, each).shares["complete"].part == 31
    # Judges fail now and then: NaN is no judgment.
    frame = pl.DataFrame({"qid": list(answers), "correct": [math.nan, None, *list(answers.values())[2:]]}, strict=False)
    for each in (frame, frame.to_pandas()):
        assert groupgt.outcomes(truth, run, each).left_out == {"unjudged": 2, "unanswered": 2}


FAULTS = {
    'qid,correct\nq0,1\nq1,4\nq2,maybe\n,1\n': [
        "answers.csv:3: query 'q1': expected 0 (wrong), 1 (correct) or a number between as correct, found '4'",
        "answers.csv:4: query 'q2': expected 0 (wrong), 1 (correct) or a number between as correct, found 'maybe'",
        "answers.csv:5: expected a qid",
    ],
    "qid,score\nq0,1\n": ["'correct' column is missing", "rename score to correct (or --columns correct=score)"],
    '{"qid": "q0", "correct": 2}': ["answers.csv:1: query 'q0': expected 0 (wrong)", "found 2"],
    '{"qid": 1.5, "correct": 1}': ["answers.csv:1: expected a qid (a string or integer), found 1.5"],
}  # fmt: skip


@pytest.mark.parametrize("text", FAULTS)
def test_faults_say_where(tmp_path: Path, text: str) -> None:
    truth, run, _ = data(FULL)
    (tmp_path / "answers.csv").write_text(text)
    with pytest.raises(DataError) as error:
        groupgt.outcomes(truth, run, tmp_path / "answers.csv")
    for part in FAULTS[text]:
        assert part in str(error.value)


def test_texts_of_two_queries_need_ids(tmp_path: Path) -> None:
    frame = pl.DataFrame({"qid": ["a", "b"], "query": ["same?", "same?"], "retrieval_gt": [[["x"]], [["y"]]]})
    with pytest.raises(DataError, match=r"query 'same\?': its text is that of the queries a, b; add ids"):
        groupgt.outcomes(frame, {"a": ["x"]}, pl.DataFrame({"query": ["same?"], "correct": [1]}))


def test_the_figure_has_both_sides() -> None:
    figure = groupgt.outcomes(*data(FULL)).plot()
    assert [row[0] for row in figure.rows] == ["retrieval complete", "retrieval incomplete"]
    # Without a kind to color by, marks have one color: a scale would leave them out.
    assert [layer["mark"]["color"] for layer in figure.template["layer"]] == ["$ink", "$ink"]


def test_planted_shares_are_in_their_intervals() -> None:
    """Over 200 seeds of the example, whose answers follow a rule: at least 93% of the intervals of each share."""
    make = runpy.run_path(str(ANSWERS / "make.py"))
    truth = groupgt.read_ground_truth(ANSWERS.parent / "handbook" / "questions.jsonl")
    run = make["search"](truth)
    complete = make["complete_queries"](truth, run)
    planted = make["planted"](complete)
    evaluation = groupgt.evaluate(truth, run, ["mrr@5"])
    hits: dict[str, list[bool]] = {name: [] for name in planted}
    for seed in range(200):
        own, gold = (read_answers(each) for each in make["answers"](complete, seed))
        for name, share in outcomes_of(evaluation, make["K"], own, gold).shares.items():
            hits[name].append(share.interval[0] <= planted[name] <= share.interval[1])
    # The excess is refused where fewer than five answers are wrong although retrieval is complete.
    assert {name for name, each in hits.items() if len(each) < 200} == {"excess"}
    assert len(hits["excess"]) >= 180
    coverage = {name: sum(each) / len(each) for name, each in hits.items()}
    assert min(coverage.values()) >= 0.93, coverage


def test_the_example_is_what_its_script_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("handbook", "answers"):
        shutil.copytree(ANSWERS.parent / name, tmp_path / name)
    monkeypatch.setattr("sys.argv", ["make.py"])
    runpy.run_path(str(tmp_path / "answers" / "make.py"), run_name="__main__")
    for name in ("words.trec", "answers.jsonl", "gold.jsonl"):
        assert (tmp_path / "answers" / name).read_bytes() == (ANSWERS / name).read_bytes(), name


EXPERIMENT = """
version: 1
name: answered
convention: coverage
datasets: {one: {ground_truth: qa.jsonl}, two: {ground_truth: qa.jsonl}}
systems:
  plain: {use: results, with: {path: run.jsonl}, answers: answers.csv, only: [one]}
  golden:
    use: results
    with: {path: run.jsonl}
    answers: {file: "{dataset}.csv", oracle: gold.csv, columns: {correct: c}}
evaluate: {metrics: [recall@2, mrr@1]}
"""


def test_answers_in_an_experiment(tmp_path: Path) -> None:
    truth, run, _ = write(tmp_path)
    answers = data(FULL)[2]
    rows = "".join(f"{qid},{score}\n" for qid, score in answers.items())
    for name, column in (("answers", "correct"), ("one", "c"), ("two", "c"), ("gold", "c")):
        text = (
            rows.replace(",0\n", ",1\n") if name == "gold" else rows.replace("q0,1", "q0,0") if name == "two" else rows
        )
        (tmp_path / f"{name}.csv").write_text(f"qid,{column}\n{text}", encoding="utf-8")
    (tmp_path / "e.yaml").write_text(EXPERIMENT, encoding="utf-8")
    outcome = groupgt.run_experiment(tmp_path / "e.yaml")
    assert {dataset: set(each) for dataset, each in outcome.answered.items()} == {
        "one": {"plain", "golden"},
        "two": {"golden"},
    }
    # Within the primary metric's cutoff; the first answer of the second data set is wrong.
    assert {each.cutoff for part in outcome.answered.values() for each in part.values()} == {"2"}
    parts = {name: outcome.answered[name]["golden"].shares["complete"].part for name in ("one", "two")}
    assert parts == {"one": 31, "two": 30}
    golden = outcome.answered["one"]["golden"]
    assert golden.shares["net"].value == 1
    assert golden.shares["net"].interval[0] < 1
    alone = groupgt.outcomes(truth, run, answers, ["recall@2", "mrr@1"], k=2)
    assert outcome.answered["one"]["plain"].shares == alone.shares
    assert str(outcome).count("When retrieval is complete at 2") == 3
    assert outcome.folder is not None
    results = json.loads((outcome.folder / "results.json").read_text(encoding="utf-8"))
    assert results["datasets"]["one"]["outcomes"]["plain"]["shares"]["incomplete"]["part"] == 21
    files = json.loads((outcome.folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    assert {"answers.csv", "one.csv", "two.csv", "gold.csv"} <= set(files)
    (plain_part, _) = page_of(outcome)["datasets"][0]["outcomes"]
    assert [(label, len(qids), more) for label, qids, more in plain_part["cells"]] == [
        ("complete, correct", 31, 0),
        ("complete, wrong", 3, 0),
        ("incomplete, correct", 21, 0),
        ("incomplete, wrong", 27, 0),
    ]


def test_answers_that_an_experiment_lacks(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "e.yaml").write_text(EXPERIMENT, encoding="utf-8")
    with pytest.raises(groupgt.ConfigError) as error:
        groupgt.run_experiment(tmp_path / "e.yaml")
    assert [text.partition(": ")[2].partition(":")[0] for text in error.value.faults] == [
        "systems.plain.answers.file",
        *["systems.golden.answers.file"] * 2,
        "systems.golden.answers.oracle",
    ]
    swept = EXPERIMENT.replace(
        "with: {path: run.jsonl}, answers: answers.csv", "matrix: {path: [run.jsonl]}, answers: qa.jsonl"
    )
    (tmp_path / "e.yaml").write_text(swept, encoding="utf-8")
    with pytest.raises(groupgt.ConfigError, match="the answers of a swept system would all be the same"):
        groupgt.run_experiment(tmp_path / "e.yaml")
