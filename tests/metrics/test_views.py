"""The tables that metrics read, over rankings short enough to write them down."""

from __future__ import annotations

from typing import Any

import pytest

import groupgt
from groupgt.metrics import views
from groupgt.model.hits import Hits


def hits(groups: list[Any], ranking: list[str], metric: str = "recall", **policy: Any) -> Hits:
    return groupgt.evaluate({"q": groups}, {"q": ranking}, [metric], policy=policy).labelled.hits


def graded(**grades: float) -> list[Any]:
    """A group for each document."""
    return [{"alternatives": [{"id": name, "grade": grade}]} for name, grade in grades.items()]


def test_graded_results_are_those_above_0_whatever_the_level() -> None:
    """z (0) is judged and gains nothing; of level 2 only b is relevant, while a gains its 1."""
    found = hits(graded(z=0, a=1, b=3), ["z", "a", "b"], level=2)
    rows = views.graded_results(found)
    assert (rows.rank.tolist(), rows.nth.tolist(), rows.gain.tolist()) == ([2, 3], [1, 2], [1.0, 3.0])
    rows = views.relevant_results(found)
    assert (rows.rank.tolist(), rows.nth.tolist(), rows.gain.tolist()) == ([3], [1], [3.0])


def test_the_grade_of_a_group_is_that_of_its_first_result() -> None:
    """a meets the group at 1, with 1; b, which is worth 3, comes too late for it."""
    group = {"alternatives": [{"id": "a", "grade": 1}, {"id": "b", "grade": 3}]}
    rows = views.covered_groups(hits([group, *graded(c=2)], ["a", "b", "c"]))
    assert (rows.rank.tolist(), rows.grade.tolist(), rows.nth.tolist()) == ([1, 3], [1.0, 2.0], [1, 2])


def test_hits_say_what_hits_which_group_at_which_rank() -> None:
    """a hits both groups and comes again; z is judged non-relevant; the set b, c hits the second group at c."""
    groups = [["a"], [{"all": ["b", "c"]}, "a"], [{"id": "z", "grade": 0}], ["never"]]
    found = hits(groups, ["z", "b", "a", "a", "c"])
    rows = [(hit.rank, hit.group, hit.repeat, hit.part) for hit in found.of_query(0)]
    assert rows[:2] == [(1, 0, False, False), (2, 2, False, True)]
    assert rows[2:4] == [(3, 1, False, False), (3, 2, False, False)]
    assert rows[4:] == [(4, 1, True, False), (4, 2, True, False), (5, 2, False, False)]
    assert found.first_ranks.tolist() == [3, 3, 0]
    assert [found.covered(top).tolist() for top in (2, 3)] == [[False] * 3, [True, True, False]]
    assert found.completion_ranks.tolist() == [0]
    assert hits(groups[:2], ["z", "b", "a"]).completion_ranks.tolist() == [3]


@pytest.mark.parametrize("first", [False, True])
def test_repeats_hit_again_only_where_they_are_asked_for_and_kept(first: bool) -> None:
    """a hits its group at 1 and again at 3. Which of the two tables is made first does not matter."""
    kept = hits([["a"], ["b"]], ["a", "b", "a"], "mrr.autorag", duplicates="keep")
    tables = {repeats: views.group_hits(kept, repeats=repeats) for repeats in (first, not first)}
    assert [part.tolist() for part in (tables[False][0].rank, tables[False][1])] == [[1, 2], [1, 1]]
    assert [part.tolist() for part in (tables[True][0].rank, tables[True][1])] == [[1, 2, 3], [1, 1, 2]]
    assert views.group_hits(kept)[0].rank.tolist() == views.relevant_hits(kept).rank.tolist() == [1, 2]
    penalized = hits([["a"], ["b"]], ["a", "b", "a"])
    for rows in (views.group_hits(penalized, repeats=True)[0], views.relevant_hits(penalized, repeats=True)):
        assert rows.rank.tolist() == [1, 2]


def test_rankings_without_hits_have_empty_tables() -> None:
    nothing = hits([["a"]], ["x"])
    tables = (views.relevant_results(nothing), views.covered_groups(nothing), views.novel_results(nothing))
    assert [table.nth.tolist() for table in tables] == [[], [], []]
    assert [len(table.gain) for table in (views.relevant_results(nothing), views.novel_results(nothing))] == [0, 0]
    assert [len(part) for part in (views.group_hits(nothing)[0].rank, views.group_hits(nothing)[1])] == [0, 0]


def test_runs_share_a_key_if_their_metrics_are_the_same() -> None:
    truth = {"q": [["a"], ["b"]]}
    runs = {
        "one": ["a", "x", "b"],
        "same": ["a", "y", "b"],
        "later": ["a", "x", "y", "b"],
        "longer": ["a", "x", "b", "y"],
    }
    texts = {"a": "a cat", "b": "a dog", "x": "a cat", "y": "no bird"}

    def keys(metric: str) -> dict[str, object]:
        each = {name: groupgt.evaluate(truth, {"q": run}, [metric], corpus=texts) for name, run in runs.items()}
        # The judgments are those of one ground truth where systems are compared.
        return {name: views.query_key(found.labelled.hits, 0)[1:] for name, found in each.items()}

    by_ids, by_texts = keys("recall@2"), keys("token_f1@2")
    assert [name for name, key in by_ids.items() if key == by_ids["one"]] == ["one", "same"]
    assert [name for name, key in by_texts.items() if key == by_texts["one"]] == ["one"]
