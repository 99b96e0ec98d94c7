"""What `check` counts."""

from __future__ import annotations

from pathlib import Path

import groupgt
from groupgt.curation.check import check_run, check_truth
from groupgt.evaluation.request import Request


def test_check_counts_what_is_doubtful(tmp_path: Path) -> None:
    truth = groupgt.GroundTruth.of(
        {"q1": [["a", "b"], ["a"]], "q2": [["c"], ["c"]], "q3": [], "q4": [["Doc "], ["doc"]]}
    )
    found = {each.what.split(" (")[0]: each.count for each in check_truth(truth)}
    assert found["queries with two equal groups"] == 1
    assert found["queries with a group inside another"] == 1
    assert found["queries without ground truth"] == 1
    assert found["ids that differ only in blanks, case or form"] == 1
    file = tmp_path / "run.trec"
    file.write_text("q1 Q0 a 1 2 t\nq1 Q0 x 2 1 t\nq1 Q0 x 3 1 t\nq9 Q0 x 1 1 t\n")
    run = {each.what.split(" (")[0]: each.count for each in check_run(truth, file, Request.of())}
    assert run["judged queries without results"] == 2
    assert run["queries with a repeated result"] == 1
    assert run["queries with a repeated relevant result"] == 0
    assert run["queries without ground truth"] == 1
