"""Writes near-duplicates as rows for human review, and adds accepted rows to the ground truth."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from groupgt.curation.near import Candidate
from groupgt.curation.rechunk import with_alternatives
from groupgt.errors import DataError, Faults, display
from groupgt.formats.corpus import table_rows
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.values import TEXT
from groupgt.render.exports import as_written

HEADERS = ["accept", *(field.name for field in fields(Candidate)), "check"]
# The proposal in a row; only `accept` is for the reviewer.
PROPOSED = ("qid", "group", "alternative", "candidate", "candidate_text")
YES, NO = ("yes", "y", "x", "true", "1", "1.0"), ("", "no", "n", "false", "0", "0.0")


def rows_of(candidates: Sequence[Candidate]) -> list[list[Any]]:
    """Return one unreviewed row per candidate, with the columns of `HEADERS`."""
    return [["", *vars(candidate).values(), check_of(vars(candidate))] for candidate in candidates]


def check_of(row: Mapping[str, Any]) -> str:
    """Compute a checksum of a row, to verify that a reviewed row still contains the original proposal."""
    text = json.dumps([str(row[name]) for name in PROPOSED], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def accepted(truth: GroundTruth, path: Path) -> tuple[GroundTruth, int, int]:
    """Add the accepted candidates of a reviewed file to the ground truth, and count marked and unmarked rows."""
    faults = Faults()
    # The names to add to each group, with their grades.
    additions: dict[int, dict[str, float]] = {}
    marked = unmarked = 0
    is_csv = path.suffix.lower() != ".jsonl"
    for where, row in table_rows(Source.at(path), faults):
        if not {"accept", "check", *PROPOSED} <= set(row):
            faults.add(where, f"expected the columns {', '.join(HEADERS)}, found {', '.join(row)}")
            break
        mark = str(row["accept"] if row["accept"] is not None else "").strip().lower()
        if mark in NO:
            unmarked += 1
            continue
        if mark not in YES:
            expected = f"{', '.join(YES)} (accepted) or empty, no (rejected)"
            faults.add(where, f"expected {expected} in the accept column, found {display(mark)}")
            continue
        # In a CSV file, cells that a spreadsheet would run are escaped with a mark.
        row = {name: as_written(cell) if is_csv and isinstance(cell, str) else cell for name, cell in row.items()}
        if row["check"] != check_of(row):
            proposal = f"{display(row['candidate'])} for {display(row['alternative'])}"
            faults.add(where, f"this row differs from the proposal ({proposal}); change only the accept column")
            continue
        alternative = _resembled(truth, row)
        if isinstance(alternative, str):
            faults.add(where, alternative)
            continue
        marked += 1
        is_text = bool(truth.forms) and (truth.forms or [])[alternative] == TEXT
        name = str(row["candidate_text"] if is_text else row["candidate"])
        grades = additions.setdefault(int(truth.group_of[alternative]), {})
        grades[name] = max(float(truth.grade[alternative]), grades.get(name, -np.inf))
    faults.stop(DataError)
    return _extended(truth, additions), marked, unmarked


def _resembled(truth: GroundTruth, row: Mapping[str, Any]) -> int | str:
    """Return the index of the alternative that a row resembles, or a description of the mismatch."""
    qid, name, label = str(row["qid"]), str(row["alternative"]), str(row["group"])
    if qid not in truth.index:
        return f"query {qid!r} is not in the ground truth"
    for alternative in np.flatnonzero(truth.query_of == truth.index[qid]).tolist():
        if truth.ids[alternative] == name and truth.group_label(int(truth.group_of[alternative])) == label:
            return int(alternative)
    return f"query {qid!r}: {row['group']} has no alternative {display(row['alternative'])}"


def _extended(truth: GroundTruth, additions: Mapping[int, Mapping[str, float]]) -> GroundTruth:
    extended = []
    for number, group in enumerate(chain.from_iterable(groups for _, groups in truth.items())):
        alternatives = list(group["alternatives"] if isinstance(group, dict) else group)
        names = {cell if isinstance(cell, str) else cell.get("id", cell.get("text")) for cell in alternatives}
        key = "text" if any(isinstance(cell, dict) and "text" in cell for cell in alternatives) else "id"
        for name, grade in additions.get(number, {}).items():
            if name not in names:
                plain: Any = name if key == "id" else {"text": name}
                alternatives.append(plain if grade == 1 else {key: name, "grade": grade})
        extended.append(alternatives)
    return replace(with_alternatives(truth, extended), excluded=truth.excluded, harmful=truth.harmful)
