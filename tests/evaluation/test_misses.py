"""What an evaluation missed."""

from __future__ import annotations

import groupgt
from groupgt.evaluation.result import Misses
from tests.snapshots import Snapshot


def test_misses_lists_the_worst_first() -> None:
    truth = {"q1": [["a"], ["b"]], "q2": [["c"]], "q3": [["d"]]}
    run = {"q1": ["a", "x", "b"], "q2": ["x"], "q3": ["d"]}
    found = Misses.of([groupgt.evaluate(truth, run, ["recall"])], k=2)
    assert [query["qid"] for query in found.queries] == ["q2", "q1"]
    assert found.queries[1]["groups"][1] == {"group": "group 2", "rank": 3, "covered": False, "alternatives": ["b"]}
    assert found.by_group == [
        {"number": 1, "groups": 3, "covered": 2 / 3, "anywhere": 2 / 3},
        {"number": 2, "groups": 1, "covered": 0.0, "anywhere": 1.0},
    ]
    text = found.text()
    assert "not its only result" in text
    assert "rank 3 (beyond 2)" in text


def test_groups_are_called_by_their_number_and_name() -> None:
    truth = {"q": [[{"id": "n", "grade": 0}], {"alternatives": ["a"], "name": "capital"}, ["b"]]}
    evaluation = groupgt.evaluate(truth, {"q": ["x"]}, ["recall"])
    found = Misses.of([evaluation])
    assert [group["group"] for group in found.queries[0]["groups"]] == ["group 1 (capital)", "group 2"]
    assert [row["number"] for row in found.by_group] == [1, 2]
    assert "group 1 (capital): a\ngroup 2: b\n" in evaluation.explain("q")


def test_long_lists_are_cut_with_a_count(snapshot: Snapshot) -> None:
    truth = {"q": [[f"d{group}-{number}" for number in range(8)] for group in range(300)]}
    found = Misses.of([groupgt.evaluate(truth, {"q": ["d0-0", "d1-0", "d5-0"]}, ["recall"])], k=2)
    lines = found.text().splitlines()
    assert len(lines) < 40
    snapshot(lines[4])
    assert lines[7].startswith("q        group 6   rank 3 (beyond 2)")
    snapshot(lines[14])
    snapshot(lines[-1])
    # What programs read is whole.
    assert len(found.csv_rows()[1]) == len(found.to_dict()["queries"][0]["groups"]) == 300
    assert found.csv_rows()[1][0][3].count(" or ") == 7
