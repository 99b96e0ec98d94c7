"""Replays a journal's actions to get an annotator's judgments for every query. Every prefix of a journal is valid."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Act = Mapping[str, Any]
DONE, SKIPPED, OPEN = "done", "skipped", "open"
# The acts that finish a query.
FINISHING = (DONE, "skip", "no_answer")
# The answers to an audit question besides the number of a group.
ANSWERS = ("yes", "no", "unsure")


@dataclass
class Group:
    """A group of passages with the same information: their grades, a name, and weight and importance (`more`)."""

    name: str | None = None
    docs: dict[str, float] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)

    def absorb(self, other: Group) -> None:
        """Add the passages of a group with the same information. Keep the higher grades, weight and importance."""
        for doc, grade in other.docs.items():
            self.docs[doc] = max(grade, self.docs.get(doc, 0))
        self.name = self.name or other.name
        both = (self.more, other.more)
        weight = max(more.get("weight", 1) for more in both)
        named = [more["importance"] for more in both if "importance" in more]
        self.more = {"weight": weight} if weight != 1 else {}
        if named:
            self.more["importance"] = "vital" if "vital" in named else named[0]


@dataclass
class Judgment:
    """A judgment of one passage, with its groups (none if non-relevant), highest grade, relevant span and harm."""

    groups: list[int]
    grade: float = 1
    span: list[int] | None = None
    harmful: bool = False


@dataclass
class QueryState:
    """One annotator's judgments for one query. `groups` maps group numbers to groups, in order."""

    query: str | None = None
    pool: list[str] = field(default_factory=list)
    groups: dict[int, Group] = field(default_factory=dict)
    # Every judged passage, in order, with the span that makes it relevant.
    marks: dict[str, list[int] | None] = field(default_factory=dict)
    # The judged passages that must not be retrieved.
    harmful: set[str] = field(default_factory=set)
    answers: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    status: str = OPEN
    reason: str | None = None
    # Whether the query was declared to have no answer.
    declared: bool = False
    at: str = ""
    # The judgments with which the query was opened.
    before: Any = None

    @property
    def passages(self) -> dict[str, Judgment]:
        """All judged passages, in the order in which they were first judged."""
        return {doc: self.judgment(doc) for doc in self.marks}

    def judgment(self, doc: str) -> Judgment:
        """Return the judgment of a judged passage."""
        grades = {number: group.docs[doc] for number, group in self.groups.items() if doc in group.docs}
        return Judgment(list(grades), max(grades.values(), default=1), self.marks[doc], doc in self.harmful)

    def grouped(self, *, spans: bool = False) -> list[Any]:
        """Return the groups as `retrieval_gt`, omitting groups without passages."""
        written: list[Any] = []
        for group in self.groups.values():
            alternatives: list[Any] = []
            for doc, grade in group.docs.items():
                alternative: dict[str, Any] = {} if grade == 1 else {"grade": grade}
                if spans and (span := self.marks[doc]) is not None:
                    alternatives.append({"doc": doc, "start": span[0], "end": span[1], **alternative})
                else:
                    alternatives.append({"id": doc, **alternative} if alternative else doc)
            described = {**({"name": group.name} if group.name else {}), **group.more}
            if alternatives:
                written.append({"alternatives": alternatives, **described} if described else alternatives)
        return written

    @property
    def judgments(self) -> tuple[list[Any], list[str], set[str], bool]:
        """The groups, the non-relevant and harmful passages, and whether the query has an answer."""
        return self.grouped(), self.nonrelevant, set(self.harmful), self.has_answer

    @property
    def has_answer(self) -> bool:
        """True unless the query is declared to have no answer."""
        return not (self.declared and self.status == DONE)

    @property
    def nonrelevant(self) -> list[str]:
        """Passages judged non-relevant."""
        return [doc for doc in self.marks if not any(doc in group.docs for group in self.groups.values())]

    @property
    def spans(self) -> dict[str, list[int]]:
        """Character offsets of the span that makes each passage relevant."""
        return {doc: span for doc, span in self.marks.items() if span is not None}

    def join(self, doc: str, group: int) -> None:
        """Add a passage to a group, with the passage's highest grade."""
        self.marks.setdefault(doc)
        self.groups[group].docs.setdefault(doc, self.judgment(doc).grade)
        self.harmful.discard(doc)
        self.declared = False

    def leave(self, doc: str, *, harmful: bool = False) -> None:
        """Remove a passage from all groups, and mark it as harmful or not."""
        for group in self.groups.values():
            group.docs.pop(doc, None)
        (self.harmful.add if harmful else self.harmful.discard)(doc)
        self.marks[doc] = None

    def merge(self, group: int, into: int) -> None:
        """Merge two groups."""
        self.groups[into].absorb(self.groups.pop(group))

    def drop(self, group: int) -> None:
        """Remove a group, and the judgments of passages that are in no other group."""
        for doc in self.groups.pop(group).docs:
            if doc in self.nonrelevant:
                del self.marks[doc]


def item_key(item: Mapping[str, Any]) -> str:
    """Return a key that identifies an audit question."""
    return json.dumps({key: item[key] for key in sorted(item) if key in ("kind", "doc", "group")}, ensure_ascii=False)


def replayed(acts: Iterable[Act]) -> dict[str, QueryState]:
    """Replay one annotator's actions, except those that were undone, and return the state of each query."""
    acts = list(acts)
    undone = {act["of"] for act in acts if act["act"] == "undo"}
    states: dict[str, QueryState] = {}
    for act in acts:
        if act["act"] in ("begin", "undo") or act["seq"] in undone:
            continue
        state = states.setdefault(act["qid"], QueryState())
        _apply(state, act)
        state.at = act.get("at", "")
    for state in states.values():
        _settle(state)
    return states


def _apply(state: QueryState, act: Act) -> None:
    """Apply one action to a state. An action that refers to a missing group has no effect."""
    kind, groups = act["act"], state.groups
    doc: Any = act.get("doc")
    group: Any = act.get("group")
    if kind == "open":
        state.query, state.pool = act["query"], list(act["pool"])
        for number, opened in enumerate(act["groups"], 1):
            more = dict(opened["more"]) if isinstance(opened.get("more"), dict) else {}
            groups[number] = Group(opened.get("name"), dict(opened["docs"]), more)
            state.marks |= dict.fromkeys(opened["docs"])
        state.marks |= {doc: None for doc in act["nonrelevant"] if doc not in state.marks}
        state.harmful = set(act.get("harmful", ()))
        state.before = state.judgments
        return
    if kind == "note":
        state.notes.append(act["text"])
        return
    state.status, state.reason = OPEN, None
    if kind == "group":
        made = groups.setdefault(group, Group())
        made.name = act["name"] or made.name
        if doc is not None:
            state.join(doc, group)
    elif kind == "relevant":
        if chosen := [number for number in act["groups"] if number in groups]:
            # A grade that was not changed stays what it is in each group.
            kept = doc in state.marks and act["grade"] == state.judgment(doc).grade
            state.marks[doc], state.declared = act["span"], False
            state.harmful.discard(doc)
            for number, each in groups.items():
                if number not in chosen:
                    each.docs.pop(doc, None)
                elif not (kept and doc in each.docs):
                    each.docs[doc] = act["grade"]
    elif kind in ("not_relevant", "harmful"):
        state.leave(doc, harmful=kind == "harmful")
    elif kind == "clear":
        state.leave(doc)
        del state.marks[doc]
    elif kind == "merge":
        if {group, act["into"]} <= set(groups) and group != act["into"]:
            state.merge(group, act["into"])
    elif kind == "split":
        for member in [doc for doc in dict.fromkeys(act["docs"]) if doc in groups.get(group, Group()).docs]:
            groups.setdefault(act["new"], Group()).docs[member] = groups[group].docs.pop(member)
    elif kind == "answer":
        # The last answer to a question counts.
        key = item_key(act["item"])
        state.answers.pop(key, None)
        state.answers[key] = act["value"]
    elif kind == "skip":
        state.status, state.reason, state.declared = SKIPPED, act["reason"], False
    else:
        state.status = DONE
        state.declared |= kind == "no_answer" and not any(group.docs for group in groups.values())
        if kind == "no_answer" or act["rest"] == "nonrelevant":
            state.marks |= {doc: None for doc in state.pool if doc not in state.marks}


def _settle(state: QueryState) -> None:
    """Apply the answers to audit questions. First add alternatives, then remove or merge groups."""
    answers = [(json.loads(key), value) for key, value in state.answers.items()]
    for item, value in answers:
        if item["kind"] == "same" and value == "yes" and item["group"] in state.groups:
            state.join(item["doc"], item["group"])
    merged: dict[int, int] = {}
    for item, value in answers:
        group = item["group"]
        if item["kind"] == "same" or group not in state.groups:
            continue
        if value == "no":
            state.drop(group)
        elif value not in ANSWERS:
            into = int(value)
            while into in merged:
                into = merged[into]
            if into in state.groups and into != group:
                state.merge(group, into)
                merged[group] = into


def difference(first: QueryState, second: QueryState) -> str | None:
    """Return how two states differ, regardless of the order of groups and passages, or None if they are equal."""
    if first.status == second.status == SKIPPED:
        return None
    return next((what for what, said in _SAID.items() if said(first) != said(second)), None)


def _members(state: QueryState, *, graded: bool) -> Counter[frozenset[Any]]:
    groups = [group.docs for group in state.groups.values() if group.docs]
    return Counter(frozenset(docs.items() if graded else docs) for docs in groups)


_SAID: dict[str, Callable[[QueryState], Any]] = {
    "whether it is skipped": lambda state: state.status == SKIPPED,
    "whether it has an answer": lambda state: state.has_answer,
    "groups": lambda state: _members(state, graded=False),
    "grades": lambda state: _members(state, graded=True),
    "the non-relevant passages": lambda state: set(state.nonrelevant),
    "the harmful passages": lambda state: state.harmful,
}
