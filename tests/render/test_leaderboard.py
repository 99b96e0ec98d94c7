"""The leaderboard, and what a pull request shows: what stands first, and in which words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import groupgt
from groupgt.render.bars import Axis, Bar
from groupgt.render.document import document
from groupgt.render.layout import Screen, columns_of
from groupgt.report.contrasts import leaderboards
from groupgt.report.experiment import summary
from groupgt.report.gates import failed
from groupgt.report.standings import standings
from groupgt.report.standings import table as standing_table
from tests.snapshots import Snapshot

QIDS = [f"q{number:02}" for number in range(16)]
TRUTH = {qid: [["a"]] for qid in QIDS}
GOOD = {qid: ["a", "b", "c"] for qid in QIDS}
BAD = {qid: ["b", "c", "a"] for qid in QIDS}
# One query worse than the best.
NEAR = {qid: GOOD[qid] if qid != "q00" else BAD[qid] for qid in QIDS}
METRICS = ["mrr", "recall@1", "recall@3"]


@pytest.fixture(scope="module")
def table() -> groupgt.Comparison:
    return groupgt.compare(TRUTH, {"near": NEAR, "good": GOOD, "bad": BAD}, METRICS, baseline="near", resamples=999)


def test_marks_and_the_primary_metric(table: groupgt.Comparison) -> None:
    (board,) = leaderboards(table)
    assert board.headers == ["run", "mrr", "recall@1", "recall@3"]
    cells = {row[0]: row[1:] for row in board.rows}
    # near: (15 + 1/3) ÷ 16 and 15 ÷ 16; bad: 1/3 and 0.
    assert cells["near"] == ["0.958", "0.938", "1.000"]
    assert cells["good"] == ["1.000", "1.000", "1.000"]
    assert cells["bad"] == ["0.333▼", "0.000▼", "1.000"]


def test_systems_are_sorted_by_their_mean(table: groupgt.Comparison) -> None:
    rows = standings(table)
    assert [(row.name, row.mark) for row in rows] == [("good", ""), ("near", ""), ("bad", "▼")]
    assert {row.complete for row in rows} == {16}
    # By mrr, which has no cutoff, a query is complete wherever its group is covered.
    assert [(row.lost, row.gained) for row in rows] == [([], []), ((), ()), ([], [])]
    good, near, bad = (row.bar for row in rows)
    assert good is not None
    assert good.value == pytest.approx(1 / 24)
    assert near == Bar(0.0, sign="◆")
    assert bad is not None
    assert bad.value == pytest.approx(-0.625)
    assert -1 < (bad.low or 0) < -0.625 < (bad.high or 0) < 0


def test_systems_that_failed_come_last(table: groupgt.Comparison) -> None:
    with_failure = replace(table, failed={"late": "no server"})
    board = standing_table(with_failure)
    assert board.lines(Screen(80)).splitlines()[4] == "late    failed: no server"
    assert board.other.rows[3:] == [["late", *[""] * (len(board.other.headers) - 2), "failed: no server"]]
    # Long reasons wrap beside the name.
    lines = standing_table(replace(table, failed={"late": "so " * 30})).lines(Screen(40)).splitlines()
    assert lines[4].startswith("late    failed: so so")
    assert max(map(columns_of, lines[:7])) <= 40
    assert lines[5].startswith("        so so")


def test_an_axis_of_means_has_no_signs() -> None:
    means, changes = (Axis.of([Bar(0.5, 0.1, 0.9)], has_zero=has_zero) for has_zero in (False, True))
    assert list(map(means.text, means.ticks)) == ["0.2", "0.4", "0.6", "0.8"]
    assert list(map(changes.text, changes.ticks)) == ["0", "+0.5"]
    assert means.share(0.5) == pytest.approx(0.5)


def test_a_table_is_no_wider_than_the_screen(table: groupgt.Comparison) -> None:
    for width in (40, 60, 80, 120):
        lines = standing_table(table).lines(Screen(width)).splitlines()
        assert max(map(columns_of, lines)) <= width
        assert [line.split()[0] for line in lines[1:4]] == ["good", "near", "bad"]
    plain = standing_table(table).lines(Screen(80, is_ascii=True))
    assert plain.isascii()
    assert "v" in plain.splitlines()[3]


def test_what_is_best_stands_out(table: groupgt.Comparison) -> None:
    board = list(leaderboards(table))
    assert "**1.000**" in document(board, "github")
    assert "<strong>1.000</strong>" in document(board, "html")
    assert r"\textbf{1.000}" in document(board, "latex_booktabs")
    assert "\x1b[1m1.000\x1b[0m" in document(board, screen=Screen(color=True)).replace(" \x1b[0m", "\x1b[0m")
    plain = document(board)
    assert "*" not in plain
    assert "\ue000" not in document(board, "rst") + document(board, "orgtbl") + plain


def test_many_metrics_are_divided_by_cutoff_the_primary_first() -> None:
    metrics = [f"{name}@{k}" for k in (1, 2, 3) for name in ("recall", "precision", "ndcg", "mrr")]
    table = groupgt.compare(TRUTH, {"good": GOOD, "bad": BAD}, metrics, primary="ndcg@3", resamples=99)
    first, *rest = leaderboards(table)
    assert first.headers[1:] == ["recall@3", "precision@3", "ndcg@3", "mrr@3"]
    assert [board.headers[1] for board in rest] == ["recall@1", "recall@2"]


def test_all_else_is_a_detail(table: groupgt.Comparison, snapshot: Snapshot) -> None:
    short = document(table.blocks(), screen=Screen(details=False))
    assert "wins/ties/losses" not in short
    assert "wins/ties/losses" in document(table.blocks())
    snapshot(short)


def test_more_metrics_change_no_sentence_and_no_warning() -> None:
    runs = {"near": NEAR, "good": GOOD, "bad": BAD}
    alone = groupgt.compare(TRUTH, runs, ["recall@1"], resamples=999)
    among = groupgt.compare(TRUTH, runs, ["ndcg@10", "recall@1", "mrr", "recall@3"], primary="recall@1", resamples=999)
    assert alone.blocks()[0] == among.blocks()[0]
    assert alone.summary() == among.summary()
    assert alone.to_dict()["warnings"] == among.to_dict()["warnings"]


def test_a_pair_has_its_mark_at_the_p_that_decides(table: groupgt.Comparison) -> None:
    every = groupgt.compare(TRUTH, {"near": NEAR, "good": GOOD, "bad": BAD}, ["mrr"], pairs=True, resamples=999)
    text = every.text("github")
    rows = [list(map(str.strip, line.split("|")[1:-1])) for line in text.splitlines() if line.startswith("| ")]
    header = next(row for row in rows if row[:2] == ["mrr", "against"])
    pairs = {tuple(row[:2]): dict(zip(header, row)) for row in rows if len(row) == len(header) and row != header}
    apart, close = pairs["near", "bad"], pairs["near", "good"]
    assert not apart["delta"].endswith("▲")
    assert not apart["p"].endswith("▲")
    assert apart["p (step-down maximum)"].endswith("▲")
    assert not close["p (step-down maximum)"].endswith("▲")


EXPERIMENT = """
version: 1
name: pull
convention: coverage
datasets: {{one: {{ground_truth: truth.jsonl}}}}
systems:
  main: {{use: results, with: {{path: main.jsonl}}}}
  change: {{use: results, with: {{path: change.jsonl}}}}
evaluate: {{metrics: [mrr, recall@1]}}
compare: {{baseline: main}}
gate: [{{system: change, metric: mrr, max_drop: 0.1}}, {{system: change, metric: recall@1, min: 0.5}}]
output: {{formats: [{formats}]}}
"""


def outcome(folder: Path, change: dict[str, list[str]], formats: str = "json") -> groupgt.Outcome:
    rows = [{"qid": qid, "query": "why", "retrieval_gt": groups} for qid, groups in TRUTH.items()]
    (folder / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for name, run in (("main", NEAR), ("change", change)):
        lines = [{"qid": qid, "retrieved_ids": ids} for qid, ids in run.items()]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    text = EXPERIMENT.format(formats=formats)
    (folder / "experiment.yaml").write_text(text, encoding="utf-8")
    return groupgt.run_experiment(folder / "experiment.yaml")


def test_a_pull_request_that_breaks_a_retriever(tmp_path: Path, snapshot: Snapshot) -> None:
    lines = summary(outcome(tmp_path, BAD, "json, report")).replace("\u00a0", " ").splitlines()
    text = "\n".join(lines)
    worst = ", ".join(QIDS[1:11])
    assert f"| {worst}, and 5 more |" in text
    assert f"| {', '.join(QIDS[:10])}, and 6 more |" in text
    # The primary metric is the first of the file, for it names none.
    snapshot([*lines[2:4], lines[-1]])


def test_a_pull_request_that_changes_nothing_says_so(tmp_path: Path, snapshot: Snapshot) -> None:
    lines = summary(outcome(tmp_path, NEAR)).splitlines()
    snapshot(lines[2])


def test_queries_lost_and_gained(tmp_path: Path) -> None:
    swapped = {**NEAR, "q00": ["a"], "q05": ["b"], "q06": ["c"]}
    text = summary(outcome(tmp_path, swapped))
    rows = [list(map(str.strip, line.split("|")[1:-1])) for line in text.splitlines() if line.startswith("| change")]
    # By mrr, which has no cutoff, a query is complete wherever its group is covered.
    assert rows[-1][-2:] == ["2 / 0", "14/16"]
    assert list(failed(outcome(tmp_path, swapped), "one")) == []
