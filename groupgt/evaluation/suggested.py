"""Passages that nearly equal a judged alternative and are not judged: found, reviewed, and taken up when marked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from groupgt.errors import ConfigError, DataError, Faults
from groupgt.formats.corpus import table_rows
from groupgt.formats.source import Source
from groupgt.labellers.normal import Normalization
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.ids import shown
from groupgt.model.policy import Policy
from groupgt.model.spans import TEXT, Span
from groupgt.render.tables import as_written

__all__ = ["HEADERS", "Candidate", "accepted", "near_duplicates", "rows_of"]

# So many similarities are held at a time.
BLOCK = 10_000_000
KEPT = ("qid", "group", "alternative", "candidate", "candidate_text")
YES, NO = ("yes", "y", "x", "true", "1", "1.0"), ("", "no", "n", "false", "0", "0.0")


@dataclass(frozen=True)
class Candidate:
    """One passage that may belong beside an alternative, with the evidence."""

    qid: str
    query: str
    group: str
    alternative: str
    candidate: str
    similarity: float
    alternative_text: str
    candidate_text: str


HEADERS = ["accept", *(each.name for each in fields(Candidate)), "check"]


def near_duplicates(truth: GroundTruth, corpus: Mapping[str, str], threshold: float = 0.9) -> list[Candidate]:
    """Passages that are not judged and whose similarity to a relevant alternative is at least `threshold`.

    The similarity is RapidFuzz' ratio of normalized texts: 1 − (insertions and deletions) ÷ (both lengths). Sorted by
    query and group, the most similar first. Raises `ConfigError` where RapidFuzz is not installed.

    >>> corpus = {"a": "Thirty days of leave a year.", "b": "thirty days of leave, a year", "c": "No leave."}
    >>> [each.candidate for each in near_duplicates(GroundTruth.of({"q": [["a"]]}), corpus)]
    ['b']
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"threshold: expected a number above 0, at most 1, found {threshold!r}")
    try:
        from rapidfuzz import fuzz, process
    except ImportError:
        raise ConfigError("near-duplicates need RapidFuzz: pip install 'groupgt[text]'") from None
    normal = Normalization()
    names = list(corpus)
    said = [normal(text) for text in corpus.values()]
    wanted = _wanted(truth, corpus)
    distinct = list(dict.fromkeys(normal(text) for text in wanted.values()))
    judged = [{truth.ids[a] for a in own} for own in _by_query(truth)]
    found: dict[str, list[tuple[int, float]]] = {}
    step = max(BLOCK // max(len(said), 1), 1)
    for start in range(0, len(distinct), step):
        block = distinct[start : start + step]
        score = process.cdist(
            block, said, scorer=fuzz.ratio, score_cutoff=100 * threshold - 1e-6, dtype=np.float64, workers=-1
        )
        for row, column in zip(*np.nonzero(score)):
            found.setdefault(block[row], []).append((int(column), float(score[row, column]) / 100))
    candidates: list[Candidate] = []
    for alternative, text in wanted.items():
        group = int(truth.group_of[alternative])
        query = int(truth.group_query[group])
        alike = found.get(normal(text), []) if normal(text) else []
        for column, similarity in sorted(alike, key=lambda each: -each[1]):
            name = names[column]
            if name in judged[query] or corpus[name] in judged[query]:
                continue
            candidates.append(
                Candidate(
                    qid=truth.qids[query],
                    query=(truth.texts[query] if truth.texts else None) or "",
                    group=truth.group_label(group),
                    alternative=truth.ids[alternative],
                    candidate=name,
                    similarity=similarity,
                    alternative_text=text,
                    candidate_text=corpus[name],
                )
            )
    return candidates


def _by_query(truth: GroundTruth) -> list[list[int]]:
    own: list[list[int]] = [[] for _ in truth.qids]
    for alternative, query in enumerate(truth.query_of.tolist()):
        own[query].append(alternative)
    return own


def _wanted(truth: GroundTruth, corpus: Mapping[str, str]) -> dict[int, str]:
    """The texts of the relevant alternatives; those without one are an error."""
    faults = Faults()
    found: dict[int, str] = {}
    for alternative in np.flatnonzero(truth.grade > 0).tolist():
        form, name = truth.forms[alternative] if truth.forms else None, truth.ids[alternative]
        where = f"query {truth.qids[int(truth.query_of[alternative])]!r}"
        if isinstance(form, Span):
            faults.add(where, f"expected a text, or an id of the corpus, found the span {shown(name)}")
        elif form == TEXT:
            found[alternative] = name
        elif name in corpus:
            found[alternative] = corpus[name]
        else:
            faults.add(where, f"the alternative {shown(name)} is not in the corpus")
    faults.stop(DataError)
    return found


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
