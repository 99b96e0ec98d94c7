"""Answers beside retrieval: values by hand, a slow reference, laws, and what is refused or left out."""

from __future__ import annotations

import json
import math
import random
import re
import runpy
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.cli.main import main
from groupgt.comparison.outcomes import Level, Outcomes, gold_of, outcomes_of, share_of
from groupgt.errors import DataError
from groupgt.formats.answers import read_answers
from groupgt.model.run import Run
from groupgt.report.experiment import page_of
from groupgt.report.outcomes import page_part
from tests.comparison.slowly import NEEDS_SCIPY
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

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
    assert shares == {"complete": (31, 34), "incomplete": (21, 48), "wrong": (27, 30)}
    # Wilson at 34 queries, p = 31/34 = .9118, z = 1.96: c = z²/34 = .11298,
    # (.9118 + .0565 ± √(.11298 · .9118 · .0882 + .11298²/4)) / 1.11298 = (.9683 ± .1109) / 1.11298.
    assert found.shares["complete"].interval == pytest.approx((0.7704, 0.9696), abs=2e-4)
    # And at 48, p = .4375: c = .08003,
    # (.4375 + .0400 ± √(.08003 · .2461 + .0016)) / 1.08003 = (.4775 ± .1459) / 1.08003.
    assert found.shares["incomplete"].interval == pytest.approx((0.3070, 0.5772), abs=2e-4)
    # Newcombe: .4743 − √((.9118 − .7704)² + (.5772 − .4375)²) = .4743 − .1988;
    # .4743 + √((.9696 − .9118)² + (.4375 − .3070)²) = .4743 + .1427.
    assert found.shares["difference"].value == pytest.approx(31 / 34 - 21 / 48)
    assert found.shares["difference"].interval == pytest.approx((0.2755, 0.6170), abs=3e-4)
    assert str(found).startswith("Of 30 wrong answers, 27 had incomplete retrieval at 10.")
    snapshot(str(found))


def test_gold_by_hand() -> None:
    """12 of 20 answers are correct; gold context has 6 of the 8 wrong ones right, and 1 of the 12 others wrong."""
    score = np.array([1.0] * 12 + [0.0] * 8)
    oracle = np.array([1.0] * 11 + [0.0] + [1.0] * 6 + [0.0] * 2)
    share = gold_of(score, oracle, 0.95)
    # (11 + 6) / 20 − 12 / 20 = 5/20.
    assert (share.value, share.part, share.whole) == (0.25, 5, 20)
    # 6 of 7 signs agree: two-sided p = 2 · (7 + 1) / 2⁷ = .125, so the interval holds 0.
    assert share.interval[0] <= 0 < share.value < share.interval[1] <= 1
    # 8 of 8 agree: p = 2 / 2⁸ = .008.
    assert gold_of(score, np.ones(20), 0.95).interval[0] > 0
    # Gold context changes nothing: the interval is not a point.
    low, high = gold_of(score, score, 0.95).interval
    assert low < 0 < high


def test_gold_is_over_the_queries_that_have_both() -> None:
    """Of q0 to q11 correct and q12 to q19 wrong, gold context was tried on q11 (wrong now) and q12 (right now)."""
    found = groupgt.outcomes(*data((12, 0, 0, 8)), oracle={"q11": 0, "q12": 1})
    assert (found.shares["gold"].value, found.shares["gold"].whole) == (0, 2)


def test_completeness_is_averaged_over_trials() -> None:
    """q0 is complete in two of three trials, q1 in none: of 2 correct answers, 2/3 are complete."""
    truth = {"q0": [["a"]], "q1": [["b"]]}
    trials = [{"q0": ["a"], "q1": ["x"]}, {"q0": ["x"], "q1": ["x"]}, {"q0": ["a"], "q1": ["x"]}]
    evaluation = groupgt.compare(truth, {"s": trials, "one": trials[0]}, ["recall@1"]).evaluations["s"]
    for order in ((0, 1, 2), (1, 2, 0)):
        moved = replace(evaluation, repeats=tuple(evaluation.repeats[place] for place in order))
        found = outcomes_of(moved, 1, read_answers({"q0": 1, "q1": 1}))
        assert found.shares["complete"].part == found.shares["complete"].whole == pytest.approx(2 / 3)
        assert found.shares["incomplete"].whole == pytest.approx(4 / 3)


def slow_share(part: list[float], whole: list[float], answers: int, *, binary: bool) -> tuple[float, float, float]:
    """The module's docstring, query by query."""
    from scipy import stats

    total = sum(whole)
    p = sum(part) / total
    n = total**2 / sum(each**2 for each in whole)
    variance = sum(((a - p * b) / total) ** 2 for a, b in zip(part, whole))
    size = n
    if 0 < p < 1 and variance > 0 and not (binary and answers == sum(each > 0 for each in whole)):
        size = p * (1 - p) / variance
        size = max(min(size, answers) if binary else size, n)
    z = stats.norm.ppf(0.975)
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
    if not used:
        return
    share = share_of(np.array(parts), np.array(wholes), level)
    expected = slow_share(parts, wholes, used * each, binary=steps == 1)
    assert (share.value, *share.interval) == pytest.approx(expected, abs=1e-9)


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
    assert after.shares == before.shares


def some(qids: Callable[[str], bool]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda answers: {qid: score for qid, score in answers.items() if qids(qid)}


FULL = (31, 3, 21, 27)
# What happens to shares and what is told, by what is unusual: answers, oracle, absent shares, left out, text.
JOINTS: dict[str, tuple[tuple[int, int, int, int], dict[str, Any], set[str], dict[str, int], str]] = {
    "unknown ids": (FULL, {"more": {"zz": 1, "zy": 0}}, set(), {"unknown": 2}, "31 of 34"),
    "no answer": (FULL, {"fewer": 4}, set(), {"unanswered": 4}, "27 of 30"),
    "no judgment": (FULL, {"more": {"q0": None}}, set(), {"unjudged": 1, "unanswered": 1}, "30 of 33"),
    "several answers": (FULL, {"more": {"q0": [1, 0, 0, 0]}}, set(), {}, "Answers score 0.890 (34 queries)"),
    "scores": (FULL, {"more": {"q0": 0.25}}, set(), {}, "Answers score 0.890 (34 queries)"),
    "truth values": (FULL, {"more": {"q0": True, "q1": np.bool_(True)}}, set(), {}, "31 of 34"),
    "all correct": ((20, 0, 20, 0), {}, {"wrong"}, {}, "20 of 20"),
    "all wrong": ((0, 20, 0, 20), {}, set(), {}, "0 of 20"),
    "few complete": ((2, 2, 10, 20), {}, set(), {}, "2 of 4"),
    "one a side": ((1, 0, 0, 1), {}, set(), {}, "1 of 1"),
    "always complete": ((20, 10, 0, 0), {}, {"incomplete"}, {}, "complete at 10 for every answered query"),
    "never complete": ((0, 0, 20, 10), {}, {"complete"}, {}, "incomplete at 10 for every answered query"),
    "oracle": (FULL, {"oracle": lambda answers: dict.fromkeys(answers, 1)}, set(), {}, "gained with gold context"),
    "oracle on few": (FULL, {"oracle": some(lambda qid: qid in ("q0", "q81"))}, set(), {}, "with gold context"),
}  # fmt: skip


@pytest.mark.parametrize("name", JOINTS)
def test_joints(name: str) -> None:
    counts, changes, absent, left_out, said = JOINTS[name]
    truth, run, answers = data(counts)
    oracle = changes["oracle"](answers) if "oracle" in changes else None
    answers = dict(list(answers.items())[changes.get("fewer", 0) :]) | changes.get("more", {})
    found = groupgt.outcomes(truth, run, answers, oracle=oracle)
    assert {"complete", "incomplete", "wrong"} - found.shares.keys() == absent
    assert dict(found.left_out) == left_out
    assert said in str(found)
    for share in found.shares.values():
        assert share.interval[0] <= share.value <= share.interval[1]
        assert share.interval[0] < share.interval[1]
    assert re.findall(CAUSAL, found.text("github") + json.dumps(found.to_dict()), re.IGNORECASE) == []
    assert len(found.csv_rows()[1]) == 4 + len(found.shares)


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
    with pytest.raises(DataError, match="expected queries from the ground truth, such as 'q0', found 'zz'"):
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
        "answers.csv:3: query 'q1': expected a number from 0 (wrong) to 1 (correct) as correct, found '4'",
        "answers.csv:4: query 'q2': expected a number from 0 (wrong) to 1 (correct) as correct, found 'maybe'",
        "answers.csv:5: expected a qid",
    ],
    "qid,score\nq0,1\n": ["'correct' column is missing", "rename score to correct, or add --columns correct=score ("],
    '{"qid": "q0", "correct": 2}': ["answers.csv:1: query 'q0': expected a number from 0 (wrong)", "found 2"],
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
    with pytest.raises(DataError, match=r"query 'same\?': the queries a, b have the same text; add ids"):
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
    assert {len(each) for each in hits.values()} == {200}
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
    # Of 82 answers, gold context has all right, 52 were.
    assert golden.shares["gold"].value == pytest.approx(30 / 82)
    alone = groupgt.outcomes(truth, run, answers, k=2)
    assert outcome.answered["one"]["plain"].shares == alone.shares
    assert str(outcome).count("had incomplete retrieval at 2.") == 3
    assert str(outcome).count("better retrieval may not help.") == 3
    assert outcome.folder is not None
    results = json.loads((outcome.folder / "results.json").read_text(encoding="utf-8"))
    assert results["datasets"]["one"]["outcomes"]["plain"]["shares"]["incomplete"]["part"] == 21
    files = json.loads((outcome.folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    assert {"answers.csv", "one.csv", "two.csv", "gold.csv"} <= set(files)
    part = page_of(outcome)["datasets"][0]["outcomes"]
    assert part is not None
    assert [(cell["label"], cell["count"], len(cell["qids"])) for cell in part["systems"][0]["cells"]] == [
        ("worked", "31", 31),
        ("had it all, failed", "3", 3),
        ("correct anyway", "21", 21),
        ("missed it, failed", "27", 27),
    ]
    assert part["sentences"] == [
        {
            "kind": "note",
            "parts": [
                "Of 30 wrong answers from ",
                "plain",
                ", 27 had incomplete retrieval; of 30 from ",
                "golden",
                ", 27.",
            ],
        }
    ]
    # Every query has two groups and covers the first; those of equal counts keep the order of the ground truth.
    assert part["first"][0] == ("q55", "what q55?", "plain 1 of 2 groups, golden 1 of 2 groups")
    assert [qid for qid, _, _ in part["first"]] == ["q55", "q56", "q57"]
    assert len(part["more"]) == 24


def test_queries_of_one_system_come_first_if_none_is_wrong_in_all() -> None:
    """Of four incomplete queries, `one` has q0 wrong, and `two` has q1 and q2."""
    truth, run, _ = data((0, 0, 4, 0))
    wrong = {"one": ["q0"], "two": ["q1", "q2"]}
    results = {
        name: groupgt.outcomes(truth, run, {qid: int(qid not in qids) for qid in truth}) for name, qids in wrong.items()
    }
    for about, name in (("one", "one"), (None, "two")):
        part = page_part(results, about)
        assert part is not None
        assert [qid for qid, _, _ in part["first"]] == wrong[name]
        assert part["why"] == f"incomplete and wrong in {name}, most missed groups first"


def test_the_interval_of_a_negative_difference_names_the_difference() -> None:
    """1 of 4 is correct where retrieval is complete, and 3 of 4 where it is not: the difference is -50 points."""
    low, high = groupgt.outcomes(*data((1, 3, 3, 1))).shares["difference"].interval
    text = str(groupgt.outcomes(*data((1, 3, 3, 1))))
    assert f"50.0 points less often where retrieval is complete (difference -50.0, 95% CI {100 * low:.1f} to" in text
    assert low < -0.5 < high


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
    with pytest.raises(groupgt.ConfigError, match="all systems of a sweep would have the same answers"):
        groupgt.run_experiment(tmp_path / "e.yaml")


def test_sentences_weight_queries_by_their_trials() -> None:
    """q1 is complete in 1 of 2 trials and answered correctly, q2 in both and wrongly: ½ of 1½, and ½ of ½."""
    truth = {"q1": [["a"]], "q2": [["b"]]}
    trials = [{"q1": ["a"], "q2": ["b"]}, {"q1": ["x"], "q2": ["b"]}]
    found = groupgt.outcomes(truth, Run.of_trials([Run.of(each) for each in trials]), {"q1": 1, "q2": 0})
    assert "Answers score 0.333 (1.5 queries) on average when" in found.text()
    assert "and 1.000 (0.5 queries) when it is not" in found.text()


def test_an_answer_goes_with_the_retrieval_of_its_trial() -> None:
    """q0 is complete in trial 1 and right there alone; q1 is complete in both trials and right in trial 2.

    Correct when complete: (1/2 + 1/2) / (1/2 + 1) = 2/3. The product of means would be (1/4 + 1/2) / (3/2) = 1/2.
    Wrong are 1/2 + 1/2 answers, of which q0's in trial 2 had incomplete retrieval: 1/2.
    """
    truth = {"q0": [["a"]], "q1": [["b"]]}
    trials = [{"q0": ["a"], "q1": ["b"]}, {"q0": ["x"], "q1": ["b"]}]
    right = {("q0", 1): 1, ("q0", 2): 0, ("q1", 1): 0, ("q1", 2): 1}
    for order in (list(right), list(right)[::-1]):
        rows = [{"qid": qid, "trial": trial, "correct": right[qid, trial]} for qid, trial in order]
        found = groupgt.outcomes(truth, trials, pl.DataFrame(rows), k=1)
        assert (found.complete.value, found.complete.whole) == (pytest.approx(2 / 3), 1.5)
        assert (found.wrong.part, found.wrong.whole) == (0.5, 1)
        cells = {row[0]: row[4] for row in found.to_polars().rows()[:4]}
        assert list(cells.values()) == pytest.approx([1, 0.5, 0, 0.5])
    # Only q0 was answered in trial 2, and its retrieval is incomplete there.
    found = groupgt.outcomes(truth, trials, pl.DataFrame([{"qid": "q0", "trial": 2, "correct": 1}]), k=1)
    assert (found.complete, found.incomplete.part, found.incomplete.whole) == (None, 1, 1)
    with pytest.raises(
        DataError, match="expected the 2 trials of the run, found the trials 3; number the trials from 1 to 2"
    ):
        groupgt.outcomes(truth, trials, pl.DataFrame([{"qid": "q0", "trial": 3, "correct": 1}]), k=1)
