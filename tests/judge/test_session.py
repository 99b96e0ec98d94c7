"""Sessions: what the page shows, what acts become, and how a journal goes on."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path

import pytest

import groupgt
from groupgt.formats.journals import read_acts, truth_of
from groupgt.formats.replay import replayed
from groupgt.formats.source import Source
from groupgt.judge.index import Index
from groupgt.judge.log import ActLog, read_folder
from groupgt.judge.pool import PoolRule, pooled, shuffled, spreads
from groupgt.judge.session import Session, UnknownQueryError
from groupgt.model.sample import sample_of
from tests.judge.acts import QUERIES, TEXTS, plan_of, session_of
from tests.snapshots import Snapshot

TRUTH = groupgt.GroundTruth.of({"q1": [["youth", "fares"], ["night"]], "q2": [["pets"]], "q3": [["cars"]]})


def test_a_sample_is_the_same_in_every_version() -> None:
    assert sample_of(["a", "b", "c"], 2, seed=0) == {"seed": 0, "of": 3, "drawn": 2, "order": ["a", "c"]}


def test_pools(snapshot: Snapshot) -> None:
    index = Index(TEXTS)
    runs = [{"q": ["a", "pets", "cars"]}, {"q": ["cars", "night", "pets"]}]
    assert pooled(PoolRule("depth", 2), "q", "", runs, index) == ["cars", "pets", "night"]
    # 1 ÷ 61 + 1 ÷ 63 for cars, 1 ÷ 62 + 1 ÷ 63 for pets, 1 ÷ 62 for night; a is not in the corpus.
    assert pooled(PoolRule("rrf", 3), "q", "", runs, index) == ["cars", "pets"]
    assert pooled(PoolRule("bm25", 1), "q", "pets", [], index) == ["pets"]
    assert pooled(PoolRule("bm25", 9), "q", "§", [], index) == []
    order = shuffled(0, "q", list(TEXTS))
    assert sorted(order) == sorted(TEXTS)
    assert order == shuffled(0, "q", list(TEXTS)[::-1]) != shuffled(1, "q", list(TEXTS))
    for text in ("bm25", "depth:0", "bm25:1001", "dense:3", "rrf:x"):
        with snapshot.raises(groupgt.ConfigError):
            PoolRule.of(text, has_runs=True)
    with snapshot.raises(groupgt.ConfigError):
        PoolRule.of("rrf:3", has_runs=False)
    assert PoolRule.of("rrf:20", has_runs=True) == PoolRule("rrf", 20)
    assert PoolRule.of(None, has_runs=False) == PoolRule("bm25", 20)


def test_how_far_a_result_can_move_two_runs_apart() -> None:
    # y is only in the second, at rank 2: 1 ÷ log2(3). x is at ranks 2 and 1.
    assert spreads([["a", "x"], ["x", "y"]], ["a"], 2) == {"y": 1 / math.log2(3), "x": 1 - 1 / math.log2(3)}


def test_a_query_is_judged(tmp_path: Path) -> None:
    session = session_of(tmp_path)
    view = session.view("q1")
    assert {each["doc"] for each in view["passages"]} >= {"youth", "night", "fares"}
    assert view["groups"] == []
    for act in (
        {"act": "group", "doc": "youth"},
        {"act": "group", "doc": "night"},
        {"act": "not_relevant", "doc": "fares"},
        {"act": "undo"},
        {"act": "relevant", "doc": "fares", "groups": [1], "grade": 2},
        {"act": "group", "group": 1, "name": "the fare"},
        {"act": "group", "doc": "pets"},
        {"act": "merge", "group": 3, "into": 1},
        {"act": "split", "group": 1, "docs": ["pets"]},
        {"act": "not_relevant", "doc": "pets"},
    ):
        session.act({"qid": "q1", **act})
    view = session.view("q1")
    # A new group never gets the number of an earlier one, so that what was undone or merged stays apart.
    assert [(each["number"], each["name"], each["docs"]) for each in view["groups"]] == [
        (1, "the fare", ["youth", "fares"]),
        (2, None, ["night"]),
    ]
    assert session.act({"qid": "q1", "act": "group", "doc": "pets"})["group"] == 5
    session.act({"qid": "q1", "act": "undo"})
    session.act({"qid": "q1", "act": "done"})
    overview = session.overview()
    assert (overview["finished"], overview["next"]) == (1, "q2")
    truth = truth_of({"anna": session.log.acts})
    fares = {"id": "fares", "grade": 2}
    assert truth.relevant("q1") == [{"alternatives": ["youth", fares], "name": "the fare"}, ["night"]]
    session.log.close()
    again = session_of(tmp_path)
    assert again.overview()["next"] == "q2"
    assert again.view("q1") == session.view("q1")


def test_near_duplicates_are_marked_or_suggested_and_not_judged(tmp_path: Path) -> None:
    pytest.importorskip("rapidfuzz", reason="the extra groupgt[text] is not installed")
    session = session_of(tmp_path, "ben")
    session.view("q1")
    session.act({"qid": "q1", "act": "group", "doc": "youth"})
    view = session.view("q1")
    near = [(each["doc"], each["like"], each["judged"]) for each in view["passages"] if "like" in each]
    assert (near, view["suggestions"]) == ([("youth-copy", "youth", None)], [])
    session = session_of(tmp_path, pool=PoolRule("bm25", 1))
    doc = session.view("q1")["passages"][0]["doc"]
    session.act({"qid": "q1", "act": "not_relevant", "doc": doc})
    session.act({"qid": "q1", "act": "group", "doc": "youth"})
    assert [(each["doc"], each["like"]) for each in session.view("q1")["suggestions"]] == [("youth-copy", "youth")]


def test_what_is_refused(tmp_path: Path, snapshot: Snapshot) -> None:
    session = session_of(tmp_path)
    with snapshot.raises(groupgt.DataError):
        session.act({"qid": "q1", "act": "done"})
    session.view("q1")
    for act, expected in (
        ({"qid": "q9", "act": "done"}, "expected a query in this session, found 'q9'"),
        ({"qid": "q1", "act": "begin", "settings": {}}, "expected an action on a query"),
        ({"qid": "q1", "act": "open"}, "expected an action on a query"),
        ({"qid": "q1", "act": "undo"}, "nothing to undo"),
        ({"qid": "q1", "act": "dance"}, "expected an action"),
        (
            {"qid": "q1", "act": "not_relevant", "doc": "elsewhere"},
            "expected a passage from the corpus, found 'elsewhere'",
        ),
        ({"qid": "q1", "act": "relevant", "doc": "pets", "groups": [1]}, "expected a group from query 'q1', found 1"),
        ({"qid": "q1", "act": "group", "group": 7, "name": "x"}, "expected a group from query 'q1', found 7"),
        ({"qid": "q1", "act": "merge", "group": 1, "into": 2}, "expected a group from query 'q1', found 1"),
        (
            {"qid": "q1", "act": "answer", "item": {"kind": "needed", "group": 1}, "value": "yes"},
            "expected one of this audit's questions",
        ),
        ({"qid": "q1", "act": "done", "rest": "x"}, "expected unjudged or nonrelevant"),
    ):
        with pytest.raises(groupgt.DataError) as error:
            session.act(act)
        assert expected in str(error.value), act
    session.act({"qid": "q1", "act": "group", "doc": "pets"})
    with snapshot.raises(groupgt.DataError):
        session.act({"qid": "q1", "act": "relevant", "doc": "pets", "groups": [1], "span": [0, 10_000]})
    for act, expected in (
        ({"act": "merge", "group": 1, "into": 1}, "expected two different groups, found 1 twice"),
        ({"act": "split", "group": 1, "docs": ["cars"]}, "expected passages in group 1, found ['cars']"),
        ({"act": "no_answer"}, "the query has relevant passages; remove them from their groups first"),
        (
            {"act": "relevant", "doc": "pets", "groups": [1], "grade": float("inf")},
            "expected a grade above 0, found inf",
        ),
        ({"act": "relevant", "doc": "pets", "groups": [1], "grade": 10**400}, "expected a grade above 0"),
    ):
        with pytest.raises(groupgt.DataError) as error:
            session.act({"qid": "q1", **act})
        assert expected in str(error.value), act
    assert [act["act"] for act in session.log.acts] == ["begin", "open", "group"]


def test_a_journal_belongs_to_one_process_and_one_plan(tmp_path: Path, snapshot: Snapshot) -> None:
    session = session_of(tmp_path)
    session.begin()
    with snapshot.raises(groupgt.ConfigError):
        session_of(tmp_path)
    session.log.close()
    with snapshot.raises(groupgt.ConfigError):
        session_of(tmp_path, seed=1)
    for name in ("", "../x", ".hidden", "a b"):
        with snapshot.raises(groupgt.ConfigError):
            ActLog(tmp_path, name)


def test_a_line_that_was_cut_off_was_never_confirmed(tmp_path: Path, snapshot: Snapshot) -> None:
    session = session_of(tmp_path)
    session.view("q1")
    session.log.close()
    path = tmp_path / "journal" / "anna.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"at"')
    with snapshot.warns(groupgt.GroupgtWarning):
        again = session_of(tmp_path)
    assert path.read_bytes() == whole
    again.act({"qid": "q1", "act": "skip"})
    assert replayed(read_acts(Source.at(path))["anna"])["q1"].status == "skipped"


def test_a_sample_has_a_fixed_order(tmp_path: Path, snapshot: Snapshot) -> None:
    sample = sample_of(list(QUERIES), 2, seed=3)
    assert sample == {"seed": 3, "of": 3, "drawn": 2, "order": sample["order"]}
    with snapshot.raises(groupgt.ConfigError):
        sample_of(list(QUERIES), 4, seed=3)
    session = session_of(tmp_path, sample=sample)
    first, second = sample["order"]
    with snapshot.raises(groupgt.DataError):
        session.view(second)
    [outside] = set(QUERIES) - {first, second}
    for use in (
        session.view,
        lambda qid: session.act({"qid": qid, "act": "done"}),
        lambda qid: session.search("", qid),
    ):
        with snapshot.raises(UnknownQueryError):
            use(outside)
    session.view(first)
    session.act({"qid": first, "act": "skip", "reason": "cannot tell"})
    session.view(second)
    assert len(truth_of({"anna": session.log.acts})) == 1
    session.act({"qid": second, "act": "done", "rest": "nonrelevant"})
    truth = truth_of({"anna": session.log.acts})
    # The skipped query stays in the sample.
    assert truth.qids == [first, second]
    assert truth.columns["skipped"] == ["cannot tell", None]
    assert truth.columns["sample"] == [{"seed": 3, "of": 3, "drawn": 2, "place": place} for place in (1, 2)]
    shown = str(groupgt.evaluate(truth, {second: ["pets"]}, ["recall@3"]))
    snapshot(shown)


def test_prior_judgments(tmp_path: Path, snapshot: Snapshot) -> None:
    assisted = session_of(tmp_path, prior=TRUTH)
    assert [each["docs"] for each in assisted.view("q1")["groups"]] == [["youth", "fares"], ["night"]]
    assisted.act({"qid": "q1", "act": "done"})
    truth = truth_of({"anna": assisted.log.acts})
    assert truth.columns["assisted"] == [True]
    snapshot(str(groupgt.evaluate(truth, {"q1": ["night"]}, ["mrr"])))
    blind = session_of(tmp_path, "ben", prior=TRUTH, blind=True)
    view = blind.view("q1")
    assert view["groups"] == []
    assert "prior" not in view
    assert {"youth", "fares", "night"} <= {each["doc"] for each in view["passages"]}
    blind.act({"qid": "q1", "act": "group", "doc": "youth"})
    assert "prior" not in blind.view("q1")
    blind.act({"qid": "q1", "act": "done"})
    assert [[each["doc"] for each in group] for group in blind.view("q1")["prior"]] == [["youth", "fares"], ["night"]]
    assert "assisted" not in truth_of({"ben": blind.log.acts}).columns
    # From here on the draft is known: a change is no independent judgment, unless it is taken back.
    blind.act({"qid": "q1", "act": "group", "doc": "night"})
    blind.act({"qid": "q1", "act": "done"})
    assert truth_of({"ben": blind.log.acts}).columns["assisted"] == [True]
    blind.act({"qid": "q1", "act": "undo"})
    blind.act({"qid": "q1", "act": "undo"})
    assert "assisted" not in truth_of({"ben": blind.log.acts}).columns


def test_a_query_without_a_draft_is_not_assisted(tmp_path: Path) -> None:
    session = session_of(tmp_path, prior=groupgt.GroundTruth.of({"q2": [["pets"]]}), blind=True)
    session.view("q1")
    session.act({"qid": "q1", "act": "done"})
    assert "prior" not in session.view("q1")
    session.act({"qid": "q1", "act": "group", "doc": "night"})
    session.act({"qid": "q1", "act": "done"})
    assert "assisted" not in truth_of({"anna": session.log.acts}).columns


def test_harmful_passages(tmp_path: Path) -> None:
    opinions = {}
    for by, harmful in (("anna", ["pets", "cars"]), ("ben", ["pets", "fares"])):
        session = session_of(tmp_path, by)
        session.view("q1")
        for doc in harmful:
            session.act({"qid": "q1", "act": "harmful", "doc": doc})
        session.act({"qid": "q1", "act": "group", "doc": "youth"})
        session.act({"qid": "q1", "act": "not_relevant", "doc": "cars" if by == "ben" else "fares"})
        session.act({"qid": "q1", "act": "done"})
        opinions[by] = replayed(session.log.acts)
        truth = truth_of({by: session.log.acts})
        assert truth.harmful == [set(harmful)]
        assert truth.judgments.rejected.tolist() == [3]
    # It is harmful until it joins a group, and what one of two calls harmful is to be settled.
    session.act({"qid": "q1", "act": "relevant", "doc": "pets", "groups": [1]})
    assert truth_of({"ben": session.log.acts}).qids == []
    session.act({"qid": "q1", "act": "done"})
    assert truth_of({"ben": session.log.acts}).harmful == [{"fares"}]
    session = session_of(tmp_path, "carla", kind="adjudicate", queries={"q1": QUERIES["q1"]}, opinions=opinions)
    judged = {each["doc"]: each["judged"] for each in session.view("q1")["passages"]}
    assert judged["pets"]["harmful"]
    assert (judged["cars"], judged["fares"]) == (None, None)
    # Judgments that a session starts from keep their harmful passages.
    session = session_of(tmp_path / "other", prior=truth)
    assert {each["doc"] for each in session.view("q1")["passages"] if (each["judged"] or {}).get("harmful")} == {
        "pets",
        "fares",
    }


def test_an_audit_asks_blind_and_corrects(tmp_path: Path) -> None:
    # Two faults: youth and fares are alternatives, and the copy of youth is missing.
    faulty = groupgt.GroundTruth.of({"q1": [["youth"], ["fares"], ["night"]], "q2": [["pets"]], "q3": [["cars"]]})
    session = session_of(tmp_path, kind="audit", truth=faulty)
    view = session.view("q1")
    assert "groups" not in view
    assert all(set(passage) <= {"text", "group"} for each in view["questions"] for passage in each["passages"])
    kinds = [each["item"]["kind"] for each in view["questions"]]
    assert kinds[:3] == ["needed"] * 3
    assert "needed" not in kinds[3:]
    missing = {"kind": "same", "group": 1, "doc": "youth-copy"}
    assert missing in [each["item"] for each in view["questions"]]
    session.act({"qid": "q1", "act": "answer", "item": missing, "value": "yes"})
    session.act({"qid": "q1", "act": "answer", "item": {"kind": "needed", "group": 2}, "value": "1"})
    session.act({"qid": "q1", "act": "answer", "item": {"kind": "needed", "group": 3}, "value": "no"})
    session.act({"qid": "q1", "act": "undo"})
    session.act({"qid": "q1", "act": "done"})
    truth = truth_of({"anna": session.log.acts}, base=faulty)
    assert [set(group) for group in truth["q1"]] == [{"youth", "youth-copy", "fares"}, {"night"}]
    # One of two groups that are said to do the same is kept: the question about the other is not asked any more.
    items = [each["item"] for each in session.view("q1")["questions"]]
    assert {"kind": "needed", "group": 3} in items
    session.act({"qid": "q1", "act": "answer", "item": {"kind": "needed", "group": 3}, "value": "no"})
    assert {"kind": "needed", "group": 1} not in [each["item"] for each in session.view("q1")["questions"]]
    session.act({"qid": "q1", "act": "undo"})
    # Queries that were not audited are as they were.
    assert (truth["q2"], truth.columns["judged_by"]) == ([["pets"]], ["anna", None, None])


def test_an_audit_keeps_weights_names_and_excluded_ids(tmp_path: Path) -> None:
    groups = [
        {"alternatives": ["youth", {"id": "fares", "grade": 2}], "name": "fare", "weight": 2, "importance": "vital"}
    ]
    excluded, harmful = {"q1": ["cars"]}, {"q1": ["pets"]}
    truth = groupgt.GroundTruth.of({"q1": [*groups, ["night"]]}, excluded_ids=excluded, harmful_ids=harmful)
    session = session_of(tmp_path, kind="audit", truth=truth, queries={"q1": QUERIES["q1"]})
    session.view("q1")
    missing = {"kind": "same", "group": 1, "doc": "youth-copy"}
    session.act({"qid": "q1", "act": "answer", "item": missing, "value": "yes"})
    found = truth_of({"anna": session.log.acts}, base=truth)
    alternatives = [*groups[0]["alternatives"], "youth-copy"]
    assert found["q1"] == [{**groups[0], "alternatives": alternatives}, ["night"], [{"id": "pets", "grade": 0}]]
    assert (found.excluded, found.harmful) == ([frozenset({"cars"})], [frozenset({"pets"})])


def test_half_characters_do_not_reach_the_journal(tmp_path: Path, snapshot: Snapshot) -> None:
    session = session_of(tmp_path)
    session.view("q1")
    with snapshot.raises(groupgt.DataError):
        session.act({"qid": "q1", "act": "group", "doc": "pets", "name": "\ud800"})
    session.log.close()
    assert [act["act"] for act in session_of(tmp_path).log.acts] == ["begin", "open"]


def test_differences_are_settled(tmp_path: Path) -> None:
    for by, doc in (("anna", "youth"), ("ben", "night")):
        session = session_of(tmp_path, by)
        for qid in QUERIES:
            session.view(qid)
            session.act({"qid": qid, "act": "group", "doc": doc if qid == "q1" else "pets"})
            session.act({"qid": qid, "act": "done"})
        session.log.close()
    acts = read_folder(tmp_path / "journal")
    with pytest.raises(groupgt.DataError, match="query 'q1': anna and ben disagree"):
        truth_of(acts)
    opinions = {by: replayed(mine) for by, mine in acts.items()}
    session = session_of(tmp_path, "carla", kind="adjudicate", queries={"q1": QUERIES["q1"]}, opinions=opinions)
    view = session.view("q1")
    # Groups are numbered alike: the two have none in common. Nothing is agreed, so nothing is judged at first.
    said = {by: opinion["passages"] for by, opinion in view["opinions"].items()}
    alike = {"grade": 1, "span": None, "harmful": False}
    assert said == {"anna": {"youth": {"groups": [1], **alike}}, "ben": {"night": {"groups": [2], **alike}}}
    assert view["groups"] == []
    unsettled: list[str] = []
    assert truth_of({**acts, "carla": session.log.acts}, unsettled=unsettled).qids == ["q2", "q3"]
    assert unsettled == ["q1"]
    session.act({"qid": "q1", "act": "group", "doc": "youth"})
    session.act({"qid": "q1", "act": "group", "doc": "night"})
    session.act({"qid": "q1", "act": "done"})
    truth = truth_of({**acts, "carla": session.log.acts})
    assert (truth["q1"], truth["q2"]) == ([["youth"], ["night"]], [["pets"]])


def test_adjudication_starts_with_what_is_agreed(tmp_path: Path) -> None:
    said = {
        "anna": [["youth", "fares"], ["night"]],
        "ben": [["night", "cars"], ["fares"]],
    }
    opinions = {}
    for by, groups in said.items():
        session = session_of(tmp_path, by)
        session.view("q1")
        for number, group in enumerate(groups, 1):
            session.act({"qid": "q1", "act": "group", "doc": group[0]})
            for doc in group[1:]:
                session.act({"qid": "q1", "act": "relevant", "doc": doc, "groups": [number]})
        session.act({"qid": "q1", "act": "not_relevant", "doc": "pets"})
        session.act({"qid": "q1", "act": "done"})
        opinions[by] = replayed(session.log.acts)
    session = session_of(tmp_path, "carla", kind="adjudicate", queries={"q1": QUERIES["q1"]}, opinions=opinions)
    view = session.view("q1")
    assert sorted(each["docs"] for each in view["groups"]) == [["fares"], ["night"]]
    by_doc = {each["doc"]: each["judged"] for each in view["passages"]}
    assert by_doc["pets"]["groups"] == []
    assert [by_doc["youth"], by_doc["cars"]] == [None, None]
    assert {each["doc"] for each in view["passages"][:2]} == {"youth", "cars"}
    anna, ben = (view["opinions"][by]["passages"] for by in said)
    assert (anna["fares"], anna["night"]) == (ben["fares"], ben["night"])


def test_another_grade_is_a_difference_to_settle(tmp_path: Path, snapshot: Snapshot) -> None:
    opinions = {}
    for by, grade in (("anna", 2), ("ben", 3)):
        session = session_of(tmp_path, by)
        session.view("q1")
        session.act({"qid": "q1", "act": "group", "doc": "youth"})
        session.act({"qid": "q1", "act": "group", "group": 1, "doc": "fares"})
        session.act({"qid": "q1", "act": "relevant", "doc": "youth", "groups": [1], "grade": grade})
        session.act({"qid": "q1", "act": "done"})
        opinions[by] = session.log.acts
    with pytest.raises(groupgt.DataError, match="query 'q1': anna and ben disagree on grades"):
        truth_of(opinions)
    states = {by: replayed(acts) for by, acts in opinions.items()}
    session = session_of(tmp_path, "carla", kind="adjudicate", queries={"q1": QUERIES["q1"]}, opinions=states)
    view = session.view("q1")
    assert ([each["docs"] for each in view["groups"]], view["passages"][0]["doc"]) == ([["fares"]], "youth")
    youth = view["opinions"]["ben"]["passages"]["youth"]
    assert (youth["groups"], youth["grade"]) == ([1], 3)
    # Of two adjudicators, too.
    session.act({"qid": "q1", "act": "done"})
    other = session_of(tmp_path, "dora", kind="adjudicate", queries={"q1": QUERIES["q1"]}, opinions=states)
    other.view("q1")
    other.act({"qid": "q1", "act": "skip"})
    with snapshot.raises(groupgt.DataError):
        truth_of({**opinions, "carla": session.log.acts, "dora": other.log.acts})
    assert truth_of({**opinions, "carla": session.log.acts})["q1"] == [["fares"]]


def test_the_order_of_queries(tmp_path: Path) -> None:
    runs = [
        {"q1": ["night"], "q2": ["pets", "cars"], "q3": ["cars"]},
        {"q1": ["fares"], "q2": ["pets"], "q3": ["cars"]},
    ]
    given = {"pool": PoolRule("depth", 2), "runs": runs}
    orders = {way: session_of(tmp_path, f"by-{way}", next=way, **given).order for way in (None, "pool", "rrf")}
    # Pools of 2, 2 and 1 passages; best scores of 1 ÷ 61, 2 ÷ 61 and 2 ÷ 61.
    assert orders == {None: ["q1", "q2", "q3"], "pool": ["q1", "q2", "q3"], "rrf": ["q1", "q2", "q3"]}
    runs = [
        {"q1": ["night"], "q2": ["pets", "cars"], "q3": ["cars"]},
        {"q1": ["night"], "q2": ["night"], "q3": ["cars"]},
    ]
    assert session_of(tmp_path, "more", next="pool", pool=PoolRule("depth", 2), runs=runs).order[0] == "q2"
    assert session_of(tmp_path, "agreeing", next="rrf", pool=PoolRule("depth", 2), runs=runs).order[0] == "q2"
    # Only in q2 do the runs differ in unjudged results: pets 1, cars 1 ÷ log2 3, night 1.
    assert session_of(tmp_path, "apart", next="comparison", **{**given, "runs": runs}).order == ["q2", "q1", "q3"]


def test_without_rapidfuzz_nothing_is_suggested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rapidfuzz", None)
    session = Session(plan_of(), ActLog(tmp_path, "anna"))
    session.view("q1")
    session.act({"qid": "q1", "act": "group", "doc": "youth"})
    assert session.view("q1")["suggestions"] == []
    assert "groupgt[text]" in session.overview()["note"]


def test_the_queue_of_an_audit_goes_through_all_queries(tmp_path: Path) -> None:
    session = session_of(tmp_path, kind="audit", truth=TRUTH, pool=PoolRule("bm25", 2))
    asked = []
    while (queue := session.overview()["queue"])["qid"] is not None:
        question = session.view(queue["qid"])["questions"][queue["at"]]
        assert question["answer"] is None
        asked.append((queue["qid"], question["item"]["kind"]))
        session.act({"qid": queue["qid"], "act": "answer", "item": question["item"], "value": "unsure"})
    assert (queue["answered"], queue["of"]) == (len(asked), len(asked))
    assert [kind for _, kind in asked] == ["needed"] * 2 + ["same"] * 8
    assert {qid for qid, _ in asked} == set(QUERIES)
    # Nothing was changed by answers that decide nothing, though no query is finished.
    assert [truth_of({"anna": session.log.acts}, base=TRUTH)[qid] for qid in QUERIES] == [TRUTH[qid] for qid in QUERIES]


def test_an_audit_takes_answers_to_its_questions_alone(tmp_path: Path) -> None:
    session = session_of(
        tmp_path, kind="audit", truth=groupgt.GroundTruth.of({**dict(TRUTH.items()), "q1": [["youth"], ["night"]]})
    )
    session.view("q1")
    needed = {"kind": "needed", "group": 1}
    for act, expected in (
        (
            {"act": "group", "doc": "pets"},
            "expected an answer to one of this audit's questions, found the action 'group'",
        ),
        ({"act": "no_answer"}, "found the action 'no_answer'"),
        ({"act": "answer", "item": needed, "value": "3"}, "expected yes, no, unsure or 2 as the answer, found '3'"),
        ({"act": "answer", "item": needed, "value": "maybe"}, "or a group number, found 'maybe'"),
    ):
        with pytest.raises(groupgt.DataError) as error:
            session.act({"qid": "q1", **act})
        assert expected in str(error.value), act
    session.act({"qid": "q1", "act": "answer", "item": needed, "value": "2"})
    # What was merged is not offered again, but what was answered is shown.
    shown = {
        each["item"]["group"]: each for each in session.view("q1")["questions"] if each["item"]["kind"] == "needed"
    }
    assert [each["group"] for each in shown[1]["passages"]] == [1, 2]
    assert 2 not in shown


def test_ground_truth_that_cannot_be_judged_is_refused_before_anything_is_written(
    tmp_path: Path, snapshot: Snapshot
) -> None:
    for group in ([{"text": "Pets are free."}], [{"doc": "pets", "start": 0, "end": 4}], [{"all": ["pets", "cars"]}]):
        truth = groupgt.GroundTruth.of({**dict(TRUTH.items()), "q2": [group]})
        for given in ({"truth": truth}, {"prior": truth}, {"truth": truth, "kind": "audit"}):
            log = ActLog(tmp_path / "journal", "anna")
            with snapshot.raises(groupgt.ConfigError):
                Session(plan_of(**given), log)
            log.close()
            assert not (tmp_path / "journal").exists()


def test_an_act_is_in_the_journal_as_a_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    session = session_of(tmp_path)
    session.view("q1")
    path = tmp_path / "journal" / "anna.jsonl"
    write, cut, space = os.write, os.ftruncate, 7

    def full(handle: int, data: bytes) -> int:
        if not space:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data[:space])

    def partly(handle: int, data: bytes) -> int:
        nonlocal space
        written, space = full(handle, data), 0
        return written

    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", partly)
        with snapshot.raises(groupgt.DataError):
            session.act({"qid": "q1", "act": "group", "doc": "youth"})
        assert path.read_bytes() == before
        # A disk so full that nothing can be cut off either.
        space = 7
        patch.setattr(os, "ftruncate", lambda handle, size: full(handle, b""))
        with pytest.raises(groupgt.DataError, match="No space left"):
            session.act({"qid": "q1", "act": "group", "doc": "youth"})
        assert len(path.read_bytes()) == len(before) + 7
        space = 10_000
        patch.setattr(os, "ftruncate", cut)
        session.act({"qid": "q1", "act": "not_relevant", "doc": "youth"})
    # A system may write less than it is asked to.
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, data: write(handle, data[:3]))
        session.act({"qid": "q1", "act": "not_relevant", "doc": "pets"})
    session.log.close()
    again = session_of(tmp_path)
    assert [act.get("doc") for act in again.log.acts] == [None, None, "youth", "pets"]


def test_a_journal_that_was_moved_takes_no_more_acts(tmp_path: Path, snapshot: Snapshot) -> None:
    session = session_of(tmp_path)
    session.view("q1")
    path = tmp_path / "journal" / "anna.jsonl"
    path.rename(path.with_name("ben.jsonl"))
    with snapshot.raises(groupgt.DataError):
        session.act({"qid": "q1", "act": "done"})
    path.with_name("ben.jsonl").rename(path)
    assert session.act({"qid": "q1", "act": "done"})["seq"] == 3


def test_a_folder_in_place_of_a_journal_is_refused(tmp_path: Path, snapshot: Snapshot) -> None:
    (tmp_path / "ben.jsonl").mkdir()
    with snapshot.raises(groupgt.DataError):
        ActLog(tmp_path, "ben")
