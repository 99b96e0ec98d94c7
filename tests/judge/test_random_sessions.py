"""Random sessions against a small model of what was clicked: groups, grades, answers, drafts, undo, and the file."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.judge.index import Index
from groupgt.judge.session import Session
from tests.judge.acts import QUERIES, TEXTS, session_of

INDEX = Index(TEXTS)
DOCS = list(TEXTS)
QUICK, ALL = 60, 1500


@dataclass
class Clicked:
    """What was clicked for one query: every group as (name, weight, importance, {doc: grade})."""

    pool: list[str]
    groups: dict[int, list[Any]] = field(default_factory=dict)
    judged: set[str] = field(default_factory=set)
    harmful: set[str] = field(default_factory=set)
    answers: dict[str, tuple[dict[str, Any], str]] = field(default_factory=dict)
    status: str = "open"
    declared: bool = False
    highest: int = 0

    def grade(self, doc: str) -> float:
        return max((group[3][doc] for group in self.groups.values() if doc in group[3]), default=1)

    def out(self, doc: str) -> None:
        for group in self.groups.values():
            group[3].pop(doc, None)

    def combine(self, one: int, into: int) -> None:
        name, weight, importance, docs = self.groups.pop(one)
        target = self.groups[into]
        target[0] = target[0] or name
        target[1] = max(target[1], weight)
        target[2] = "vital" if "vital" in (importance, target[2]) else target[2] or importance
        for doc, grade in docs.items():
            target[3][doc] = max(grade, target[3].get(doc, 0))

    def said(self) -> Any:
        """What the file must say: after an audit, with its answers."""
        final = copy.deepcopy(self)
        questions = list(final.answers.values())
        for item, value in questions:
            if item["kind"] == "same" and value == "yes":
                final.groups[item["group"]][3].setdefault(item["doc"], final.grade(item["doc"]))
                final.judged.add(item["doc"])
        moved: dict[int, int] = {}
        for item, value in questions:
            number = item["group"]
            if item["kind"] == "same" or number not in final.groups:
                continue
            if value == "no":
                gone = set(final.groups.pop(number)[3])
                final.judged -= gone - {doc for group in final.groups.values() for doc in group[3]}
            elif value.isdigit():
                into = int(value)
                while into in moved:
                    into = moved[into]
                if into in final.groups and into != number:
                    final.combine(number, into)
                    moved[number] = into
        groups = [(*group[:3], frozenset(group[3].items())) for group in final.groups.values() if group[3]]
        relevant = {doc for group in groups for doc, _ in group[3]}
        if self.status == "skipped":
            return "skipped"
        return groups, final.judged - relevant, self.declared and self.status == "done", final.harmful - relevant


def said_in(row: dict[str, Any]) -> Any:
    """The same of a line of the file."""
    if row.get("skipped"):
        return "skipped"
    groups = []
    for group in row["retrieval_gt"]:
        cells = group if isinstance(group, list) else group["alternatives"]
        docs = [(cell, 1) if isinstance(cell, str) else (cell["id"], cell["grade"]) for cell in cells]
        more = {} if isinstance(group, list) else group
        groups.append((more.get("name"), more.get("weight", 1), more.get("importance"), frozenset(docs)))
    harmful = set(row.get("harmful_ids", ()))
    return groups, harmful.union(row["nonrelevant"]), row.get("answerable") is False, harmful


def random_truth(rng: random.Random) -> list[dict[str, Any]]:
    """Ground truth with grades for each group, weights, importance, names and non-relevant passages."""
    rows = []
    for qid, text in QUERIES.items():
        groups = []
        for _ in range(rng.randrange(4)):
            cells = [
                doc if (grade := rng.choice([1, 1, 2, 3])) == 1 else {"id": doc, "grade": grade}
                for doc in rng.sample(DOCS, rng.randrange(1, 4))
            ]
            more: dict[str, Any] = {}
            if rng.random() < 0.3:
                more["name"] = rng.choice(["fare", "age"])
            if rng.random() < 0.3:
                more["weight"] = rng.choice([2, 0.5])
            if rng.random() < 0.3:
                more["importance"] = rng.choice(["vital", "okay"])
            groups.append({"alternatives": cells, **more} if more else cells)
        relevant = {cell if isinstance(cell, str) else cell["id"] for group in groups for cell in cells_of(group)}
        rest = [doc for doc in DOCS if doc not in relevant and rng.random() < 0.3]
        row: dict[str, Any] = {"qid": qid, "topic": "ferry", "retrieval_gt": groups, "query": text, "nonrelevant": rest}
        rows.append({**row, **({"answerable": False} if not groups else {})})
    return rows


def cells_of(group: Any) -> list[Any]:
    return group if isinstance(group, list) else group["alternatives"]  # type: ignore[no-any-return]


def opened(row: dict[str, Any] | None, pool: list[str]) -> Clicked:
    """A query as it is when it is opened, with the groups of ground truth if it is shown."""
    model = Clicked(pool)
    for number, (name, weight, importance, docs) in enumerate(said_in(row)[0] if row else [], 1):
        cells = [cell if isinstance(cell, str) else cell["id"] for cell in cells_of(row["retrieval_gt"][number - 1])]
        model.groups[number] = [name, weight, importance, {doc: dict(docs)[doc] for doc in cells}]
    model.highest = len(model.groups)
    model.judged = {doc for group in model.groups.values() for doc in group[3]} | set(row["nonrelevant"] if row else ())
    return model


def click(rng: random.Random, model: Clicked) -> tuple[dict[str, Any], Callable[[Clicked], None]] | None:
    """A random act of a judge, and what it does to the model; None if it is not possible now."""
    doc, grade = rng.choice(DOCS), rng.choice([1, 2, 3])
    numbers = list(model.groups)
    kind = rng.choice(["new", "new", "join", "name", "relevant", "relevant", "not", "harm", "clear", "merge", "split"])

    def join(state: Clicked, number: int) -> None:
        state.groups[number][3].setdefault(doc, state.grade(doc))
        state.judged.add(doc)
        state.harmful.discard(doc)
        state.declared = False

    if kind == "new":

        def new(state: Clicked) -> None:
            state.groups[model.highest] = [None, 1, None, {}]
            join(state, model.highest)

        model.highest += 1
        return {"act": "group", "doc": doc}, new
    if kind in ("not", "harm"):

        def reject(state: Clicked) -> None:
            state.out(doc)
            state.judged.add(doc)
            (state.harmful.add if kind == "harm" else state.harmful.discard)(doc)

        return {"act": "harmful" if kind == "harm" else "not_relevant", "doc": doc}, reject
    if kind == "clear":

        def clear(state: Clicked) -> None:
            state.out(doc)
            state.judged.discard(doc)
            state.harmful.discard(doc)

        return {"act": "clear", "doc": doc}, clear
    if not numbers:
        return None
    one, two = rng.choice(numbers), rng.choice(numbers)
    if kind == "join":
        return {"act": "group", "group": one, "doc": doc}, lambda state: join(state, one)
    if kind == "name":

        def name(state: Clicked) -> None:
            state.groups[one][0] = "tide"

        return {"act": "group", "group": one, "name": "tide"}, name
    if kind == "relevant":
        chosen = list({one, two})

        def relevant(state: Clicked) -> None:
            same = doc in state.judged and state.grade(doc) == grade
            for number, group in state.groups.items():
                own = group[3].pop(doc, None)
                if number in chosen:
                    group[3][doc] = own if same and own is not None else grade
            state.judged.add(doc)
            state.harmful.discard(doc)
            state.declared = False

        return {"act": "relevant", "doc": doc, "groups": chosen, "grade": grade}, relevant
    if kind == "merge":
        act = {"act": "merge", "group": one, "into": two}
        return None if one == two else (act, lambda state: state.combine(one, two))
    docs = [member for member in model.groups[one][3] if rng.random() < 0.5]

    def split(state: Clicked) -> None:
        if docs:
            state.groups[model.highest] = [None, 1, None, {name: state.groups[one][3].pop(name) for name in docs}]

    model.highest += 1
    return {"act": "split", "group": one, "docs": docs}, split


def finish(rng: random.Random, model: Clicked) -> tuple[dict[str, Any], Callable[[Clicked], None]]:
    """A random act that ends a query."""
    rest = rng.choice(["unjudged", "nonrelevant"])
    kind = rng.choice(["done", "done", "skip", "no_answer"])
    if kind == "no_answer" and any(group[3] for group in model.groups.values()):
        kind = "done"

    def end(state: Clicked) -> None:
        state.status = "skipped" if kind == "skip" else "done"
        state.declared = kind == "no_answer" or (state.declared and kind == "done")
        if kind == "no_answer" or (kind == "done" and rest == "nonrelevant"):
            state.judged |= set(state.pool)

    return ({"act": "done", "rest": rest} if kind == "done" else {"act": kind}), end


def answer(rng: random.Random, view: dict[str, Any]) -> tuple[dict[str, Any], Callable[[Clicked], None]] | None:
    """A random answer to a random question of an audit."""
    if not view["questions"]:
        return None
    question = rng.choice(view["questions"])
    item = question["item"]
    values = ["yes", "no", "unsure"] + [str(each["group"]) for each in question["passages"][1:] if "group" in each]
    value, key = rng.choice(values), json.dumps(item)

    def answered(state: Clicked) -> None:
        state.answers.pop(key, None)
        state.answers[key] = item, value

    return {"act": "answer", "item": item, "value": value}, answered


def one_session(rng: random.Random, folder: Path) -> int:
    """One session, or several on one journal; how many acts were written."""
    kind = rng.choice(["judge", "assisted", "blind", "audit", "audit"])
    rows = random_truth(rng)
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (folder / "base.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    base = groupgt.read_ground_truth(folder / "base.jsonl")
    plan: dict[str, Any] = {"index": INDEX}
    if kind in ("assisted", "blind"):
        plan |= {"prior": base, "blind": kind == "blind"}
    elif kind == "audit":
        plan |= {"kind": "audit", "truth": base}
    session: Session = session_of(folder, **plan)
    shown = kind in ("assisted", "audit")
    models: dict[str, list[Clicked]] = {}
    first: dict[str, Any] = {}
    by_qid = {row["qid"]: row for row in rows}
    for _ in range(rng.randrange(3, 40)):
        qid = rng.choice(list(QUERIES))
        view = session.view(qid)
        if qid not in models:
            pool = next(act["pool"] for act in session.log.acts if act.get("qid") == qid)
            models[qid] = [opened(by_qid[qid] if shown else None, pool)]
        history = models[qid]
        now = history[-1]
        dice = rng.random()
        if dice < 0.15 and len(history) > 1:
            session.act({"qid": qid, "act": "undo"})
            highest = history.pop().highest
            history[-1].highest = max(highest, history[-1].highest)
            continue
        if dice < 0.2:
            session.log.close()
            session = session_of(folder, **plan)
            assert session.view(qid) == view
            continue
        act = finish(rng, now) if dice < 0.4 else answer(rng, view) if kind == "audit" else click(rng, now)
        if act is None or (kind == "audit" and act[0]["act"] == "no_answer"):
            continue
        session.act({"qid": qid, **act[0]})
        after = copy.deepcopy(now)
        after.status = "open"
        act[1](after)
        history.append(after)
        if after.status != "open":
            first.setdefault(qid, after.said())
    session.log.close()
    (folder / "journal").rename(folder / "out.journal")
    main(["judge", str(folder / "base.jsonl"), "--out", str(folder / "out.jsonl"), "--export"])
    written = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    found = {json.loads(line)["qid"]: json.loads(line) for line in written}
    for qid, line in zip(QUERIES, lines):
        model = models[qid][-1] if qid in models else None
        if model is None or (model.status == "open" and not (kind == "audit" and model.answers)):
            assert (line in written) == (kind == "audit"), (qid, line, found.get(qid))
            continue
        if kind == "audit":
            expected = (
                "skipped" if model.status == "skipped" else (*model.said()[:2], "answerable" in by_qid[qid], set())
            )
        else:
            expected = model.said()
        assert said_in(found[qid]) == expected, (kind, qid, by_qid[qid], session.log.acts)
        is_assisted = kind == "assisted" or (kind == "blind" and model.said() != first[qid])
        assert (found[qid].get("assisted") is True) == is_assisted, (kind, qid, session.log.acts)
        assert found[qid]["judged_by"] == "anna"
    return len(session.log.acts)


def sessions(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    # What is written in which order is tested elsewhere.
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    acts = 0
    for seed in range(count):
        folder = tmp_path / str(seed)
        folder.mkdir()
        acts += one_session(random.Random(seed), folder)
        shutil.rmtree(folder)
    return acts


def test_some_random_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sessions(QUICK, tmp_path, monkeypatch) > 10 * QUICK


@pytest.mark.slow
def test_many_random_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sessions(ALL, tmp_path, monkeypatch) > 10 * ALL
