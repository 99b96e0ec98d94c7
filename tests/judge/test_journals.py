"""Journals: replaying is a pure function, every prefix is a valid state, and what is undone had no effect."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.cli.main import main
from groupgt.formats.journals import truth_of
from groupgt.formats.replay import Group, QueryState, difference, replayed
from tests.snapshots import Snapshot

DOCS = st.sampled_from("abcde")
GROUPS = st.integers(1, 4)
ACTS = st.one_of(
    st.fixed_dictionaries(
        {"act": st.just("group"), "group": GROUPS, "doc": st.none() | DOCS, "name": st.none() | st.just("n")}
    ),
    st.fixed_dictionaries(
        {
            "act": st.just("relevant"),
            "doc": DOCS,
            "groups": st.lists(GROUPS, min_size=1, unique=True),
            "grade": st.integers(1, 3),
            "span": st.none() | st.just([0, 3]),
        }
    ),
    st.fixed_dictionaries({"act": st.sampled_from(["not_relevant", "harmful", "clear"]), "doc": DOCS}),
    st.fixed_dictionaries({"act": st.just("merge"), "group": GROUPS, "into": GROUPS}),
    st.fixed_dictionaries({"act": st.just("split"), "group": GROUPS, "docs": st.lists(DOCS), "new": st.integers(5, 9)}),
    st.fixed_dictionaries(
        {
            "act": st.just("answer"),
            "item": st.fixed_dictionaries({"kind": st.sampled_from(["same", "needed"]), "group": GROUPS, "doc": DOCS}),
            "value": st.sampled_from(["yes", "no", "unsure", "1", "2"]),
        }
    ),
    st.fixed_dictionaries({"act": st.just("done"), "rest": st.sampled_from(["unjudged", "nonrelevant"])}),
    st.fixed_dictionaries({"act": st.just("skip"), "reason": st.none()}),
    st.fixed_dictionaries({"act": st.just("no_answer")}),
    st.fixed_dictionaries({"act": st.just("note"), "text": st.just("hm")}),
)
OPEN = {
    "act": "open",
    "query": "?",
    "pool": list("abc"),
    "groups": [{"docs": {"a": 1}, "name": None}],
    "nonrelevant": ["b"],
}


def numbered(acts: list[dict[str, Any]], by: str = "anna") -> list[dict[str, Any]]:
    """Acts on one query, as a journal has them."""
    first = {"act": "begin", "settings": {}}
    at = "2026-01-01T00:00:00Z"
    return [{"at": at, "by": by, "seq": seq, "qid": "q", **act} for seq, act in enumerate([first, *acts], 1)]


def written(path: Path, acts: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(act) + "\n" for act in acts), encoding="utf-8")
    return path


@given(st.lists(ACTS, max_size=14), st.booleans())
def test_every_prefix_is_a_valid_state(acts: list[dict[str, Any]], opened: bool) -> None:
    acts = numbered([*([OPEN] if opened else []), *acts])
    for end in range(len(acts) + 1):
        state = replayed(acts[:end]).get("q", QueryState())
        for judgment in state.passages.values():
            assert set(judgment.groups) <= set(state.groups)
            assert len(set(judgment.groups)) == len(judgment.groups)
        assert state.has_answer or not state.grouped()
        groups = state.grouped()
        rejected = [[{"id": doc, "grade": 0}] for doc in state.nonrelevant]
        truth = groupgt.GroundTruth.of({"q": [*groups, *rejected]}, harmful_ids={"q": list(state.harmful)})
        assert len(truth.relevant("q")) == len(groups)


@given(st.lists(ACTS, max_size=10), st.data())
def test_undoing_an_act_equals_its_absence(acts: list[dict[str, Any]], data: st.DataObject) -> None:
    acts = numbered([OPEN, *acts])
    last = acts[-1]
    if last["act"] == "open":
        return
    undone = [*acts, {**last, "seq": last["seq"] + 1, "act": "undo", "of": last["seq"]}]
    later = data.draw(st.lists(ACTS, max_size=3))
    later = [{**last, "seq": last["seq"] + 2 + at, **{"of": None}, **act} for at, act in enumerate(later)]
    assert replayed([*undone, *later]) == replayed([*acts[:-1], *later])


def test_a_truth_by_hand(tmp_path: Path) -> None:
    acts = [
        OPEN | {"groups": [], "nonrelevant": []},
        {"act": "group", "group": 1, "doc": "a", "name": "fare"},
        {"act": "relevant", "doc": "b", "groups": [1], "grade": 2, "span": [3, 9]},
        {"act": "group", "group": 2, "doc": "b", "name": None},
        {"act": "group", "group": 3, "doc": "d", "name": None},
        {"act": "merge", "group": 3, "into": 2},
        {"act": "done", "rest": "nonrelevant"},
    ]
    path = written(tmp_path / "anna.jsonl", numbered(acts))
    truth = groupgt.read_ground_truth(path)
    # a alone and b with grade 2 are group 1; b, and d that was merged, are group 2; c of the pool is not relevant.
    b = {"id": "b", "grade": 2}
    assert truth["q"] == [{"alternatives": ["a", b], "name": "fare"}, [b, "d"], [{"id": "c", "grade": 0}]]
    assert truth.columns["judged_by"] == ["anna"]
    assert truth.columns["spans"] == [{"b": [3, 9]}]
    out = tmp_path / "truth.jsonl"
    main(["convert", str(path), str(out), "--to", "jsonl"])
    row = json.loads(out.read_text(encoding="utf-8"))
    assert (row["retrieval_gt"], row["nonrelevant"]) == (truth["q"][:2], ["c"])
    again = groupgt.read_ground_truth(out)
    assert again.digest == truth.digest
    found = groupgt.evaluate(again, {"q": ["c", "b"]}, ["recall@2", "judged@2"])
    assert (found["recall@2"], found["judged@2"]) == (1, 1)
    spans = truth_of({"anna": numbered(acts)}, spans=True)
    assert spans["q"][1][0] == {"doc": "b", "start": 3, "end": 9, "grade": 2}


def test_only_finished_queries_are_ground_truth() -> None:
    acts = numbered([OPEN, {"act": "not_relevant", "doc": "c"}])
    assert len(truth_of({"anna": acts})) == 0
    skipped = truth_of({"anna": numbered([OPEN, {"act": "skip", "reason": "unclear"}])})
    assert (skipped["q"], skipped.columns["skipped"]) == ([], ["unclear"])


def test_several_annotators(tmp_path: Path, snapshot: Snapshot) -> None:
    done = {"act": "done", "rest": "unjudged"}
    first, second = numbered([OPEN, done]), numbered([OPEN, {"act": "not_relevant", "doc": "a"}, done], by="ben")
    path = written(tmp_path / "both.jsonl", [*second, *first])
    with snapshot.raises(groupgt.DataError):
        groupgt.read_ground_truth(path)
    third = numbered([OPEN, done], by="carla")
    third[0]["settings"] = {"adjudicates": ["anna", "ben"]}
    for acts in ([*first, *second, *third], [*third, *second, *first]):
        truth = groupgt.read_ground_truth(written(tmp_path / "three.jsonl", acts))
        assert (truth["q"][0], truth.columns["judged_by"]) == (["a"], ["carla"])
    same = numbered([OPEN, done], by="ben")
    assert groupgt.read_ground_truth(written(tmp_path / "same.jsonl", [*first, *same])).columns["judged_by"] == ["anna"]


def test_what_two_annotators_differ_in(snapshot: Snapshot) -> None:
    def state(status: str = "done", non: str = "c", **groups: dict[str, float]) -> QueryState:
        docs = [doc for group in groups.values() for doc in group]
        numbered = {number: Group(docs=group) for number, group in enumerate(groups.values(), 1)}
        return QueryState(groups=numbered, marks=dict.fromkeys([*docs, *non]), status=status)

    one = state(x={"a": 1, "b": 2}, y={"b": 1})
    assert difference(one, state(y={"b": 1}, empty={}, x={"b": 2, "a": 1})) is None
    assert difference(one, state(x={"a": 1, "b": 2}, y={"b": 2})) == "grades"
    assert difference(one, state(x={"a": 1}, y={"b": 1})) == "groups"
    assert difference(one, state(x={"a": 1, "b": 2}, y={"b": 1}, z={"b": 1})) == "groups"
    snapshot(difference(one, state(x={"a": 1, "b": 2}, y={"b": 1}, non="")))
    assert difference(one, state("skipped", x={"a": 1, "b": 2}, y={"b": 1})) == "whether it is skipped"
    # A skipped query has no judgments in the file.
    assert difference(state("skipped"), state("skipped", non="", x={"a": 1})) is None
    declared = replace(state(), declared=True)
    assert difference(state(), declared) == "whether it has an answer"


def test_the_last_answer_counts() -> None:
    same = {"kind": "same", "group": 1, "doc": "c"}
    opened = {"act": "open", "query": "?", "pool": [], "nonrelevant": ["b"]}
    opened["groups"] = [{"docs": {doc: 1}, "name": None} for doc in "adf"]

    def after(*answers: tuple[dict[str, Any], str]) -> list[Any]:
        acts = [{"act": "answer", "item": item, "value": value} for item, value in answers]
        return replayed(numbered([opened, *acts]))["q"].grouped()

    def needed(group: int) -> dict[str, Any]:
        return {"kind": "needed", "group": group}

    assert after((same, "yes")) == [["a", "c"], ["d"], ["f"]]
    assert after((same, "yes"), (same, "no")) == [["a"], ["d"], ["f"]]
    assert after((same, "yes"), (same, "unsure"), (same, "yes")) == [["a", "c"], ["d"], ["f"]]
    # The order of answers to different questions makes no difference: c is added to a before a joins d.
    assert after((needed(1), "2"), (same, "yes")) == after((same, "yes"), (needed(1), "2")) == [["d", "a", "c"], ["f"]]
    assert after((needed(1), "2"), (needed(1), "yes")) == [["a"], ["d"], ["f"]]
    # Group 1 is the same as 2, and 3 is the same as 1: they are one group.
    assert after((needed(1), "2"), (needed(3), "1")) == [["d", "a", "f"]]
    assert after((needed(1), "no"), (needed(3), "1")) == [["d"], ["f"]]
    assert after((needed(2), "no"), (needed(2), "unsure")) == [["a"], ["d"], ["f"]]


def test_merged_groups_keep_the_higher_weight_and_importance() -> None:
    def merged(**more: dict[str, Any]) -> Group:
        one, two = (Group(None, {"a": grade}, dict(each)) for grade, each in zip((2, 1), more.values()))
        one.absorb(two)
        return one

    assert merged(one={}, two={"weight": 2, "importance": "vital"}).more == {"weight": 2, "importance": "vital"}
    # A group without a weight weighs 1.
    assert merged(one={"weight": 0.5, "importance": "okay"}, two={}).more == {"importance": "okay"}
    assert merged(one={"weight": 3, "importance": "okay"}, two={"weight": 2, "importance": "vital"}).more == {
        "weight": 3,
        "importance": "vital",
    }
    assert merged(one={}, two={}).docs == {"a": 2}


def test_no_answer_is_declared() -> None:
    opened = OPEN | {"groups": [], "nonrelevant": []}
    acts = [opened, {"act": "no_answer"}]
    truth = truth_of({"anna": numbered(acts)})
    assert (truth.columns["answerable"], truth["q"]) == ([False], [[{"id": doc, "grade": 0}] for doc in "abc"])
    # A relevant passage takes it back, and so does undo; a skipped query says nothing about answers.
    found = {"act": "group", "group": 1, "doc": "a", "name": None}
    for more in ([found], [{"act": "skip", "reason": None}], [{"act": "undo", "of": 3}]):
        truth = truth_of({"anna": numbered([*acts, *more, {"act": "done", "rest": "unjudged"}][: 2 + len(more) + 1])})
        assert "answerable" not in truth.columns


def test_a_new_judgment_replaces_what_was_said_of_the_old(tmp_path: Path) -> None:
    row = {"qid": "q", "query": "?", "retrieval_gt": [], "topic": "x", "skipped": "unclear", "assisted": True}
    row |= {"answerable": False, "sample": {"seed": 1}, "spans": {"a": [0, 1]}, "pool": "rrf:3", "judged_by": "ben"}
    path = tmp_path / "base.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    base = groupgt.read_ground_truth(path)
    truth = truth_of({"anna": numbered([OPEN, {"act": "done", "rest": "unjudged"}])}, base=base)
    columns = {"topic": ["x"], "judged_by": ["anna"], "judged_at": ["2026-01-01T00:00:00Z"]}
    assert (truth.columns, truth["q"][0]) == (columns, ["a"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"act": "dance"}, "expected an action (begin, open, group"),
        ({"act": "merge", "group": 1}, 'action "merge": expected an integer as into, found nothing'),
        ({"act": "merge", "group": True, "into": 1}, 'action "merge": expected an integer as group, found True'),
        ({"act": "relevant", "doc": "a", "groups": [], "grade": 1, "span": None}, "expected group numbers"),
        ({"act": "relevant", "doc": "a", "groups": [1], "grade": 0, "span": None}, "expected a grade above 0, found 0"),
        (
            {"act": "answer", "item": {"kind": "same", "group": 1}, "value": "yes"},
            'expected an item with a group number and, if its kind is "same", a passage',
        ),
        (
            {"act": "answer", "item": {"kind": "needed", "group": 1}, "value": "-1"},
            "expected yes, no or unsure, or a group number, found '-1'",
        ),
        (
            {"act": "open", "query": "", "pool": [], "groups": [{"docs": {"a": "1"}}], "nonrelevant": []},
            "expected groups with docs and their grades",
        ),
        ({"act": ["done"]}, "expected an action (begin, open, group"),
        ({"act": "relevant", "doc": "a", "groups": [1], "grade": 1, "span": [3, 3]}, "expected [start, end] as span"),
        ({"act": "done", "rest": "all"}, "expected unjudged or nonrelevant as rest, found 'all'"),
        ({"act": "open", "query": "", "pool": [1], "groups": [], "nonrelevant": []}, "expected passage ids"),
    ],
)
def test_invalid_lines_are_told(tmp_path: Path, line: dict[str, Any], expected: str) -> None:
    path = written(tmp_path / "anna.jsonl", numbered([OPEN, line]))
    with pytest.raises(groupgt.DataError) as error:
        groupgt.read_ground_truth(path)
    assert f"{path}:3: " in str(error.value)
    assert expected in str(error.value)


def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path, snapshot: Snapshot) -> None:
    path = written(tmp_path / "anna.jsonl", numbered([OPEN, {"act": "done", "rest": "unjudged"}]))
    with path.open("ab") as file:
        file.write(b'{"at": "2026-')
    with snapshot.warns(groupgt.GroupgtWarning):
        assert groupgt.read_ground_truth(path)["q"][0] == ["a"]


def test_nonrelevant_ids_are_grade_0(tmp_path: Path, snapshot: Snapshot) -> None:
    path = tmp_path / "truth.jsonl"
    path.write_text(
        '{"qid": "q", "retrieval_gt": [["a"]], "nonrelevant": ["b"]}\n{"qid": "r", "retrieval_gt": [["a"]]}\n'
    )
    truth = groupgt.read_ground_truth(path)
    assert (truth["q"], truth["r"]) == ([["a"], [{"id": "b", "grade": 0}]], [["a"]])
    path.write_text('{"qid": "q", "retrieval_gt": [["a"]], "nonrelevant": "b"}\n')
    with snapshot.raises(groupgt.DataError):
        groupgt.read_ground_truth(path)
