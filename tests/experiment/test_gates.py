"""Gates: what passes, what fails and why, the exit status, and the file for continuous integration."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.experiment import timing
from groupgt.experiment.outcome import GateResult, Outcome
from groupgt.report.gates import junit_report, reason, table
from groupgt.report.run import run_experiment
from tests.experiment.faulty_files import COMPARE, GATES, Fault, changed, check_one, told
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

SWEPT = "bm25[k1=1.2,b=0.75]"


def gates(file: Path, *lines: str, **keywords: object) -> list[GateResult]:
    """The results of some gates."""
    with file.open("a", encoding="utf-8") as stream:
        stream.write("gate:\n" + "".join(f"  - {line}\n" for line in lines))
    return run_experiment(file, **keywords).gates  # type: ignore[arg-type]


def test_a_bound_holds_or_not(swept: Path, first: Outcome) -> None:
    mean = first.evaluations["handbook"][SWEPT]["recall@10"]
    low, exact, high, top = gates(
        swept,
        f'{{system: "{SWEPT}", metric: recall@10, min: {mean + 1e-6!r}}}',
        f'{{system: "{SWEPT}", metric: recall@10, min: {mean!r}}}',
        f'{{system: "{SWEPT}", metric: recall.coverage@10, max: {mean - 1e-6!r}}}',
        f'{{system: "{SWEPT}", metric: recall@10, max: {mean!r}}}',
    )
    assert [gate.passed for gate in (low, exact, high, top)] == [False, True, False, True]
    assert [gate.gate for gate in (low, exact, high, top)] == [1, 2, 3, 4]
    assert reason(low).startswith(f"{SWEPT} on handbook: recall@10 is {mean:.4f} (minimum")
    assert "\n" not in reason(low)


def test_a_pattern_is_held_against_each_system(swept: Path) -> None:
    found = gates(swept, '{system: "fused*", metric: recall@10, min: 0.1}')
    assert [gate.system for gate in found] == ["fused[k=10]", "fused[k=60]"]


def test_a_slice(swept: Path, first: Outcome) -> None:
    part = next(each for each in first.evaluations["handbook"][SWEPT].slices if each["value"] == "multi")
    value = part["means"]["ndcg.coverage@10"]
    (gate,) = gates(swept, f'{{system: "{SWEPT}", slice: {{type: multi}}, metric: ndcg@10, min: {value!r}}}')
    assert gate.passed
    assert gate.value == value
    assert "type multi" in reason(gate)


def test_a_slice_in_which_no_question_counts_fails(swept: Path) -> None:
    (gate,) = gates(swept, f'{{system: "{SWEPT}", slice: {{type: none}}, metric: ndcg@10, min: 0}}')
    assert not gate.passed
    assert "no queries to evaluate" in reason(gate)


def test_a_drop_is_against_the_baseline(swept: Path, first: Outcome) -> None:
    other, change = "bm25[k1=0.9,b=0.4]", [f'compare.baseline="{SWEPT}"']
    found = first.evaluations["handbook"]
    drop = found[SWEPT]["ndcg@10"] - found[other]["ndcg@10"]
    assert drop > 0.002  # the baseline is better
    fails, holds, better = gates(
        swept,
        f'{{system: "{other}", metric: ndcg@10, max_drop: {drop - 0.001!r}}}',
        f'{{system: "{other}", metric: ndcg@10, max_drop: {drop!r}}}',
        f'{{system: "{SWEPT}", metric: ndcg@10, max_drop: 0}}',
        changes=change,
    )
    assert [fails.passed, holds.passed, better.passed] == [False, True, True]
    assert f"worse than {SWEPT}" in reason(fails)


def test_latency(swept: Path) -> None:
    quick, slow = gates(
        swept,
        f'{{system: "{SWEPT}", metric: latency_p95_ms, max: 60000}}',
        f'{{system: "{SWEPT}", metric: latency_p50_ms, max: 1.0e-9}}',
    )
    assert quick.passed
    assert not slow.passed


def test_latency_of_another_machine_fails(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupgt.experiment.gates.machine", lambda: {**timing.machine(), "node": "elsewhere"})
    (gate,) = gates(swept, f'{{system: "{SWEPT}", metric: latency_p95_ms, max: 60000}}')
    assert not gate.passed
    assert "another machine" in reason(gate)


def test_times_are_no_part_of_reports(swept: Path) -> None:
    with swept.open("a", encoding="utf-8") as file:
        file.write('gate:\n  - {system: "*", metric: latency_p95_ms, max: 60000}\n')
    outcome = run_experiment(swept, changes=["output.formats=[table, markdown, latex, json, csv]"])
    assert outcome.folder is not None
    for path in outcome.folder.rglob("*"):
        if path.is_file() and path.suffix in (".txt", ".md", ".tex", ".csv"):
            assert "latency" not in path.read_text(encoding="utf-8")
    assert "latency_p95_ms is" in (outcome.folder / "timings.json").read_text(encoding="utf-8")


def test_results_have_every_gate(swept: Path) -> None:
    with swept.open("a", encoding="utf-8") as file:
        file.write('gate:\n  - {system: "bm25*", metric: latency_p95_ms, max: 60000}\n')
        file.write('  - {system: "fused*", metric: recall@10, min: 0}\n  - {system: "*", metric: recall@10, min: 0}\n')
    outcome = run_experiment(swept, only=["bm25*"])
    assert outcome.folder is not None
    results = json.loads((outcome.folder / "results.json").read_text(encoding="utf-8"))
    assert {(gate["gate"], gate["timed"]) for gate in results["gates"]} == {(1, True), (2, False), (3, False)}
    assert {gate["skipped"] for gate in results["gates"] if gate["gate"] == 2} == {True}
    assert len(results["gates"]) == len(outcome.gates) == 12


def test_exit_status_and_one_line(swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with swept.open("a", encoding="utf-8") as file:
        file.write('gate:\n  - {system: "*", metric: recall@10, min: 0}\n')
        file.write(f'  - {{system: "{SWEPT}", metric: recall@10, min: 1}}\n')
    with pytest.raises(SystemExit) as end:
        main(["run", str(swept), "--junit", str(tmp_path / "gates.xml")])
    assert end.value.code == 1
    told = [line for line in capsys.readouterr().err.splitlines() if "failed" in line]
    assert len(told) == 1
    assert told[0].startswith(f"groupgt: gate 2 failed: {SWEPT} on handbook: recall@10 is 0.")
    suite = ET.parse(tmp_path / "gates.xml").getroot()[0]
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("7", "1")
    failed = [case for case in suite if len(case)]
    assert [case.attrib["name"] for case in failed] == ["recall@10, min 1"]
    main(["run", str(swept), "--set", "gate.1.min=0", "--only", "bm25*"])


def test_a_gate_on_what_is_left_out_is_not_checked_and_every_medium_says_so(
    swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = gates(swept, '{system: "fused*", metric: recall@10, min: 1}', only=["bm25*"])
    assert {(gate.passed, gate.skipped, gate.problem) for gate in found} == {(True, True, "left out")}
    assert "was not checked, because --only left its system out" in reason(found[0])
    files = {option: tmp_path / option for option in ("--junit", "--summary")}
    main(["run", str(swept), "--only", "bm25*", *(str(part) for pair in files.items() for part in pair)])
    out = capsys.readouterr().out
    assert "not checked  recall@10 of fused" in out
    assert f"{len(found)} gates were not checked" in out
    suite = ET.parse(files["--junit"]).getroot()[0]
    assert (suite.attrib["skipped"], suite.attrib["failures"]) == (str(len(found)), "0")
    assert "· not checked" in files["--summary"].read_text(encoding="utf-8")
    page = max((tmp_path / "results").rglob("report.html")) if (tmp_path / "results").exists() else None
    assert page is None or "Not checked" in page.read_text(encoding="utf-8")


ROWS = """
version: 1
name: rows
convention: coverage
datasets: {own: {ground_truth: truth.jsonl}}
systems: {base: {use: results, with: {path: base.jsonl}}, new: {use: results, with: {path: new.jsonl}}}
evaluate: {metrics: [recall@1, harmful@1]}
compare: {baseline: base}
output: {folder: out}
gate:
  - {system: new, metric: recall@1, max_drop: 0.02}
  - {system: new, metric: harmful@1, max_drop: 0.02}
  - {system: new, metric: recall@1, min_gain: 0.5}
  - {system: new, metric: harmful@1, min_gain: 0.5}
  - {system: new, metric: recall@1, min: 0.9}
"""


@pytest.mark.parametrize(
    ("base", "new", "found"),
    [
        (
            "d",
            "h",
            ["FAILED fell 1.000", "FAILED rose 1.000", "FAILED fell 1.000", "FAILED rose 1.000", "FAILED 0.000"],
        ),
        (
            "h",
            "d",
            ["passed rose 1.000", "passed fell 1.000", "passed rose 1.000", "passed fell 1.000", "passed 1.000"],
        ),
        ("d", "d", ["passed did not change"] * 2 + ["FAILED did not change"] * 2 + ["passed 1.000"]),
    ],
)
def test_rows_say_how_the_metric_changed_and_may_change(base: str, new: str, found: list[str], tmp_path: Path) -> None:
    rows = [{"qid": f"q{n}", "retrieval_gt": [["d"]], "harmful_ids": ["h"]} for n in range(8)]
    (tmp_path / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, passage in (("base", base), ("new", new)):
        lines = (json.dumps({"qid": row["qid"], "retrieved_ids": [passage]}) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    (tmp_path / "rows.yaml").write_text(ROWS)
    what = [
        "recall@1 drops at most 0.02 from base",
        "harmful@1 rises at most 0.02 from base",
        "recall@1 rises at least 0.5 over base",
        "harmful@1 drops at least 0.5 over base",
        "recall@1 at least 0.9",
    ]
    cells = [[*table([gate], "base").other.rows[0]] for gate in run_experiment(tmp_path / "rows.yaml").gates]
    assert [(f"{status} {value}", text) for status, text, value in cells] == list(zip(found, what))


def test_junit_names_queries_that_fail_a_gate_with_their_texts(tmp_path: Path) -> None:
    """Of 24 queries, 13 keep their only group, and 11 lose it: ten are named."""
    rows = [{"qid": f"q{n}", "query": f"text of {n}", "retrieval_gt": [["d"]]} for n in range(24)]
    (tmp_path / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, passage in (("base", "d"), ("new", "x")):
        results = ({"qid": f"q{n}", "retrieved_ids": ["d" if n < 13 else passage]} for n in range(24))
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in results))
    (tmp_path / "rows.yaml").write_text(
        ROWS.replace(", harmful@1]", "]").partition("  - {system: new, metric: harm")[0]
    )
    report = ET.fromstring(junit_report(run_experiment(tmp_path / "rows.yaml")))
    (failure,) = report.iter("failure")
    lines = failure.attrib["message"].splitlines()
    assert lines[-11:] == [*(f"q{n}: text of {n}" for n in range(13, 23)), "and 1 more"]
    assert failure.text == failure.attrib["message"]


def test_a_pattern_that_is_run_on_no_data_set_of_its_gate_is_an_error(tmp_path: Path) -> None:
    for name in ("truth", "other"):
        (tmp_path / f"{name}.jsonl").write_text('{"qid": "q", "retrieval_gt": [["a"]]}\n')
    for name in ("base", "new"):
        (tmp_path / f"{name}.jsonl").write_text('{"qid": "q", "retrieved_ids": ["a"]}\n')
    text = ROWS.replace("ground_truth: truth.jsonl}", "ground_truth: truth.jsonl}, two: {ground_truth: other.jsonl}")
    text = text.replace("path: new.jsonl}", "path: new.jsonl}, only: [own]").replace("@1, harmful@1", "@1")
    gate = "gate: [{system: 'n*', metric: recall@1, min: 0.1, dataset: two}]\n"
    (tmp_path / "rows.yaml").write_text(text.partition("gate:")[0] + gate)
    with pytest.raises(groupgt.ConfigError, match=r"gate\.0\.system: no system that matches 'n\*' is run on two"):
        run_experiment(tmp_path / "rows.yaml")


def test_a_drop_that_no_test_shows_passes(swept: Path, tmp_path: Path) -> None:
    """Forty questions: `worse` loses three of them (p = 2/2^3), `much` loses twelve (p = 2/2^12)."""
    qids = [f"q{number}" for number in range(40)]
    lines = "".join(f'{{"qid": "{qid}", "retrieval_gt": [["a"]]}}\n' for qid in qids)
    (tmp_path / "truth.jsonl").write_text(lines)
    for name, lost in (("base", 0), ("worse", 3), ("much", 12)):
        rows = "".join(
            f'{{"qid": "{qid}", "retrieved_ids": ["{"x" if at < lost else "a"}"]}}\n' for at, qid in enumerate(qids)
        )
        (tmp_path / f"{name}.jsonl").write_text(rows)
    file = tmp_path / "gate.yaml"
    systems = ", ".join(f"{name}: {{use: results, with: {{path: {name}.jsonl}}}}" for name in ("base", "worse", "much"))
    file.write_text(
        "version: 1\nname: gate\ndatasets: {own: {ground_truth: truth.jsonl}}\n"
        f"systems: {{{systems}}}\n"
        "evaluate: {metrics: [recall]}\ncompare: {baseline: base}\noutput: {folder: out}\n"
    )
    worse, plain, much, small = gates(
        file,
        "{system: worse, metric: recall, max_drop: 0.02, unless: not_significant}",
        "{system: worse, metric: recall, max_drop: 0.02}",
        "{system: much, metric: recall, max_drop: 0.02, unless: not_significant}",
        "{system: much, metric: recall, max_drop: 0.5, unless: not_significant}",
    )
    assert [gate.passed for gate in (worse, plain, much, small)] == [True, False, False, True]
    assert "the drop is not significant (randomization, p = 0.2500, not corrected, alpha 0.05)" in reason(worse)
    assert "the drop is significant (randomization, p = 0.0005, not corrected, alpha 0.05)" in reason(much)
    assert "significant" not in reason(small)


def test_a_drop_that_cannot_be_tested_is_not_significant(tmp_path: Path, snapshot: Snapshot) -> None:
    """Student's t has no p-value for one query."""
    pytest.importorskip("scipy", reason="the extra groupgt[stats] is not installed")
    (tmp_path / "truth.jsonl").write_text('{"qid": "q", "retrieval_gt": [["a"]]}\n')
    (tmp_path / "base.jsonl").write_text('{"qid": "q", "retrieved_ids": ["a"]}\n')
    (tmp_path / "worse.jsonl").write_text('{"qid": "q", "retrieved_ids": ["x"]}\n')
    file = tmp_path / "gate.yaml"
    file.write_text(
        "version: 1\nname: gate\ndatasets: {own: {ground_truth: truth.jsonl}}\n"
        "systems: {base: {use: results, with: {path: base.jsonl}}, worse: {use: results, with: {path: worse.jsonl}}}\n"
        "evaluate: {metrics: [recall]}\ncompare: {baseline: base, test: t}\noutput: {folder: out}\n"
    )
    (gate,) = gates(file, "{system: worse, metric: recall, max_drop: 0.02, unless: not_significant}")
    assert gate.passed
    snapshot(reason(gate))


# --- Of files.

FAULTS: list[Fault] = [
    (
        "gate: unknown system",
        [("system: plain", "system: plane")],
        "56:14",
        "gate.3.system",
        "or a pattern, found 'plane'",
    ),
    ("gate: unknown pattern", [('"fused*"', '"fusd*"')], "54:14", "gate.1.system", "or a pattern, found 'fusd*'"),
    ("gate: a family", [('"fused*"', "fused")], "54:14", "gate.1.system", "did you mean 'fused["),
    ("gate: unknown dataset", [("dataset: mine", "dataset: mien")], "55:28", "gate.2.dataset", "did you mean 'mine'"),
    ("gate: no system", [('system: "sweep*", ', "")], "53:5", "gate.0.system", "required key is missing"),
    (
        "gate: asks nothing",
        [(", min: 0.1", "")],
        "53:5",
        "gate.0",
        "one of min, max, max_drop and min_gain, found nothing",
    ),
    ("gate: asks two things", [("min: 0.1", "min: 0.1, max: 1")], "53:5", "gate.0", "found min and max"),
    ("gate: a bound of text", [("min: 0.1", "min: '0.1'")], "53:47", "gate.0.min", "expected a number, found '0.1'"),
    ("gate: a drop below 0", [("max_drop: 0.9", "max_drop: -1")], "54:50", "gate.1.max_drop", "at least 0"),
    ("gate: no baseline", [(COMPARE, "")], "52:50", "gate.1.max_drop", "set compare.baseline"),
    ("gate: no such metric", [("metric: recall@3", "metric: recal@3")], "53:32", "gate.0.metric", "mean 'recall'"),
    ("gate: not evaluated", [("metric: recall@3", "metric: recall@5")], "53:32", "gate.0.metric", "found 'recall@5'"),
    ("gate: no cutoff", [("metric: recall@3", "metric: recall")], "53:32", "gate.0.metric", "found 'recall'"),
    (
        "gate: no such latency",
        [("latency_p95_ms", "latency")],
        "56:29",
        "gate.3.metric",
        "or one of build_s, latency_p50",
    ),
    ("gate: latency of files", [("system: plain", "system: stored")], "56:14", "gate.3.system", "have no latency"),
    (
        "gate: latency untimed",
        [("timed: 2", "timed: 0"), ("    max_latency_ms: 10000\n", "")],
        "55:29",
        "gate.3.metric",
        "Set evaluate.timed",
    ),
    ("gate: latency drops", [("_ms, max:", "_ms, max_drop:")], "56:5", "gate.3", "takes min or max, but not a slice"),
    ("gate: no such column", [("{type: multi}", "{tpe: multi}")], "55:", "gate.2.slice", "did you mean 'type'"),
    (
        "gate: no such value",
        [("{type: multi}", "{type: mlti}")],
        "55:48",
        "gate.2.slice.type",
        "known values: multi, single",
    ),
    ("gate: no text", [('{system: "fused*", metric: ndcg@3, max_drop: 0.9}', "hello")], "54:5", "gate.1", "a mapping"),
    (
        "gate: unless",
        [("max_drop: 0.9", "min: 0.9, unless: not_significant")],
        "54:58",
        "gate.1.unless",
        "`unless` needs max_drop",
    ),
    ("gate: unless what", [("max_drop: 0.9", "max_drop: 0.9, unless: x")], "54:63", "gate.1.unless", "found 'x'"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_one_fault_is_one_line_at_its_place(folder: Path, fault: Fault) -> None:
    check_one(folder, fault)


def test_a_gate_that_is_left_out_does_not_shift_the_others(folder: Path) -> None:
    whole = "  - {system: plain, metric: recall@1, min: 0.1}\n"
    gates = f"gate:\n  - {{system: plain}}\n{whole}{whole}"
    (fault,) = told(folder, changed((GATES, gates)))
    assert "gate.0.metric: required key is missing" in fault
