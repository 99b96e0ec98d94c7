"""Reads judged answers (rows with a query and whether its answer is correct) from files, frames and mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from groupgt.errors import DataError, Faults, display, first_of
from groupgt.formats.corpus import table_rows
from groupgt.formats.fields import length_of, query_fault, trial_fault
from groupgt.formats.frames import is_frame, table_of
from groupgt.formats.pairing import NAMED, queries_by_text
from groupgt.formats.roles import NO_COLUMNS, Declared, missing_columns, roles_in
from groupgt.formats.source import Source
from groupgt.formats.tables import ABSENT, Table
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Floats, Ints
from groupgt.model.validity import finite_number, id_text, number_of
from groupgt.model.values import normal_text

EXPECTED = "qid (or query) and correct (0, 1 or a score in between; one row per answer)"
WORDS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, eq=False)
class Answers:
    """Judged answers, with their queries (ids or text) and scores from 0 (wrong) to 1. `unjudged` counts other answers.

    `trials` has the number of each answer's trial, and is empty without such a column.
    """

    title: str
    keys: Sequence[str]
    scores: Floats
    by_text: bool = False
    unjudged: int = 0
    trials: Sequence[int] = ()

    def trial_of(self, count: int) -> Ints:
        """Return the position of each answer's trial among the trials of a run, or raise `DataError`."""
        numbers = sorted(set(self.trials))
        if len(numbers) != count and not set(numbers) <= {*range(1, count + 1)}:
            what = (
                f"expected the {count:,} trials of the run, found the trials {first_of(list(map(str, numbers)), NAMED)}"
            )
            raise DataError(f"{self.title}: {what}; number the trials from 1 to {count:,}")
        known = numbers if len(numbers) == count else range(1, count + 1)
        return np.array([known.index(number) for number in self.trials], dtype=np.int64)

    def places(self, truth: GroundTruth) -> Ints:
        """Return the position of each answer's query in the ground truth, or -1. Raise `DataError` if all are -1."""
        qids = queries_by_text(truth) if self.by_text else {}
        faults, places = Faults(), {}
        for key in dict.fromkeys(self.keys):
            names = [key] if key in truth.index else qids.get(key, [])
            places[key] = truth.index[names[0]] if names else -1
            if len(names) > 1:
                what = f"the queries {', '.join(names[:NAMED])} have the same text; add ids"
                faults.add(self.title, f"query {display(key)}: {what}")
        faults.stop()
        if self.keys and max(places.values()) < 0:
            here, there = display(self.keys[0]), display(truth.qids[0])
            raise DataError(f"{self.title}: expected queries from the ground truth, such as {there}, found {here}")
        return np.array([places[key] for key in self.keys], dtype=np.int64)


def read_answers(value: Any, columns: Declared = NO_COLUMNS, title: str = "answers") -> Answers:
    """Read answers from a file, a frame or `{qid: score}`. A score may be a list."""
    table = _table_of(value, columns, title)
    roles = roles_in(table.names, "answers", table.declared)
    missing = [role for role in ("qid", "correct") if role not in roles and not (role == "qid" and "query" in roles)]
    if missing and not table.faults:
        what = missing_columns(table.names, missing, EXPECTED, "answers") if table.names else f"expected {EXPECTED}"
        raise DataError(f"{table.title}: {what}")
    table.faults.stop()
    key = "qid" if "qid" in roles else "query"
    judged: list[tuple[str, float]] = []
    trials: list[int] = []
    unjudged = 0
    numbers = table.column(roles["trial"]) if "trial" in roles else repeat(None)
    for row, cells in enumerate(zip(table.column(roles[key]), table.column(roles["correct"]), numbers)):
        query, cell, number = (None if each is ABSENT else each for each in cells)
        text = id_text(query) if key == "qid" else normal_text(query) if isinstance(query, str) else None
        score = _score(cell)
        if fault := query_fault(query, text, key):
            table.faults.add(table.place(row), fault)
        elif (trial := length_of(number)) is None and "trial" in roles:
            table.faults.add(table.place(row), trial_fault(number, roles["trial"]))
        elif score is not None and 0 <= score <= 1:
            judged.append((text or "", score))
            trials += [] if trial is None else [trial]
        elif cell is None or cell == "" or (score is None and cell != cell):  # noqa: PLR0124  # NaN
            unjudged += 1
        else:
            what = f"query {display(text)}: expected a number from 0 (wrong) to 1 (correct) as {roles['correct']}"
            table.faults.add(table.place(row), f"{what}, found {display(cell)}")
    table.faults.stop()
    keys, scores = [key for key, _ in judged], [score for _, score in judged]
    return Answers(table.title, keys, np.array(scores, dtype=np.float64), key == "query", unjudged, trials)


def _table_of(value: Any, columns: Declared, title: str) -> Table:
    if is_frame(value):
        return table_of(value, title, columns)
    faults = Faults()
    if isinstance(value, Mapping):
        pairs = [(qid, each if isinstance(each, (list, tuple)) else [each]) for qid, each in value.items()]
        located = [(title, {"qid": qid, "correct": score}) for qid, scores in pairs for score in scores]
    else:
        source = Source.at(value)
        title, located = str(source.path), list(table_rows(source, faults))
    return Table.of_records(title, located, faults=faults, declared=columns)


def _score(cell: Any) -> float | None:
    """Convert a number or a boolean to a number, or return None for any other cell."""
    if isinstance(cell, str):
        return WORDS.get(cell.strip().lower(), number_of(cell.strip()))
    return float(cell) if isinstance(cell, (bool, np.bool_)) else finite_number(cell)
