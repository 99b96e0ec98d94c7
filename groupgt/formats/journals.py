"""Reads annotator journals, which contain one act per line, and replays them into ground truth.

A line is a JSON object: `at` (UTC), `by` (the annotator), `seq` (from 1 for each annotator), `act`, and, for most acts,
`qid`. Journals from several annotators may be concatenated into one file, in any order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import NoneType
from typing import Any

from groupgt.errors import DataError, Faults, display, listed, warn
from groupgt.formats import tables
from groupgt.formats.jsonl import distinct_keys, has_surrogate, json_fault, no_constant
from groupgt.formats.replay import ANSWERS, FINISHING, OPEN, SKIPPED, Act, QueryState, difference, replayed
from groupgt.formats.source import Source
from groupgt.formats.tables import NONRELEVANT, Table
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.groups import ANSWERABLE
from groupgt.model.policy import Policy
from groupgt.model.sample import SAMPLE, entry
from groupgt.model.validity import finite_number

# The fields of each act besides `at`, `by`, `seq` and `qid`, with their types; None for optional fields.
FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "begin": {"settings": (dict,)},
    "open": {"query": (str, NoneType), "pool": (list,), "groups": (list,), "nonrelevant": (list,)},
    "group": {"group": (int,), "doc": (str, NoneType), "name": (str, NoneType)},
    "relevant": {"doc": (str,), "groups": (list,), "grade": (int, float), "span": (list, NoneType)},
    "not_relevant": {"doc": (str,)},
    "harmful": {"doc": (str,)},
    "clear": {"doc": (str,)},
    "merge": {"group": (int,), "into": (int,)},
    "split": {"group": (int,), "docs": (list,), "new": (int,)},
    "answer": {"item": (dict,), "value": (str,)},
    "undo": {"of": (int,)},
    "done": {"rest": (str,)},
    "skip": {"reason": (str, NoneType)},
    "no_answer": {},
    "note": {"text": (str,)},
}
TYPES = {str: "text", int: "an integer", float: "a number", list: "a list", dict: "an object", NoneType: "null"}
# How `done` treats passages of the pool without a judgment.
REST = ("unjudged", "nonrelevant")
# The settings of a journal that are repeated in its ground truth.
ADJUDICATES, ADJUDICATED, ASSISTED = "adjudicates", "adjudicated", "assisted"
# What ground truth says about how a query was judged: it does not outlive a new judgment.
OF_JUDGING = ("judged_by", "judged_at", "pool", "spans", "skipped", ANSWERABLE, ASSISTED, SAMPLE)


def act_fault(value: Any) -> str | None:
    """Explain why a value is not a valid act, or return None if it is valid."""
    kind = value.get("act") if isinstance(value, dict) else value
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in FIELDS:
        return f"expected an action ({listed(FIELDS)}), found {display(kind)}"
    fields: dict[str, tuple[type, ...]] = {"at": (str,), "by": (str,), "seq": (int,)}
    fields |= {"qid": (str,)} if kind != "begin" else {}
    for name, types in (fields | FIELDS[kind]).items():
        if name not in value or not isinstance(value[name], types) or isinstance(value[name], bool):
            cell = display(value[name]) if name in value else "nothing"
            return f'action "{kind}": expected {listed(map(TYPES.__getitem__, types))} as {name}, found {cell}'
    act: Act = value
    lists = [act.get(key, []) for key in ("docs", "pool", "nonrelevant", "harmful")]
    if not all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in lists):
        return f'action "{kind}": expected passage ids'
    if kind == "relevant":
        span = act["span"]
        if not all(type(group) is int for group in act["groups"]) or not act["groups"]:
            return 'action "relevant": expected group numbers'
        if not _is_grade(act["grade"]):
            return f'action "relevant": expected a grade above 0, found {display(act["grade"])}'
        if span is not None and not (list(map(type, span)) == [int, int] and 0 <= span[0] < span[1]):
            return f'action "relevant": expected [start, end] as span, found {display(span)}'
    if kind == "open" and not all(map(_is_group, act["groups"])):
        return 'action "open": expected groups with docs and their grades'
    if kind == "done" and act["rest"] not in REST:
        return f'action "done": expected {listed(REST)} as rest, found {display(act["rest"])}'
    if kind == "answer":
        item, value = act["item"], act["value"]
        if item.get("kind") not in ("same", "needed"):
            return 'action "answer": expected an item of kind "same" or "needed"'
        if type(item.get("group")) is not int or (item["kind"] == "same" and not isinstance(item.get("doc"), str)):
            return 'action "answer": expected an item with a group number and, if its kind is "same", a passage'
        if value not in ANSWERS and not (item["kind"] == "needed" and value.isascii() and value.isdecimal()):
            return f'action "answer": expected {listed(ANSWERS)}, or a group number, found {display(value)}'
    return None


def _is_grade(value: Any) -> bool:
    return finite_number(value) is not None and value > 0


def _is_group(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("docs"), dict):
        return False
    return isinstance(value.get("name"), str | NoneType) and all(map(_is_grade, value["docs"].values()))


def encoded(act: Act) -> bytes:
    """Return an act as a line that `read_acts` reads, or raise `DataError` if it is invalid."""
    if fault := act_fault(act):
        raise DataError(fault)
    if has_surrogate(act):
        raise DataError(f'action "{act["act"]}" contains a lone surrogate')
    return (json.dumps(act, ensure_ascii=False) + "\n").encode()


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
    """Read each annotator's actions, sorted by `seq`. If a crash cut off the last line, drop it with a warning."""
    faults = Faults()
    acts: dict[str, dict[int, Act]] = {}
    lines = list(source.located_lines())
    for where, line in lines:
        try:
            value = json.loads(line, object_pairs_hook=distinct_keys, parse_constant=no_constant)
        except (ValueError, RecursionError) as error:
            if where == lines[-1][0]:
                warn(f"{where}: the last line is cut off, so groupgt ignores it")
            else:
                faults.add(where, f"expected an action: {json_fault(error)}")
            continue
        if fault := act_fault(value):
            faults.add(where, fault)
        elif acts.setdefault(value["by"], {}).setdefault(value["seq"], value) != value:
            what = f"{display(value['by'])} has two different actions with seq {value['seq']}"
            faults.add(where, f"{what}; give each annotator a different name")
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
    copied: list[str] | None = None,
) -> GroundTruth:
    """Build ground truth from each annotator's acts, or raise `DataError` if disagreements are unresolved.

    `base` provides further columns and everything that a full audit left unchanged. `unsettled` receives the queries on
    which annotators disagree, and `copied` those that are the same as in `base`.
    """
    faults = Faults()
    settings = {by: settings_of(mine) for by, mine in acts.items()}
    keep_all = audits(settings.values())
    opinions: dict[str, dict[str, QueryState]] = {}
    for by in sorted(acts):
        for qid, state in replayed(acts[by]).items():
            if state.status != OPEN or (keep_all and state.answers):
                opinions.setdefault(qid, {})[by] = state
    chosen: dict[str, tuple[str, QueryState]] = {}
    for qid, states in opinions.items():
        # An adjudicator decides.
        deciding = {by: state for by, state in states.items() if settings[by].get(ADJUDICATES)} or states
        (first, state), *others = deciding.items()
        differing = [(by, what) for by, other in others if (what := difference(state, other)) is not None]
        if not differing:
            chosen[qid] = first, state
        elif unsettled is not None:
            unsettled.append(qid)
        else:
            hint = "resolve with groupgt judge --adjudicate, or use one journal"
            faults.add(f"query {qid!r}", f"{first} and {differing[0][0]} disagree on {differing[0][1]}; {hint}")
    faults.stop()
    earlier = [qid for qid in (base.qids if base is not None else []) if qid in chosen or keep_all]
    order = list(dict.fromkeys([*earlier, *chosen]))
    if copied is not None:
        copied.extend(qid for qid in order if qid not in chosen)
    rows = [("", _row(qid, chosen.get(qid), base, acts, settings, spans)) for qid in order]
    truth = tables.truth_of(Table.of_records("", rows, faults=faults), policy or Policy())
    keys = ("qid", "query", "retrieval_gt", NONRELEVANT)
    if base is not None and any(each.get("kind") == "audit" for each in settings.values()):
        with suppress(DataError):  # flat ground truth that has alternatives now
            truth = truth.of_shape(base.shape)
    return replace(truth, texts=[row["query"] for _, row in rows], keys=keys)


def audits(settings: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether journals with these settings audit all queries of existing ground truth, not a sample."""
    settings = list(settings)
    return any(each.get("kind") == "audit" for each in settings) and not any(each.get(SAMPLE) for each in settings)


def _row(
    qid: str,
    judged: tuple[str, QueryState] | None,
    base: GroundTruth | None,
    acts: Mapping[str, Sequence[Act]],
    settings: Mapping[str, Mapping[str, Any]],
    spans: bool,
) -> dict[str, Any]:
    row: dict[str, Any] = {"qid": qid, "query": None if judged is None else judged[1].query}
    position = base.index.get(qid) if base is not None else None
    if base is not None and position is not None:
        row["query"] = base.texts[position] if base.texts else None
        row |= {name: values[position] for name, values in base.columns.items()}
        row |= {column: ids[position] for column, ids in tables.named_ids(base).items()}
    if judged is None:
        return {**row, "retrieval_gt": base[qid] if base is not None else []}
    by, state = judged
    mine = settings[by]
    is_audit = mine.get("kind") == "audit"
    if not is_audit:
        row = {key: value for key, value in row.items() if key not in OF_JUDGING}
    if is_audit and base is not None and position is not None and state.judgments == state.before:
        row["retrieval_gt"] = base[qid]
    else:
        nonrelevant = [[{"id": doc, "grade": 0}] for doc in state.nonrelevant if doc not in state.harmful]
        row["retrieval_gt"] = [*state.grouped(spans=spans), *nonrelevant]
        row["harmful_ids"] = sorted(state.harmful)
    # An adjudicator has a journal besides the own one.
    row |= {"judged_by": by.removesuffix(f".{ADJUDICATED}"), "judged_at": state.at}
    if mine.get("kind") == "judge" and "pool" in mine:
        row["pool"] = mine["pool"]
    if state.spans:
        row["spans"] = state.spans
    if not state.has_answer:
        row[ANSWERABLE] = False
    if state.status == SKIPPED:
        row |= {"skipped": state.reason or True, "retrieval_gt": [], "harmful_ids": []}
    if mine.get(ASSISTED) or (mine.get("blind") and _changed_after_draft(qid, acts[by])):
        row[ASSISTED] = True
    if sample := mine.get(SAMPLE):
        row[SAMPLE] = entry(sample, qid)
    return row


def _changed_after_draft(qid: str, acts: Sequence[Act]) -> bool:
    """Return whether judgments changed after the query was first finished, which reveals a hidden draft."""
    mine = [act for act in acts if act.get("qid") == qid]
    is_drafted = any(act.get("draft", True) for act in mine if act["act"] == "open")
    finished = [number for number, act in enumerate(mine, 1) if act["act"] in FINISHING]
    if not is_drafted or not finished:
        return False
    then, now = (replayed(part)[qid] for part in (mine[: finished[0]], mine))
    return difference(then, now) is not None
