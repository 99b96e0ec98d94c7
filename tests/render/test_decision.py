"""The decision: which of its rows holds, in which words, and that every medium repeats them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import groupgt
from groupgt.comparison.compare import comparison_of
from groupgt.comparison.power import power_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems
from groupgt.experiment.config import Gate
from groupgt.experiment.outcome import Drop, GateResult
from groupgt.render.document import Verdict, document
from groupgt.render.layout import Screen
from groupgt.report import gates as told
from groupgt.report.comparison import dataset_of
from groupgt.report.decision import BADGES, SHAPES, Decision, decide, decisions, overall, overall_card
from groupgt.report.experiment import items, page_of, summary
from groupgt.report.names import Names
from groupgt.report.priorities import first_queries
from tests.snapshots import Snapshot

QIDS = [f"q{number:02}" for number in range(16)]
TRUTH = {qid: [["a"], ["b"]] for qid in QIDS}
Run = dict[str, list[str]]
BEST: Run = {qid: ["a", "b", "x"] for qid in QIDS}
GOOD: Run = {qid: ["a", "x", "b"] for qid in QIDS}
BAD: Run = {qid: ["x", "y", "a"] for qid in QIDS}
# On two queries better than GOOD, and on one worse.
NEAR: Run = {**GOOD, "q00": BEST["q00"], "q01": BEST["q01"], "q02": BAD["q02"]}
# On two queries worse than GOOD, and on one better.
LESS: Run = {**GOOD, "q00": BAD["q00"], "q01": BAD["q01"], "q02": BEST["q02"]}


def compared(runs: dict[str, Run], metric: str = "ndcg@3", **options: object) -> groupgt.Comparison:
    return groupgt.compare(TRUTH, runs, [metric], convention="coverage", resamples=999, **options)  # type: ignore[arg-type]


def alone(runs: dict[str, Run]) -> Systems:
    """Systems without a baseline, as in an experiment without `compare`."""
    evaluations = groupgt.evaluate_runs(TRUTH, runs, ["ndcg@3"], convention="coverage")
    return replace(comparison_of(evaluations, next(iter(runs)), Settings()), is_baseline_named=False)


def bound(system: str, value: float | None, *, passed: bool, **asks: object) -> GateResult:
    gate = Gate(system, **{"metric": "ndcg@3", **asks})  # type: ignore[arg-type]
    return GateResult(1, system, "one", gate, passed, value)


def change(
    table: groupgt.Comparison, system: str, *, passed: bool, is_beyond: bool, former: bool = False, **asks: object
) -> GateResult:
    """A gate on a drop or a gain."""
    contrast = table[system][table.primary].against
    assert contrast is not None
    gate = Gate(system, "ndcg@3", **asks)  # type: ignore[arg-type]
    drop = Drop(None if former else table.baseline, -contrast.delta, is_beyond, contrast, table.settings)
    return GateResult(1, system, "one", gate, passed, contrast.delta, drop=drop)


def no_value(system: str, problem: str, *, passed: bool = False, detail: str = "", **asks: object) -> GateResult:
    return GateResult(1, system, "one", Gate(system, "ndcg@3", **(asks or {"min": 0.5})), passed, None, problem, detail)  # type: ignore[arg-type]


RELEASED = compared({"released": GOOD, "near": NEAR})
WORSE = compared({"released": GOOD, "bad": BAD})
FEWER = compared({"released": GOOD, "less": LESS})
BETTER = compared({"released": GOOD, "best": BEST})
SWEEP = compared({"released": GOOD, "bm25[k1=0.9,b=0.4]": NEAR, "bm25[k1=1.2,b=0.4]": LESS})

CASES: dict[str, tuple[Callable[[], Decision], str]] = {
    # The name of each: how it comes about, and the state.
    "nothing to evaluate": (
        lambda: decide(groupgt.compare({"q": []}, {"one": {"q": ["a"]}, "two": {"q": ["a"]}}, ["recall@1"])),
        "no result",
    ),
    "every system failed": (
        lambda: decide(None, [], {"one": "no route to host\nat line 3", "two": "x", "three": "y"}),
        "no result",
    ),
    "a drop": (
        lambda: decide(WORSE, [change(WORSE, "bad", passed=False, is_beyond=True, max_drop=0.02)]),
        "gate failed",
    ),
    "a drop since the previous run": (
        lambda: decide(WORSE, [change(WORSE, "bad", passed=False, is_beyond=True, max_drop=0.02, former=True)]),
        "gate failed",
    ),
    "a gain that is too small": (
        lambda: decide(RELEASED, [change(RELEASED, "near", passed=False, is_beyond=True, min_gain=0.5)]),
        "gate failed",
    ),
    "a gain that is not significant": (
        lambda: decide(
            BETTER, [change(BETTER, "best", passed=False, is_beyond=False, min_gain=0.0, must="significant")]
        ),
        "gate failed",
    ),
    "a mean below its limit": (
        lambda: decide(WORSE, [bound("bad", 0.25, passed=False, min=0.7, slice={"type": "multi"})]),
        "gate failed",
    ),
    "a latency above its limit": (
        lambda: decide(WORSE, [bound("bad", 25.123, passed=False, metric="latency_p95_ms", max=20)]),
        "gate failed",
    ),
    "several gates": (
        lambda: decide(
            WORSE,
            [
                bound("bad", 0.2, passed=True, min=0.1),
                no_value("bad", "no query"),
                bound("bad", 0.25, passed=False, min=0.7),
            ],
        ),
        "gates failed",
    ),
    "gates of several systems": (
        lambda: decide(
            SWEEP,
            [bound(f"bm25[k1={k1},b=0.4]", 0.2, passed=False, min=0.7) for k1 in (0.9, 1.2)],
        ),
        "gates failed",
    ),
    "a gate on a system that failed": (
        lambda: decide(WORSE, [no_value("lsa", "failed", detail="no memory")], {"lsa": "no memory"}),
        "system failed",
    ),
    "a gate without a value": (
        lambda: decide(WORSE, [no_value("bad", "no pair", max_drop=0.1)]),
        "gate failed",
    ),
    "a loss": (lambda: decide(WORSE), "loss"),
    "losses": (
        lambda: decide(compared({"released": GOOD, "bad": BAD, "worse": {qid: [] for qid in QIDS}, "near": NEAR})),
        "losses",
    ),
    "a gain, all gates passed": (
        lambda: decide(BETTER, [bound("best", 0.9, passed=True, min=0.5)]),
        "gain",
    ),
    "a gain among losses": (
        lambda: decide(compared({"released": GOOD, "bad": BAD, "best": BEST})),
        "gain",
    ),
    "gains": (
        lambda: decide(compared({"released": GOOD, "best": BEST, "other": BEST})),
        "gains",
    ),
    "a lower value is better": (
        lambda: decide(
            groupgt.compare(
                {qid: [["a", "c"], ["b"]] for qid in QIDS},
                {"released": {qid: ["a", "c"] for qid in QIDS}, "lean": {qid: ["a", "b"] for qid in QIDS}},
                ["redundancy@2"],
                resamples=999,
            )
        ),
        "gain",
    ),
    "only the subject of the gates decides": (
        lambda: decide(
            compared({"released": GOOD, "bad": BAD, "near": NEAR}), [bound("near", 0.9, passed=True, min=0.5)]
        ),
        "passed",
    ),
    "the best of all, without a baseline": (
        lambda: decide(alone({"best": BEST, "good": GOOD, "bad": BAD})),
        "best",
    ),
    "gates passed": (
        lambda: decide(RELEASED, [bound("near", 0.9, passed=True, min=0.5)] * 4),
        "passed",
    ),
    "gates passed, and others had nothing to compare with": (
        lambda: decide(
            RELEASED,
            [bound("near", 0.9, passed=True, min=0.5), no_value("near", "no previous run", passed=True, max_drop=0.1)],
        ),
        "passed",
    ),
    "one system passed its gates": (
        lambda: decide(alone({"bm25": GOOD}), [bound("bm25", 0.9, passed=True, min=0.5)]),
        "passed",
    ),
    "same values": (
        lambda: decide(compared({"released": GOOD, "candidate": GOOD})),
        "same values",
    ),
    "nothing significant": (
        lambda: decide(SWEEP),
        "nothing significant",
    ),
    "one system that is not significant": (
        lambda: decide(FEWER),
        "nothing significant",
    ),
    "a test without a p-value": (
        lambda: decide(
            groupgt.compare(
                {"q": [["a"]]}, {"released": {"q": ["a"]}, "bad": {"q": ["x"]}}, ["recall@1"], test="bootstrap"
            )
        ),
        "nothing significant",
    ),
    "ties": (
        lambda: decide(alone({"rrf": GOOD, "convex": GOOD, "bad": BAD})),
        "ties",
    ),
    "no baseline": (
        lambda: decide(alone({"good": GOOD, "less": LESS})),
        "no baseline",
    ),
    "one system": (
        lambda: decide(alone({"bm25": GOOD})),
        "one system",
    ),
}  # fmt: skip


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Decision, str]:
    made, state = CASES[request.param]
    return made(), state


def test_the_first_row_that_holds_decides(case: tuple[Decision, str], snapshot: Snapshot) -> None:
    decision, state = case
    assert decision.state == state
    snapshot(decision.text)
    # A name counts as one word.
    words = "".join("name" if place % 2 else part for place, part in enumerate(decision.sentence)).split()
    assert len(words) <= 14
    assert "nan" not in " ".join([*decision.evidence, decision.note])


def test_every_state_is_tried() -> None:
    assert {state for _, state in CASES.values()} == set(BADGES)


def test_every_medium_has_the_same_words(case: tuple[Decision, str]) -> None:
    decision, _ = case
    badge, sentence = decision.badge, decision.text
    terminal = document([decision.card], screen=Screen(width=80))
    assert " ".join(terminal.split()).startswith(f"{decision.shape} {badge.upper()} {sentence}".strip())
    assert max(map(len, terminal.splitlines())) <= 80
    plain = document([decision.card], screen=Screen(is_ascii=True))
    assert plain.splitlines()[0].isascii() == sentence.isascii()
    assert decision.shape not in plain or not badge
    comment = document([decision.card], "github").splitlines()[0].replace("\\", "").replace("&#8203;", "")
    assert comment.lower().endswith(sentence.removesuffix(".").lower()) or not badge
    assert (f" {badge}: " in comment) == bool(badge)
    told = decision.to_dict()
    assert (told["badge"], told["sentence"]) == (badge, sentence)
    assert json.loads(json.dumps(told)) == told


def test_the_shapes_of_badges_differ() -> None:
    assert len(set(SHAPES.values())) == len(SHAPES)


def test_a_gate_without_a_value_is_worded_as_one_with_a_value() -> None:
    gates = (
        change(WORSE, "bad", passed=False, is_beyond=True, max_drop=0.02),
        no_value("bad", "no baseline", max_drop=0.02),
    )
    assert {told.rest(gate, "bad", "released") for gate in gates} == {" drops at most 0.02 from released"}


def test_evidence_has_the_level_of_its_own_interval() -> None:
    # One of two is rejected by none: each has 1 - .05 / 2.
    assert decide(SWEEP).evidence[1].startswith("97.5% CI ")
    assert (
        decide(SWEEP).evidence[0] == f"Largest change: bm25 k1=1.2, {SWEEP['bm25[k1=1.2,b=0.4]']['ndcg@3'].delta:.3f}"
    )
    assert decide(SWEEP).evidence[1].endswith("adjusted for 2 comparisons")
    # Where the gates are about one of several systems, its change says whose it is.
    of_one = decide(SWEEP, [bound("bm25[k1=0.9,b=0.4]", 0.9, passed=True, min=0.5)])
    assert of_one.evidence[0].startswith("bm25 k1=0.9: ")
    assert decide(SWEEP).evidence[2].endswith(" (Holm)")
    one = decide(FEWER).evidence
    assert one[1].startswith("95% CI -")
    assert "adjusted" not in one[1]
    assert one[3] == "16 queries"
    assert all(re.fullmatch(r"[-+]\d\.\d{3}|0\.000", number) for number in re.findall(r"[-+]\S+", one[1]))


def test_a_gate_on_a_metric_where_lower_is_better_is_about_a_rise() -> None:
    truth = {qid: [["a", "b"]] for qid in QIDS}
    runs = {name: {qid: ["a", second] for qid in QIDS} for name, second in (("plain", "x"), ("more", "b"))}
    table = groupgt.compare(truth, runs, ["redundancy@2"], resamples=999)
    contrast = table["more"][table.primary].against
    assert contrast is not None
    assert contrast.delta == 0.5
    for asks, noun in (
        (Gate("more", "redundancy@2", max_drop=0.1, unless="not_significant"), "rise"),
        (Gate("more", "redundancy@2", min_gain=0.1), "drop"),
    ):
        drop = Drop(table.baseline, contrast.delta, True, contrast, table.settings)
        gate = GateResult(1, "more", "one", asks, False, contrast.delta, drop=drop)
        assert told.change_of(asks) == noun
        assert told.limit(gate) == f"{noun}s at {'most' if noun == 'rise' else 'least'} 0.1"
        decision = decide(table, [gate])
        words = re.findall("drop|rise|gain", " ".join([decision.text, decision.note, told.reason(gate)]))
        assert set(words) == {noun}
    allowed = replace(gate, passed=True, asks=Gate("more", "redundancy@2", max_drop=0.1, unless="not_significant"))
    assert decide(table, [allowed]).text.endswith("despite a rise.")


def test_queries_that_count_for_one_system_only_are_not_counted() -> None:
    short = {qid: ids for qid, ids in BAD.items() if qid not in ("q00", "q01", "q02")}
    table = groupgt.compare(TRUTH, {"released": GOOD, "bad": short}, ["ndcg@3"], policy={"missing": "skip"})
    assert decide(table).evidence[-1] == "13 queries"


def test_ranks_decide_by_ranks() -> None:
    pytest.importorskip("scipy")
    evidence = decide(compared({"released": GOOD, "bad": BAD}, test="wilcoxon")).evidence
    assert evidence[:2] == ["-1.00 of all signed ranks", "better on 0 queries, worse on 16"]


class TestTheLineThatReconciles:
    """What seems to contradict itself, and how both are true."""

    def test_a_gate_and_a_test_that_agree(self) -> None:
        decision = decide(WORSE, [change(WORSE, "bad", passed=False, is_beyond=True, max_drop=0.02)])
        assert decision.note.startswith("The test agrees: ")

    def test_a_gate_and_a_test_that_disagree(self) -> None:
        decision = decide(FEWER, [change(FEWER, "less", passed=False, is_beyond=True, max_drop=0.02)])
        assert decision.note.startswith("The measured drop is beyond the limit, but ")

    def test_a_loss_within_the_limit(self) -> None:
        wide = decide(WORSE, [change(WORSE, "bad", passed=True, is_beyond=False, max_drop=0.9)])
        assert (wide.state, wide.note) == ("loss", "Significant, yet within the limit of 0.9.")
        near = decide(WORSE, [change(WORSE, "bad", passed=True, is_beyond=False, max_drop=0.613)])
        low = WORSE["bad"]["ndcg@3"].against.delta_interval[0]  # type: ignore[union-attr]
        # All 16 queries fall by .6131, of a range of 2: 2.1314 √(4 (.1934² + .8066²) ÷ 17 ÷ 16) is .2144.
        assert low == pytest.approx(-0.6131 - 0.2144, abs=1e-3)
        assert near.note.endswith(f"the interval reaches {low:.3f}, so a larger drop is possible.")

    def test_better_but_not_the_best(self) -> None:
        close = {**BEST, "q00": GOOD["q00"]}
        decision = decide(compared({"released": GOOD, "best": BEST, "close": close, "less": LESS}))
        assert decision.state == "gains"
        mixed = {**{qid: BEST[qid] for qid in QIDS[:9]}, **{qid: LESS[qid] for qid in QIDS[9:]}}
        decision = decide(compared({"released": GOOD, "most": {**BEST, "q15": BAD["q15"]}, "mixed": mixed}))
        assert decision.note == "" or decision.note.startswith("Better than the baseline, not ")

    def test_not_significant_is_not_equal(self, snapshot: Snapshot) -> None:
        snapshot(decide(FEWER).note)

    def test_what_the_queries_can_detect_needs_no_scipy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With two comparisons, alpha is .025 each, as `groupgt power` has it."""
        monkeypatch.setitem(sys.modules, "scipy", None)
        power = power_of(SWEEP.rows, SWEEP.settings, SWEEP.metrics)
        assert {row.alpha for row in power} == {0.025}
        least = power[[row.system for row in power].index("bm25[k1=1.2,b=0.4]")].detectable
        assert decide(SWEEP).note.endswith(
            f"For bm25 k1=1.2, 16 queries have 80% power only for changes of {least:.3f} or more."
        )

    def test_too_few_queries_for_any_change(self) -> None:
        """Of three queries, at best all are won: p is 2 · 2^-3 = .25."""
        few = {qid: TRUTH[qid] for qid in QIDS[:3]}
        one = {qid: (BEST if qid == "q00" else GOOD)[qid] for qid in few}
        decision = decide(groupgt.compare(few, {"good": {qid: GOOD[qid] for qid in few}, "one": one}, ["ndcg@3"]))
        assert decision.note.endswith("3 queries are too few for 80% power at any change.")

    def test_an_audit(self, snapshot: Snapshot) -> None:
        human = {qid: TRUTH[qid] for qid in QIDS[:12]}
        runs = {"released": GOOD, "bad": BAD}
        table = groupgt.compare(TRUTH, runs, ["ndcg@3"], audit=human, assume_random=True, convention="coverage")
        snapshot(decide(table).note)

    def test_annotators(self, snapshot: Snapshot) -> None:
        other = {qid: [["a"], ["x"]] for qid in QIDS}
        table = groupgt.compare(TRUTH, {"released": GOOD, "bad": BAD}, ["ndcg@3"], annotators=[other])
        snapshot(decide(table).note)

    def test_worse_in_a_slice(self) -> None:
        qids = [f"q{number}" for number in range(40)]
        truth = {"qid": qids, "retrieval_gt": [[["a"]]] * 40, "type": ["few"] * 10 + ["many"] * 30}
        frame = pl.DataFrame(truth)
        runs = {
            "released": {qid: ["a"] if place < 10 else ["x"] for place, qid in enumerate(qids)},
            "other": {qid: ["x"] if place < 10 else ["a"] for place, qid in enumerate(qids)},
        }
        decision = decide(groupgt.compare(frame, runs, ["recall@1"], by=["type"], resamples=999))
        assert decision.state == "gain"
        assert decision.note.startswith("Significantly worse on type few, -1.000 (p = 0.00")


EXPERIMENT = """
version: 1
name: several
convention: coverage
datasets: {good: {ground_truth: truth.jsonl}, bad: {ground_truth: truth.jsonl}}
systems:
  main: {use: results, with: {path: main.jsonl}}
  change: {use: results, with: {path: "{dataset}.jsonl"}}
evaluate: {metrics: [ndcg@3]}
compare: {baseline: main}
"""


def test_several_data_sets_have_one_badge_and_a_line_each(tmp_path: Path) -> None:
    rows = [json.dumps({"qid": qid, "retrieval_gt": groups}) for qid, groups in TRUTH.items()]
    (tmp_path / "truth.jsonl").write_text("\n".join(rows), encoding="utf-8")
    for name, run in (("main", GOOD), ("good", BEST), ("bad", BAD)):
        lines = [json.dumps({"qid": qid, "retrieved_ids": ids}) for qid, ids in run.items()]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "several.yaml").write_text(EXPERIMENT, encoding="utf-8")
    outcome = groupgt.run_experiment(tmp_path / "several.yaml")
    assert {name: decision.badge for name, decision in decisions(outcome).items()} == {"bad": "Worse", "good": "Better"}
    text = document(items(outcome))
    assert text.startswith("▼ WORSE  On bad, change is significantly worse than main in ndcg@3.\n  bad: -")
    assert "\n  good: change is significantly better than main in ndcg@3. +" in text
    assert "BETTER" not in text
    comment = summary(outcome)
    assert comment.count("### ▼ Worse: on bad, change is significantly worse") == 1
    assert "### ▲" not in comment
    assert "\n\ngood: change is significantly better than main" in comment
    assert page_of(outcome)["overall"] == (
        "Worse",
        ["On ", "bad", ", ", "change", " is significantly worse than ", "main", " in ndcg@3."],
        ["bad"],
    )
    assert outcome.folder is not None
    results = json.loads((outcome.folder / "results.json").read_text(encoding="utf-8"))
    for name, decision in decisions(outcome).items():
        assert results["datasets"][name]["decision"] == decision.to_dict()
        assert "decision" not in results["datasets"][name]["comparison"]


def test_the_system_of_the_card_is_the_subject_of_every_data_set(tmp_path: Path) -> None:
    """On `bad` it loses all queries; on `even` it loses q04 only, and `other` loses q05 and q06 there."""
    rows = [json.dumps({"qid": qid, "retrieval_gt": groups}) for qid, groups in TRUTH.items()]
    (tmp_path / "truth.jsonl").write_text("\n".join(rows), encoding="utf-8")
    even = {"change": BEST | {"q04": BAD["q04"]}, "other": BEST | {qid: BAD[qid] for qid in ("q05", "q06")}}
    runs = {"main": BEST, "change-bad": BAD, "other-bad": BEST, **{f"{name}-even": run for name, run in even.items()}}
    for name, run in runs.items():
        lines = [json.dumps({"qid": qid, "retrieved_ids": ids}) for qid, ids in run.items()]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    other = '\n  other: {use: results, with: {path: "other-{dataset}.jsonl"}}\nevaluate'
    text = EXPERIMENT.replace("good:", "even:").replace("{dataset}.jsonl", "change-{dataset}.jsonl")
    (tmp_path / "several.yaml").write_text(text.replace("\nevaluate", other), encoding="utf-8")
    page = page_of(groupgt.run_experiment(tmp_path / "several.yaml"))
    of = {each["name"]: each for each in page["datasets"]}
    assert "".join(of["even"]["decision"]["sentence"]).startswith("No system differs")
    assert of["even"]["systems"][of["even"]["subject"]]["name"] == "change"
    assert of["even"]["first"]["why"] == "Lost by change."
    assert [(each["qid"], each["lost"]) for each in of["even"]["first"]["queries"]] == [("q04", True)]


def test_one_system_that_is_not_significant_shows_what_it_lost() -> None:
    decision = decide(FEWER)
    assert (decision.state, decision.system) == ("nothing significant", "less")
    assert first_queries(FEWER.by(), decision)[0][0].startswith("lost by less")
    assert decide(SWEEP).system is None


def test_gates_that_fail_are_counted_over_all_data_sets() -> None:
    def on(dataset: str, system: str, *, passed: bool) -> GateResult:
        return replace(bound(system, 0.1, passed=passed, min=0.5), dataset=dataset)

    made = {name: Decision("gates failed", ["", "a", " fails."], ["here"], "", "a") for name in ("two", "one")}
    gates = [on("one", "a", passed=False), *[on("two", "a", passed=False)] * 2, on("one", "a", passed=True)]
    assert overall(made, gates)[0].text == "a fails 3 of 4 gates: 2 on two, 1 on one."
    # Those of other systems are not its own.
    gates.append(on("one", "b", passed=True))
    assert overall(made, gates)[0].text == "a fails 3 of its 4 gates: 2 on two, 1 on one."
    gates.append(on("two", "b", passed=False))
    decision, repeated = overall(made, gates)
    assert (decision.text, decision.badge, repeated) == ("4 of 6 gates failed: 3 on two, 1 on one.", "Blocked", [])
    assert overall_card(made, gates).lines == ["two: a fails. here.", "one: a fails. here."]


def test_gates_that_passed_on_other_systems_are_one_line_of_a_terminal() -> None:
    gates = [bound("a", 0.1, passed=False, min=0.5), *(bound(name, 0.9, passed=True, min=0.5) for name in "bc")]
    gates += [bound("a", 0.8, passed=True, min=0.6)]
    table = told.table(gates, None)
    hidden, shown = (table.lines(Screen(80, details=details)).split("\n")[1:] for details in (False, True))
    assert [line.split()[0] for line in hidden] == ["FAILED", "passed", "passed"]
    assert hidden[-1] == "passed  2 more gates, on other systems"
    assert [line.split()[0] for line in shown] == ["FAILED", "passed", "passed", "passed"]
    assert len(table.other.rows) == 4


def test_a_comparison_says_the_same_everywhere() -> None:
    decision = decide(WORSE)
    assert str(WORSE).startswith("▼ WORSE  bad is significantly worse")
    assert WORSE.to_dict()["decision"] == decision.to_dict()
    assert "### ▼ Worse: bad is significantly worse than released in ndcg@3" in WORSE.summary().replace(
        "\\", ""
    ).replace("@&#8203;", "@")
    shown = dataset_of(WORSE.by(), "own")
    assert "".join(shown["decision"]["sentence"]) == decision.text


def test_a_summary_shows_the_system_of_the_card_and_minus_signs() -> None:
    """Of six systems, the worst by mean is the one that the card is about."""
    table = compared({"released": GOOD, **{f"near{place}": NEAR for place in range(4)}, "bad": BAD}).summary()
    shown, folded = (re.findall(r"(?m)^\| *\**(\w+)", part) for part in table.split("<details>")[:2])
    assert sorted(shown) == ["System", "bad", "near0", "near1", "near2", "released"]
    assert len(folded) == 7
    sentence = Verdict([{"kind": "loss", "parts": ["By slice: ", "run -1", " is worse, -0.438."]}])
    assert document([sentence], "github") == "- By slice: run -1 is worse, \u22120.438."


def test_names() -> None:
    names = Names(["bm25[k1=0.9,b=0.4]", "bm25[k1=1.2,b=0.4]", "lsa", "rrf[k=10]", "a[b]"])
    assert [names[name] for name in ("bm25[k1=0.9,b=0.4]", "lsa", "rrf[k=10]", "a[b]", "new[k=1]")] == [
        "bm25 k1=0.9",
        "lsa",
        "rrf k=10",
        "a[b]",
        "new k=1",
    ]
    assert names.shared == ["bm25 b=0.4"]


def test_the_primary_metric_decides() -> None:
    by_first = groupgt.compare(TRUTH, {"good": GOOD, "bad": BAD}, ["recall@5", "mrr"])
    by_mrr = groupgt.compare(TRUTH, {"good": GOOD, "bad": BAD}, ["recall@5", "mrr"], primary="mrr")
    assert decide(by_first).text.endswith(" in recall@5.")
    assert decide(by_mrr).text.endswith(" in mrr.")
    assert by_first.rows == by_mrr.rows
    with pytest.raises(groupgt.MetricError, match="was not evaluated"):
        groupgt.compare(TRUTH, {"good": GOOD, "bad": BAD}, ["recall@2"], primary="mrr")


def test_each_query_to_look_at_first_has_its_reason() -> None:
    """Nine queries fall from rank 1 to 2, which still covers them at 2, one is lost, and two are never complete."""
    truth = {f"q{place:02}": [{"ids": ["a"], "name": "fee"}] for place in range(12)}
    base = {qid: ["x", "y"] if qid > "q09" else ["a", "x"] for qid in truth}
    bad = {qid: ["x", "y"] if qid in ("q00", "q10", "q11") else ["x", "a"] for qid in truth}
    compared = groupgt.compare(truth, {"base": base, "bad": bad}, ["mrr@2"])
    end = "look first at query q00 (lost by bad), then queries q10 q11 (complete in no system)"
    assert str(compared).endswith(end)
    summary = compared.summary()
    assert "Look at these 3 queries first (1 lost by bad, then 2 complete in no system)" in summary
    assert "group 1 (fee): a, not retrieved, was 1" in summary
