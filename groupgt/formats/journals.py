"""Annotator journals: a file with one act per line, the state after a replay, and the resulting ground truth.

A line is a JSON object: `at` (UTC), `by` (the annotator), `seq` (from 1 for each annotator), `act`, and, for most acts,
`qid`. Replaying is a pure function of the acts: every prefix of a journal is a valid state, and undone acts have no
effect. Journals from several annotators may be concatenated into one file, in any order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any

from groupgt.errors import Faults, display, listed, warn
from groupgt.formats import tables
from groupgt.formats.jsonl import distinct_keys, json_fault, no_constant
from groupgt.formats.source import Source
from groupgt.formats.tables import NONRELEVANT, Table
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.sample import SAMPLE, entry

Act = Mapping[str, Any]
# The fields of each act besides `at`, `by`, `seq` and `qid`, with their types; None for optional fields.
FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "begin": {"settings": (dict,)},
    "open": {"query": (str, NoneType), "pool": (list,), "groups": (list,), "nonrelevant": (list,)},
    "group": {"group": (int,), "doc": (str, NoneType), "name": (str, NoneType)},
    "relevant": {"doc": (str,), "groups": (list,), "grade": (int, float), "span": (list, NoneType)},
    "not_relevant": {"doc": (str,)},
    "clear": {"doc": (str,)},
    "merge": {"group": (int,), "into": (int,)},
    "split": {"group": (int,), "docs": (list,), "new": (int,)},
    "answer": {"item": (dict,), "value": (str,)},
    "undo": {"of": (int,)},
    "done": {"rest": (str,)},
    "skip": {"reason": (str, NoneType)},
    "note": {"text": (str,)},
}
TYPES: dict[type, str] = {
    **{str: "text", int: "an integer", float: "a number", list: "a list", dict: "an object"},
    NoneType: "null",
}
DONE, SKIPPED, OPEN = "done", "skipped", "open"
# How `done` treats passages of the pool without a judgment.
REST = ("unjudged", "nonrelevant")
# The settings of a journal that are repeated in its ground truth.
ADJUDICATES, ASSISTED = "adjudicates", "assisted"


@dataclass
class Judgment:
    """A judgment of one passage, with its groups (none if non-relevant), its grade, and the relevant span."""

    groups: list[int]
    grade: float = 1
    span: list[int] | None = None


@dataclass
class QueryState:
    """One annotator's judgments for one query; `groups` maps group numbers to names, in order."""

    query: str | None = None
    pool: list[str] = field(default_factory=list)
    groups: dict[int, str | None] = field(default_factory=dict)
    # The weight and the importance of groups in existing ground truth.
    more: dict[int, dict[str, Any]] = field(default_factory=dict)
    passages: dict[str, Judgment] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    status: str = OPEN
    reason: str | None = None
    at: str = ""

    def members(self, group: int) -> list[str]:
        """Return the passages in a group, in the order in which they were judged."""
        return [doc for doc, judgment in self.passages.items() if group in judgment.groups]

    def grouped(self, *, spans: bool = False) -> list[Any]:
        """Return the groups as `retrieval_gt`, omitting groups without passages."""
        written: list[Any] = []
        for group, name in self.groups.items():
            alternatives: list[Any] = []
            for doc in self.members(group):
                judgment = self.passages[doc]
                alternative: dict[str, Any] = {} if judgment.grade == 1 else {"grade": judgment.grade}
                if spans and judgment.span is not None:
                    start, end = judgment.span
                    alternatives.append({"doc": doc, "start": start, "end": end, **alternative})
                else:
                    alternatives.append({"id": doc, **alternative} if alternative else doc)
            described = {**({"name": name} if name else {}), **self.more.get(group, {})}
            if alternatives:
                written.append({"alternatives": alternatives, **described} if described else alternatives)
        return written

    @property
    def nonrelevant(self) -> list[str]:
        """Passages judged non-relevant."""
        return [doc for doc, judgment in self.passages.items() if not judgment.groups]

    @property
    def spans(self) -> dict[str, list[int]]:
        """Character offsets of the span that makes each passage relevant."""
        judged = self.passages.items()
        return {doc: span for doc, judgment in judged if judgment.groups and (span := judgment.span) is not None}


def item_key(item: Mapping[str, Any]) -> str:
    """Return a key that identifies an audit question."""
    return json.dumps({key: item[key] for key in sorted(item) if key in ("kind", "doc", "group")}, ensure_ascii=False)


def replayed(acts: Iterable[Act]) -> dict[str, QueryState]:
    """Replay one annotator's actions and return the state of each query.

    >>> acts = [{"seq": 1, "qid": "q", "act": "group", "group": 1, "doc": "a", "name": None},
    ...         {"seq": 2, "qid": "q", "act": "not_relevant", "doc": "b"},
    ...         {"seq": 3, "qid": "q", "act": "undo", "of": 2}]
    >>> state = replayed(acts)["q"]
    >>> state.grouped(), state.nonrelevant
    ([['a']], [])
    """
    acts = list(acts)
    undone = {act["of"] for act in acts if act["act"] == "undo"}
    states: dict[str, QueryState] = {}
    for act in acts:
        if act["act"] in ("begin", "undo") or act["seq"] in undone:
            continue
        state = states.setdefault(act["qid"], QueryState())
        _apply(state, act)
        state.at = act.get("at", "")
    return states


def _apply(state: QueryState, act: Act) -> None:
    """Apply one action to a state; an action that refers to a missing group has no effect."""
    kind, passages = act["act"], state.passages
    doc: Any = act.get("doc")
    group: Any = act.get("group")
    if kind == "open":
        state.query, state.pool = act["query"], list(act["pool"])
        for number, opened in enumerate(act["groups"], 1):
            state.groups[number] = opened.get("name")
            if isinstance(opened.get("more"), dict):
                state.more[number] = opened["more"]
            for doc, grade in opened["docs"].items():
                passages.setdefault(doc, Judgment([], grade)).groups.append(number)
        passages.update({doc: Judgment([]) for doc in act["nonrelevant"] if doc not in passages})
        return
    if kind == "note":
        state.notes.append(act["text"])
        return
    if kind not in (DONE, "skip"):
        state.status, state.reason = OPEN, None
    if kind == "group":
        state.groups[group] = act["name"] or state.groups.get(group)
        if doc is not None:
            _join(state, doc, group)
    elif kind == "relevant":
        if groups := [number for number in act["groups"] if number in state.groups]:
            passages[doc] = Judgment(groups, act["grade"], act["span"])
    elif kind == "not_relevant":
        passages[doc] = Judgment([])
    elif kind == "clear":
        passages.pop(doc, None)
    elif kind == "merge":
        if {group, act["into"]} <= set(state.groups) and group != act["into"]:
            _merge(state, group, act["into"])
    elif kind == "split":
        for member in state.members(group):
            if member in act["docs"]:
                state.groups.setdefault(act["new"])
                groups = passages[member].groups
                groups[groups.index(group)] = act["new"]
    elif kind == "answer":
        _answered(state, act["item"], act["value"])
    elif kind == "done":
        state.status = DONE
        if act["rest"] == "nonrelevant":
            passages.update({doc: Judgment([]) for doc in state.pool if doc not in passages})
    else:
        state.status, state.reason = SKIPPED, act["reason"]


def _join(state: QueryState, doc: str, group: int) -> None:
    judgment = state.passages.setdefault(doc, Judgment([]))
    if group not in judgment.groups:
        judgment.groups.append(group)


def _merge(state: QueryState, group: int, into: int) -> None:
    for doc in state.members(group):
        state.passages[doc].groups.remove(group)
        _join(state, doc, into)
    state.groups[into] = state.groups[into] or state.groups[group]
    del state.groups[group]


def _answered(state: QueryState, item: Mapping[str, Any], value: str) -> None:
    """Apply the answer to an audit question: it may add an alternative, remove a group, or merge two groups."""
    state.answers[item_key(item)] = value
    group = item.get("group")
    if group not in state.groups:
        return
    if item["kind"] == "same":
        if value == "yes":
            _join(state, item["doc"], group)
    elif value == "no":
        for doc in state.members(group):
            groups = state.passages[doc].groups
            groups.remove(group)
            if not groups:
                del state.passages[doc]
        del state.groups[group]
    elif value.isdecimal() and int(value) in state.groups and int(value) != group:
        _merge(state, group, int(value))


def act_fault(value: Any) -> str | None:
    """Explain why a value is not a valid act; returns None if it is valid."""
    kind = value.get("act") if isinstance(value, dict) else value
    if not isinstance(value, dict) or kind not in FIELDS:
        return f"expected an act ({listed(FIELDS)}), found {display(kind)}"
    fields: dict[str, tuple[type, ...]] = {"at": (str,), "by": (str,), "seq": (int,)}
    fields |= {"qid": (str,)} if kind != "begin" else {}
    for name, types in (fields | FIELDS[kind]).items():
        if name not in value or not isinstance(value[name], types) or isinstance(value[name], bool):
            cell = display(value[name]) if name in value else "nothing"
            return f"act {kind}: expected {listed(map(TYPES.__getitem__, types))} as {name}, found {cell}"
    act: Act = value
    if not all(isinstance(name, str) for key in ("docs", "pool", "nonrelevant") for name in act.get(key, ())):
        return f"act {kind}: expected ids of passages"
    if kind == "relevant":
        span = act["span"]
        if not all(type(group) is int for group in act["groups"]) or not act["groups"]:
            return "act relevant: expected the numbers of groups"
        if not act["grade"] > 0:
            return f"act relevant: expected a grade above 0, found {act['grade']}"
        if span is not None and not (
            len(span) == 2 and all(type(end) is int for end in span) and 0 <= span[0] < span[1]
        ):
            return f"act relevant: expected [start, end] as span, found {display(span)}"
    if kind == "open" and not all(
        isinstance(group, dict) and isinstance(group.get("docs"), dict) for group in act["groups"]
    ):
        return "act open: expected groups with docs"
    if kind == "done" and act["rest"] not in REST:
        return f"act done: expected {listed(REST)} as rest, found {display(act['rest'])}"
    if kind == "answer" and act["item"].get("kind") not in ("same", "needed"):
        return "act answer: expected same or needed as the kind of its item"
    return None


def look(source: Source) -> str | None:
    """Return `truth` for a journal of acts."""
    if b'"act"' not in source.head()[:4096]:
        return None
    try:
        first = json.loads(source.first_line)
    except ValueError:
        return None
    return "truth" if isinstance(first, dict) and {"act", "by", "seq"} <= set(first) else None


def read_acts(source: Source) -> dict[str, list[Act]]:
    """Read each annotator's actions, sorted by `seq`; raises `DataError` with every invalid line.

    If a crash cut off the last line, that line is dropped with a warning.
    """
    faults = Faults()
    acts: dict[str, dict[int, Act]] = {}
    lines = list(source.located_lines())
    for where, line in lines:
        try:
            value = json.loads(line, object_pairs_hook=distinct_keys, parse_constant=no_constant)
        except (ValueError, RecursionError) as error:
            if where == lines[-1][0]:
                warn(f"{where}: the last line is cut off; dropped")
            else:
                faults.add(where, f"expected an act: {json_fault(error)}")
            continue
        if fault := act_fault(value):
            faults.add(where, fault)
        elif acts.setdefault(value["by"], {}).setdefault(value["seq"], value) != value:
            what = f"a second act {value['seq']} by {display(value['by'])}"
            faults.add(where, f"{what}; journals of two people need two names")
    faults.stop()
    return {by: [mine[seq] for seq in sorted(mine)] for by, mine in acts.items()}


def settings_of(acts: Sequence[Act]) -> dict[str, Any]:
    """Return the settings at the start of a journal."""
    return next((dict(act["settings"]) for act in acts if act["act"] == "begin"), {})


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """Read the ground truth for the finished queries in a journal."""
    return truth_of(read_acts(source), policy)


def truth_of(
    acts: Mapping[str, Sequence[Act]],
    policy: Policy | None = None,
    *,
    base: GroundTruth | None = None,
    spans: bool = False,
    unsettled: list[str] | None = None,
) -> GroundTruth:
    """Build ground truth from several annotators' acts; raises `DataError` for disagreements without adjudication.

    Args:
        acts: The actions of each annotator.
        policy: How to handle invalid or ambiguous data.
        base: Ground truth that provides further columns, and everything that an audit of all queries left unchanged.
        spans: Whether to write marked words as spans instead of ids.
        unsettled: A list that receives queries on which annotators disagree; these are omitted without an error.
    """
    faults = Faults()
    chosen: dict[str, tuple[str, QueryState]] = {}
    all_settings = {by: settings_of(mine) for by, mine in acts.items()}
    is_sample = any(settings.get(SAMPLE) for settings in all_settings.values())
    keep_all = not is_sample and any(settings.get("kind") == "audit" for settings in all_settings.values())
    # An adjudicator decides.
    for by in sorted(acts, key=lambda annotator: not all_settings[annotator].get(ADJUDICATES)):
        for qid, state in replayed(acts[by]).items():
            if state.status == OPEN and not keep_all:
                continue
            first, before = chosen.setdefault(qid, (by, state))
            if not all_settings[first].get(ADJUDICATES) and not same_groups(before, state):
                if unsettled is not None:
                    unsettled.append(qid)
                    continue
                hint = "adjudicate with groupgt judge --adjudicate, or use one journal"
                faults.add(f"query {qid!r}", f"{first} and {by} differ; {hint}")
    faults.stop()
    for qid in unsettled or ():
        chosen.pop(qid, None)
    earlier = [qid for qid in (base.qids if base is not None else []) if qid in chosen or keep_all]
    order = list(dict.fromkeys([*earlier, *chosen]))
    rows = [_row(qid, chosen.get(qid), base, all_settings, spans) for qid in order]
    truth = tables.truth_of(Table.of_records("", rows, faults=faults), policy or Policy())
    keys = ("qid", "query", "retrieval_gt", NONRELEVANT)
    return replace(truth, texts=[row["query"] for row in rows], keys=keys)


def _row(
    qid: str,
    judged: tuple[str, QueryState] | None,
    base: GroundTruth | None,
    settings: Mapping[str, Mapping[str, Any]],
    spans: bool,
) -> dict[str, Any]:
    row: dict[str, Any] = {"qid": qid, "query": None if judged is None else judged[1].query}
    position = base.index.get(qid) if base is not None else None
    if base is not None and position is not None:
        row["query"] = base.texts[position] if base.texts else None
        row |= {name: values[position] for name, values in base.columns.items()}
        if base.excluded:
            row["excluded_ids"] = sorted(base.excluded[position])
    if judged is None:
        return {**row, "retrieval_gt": base[qid] if base is not None else []}
    by, state = judged
    mine = settings[by]
    row["retrieval_gt"] = [*state.grouped(spans=spans), *([{"id": doc, "grade": 0}] for doc in state.nonrelevant)]
    row |= {"judged_by": by, "judged_at": state.at}
    if mine.get("kind") == "judge" and "pool" in mine:
        row["pool"] = mine["pool"]
    if state.spans:
        row["spans"] = state.spans
    if state.status == SKIPPED:
        row |= {"skipped": state.reason or True, "retrieval_gt": []}
    if mine.get(ASSISTED):
        row[ASSISTED] = True
    if sample := mine.get(SAMPLE):
        row[SAMPLE] = entry(sample, qid)
    return row


def same_groups(first: QueryState, second: QueryState) -> bool:
    """Return whether two states have the same groups of passages, in any order."""

    def sets(state: QueryState) -> set[frozenset[str]]:
        return {frozenset(state.members(group)) for group in state.groups} - {frozenset()}

    return first.status == second.status and sets(first) == sets(second)
