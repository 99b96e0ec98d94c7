"""What an evaluation missed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.evaluation.missed import Misses
from groupgt.render.document import document
from groupgt.render.layout import Screen, columns_of
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
    assert "\n\n  q2  0 of 1 group\n    ✗ group 1  not in 1  c\n" in text
    assert "\n\n  q1  1 of 2 groups\n    ✗ group 2  rank 3    b\n" in text


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
    assert lines[5].startswith("    ✗ group 3   not in 3  d2-0 or d2-1")
    assert lines[8].startswith("    ✗ group 6   rank 3    d5-0")
    snapshot(lines[5])
    snapshot(lines[15])
    snapshot(lines[-1])
    # What programs read is whole.
    assert len(found.csv_rows()[1]) == len(found.to_dict()["queries"][0]["groups"]) == 300
    assert found.csv_rows()[1][0][3].count(" or ") == 7


# Names as long as those of real systems, and ids that differ only at their end.
RUNS = ["hybrid-rrf60+bge-reranker-v2-m3-top50", "text-embedding-3-large-dim-1024", "text-embedding-3-large-dim-3072"]
LONG_ID = "support-centre/{}/articles-of-2026/article-0635#chunk-{:02d}"
TOPICS = ["GDPR-deletion", "rate-limits", "refund-policy"]


def real_size() -> tuple[groupgt.GroundTruth, dict[str, dict[str, list[str]]]]:
    """Twelve queries of one to three groups; the runs cover the last of them at rank 1, 7 and 13."""
    rows = [
        {
            "qid": f"support-2026-{place:04d}",
            "query": "What happens to the GDPR deletion and the rate limits and the refunds when the contract ends?",
            "retrieval_gt": [[LONG_ID.format(t, place + 20), LONG_ID.format(t, 90)] for t in TOPICS[: place % 3 + 1]],
        }
        for place in range(12)
    ]
    rankings = {
        name: {
            row["qid"]: [LONG_ID.format(TOPICS[place % 3], place + 20 - 6 * shift + rank) for rank in range(15)]
            for place, row in enumerate(rows)
        }
        for shift, name in enumerate(RUNS)
    }
    return groupgt.read_ground_truth(pl.DataFrame(rows)), rankings


@pytest.mark.parametrize("width", [40, 80, 120])
def test_ids_keep_their_ends_in_a_terminal(width: int, snapshot: Snapshot) -> None:
    truth, runs = real_size()
    one = document(groupgt.misses(truth, runs[RUNS[1]], k=10, worst=3).blocks(), screen=Screen(width, details=False))
    several = document(groupgt.misses(truth, runs, k=10, worst=3).blocks(), screen=Screen(width, details=False))
    assert max(map(columns_of, f"{one}\n{several}".split("\n"))) <= width
    assert "#chunk-28 or 1 more\n" in one
    if width > 40:
        assert "\nsupport-2026-0002  group 1  " in several
        snapshot(f"{one}\n\n{several}")


def test_a_long_query_id_does_not_widen_the_others() -> None:
    truth = {"archive/" * 12 + "7": [["a"]], "q1": [["b"]]}
    lines = document(groupgt.misses(truth, {"q1": ["x"]}).blocks(), screen=Screen(60)).splitlines()
    heads = [line for line in lines if line.endswith("0 of 1 group")]
    # 60 − 2 of indentation − a gap of 2 − 12 of the count = 44 for the id: 21 and the sign, then 22.
    assert heads == [
        f"  {('archive/' * 3)[:21]}…{('archive/' * 3 + '7')[-22:]}  0 of 1 group",
        f"  {'q1':44}  0 of 1 group",
    ]


def test_counts_over_trials_are_said_to_be_means() -> None:
    """The agent covers the only group in one of two trials, so 1.5 of 2 runs cover it."""
    agent = [{"q": ["a"]}, {"q": ["x"]}]
    lines = groupgt.misses({"q": [["a"]]}, {"sure": {"q": ["a"]}, "agent": agent}).text().splitlines()
    assert "1.5 of 2" in next(line for line in lines if line.startswith("q "))
    assert "counts of runs and complete queries are means over trials; ranks are medians" in lines


def test_a_terminal_without_utf_8_gets_a_letter() -> None:
    found = groupgt.misses({"q1": [["a"]]}, {"q1": ["x"]}).blocks()
    assert "    x group 1  not in 1  a" in document(found, screen=Screen(80, is_ascii=True))


def test_a_harmful_result_of_a_complete_query_is_listed(tmp_path: Path) -> None:
    """Its query is not among the worst, whose texts are listed."""
    truth = tmp_path / "truth.jsonl"
    rows: list[dict[str, Any]] = [
        {"qid": "q1", "query": "one", "retrieval_gt": [["a"]], "harmful_ids": ["h"]},
        {"qid": "q2", "query": "two", "retrieval_gt": [["b"]]},
    ]
    truth.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    misses = groupgt.misses(truth, {"q1": ["a", "h"], "q2": ["x"]})
    assert "harmful at rank 2" in misses.text("github")
