"""Systems beside their former selves: what is measured again, what is named, and what gates make of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.errors import ConfigError, DataError, GroupgtWarning
from groupgt.experiment.outcome import Outcome
from groupgt.experiment.previous import _largest_first
from groupgt.metrics.language import parse_metric
from groupgt.report.experiment import page_of, summary
from groupgt.report.gates import junit_report, reason
from groupgt.report.run import run_experiment
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

QIDS = [f"q{number:02}" for number in range(16)]
CORPUS = {
    **{f"d{number:02}": f"Passage {number} says what is asked for." for number in range(16)},
    **{f"e{number}": f"Nothing of use in {number}." for number in range(4)},
}
GOOD = {qid: [f"d{qid[1:]}", "e0"] for qid in QIDS}
BAD = {qid: ["e0", "e1", "e2", f"d{qid[1:]}"] for qid in QIDS}
FILE = """
version: 1
name: small
convention: coverage
datasets:
  one: {{ground_truth: qa.jsonl, corpus: corpus.jsonl}}
systems: {systems}
evaluate: {{metrics: [{metrics}], labeller: {labeller}, policy: {policy}}}
compare: {{baseline: a, resamples: 500}}
gate: {gates}
output: {{formats: [{formats}], folder: out}}
cache: null
"""
Rankings = Mapping[str, Sequence[str]]


def truth_of(**changes: Any) -> list[dict[str, Any]]:
    """The ground truth, with fields of some queries changed."""
    rows = [{"qid": qid, "query": f"Where is {qid}?", "retrieval_gt": [[f"d{qid[1:]}"]]} for qid in QIDS]
    return [{**row, **changes.get(str(row["qid"]), {})} for row in rows if changes.get(str(row["qid"]), {}) is not None]


def lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def ran(
    folder: Path,
    runs: Mapping[str, Rankings],
    *,
    against: Path | None = None,
    truth: Sequence[Mapping[str, Any]] | None = None,
    corpus: Mapping[str, str] = CORPUS,
    metrics: str = "mrr",
    labeller: str = "id",
    policy: str = "{}",
    gates: str = "[]",
    formats: str = "json, table",
    first: bool = False,
) -> Outcome:
    """Runs the small experiment on some rankings."""
    folder.mkdir(exist_ok=True)
    lines(folder / "qa.jsonl", truth_of() if truth is None else truth)
    lines(folder / "corpus.jsonl", [{"doc_id": name, "contents": text} for name, text in corpus.items()])
    for name, run in runs.items():
        lines(folder / f"{name}.jsonl", [{"qid": qid, "retrieved_ids": ids} for qid, ids in run.items()])
    systems = ", ".join(f"{name}: {{use: results, with: {{path: {name}.jsonl}}}}" for name in runs)
    values = {"metrics": metrics, "labeller": labeller, "policy": policy, "gates": gates, "formats": formats}
    (folder / "small.yaml").write_text(FILE.format(systems=f"{{{systems}}}", **values), encoding="utf-8")
    return run_experiment(folder / "small.yaml", against=against, allow_no_previous=first)


def then(folder: Path, runs: Mapping[str, Rankings], **more: Any) -> Path:
    """The result folder of an earlier run, beside which nothing is left of that run."""
    outcome = ran(folder / "then", runs, **more)
    assert outcome.folder is not None
    kept = folder / "main"
    shutil.copytree(outcome.folder, kept / outcome.folder.name)
    shutil.rmtree(folder / "then")
    return kept


def verdict(outcome: Outcome) -> list[str]:
    text = summary(outcome).replace("\u00a0", " ")
    return [line.removeprefix("- ") for line in text.splitlines() if line.startswith("- ")]


def text_of(outcome: Outcome) -> str:
    assert outcome.folder is not None
    return " ".join((outcome.folder / "table.txt").read_text(encoding="utf-8").replace("\u00a0", " ").split())


def test_what_is_worse_and_what_is_better(tmp_path: Path) -> None:
    main_run = then(tmp_path, {"a": GOOD, "b": BAD, "c": GOOD})
    outcome = ran(tmp_path / "now", {"a": GOOD, "b": GOOD, "c": BAD}, against=main_run)
    first, second, *_ = verdict(outcome)
    assert first.startswith("c is significantly worse than in the previous run: −0.750 in mrr (")
    assert "after correction (Holm) for 3 comparisons" in first
    assert second.startswith("b is significantly better than in the previous run: +0.750 in mrr (")
    contrasts = outcome.against["one"].contrasts()
    assert {name: round(each.delta, 4) for name, each in contrasts.items()} == {"a": 0.0, "b": 0.75, "c": -0.75}
    assert (contrasts["c"].losses, contrasts["b"].wins, contrasts["a"].ties) == (16, 16, 16)
    assert outcome.previous == next(main_run.iterdir()).name
    assert f"previous run: {outcome.previous}" in text_of(outcome)


def test_what_is_equal_says_so(tmp_path: Path, snapshot: Snapshot) -> None:
    outcome = ran(tmp_path / "now", {"a": GOOD}, against=then(tmp_path, {"a": GOOD}))
    snapshot(verdict(outcome)[0])


def test_rankings_are_measured_by_today_s_metrics_and_policy(tmp_path: Path) -> None:
    main_run = then(tmp_path, {"a": BAD})
    outcome = ran(tmp_path / "now", {"a": GOOD}, against=main_run, metrics="recall@2, ndcg", policy="{missing: skip}")
    (contrast,) = outcome.against["one"].contrasts().values()
    assert (contrast.delta, contrast.pairs) == (1.0, 16)
    assert not outcome.against["one"].refused
    assert not outcome.against["one"].stored


def test_the_same_rankings_have_the_same_bits(tmp_path: Path) -> None:
    metrics = "mrr, ndcg, recall@2, map, 'recall@50chars'"
    outcome = ran(tmp_path / "now", {"a": BAD}, against=then(tmp_path, {"a": BAD}, metrics=metrics), metrics=metrics)
    against = outcome.against["one"]
    assert not against.stored
    for text, column in against.now["a"].items():
        assert np.array_equal(column, against.before["a"][text], equal_nan=True)


def test_queries_are_paired_by_id_and_text(tmp_path: Path, snapshot: Snapshot) -> None:
    main_run = then(tmp_path, {"a": GOOD}, truth=truth_of(q05=None))
    truth = truth_of(
        q00={"retrieval_gt": [["e0"]]},
        q01={"query": "Something else?"},
        q02=None,
        # The same judgments, in other words.
        q03={"retrieval_gt": [{"alternatives": ["d03"], "name": "where"}]},
    )
    outcome = ran(tmp_path / "now", {"a": GOOD}, against=main_run, truth=truth)
    against = outcome.against["one"]
    assert (against.changed, against.reworded) == (["q00"], ["q01"])
    assert (against.queries_only_now, against.queries_only_then) == (1, 1)
    (contrast,) = against.contrasts().values()
    assert (contrast.pairs, contrast.differ) == (13, 0)
    # By today's ground truth the old ranking has it in the second place too.
    assert against.before["a"]["mrr.coverage"][0] == against.now["a"]["mrr.coverage"][0] == 0.5
    text = text_of(outcome)
    snapshot(text)


def test_systems_of_one_run_alone_are_named(tmp_path: Path, snapshot: Snapshot) -> None:
    main_run = then(tmp_path, {"a": GOOD, "old": GOOD})
    outcome = ran(tmp_path / "now", {"a": GOOD, "new": GOOD}, against=main_run)
    assert (list(outcome.against["one"].added), list(outcome.against["one"].gone)) == (["new"], ["old"])
    snapshot(text_of(outcome))


TEXT = "text"
# Passages of other words, for ground truth that is texts.
TRUTH_OF_TEXTS = truth_of(**{qid: {"retrieval_gt": [[{"text": CORPUS[f"d{qid[1:]}"]}]]} for qid in QIDS})


@pytest.mark.parametrize(("labeller", "metrics"), [(TEXT, "mrr"), ("id", "recall@60chars")])
def test_another_corpus(tmp_path: Path, labeller: str, metrics: str, snapshot: Snapshot) -> None:
    """What needs the corpus of then has it while it is the same; then the values of then do, or it is refused."""
    truth = TRUTH_OF_TEXTS if labeller == TEXT else truth_of()
    full = str(parse_metric(metrics, "coverage"))
    asked: dict[str, Any] = {"labeller": labeller, "metrics": metrics, "truth": truth}
    for name in ("kept", "bare"):
        (tmp_path / name).mkdir()
    kept = then(tmp_path / "kept", {"a": BAD}, **asked, formats="json, csv")
    bare = then(tmp_path / "bare", {"a": BAD}, **asked)
    other = {**CORPUS, "e3": "It is longer now."}

    same = ran(tmp_path / "same", {"a": BAD}, against=bare, **asked).against["one"]
    assert not same.stored
    assert not same.refused
    assert next(iter(same.contrasts().values())).differ == 0

    outcome = ran(tmp_path / "stored", {"a": GOOD}, against=kept, corpus=other, **asked)
    stored = outcome.against["one"]
    assert stored.stored == {("a", full): "the corpus has changed"}
    assert np.array_equal(stored.before["a"][full], same.before["a"][full])
    snapshot(text_of(outcome))

    outcome = ran(tmp_path / "refused", {"a": GOOD}, against=bare, corpus=other, **asked)
    why = "the corpus has changed, and its values were not saved (output.formats has neither csv nor parquet)"
    assert outcome.against["one"].refused == {("a", full): why}
    snapshot(verdict(outcome))

    policies = {**asked, "policy": "{missing: skip}"}
    (refused,) = (
        ran(tmp_path / "policy", {"a": GOOD}, against=kept, corpus=other, **policies).against["one"].refused.values()
    )
    snapshot(refused)
    others = {**asked, "metrics": f"{metrics}, map"}
    refused_by = ran(tmp_path / "metric", {"a": GOOD}, against=kept, corpus=other, **others).against["one"].refused
    if labeller == TEXT:
        assert refused_by == {
            ("a", "map.coverage"): "the corpus has changed, and the earlier run did not measure this metric"
        }
    else:
        assert not refused_by


def test_stored_values_are_of_no_use_where_the_ground_truth_changed(tmp_path: Path, snapshot: Snapshot) -> None:
    asked: dict[str, Any] = {"metrics": "recall@60chars", "formats": "csv, table"}
    kept = then(tmp_path, {"a": BAD}, **asked)
    outcome = ran(
        tmp_path / "now",
        {"a": GOOD},
        against=kept,
        corpus={**CORPUS, "e3": "More."},
        truth=truth_of(q00={"retrieval_gt": [["e0"]]}),
        **asked,
    )
    before = outcome.against["one"].before["a"]["recall.coverage@60chars"]
    assert np.isnan(before).tolist() == [True] + [False] * 15
    snapshot(text_of(outcome))


def test_a_ranking_that_is_not_kept(tmp_path: Path) -> None:
    kept = then(tmp_path, {"a": BAD}, formats="csv, table")
    shutil.rmtree(next(kept.glob("*/runs")))
    outcome = ran(tmp_path / "now", {"a": GOOD}, against=kept)
    assert outcome.against["one"].stored == {("a", "mrr.coverage"): "its earlier results were not kept"}
    # Where its file is still the same, it is read from there.
    same = ran(tmp_path / "same", {"a": BAD}, against=kept)
    assert not same.against["one"].stored


# --- Gates.

DROP = "{system: '*', metric: mrr, max_drop: 0.1, against: previous}"
SURE = "{system: '*', metric: mrr, max_drop: 0.01, against: previous, unless: not_significant}"
GAIN = "{system: '*', metric: mrr, min_gain: 0.05, against: previous, must: significant}"


def some(count: int, over: Rankings = GOOD, other: Rankings = BAD) -> Rankings:
    """The first few rankings of one run, the rest of another."""
    return {qid: (over if place < count else other)[qid] for place, qid in enumerate(QIDS)}


def test_a_drop_and_a_gain(tmp_path: Path, snapshot: Snapshot) -> None:
    main_run = then(tmp_path, {"a": GOOD, "b": BAD, "c": BAD})
    outcome = ran(
        tmp_path / "now",
        {"a": some(14), "b": GOOD, "c": some(1)},
        against=main_run,
        gates=f"[{DROP}, {SURE}, {GAIN}]",
    )
    passed = {(gate.gate, gate.system): gate.passed for gate in outcome.gates}
    assert passed == {
        **{(1, "a"): True, (1, "b"): True, (1, "c"): True},
        **{(2, "a"): True, (2, "b"): True, (2, "c"): True},
        **{(3, "a"): False, (3, "b"): True, (3, "c"): False},
    }
    told = {(gate.gate, gate.system): reason(gate) for gate in outcome.gates}
    # Of 16 queries two differ: p is at least 2 ÷ 2^2, and takes six to reach 2 ÷ 2^6 ≤ 0.05.
    snapshot([told[2, "a"], told[3, "b"], told[3, "a"]])
    few = told[2, "a"].rpartition("; ")[2]
    assert f"warning: {told[2, 'a']}." in verdict(outcome)
    page = page_of(outcome)["datasets"][0]
    assert sum(few in row["reason"] for row in page["gates"]) == sum(
        few in "".join(each["parts"]) for each in page["notes"]
    )
    assert f"<system-out>{told[2, 'a']}</system-out>" in junit_report(outcome)


def test_each_condition_takes_the_stricter_p(tmp_path: Path) -> None:
    """Of six queries that differ one way p is 2 ÷ 64: below alpha, and not if a gain is corrected over two systems."""
    main_run = then(tmp_path, {"a": some(6, BAD, GOOD), "b": GOOD})
    gates = f"[{GAIN}, {SURE}]"
    found = ran(tmp_path / "now", {"a": GOOD, "b": some(6, BAD, GOOD)}, against=main_run, gates=gates).gates
    verdicts = {(gate.gate, gate.system): (gate.passed, gate.drop) for gate in found}
    is_gain, gain = verdicts[1, "a"]
    is_drop, drop = verdicts[2, "b"]
    assert gain is not None
    assert drop is not None
    assert gain.against.raw_p_value <= 0.05 < gain.against.p_value
    assert drop.against.p_value == drop.against.raw_p_value == 2 / 64
    # The gate prints the interval at its own alpha.
    assert drop.against.confidence == 0.95
    assert drop.against.delta_interval[1] < 0
    assert (is_gain, is_drop) == (False, False)


def test_the_baseline_may_be_gained_over(tmp_path: Path) -> None:
    gate = "{{system: {}, metric: mrr, min_gain: {}, must: significant}}"
    gates = ", ".join([gate.format("b", 0.7), gate.format("c", 0.1), gate.format("b", 0.8), gate.format("a", 0)])
    found = ran(tmp_path, {"a": BAD, "b": GOOD, "c": some(3)}, gates=f"[{gates}]").gates
    assert [each.passed for each in found] == [True, False, False, False]
    assert "better than a by 0.7500 (minimum 0.7, 16 queries); the gain is significant" in reason(found[0])
    assert "for 2 comparisons" in reason(found[0])
    assert "the gain is not significant" in reason(found[1])


def test_a_slice_against_the_run_before(tmp_path: Path) -> None:
    truth = [{**row, "type": "odd" if place % 2 else "even"} for place, row in enumerate(truth_of())]
    worse = {qid: (BAD if place % 2 else GOOD)[qid] for place, qid in enumerate(QIDS)}
    gate = "{{system: a, metric: mrr, slice: {{type: {}}}, max_drop: 0.1, against: previous}}"
    gates = f"[{gate.format('odd')}, {gate.format('even')}]"
    odd, even = ran(
        tmp_path / "now", {"a": worse}, against=then(tmp_path, {"a": GOOD}, truth=truth), truth=truth, gates=gates
    ).gates
    assert (odd.passed, even.passed) == (False, True)
    assert "by 0.7500 (maximum 0.1, 8 queries)" in reason(odd)


def test_queries_that_fail_a_gate_are_those_that_got_worse(tmp_path: Path) -> None:
    outcome = ran(tmp_path / "now", {"a": some(13)}, against=then(tmp_path, {"a": GOOD}), gates=f"[{DROP}]")
    assert "| q13, q14, q15 |" in " ".join(summary(outcome).split())


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (None, ""),
        ("mian", "no such folder (did you mean 'main'?)"),
        ("empty", "expected a result folder, found an empty folder"),
        ("other", "expected a run of small, found big"),
    ],
)
def test_without_a_run_before_it_is_refused_or_gates_are_skipped(
    tmp_path: Path, place: str | None, words: str, snapshot: Snapshot
) -> None:
    (tmp_path / "main").mkdir()
    if place == "empty":
        (tmp_path / place).mkdir()
        (tmp_path / place / ".gitkeep").touch()
    if place == "other":
        (tmp_path / "main").rmdir()
        kept = then(tmp_path, {"a": GOOD})
        for file in kept.glob("*/manifest.json"):
            file.write_text(
                file.read_text(encoding="utf-8").replace('"name": "small"', '"name": "big"'), encoding="utf-8"
            )
        kept.rename(tmp_path / place)
    against = None if place is None else tmp_path / place
    asked: dict[str, Any] = {"against": against, "gates": f"[{DROP}, {GAIN}]"}
    if against is not None:
        with pytest.raises(ConfigError) as told:
            ran(tmp_path / "now", {"a": BAD}, **asked)
        way = "for a first run, use --allow-no-previous"
        assert told.value.faults == (f"--against {against}: {words}; {way}",)
    outcome = ran(tmp_path / "now", {"a": BAD}, **asked, first=True)
    assert outcome.passed
    assert outcome.previous == (None if place is None else "")
    snapshot(verdict(outcome)[0])
    assert ("No previous run to compare with." in verdict(outcome)) == (place is not None)
    why = "a on one: mrr has no previous run to compare with (--against)"
    assert reason(outcome.gates[0]) == why
    assert {row["result"] for row in page_of(outcome)["datasets"][0]["gates"]} == {"skipped"}
    junit = junit_report(outcome)
    assert 'tests="2" failures="0" errors="0" skipped="2"' in junit
    assert f'<skipped message="{why}">' in junit


def test_a_gate_on_a_new_system_is_skipped(tmp_path: Path, snapshot: Snapshot) -> None:
    outcome = ran(tmp_path / "now", {"a": GOOD, "b": BAD}, against=then(tmp_path, {"a": GOOD}), gates=f"[{DROP}]")
    assert outcome.passed
    assert [(gate.system, gate.skipped) for gate in outcome.gates] == [("a", False), ("b", True)]
    snapshot(map(reason, outcome.gates))
    snapshot(verdict(outcome)[0])


def test_the_shell_refuses_a_folder_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    main_run = then(tmp_path, {"a": GOOD})
    ran(tmp_path / "now", {"a": BAD}, gates=f"[{DROP}]")
    file, wrong = str(tmp_path / "now" / "small.yaml"), str(main_run.with_name("mian"))
    for more in ([], ["--dry-run"]):
        with pytest.raises(SystemExit) as end:
            main(["run", file, "--against", wrong, *more])
        assert end.value.code == 2
        snapshot(capsys.readouterr().err)
    with pytest.raises(SystemExit) as end:
        main(["run", file, "--allow-no-previous"])
    assert end.value.code == 2
    snapshot(capsys.readouterr().err)
    main(["run", file, "--against", wrong, "--allow-no-previous"])
    snapshot(capsys.readouterr().out)


def test_queries_lost_since_the_previous_run_are_not_told_beside_the_baseline(tmp_path: Path) -> None:
    """`a`, the baseline, has each document at rank 4 both times; `b` had it first, and has it third now."""
    gates = "[{system: b, metric: recall@1, max_drop: 0.1, against: previous}]"
    main_run = then(tmp_path, {"a": BAD, "b": GOOD}, metrics="recall@1")
    third = {qid: ids[1:] for qid, ids in BAD.items()}
    outcome = ran(tmp_path / "now", {"a": BAD, "b": third}, against=main_run, metrics="recall@1", gates=gates)
    first = page_of(outcome)["datasets"][0]["first"]
    assert first["why"] == "Lost by b since the previous run."
    assert first["queries"][0]["missing"][0][1] == "rank 3, was 1"


def test_a_gate_on_the_previous_run_shows_the_queries_lost_since(tmp_path: Path) -> None:
    """Beside the baseline `a`, all are lost; `b` had q02 and q05, at rank 2, and has none within 3 now."""
    gates = "[{system: b, metric: recall@3, max_drop: 0.1, against: previous}]"
    had = BAD | {qid: ["e0", f"d{qid[1:]}"] for qid in ("q02", "q05")}
    main_run = then(tmp_path, {"a": GOOD, "b": had}, metrics="recall@3")
    outcome = ran(tmp_path / "now", {"a": GOOD, "b": BAD}, against=main_run, metrics="recall@3", gates=gates)
    first = page_of(outcome)["datasets"][0]["first"]
    assert first["why"] == "Lost by b since the previous run."
    assert [(each["qid"], each["became"]) for each in first["queries"][:2]] == [
        ("q02", "1.000 → 0.000"),
        ("q05", "1.000 → 0.000"),
    ]
    assert first["queries"][0]["missing"][0][1] == "rank 4, was 2"


def test_queries_lost_and_gained_are_named(tmp_path: Path, snapshot: Snapshot) -> None:
    """Complete at 1 before and not now: q13, q14, q15. The other way round in `b`, which has 16."""
    main_run = then(tmp_path, {"a": GOOD, "b": BAD, "c": GOOD}, metrics="recall@1")
    now = {"a": some(13), "b": GOOD, "c": GOOD}
    outcome = ran(tmp_path / "now", now, against=main_run, metrics="recall@1", formats="json, table, report")
    against = outcome.against["one"]
    assert (against.lost["a"], against.gained["a"]) == (["q13", "q14", "q15"], [])
    assert (against.lost["b"], against.gained["b"]) == ([], QIDS)
    rows = [" ".join(line.split()) for line in summary(outcome).splitlines()]
    assert "| a | 3: q13, q14, q15 | none |" in rows
    first = ", ".join(QIDS[:10])
    assert f"| b | none | 16: {first} and 6 more |" in rows
    assert "| c | none | none |" not in rows
    snapshot(rows)
    assert outcome.folder is not None
    results = json.loads((outcome.folder / "results.json").read_text(encoding="utf-8"))
    of_set = results["datasets"]["one"]["previous"]
    assert of_set["lost_queries"] == {"a": ["q13", "q14", "q15"], "b": [], "c": []}
    assert of_set["gained_queries"]["b"] == QIDS


def test_the_page_has_each_system_beside_its_previous_version(tmp_path: Path, snapshot: Snapshot) -> None:
    outcome = ran(tmp_path / "now", {"a": some(4), "b": GOOD}, against=then(tmp_path, {"a": GOOD}), metrics="recall@1")
    part = page_of(outcome)["datasets"][0]["previous"]
    assert part is not None
    (system,) = part["systems"]
    assert (system["name"], system["lost"], system["more_lost"]) == ("a", QIDS[4:14], 2)
    assert (system["gained"], system["more_gained"]) == ([], 0)
    assert system["rows"][0][:5] == ["recall@1", "16", "1.000", "0.250", "−0.750▼"]
    assert "".join(system["verdict"][0]["parts"]).startswith(
        "a is significantly worse than in the previous run: −0.750"
    )
    snapshot(part["notes"])
    assert page_of(ran(tmp_path / "alone", {"a": GOOD}))["datasets"][0]["previous"] is None


def test_queries_lost_are_of_those_that_both_runs_have(tmp_path: Path) -> None:
    main_run = then(tmp_path, {"a": GOOD}, truth=truth_of(q05=None))
    outcome = ran(
        tmp_path / "now", {"a": BAD}, against=main_run, truth=truth_of(q01={"query": "Else?"}), metrics="recall@1"
    )
    assert outcome.against["one"].lost["a"] == [qid for qid in QIDS if qid not in ("q01", "q05")]


def test_what_cannot_be_compared_fails_and_says_why(tmp_path: Path) -> None:
    main_run = then(tmp_path, {"a": GOOD}, metrics="recall@60chars")
    gate = "{system: a, metric: recall@60chars, max_drop: 0, against: previous}"
    outcome = ran(
        tmp_path / "now",
        {"a": GOOD},
        against=main_run,
        corpus={**CORPUS, "e3": "More."},
        metrics="recall@60chars",
        gates=f"[{gate}]",
    )
    assert not outcome.passed
    assert reason(outcome.gates[0]).startswith(
        "a on one: recall@60chars cannot be compared with the previous run: the corpus has changed, and "
    )


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        ("min: 0.1, against: previous", "gate.0.against: `against` needs max_drop or min_gain"),
        ("max_drop: 0.1, must: significant", "gate.0.must: `must` needs min_gain"),
        ("min_gain: 0.1, unless: not_significant", "gate.0.unless: `unless` needs max_drop"),
        (
            "max_drop: 0.1, min_gain: 0.1",
            "gate.0: expected one of min, max, max_drop and min_gain, found max_drop and min_gain",
        ),
        ("min_gain: 2", "gate.0.min_gain: mrr lies between 0 and 1, found 2"),
        ("max_drop: 0.1, against: main", "gate.0.against: expected baseline or previous, found 'main'"),
    ],
)
def test_faults_in_gates(tmp_path: Path, gate: str, words: str) -> None:
    with pytest.raises(ConfigError) as told:
        ran(tmp_path, {"a": GOOD}, gates=f"[{{system: a, metric: mrr, {gate}}}]")
    (fault,) = told.value.faults
    assert words in fault


# --- Folders, the shell, JSON.


def test_the_newest_run_of_the_experiment_is_taken(tmp_path: Path) -> None:
    main_run = then(tmp_path, {"a": BAD})
    (tmp_path / "again").mkdir()
    newer = next(then(tmp_path / "again", {"a": GOOD}).iterdir())
    shutil.move(str(newer), str(main_run / f"29991231T000000-{newer.name.split('-')[1]}"))
    outcome = ran(tmp_path / "now", {"a": GOOD}, against=main_run)
    assert str(outcome.previous).startswith("2999")
    # A folder that is named itself is taken, whatever it is called.
    oldest = min(main_run.iterdir()).rename(tmp_path / "baseline")
    named = ran(tmp_path / "now", {"a": GOOD}, against=oldest)
    assert named.previous == "baseline"
    assert named.against["one"].contrasts()["a"].wins == 16


def test_a_run_whose_gates_failed_does_not_become_the_baseline(tmp_path: Path) -> None:
    """The gate allows a drop of 0; BAD loses 0.75 of mrr. Each run is written next to the run it is compared with."""
    home, out = tmp_path / "now", tmp_path / "now" / "out"
    first = ran(home, {"a": GOOD}, gates=f"[{DROP}]").folder
    failed = ran(home, {"a": BAD}, gates=f"[{DROP}]", against=out)
    assert first is not None
    assert failed.folder is not None
    assert not failed.passed
    with pytest.warns(GroupgtWarning, match="left out 1 newer run that did not pass"):
        again = ran(home, {"a": BAD}, gates=f"[{DROP}]", against=out)
    assert (again.previous, again.passed) == (first.name, False)
    assert again.folder is not None
    shutil.rmtree(first)
    with pytest.warns(GroupgtWarning, match="no run in this folder passed, so groupgt compares with the newest"):
        assert ran(home, {"a": BAD}, gates=f"[{DROP}]", against=out).previous == again.folder.name
    # A folder that is named itself was accepted.
    assert ran(home, {"a": BAD}, gates=f"[{DROP}]", against=failed.folder).passed


def test_what_is_no_result_folder(tmp_path: Path, snapshot: Snapshot) -> None:
    folder = tmp_path / "main"
    folder.mkdir()
    (folder / "readme.txt").touch()
    with snapshot.raises(DataError):
        ran(tmp_path / "now", {"a": GOOD}, against=folder)


def test_a_dry_run_says_what_would_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main_run = then(tmp_path, {"a": GOOD, "old": BAD})
    ran(tmp_path / "now", {"a": GOOD, "new": GOOD})
    file = str(tmp_path / "now" / "small.yaml")
    main(["run", file, "--dry-run", "--against", str(main_run)])
    name = next(main_run.iterdir()).name
    told = " ".join(capsys.readouterr().err.split())
    parts = "one: a; not in the previous run: new; only in the previous run: old"
    assert told == f"groupgt: compared with the previous run {name}: {parts}"
    main(["run", file, "--dry-run", "--against", str(tmp_path / "nowhere"), "--allow-no-previous"])
    assert "no previous run to compare with, so groupgt skips gates that need one" in " ".join(
        capsys.readouterr().err.split()
    )


def test_results_hold_it(tmp_path: Path) -> None:
    main_run = then(tmp_path, {"a": GOOD, "b": BAD})
    outcome = ran(tmp_path / "now", {"a": BAD, "c": GOOD}, against=main_run, metrics="mrr, recall@2")
    assert outcome.folder is not None
    results = json.loads((outcome.folder / "results.json").read_text(encoding="utf-8"))
    assert results["previous"] == outcome.previous
    of_set = results["datasets"]["one"]["previous"]
    assert [(row["system"], row["metric"], row["before"], row["now"]) for row in of_set["rows"]] == [
        ("a", "mrr.coverage", 1.0, 0.25),
        ("a", "recall.coverage@2", 1.0, 0.0),
    ]
    assert of_set["rows"][0]["measured_again"]
    assert of_set["rows"][0]["significant"]
    assert (of_set["added"], of_set["gone"]) == (["c"], ["b"])
    none = ran(tmp_path / "none", {"a": BAD}, against=tmp_path / "nowhere", first=True)
    assert none.folder is not None
    results = json.loads((none.folder / "results.json").read_text(encoding="utf-8"))
    assert results["previous"] is None


def test_without_it_nothing_is_said(tmp_path: Path) -> None:
    outcome = ran(tmp_path, {"a": GOOD})
    assert outcome.folder is not None
    assert "previous" not in (outcome.folder / "results.json").read_text(encoding="utf-8")
    assert "previous" not in text_of(outcome)
    assert isinstance(groupgt.run_experiment(tmp_path / "small.yaml").against, dict)


def test_queries_that_count_in_one_run_only_are_neither_lost_nor_gained(tmp_path: Path) -> None:
    then = {qid: GOOD[qid] for qid in QIDS if qid != "q00"}
    now = {qid: GOOD[qid] for qid in QIDS if qid != "q01"} | {"q02": BAD["q02"][:3]}
    ran(tmp_path, {"a": then}, policy="{missing: skip}")
    against = ran(tmp_path, {"a": now}, policy="{missing: skip}", against=tmp_path / "out").against["one"]
    assert (against.lost["a"], against.gained["a"], against.counts["a"]) == (["q02"], [], (1.0, 0.0))


def test_the_summary_counts_only_gates_that_passed(tmp_path: Path) -> None:
    gates = "[{system: a, metric: mrr, min: 0.5}, {system: a, metric: mrr, max_drop: 0.1, against: previous}]"
    outcome = ran(tmp_path, {"a": GOOD, "b": BAD}, gates=gates, first=True)
    assert "1 gate passed, 1 not checked" in summary(outcome)


def test_the_largest_drop_is_first() -> None:
    assert _largest_first(["p", "q", "r"], np.array([0.2, 0.0, 0.8])) == ["r", "p"]
