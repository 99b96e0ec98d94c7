"""Candidates for alternatives under review: written with their evidence, accepted when marked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from groupgt.curation.near import Candidate
from groupgt.errors import DataError, Faults
from groupgt.formats.corpus import table_rows
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.spans import TEXT
from groupgt.model.validity import shown
from groupgt.render.exports import as_written

# What a row proposes; only `accept` is the reviewer's.
KEPT = ("qid", "group", "alternative", "candidate", "candidate_text")
YES, NO = ("yes", "y", "x", "true", "1", "1.0"), ("", "no", "n", "false", "0", "0.0")


HEADERS = ["accept", *(each.name for each in fields(Candidate)), "check"]


def check_of(row: Mapping[str, Any]) -> str:
    """What tells whether a reviewed row still says what was proposed."""
    text = json.dumps([str(row[name]) for name in KEPT], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def rows_of(candidates: list[Candidate]) -> list[list[Any]]:
    """A row for each candidate under `HEADERS`, not accepted yet."""
    return [["", *(getattr(each, name) for name in HEADERS[1:-1]), check_of(vars(each))] for each in candidates]


def accepted(truth: GroundTruth, path: Path) -> tuple[GroundTruth, int, int]:
    """The ground truth with the candidates that a reviewed file marks, how many were marked, and how many not.

    A candidate joins the group of the alternative it resembles, with that one's grade. Raises `DataError` for marks
    that are none, and for rows that do not fit the ground truth (any more).
    """
    faults = Faults()
    additions: dict[int, dict[str, float]] = {}
    taken = left = 0
    is_csv = path.suffix.lower() != ".jsonl"
    for where, row in table_rows(Source.at(path), faults):
        if not {"accept", "check", *KEPT} <= set(row):
            faults.add(where, f"expected the columns {', '.join(HEADERS)}, found {', '.join(row)}")
            break
        mark = str(row["accept"] if row["accept"] is not None else "").strip().lower()
        if mark in NO:
            left += 1
            continue
        if mark not in YES:
            faults.add(where, f"expected {', '.join(YES)} (taken) or nothing, no (left) as accept, found {shown(mark)}")
            continue
        # A CSV file holds a mark before what a spreadsheet would run.
        row = {name: as_written(cell) if is_csv and isinstance(cell, str) else cell for name, cell in row.items()}
        if row["check"] != check_of(row):
            known = f"{shown(row['candidate'])} for {shown(row['alternative'])}"
            faults.add(where, f"this row is not what was proposed ({known}): only accept may be changed")
            continue
        at = _place(truth, row)
        if isinstance(at, str):
            faults.add(where, at)
            continue
        taken += 1
        group = int(truth.group_of[at])
        text = bool(truth.forms) and (truth.forms or [])[at] == TEXT
        name = str(row["candidate_text"] if text else row["candidate"])
        own = additions.setdefault(group, {})
        own[name] = max(float(truth.grade[at]), own.get(name, -np.inf))
    faults.stop(DataError)
    return _extended(truth, additions), taken, left


def _place(truth: GroundTruth, row: Mapping[str, Any]) -> int | str:
    """The alternative that a row resembles; what does not fit where there is none."""
    qid = str(row["qid"])
    if qid not in truth.index:
        return f"query {qid!r} is not in the ground truth"
    for a in np.flatnonzero(truth.query_of == truth.index[qid]).tolist():
        if truth.ids[a] == str(row["alternative"]) and truth.group_label(int(truth.group_of[a])) == str(row["group"]):
            return int(a)
    return f"query {qid!r}: {row['group']} has no alternative {shown(row['alternative'])}"


def _extended(truth: GroundTruth, additions: Mapping[int, Mapping[str, float]]) -> GroundTruth:
    first = np.searchsorted(truth.group_query, np.arange(len(truth))).tolist()
    rows = []
    for query, (_, groups) in enumerate(truth.items()):
        own = []
        for number, group in enumerate(groups):
            cells = list(group["alternatives"] if isinstance(group, dict) else group)
            known = {cell if isinstance(cell, str) else cell.get("id", cell.get("text")) for cell in cells}
            for name, grade in additions.get(first[query] + number, {}).items():
                if name not in known:
                    text = any(isinstance(cell, dict) and "text" in cell for cell in cells)
                    plain: Any = {"text": name} if text else name if grade == 1 else {"id": name}
                    cells.append({**plain, "grade": grade} if grade != 1 else plain)
            own.append({**group, "alternatives": cells} if isinstance(group, dict) else cells)
        rows.append(own)
    return GroundTruth.from_rows(truth.qids, rows, Policy(), texts=truth.texts, columns=truth.columns)
