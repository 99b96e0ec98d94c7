"""Rows of (query, group, document, grade), as qrels and CSV files hold them, gathered into ground truth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.lengths import LONGEST
from groupgt.model.policy import Policy
from groupgt.model.run import Lists, Run
from groupgt.model.validity import finite_number

# The columns that may hold the text of a result.
CONTENTS = ("contents", "text")
# The column that names a result's document, where its id does not.
DOCUMENT = "doc"
Judgment = tuple[str, str, str, float]


def gather(rows: Iterable[Judgment], policy: Policy, *, texts: dict[str, str] | None = None) -> GroundTruth:
    """Ground truth of rows; those of one query and group become a group; a label that is its number is dropped."""
    queries: dict[str, dict[str, list[Any]]] = {}
    for qid, group, document, grade in rows:
        alternative: Any = document if grade == 1 else {"id": document, "grade": grade}
        queries.setdefault(qid, {}).setdefault(group, []).append(alternative)
    groups = [
        [
            alternatives if label == str(number) else {"alternatives": alternatives, "name": label}
            for number, (label, alternatives) in enumerate(own.items(), 1)
        ]
        for own in queries.values()
    ]
    named = [texts.get(qid) for qid in queries] if texts else None
    return GroundTruth.from_rows(list(queries), groups, policy, texts=named)


def flat_rows(rows: Iterable[tuple[str, str, float]]) -> Iterable[Judgment]:
    """Every document a group of its own: how flat judgments are read."""
    numbers: dict[str, int] = {}
    for qid, document, grade in rows:
        numbers[qid] = numbers.get(qid, 0) + 1
        yield qid, str(numbers[qid]), document, grade


def number_text(value: float) -> str:
    """A number that reads back as the same double.

    >>> number_text(2.0), number_text(1234567.25)
    ('2', '1234567.25')
    """
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def length_of(cell: Any) -> int | None:
    """A length: a whole number from 0, as a number or as text; None for anything else.

    >>> length_of(12), length_of("12"), length_of(12.0), length_of(1.5), length_of("-1")
    (12, 12, 12, None, None)
    """
    if isinstance(cell, str):
        cell = int(cell) if cell.isascii() and cell.isdigit() and len(cell) <= 16 else None
    elif isinstance(cell, float) and cell.is_integer():
        cell = int(cell)  # a column with gaps holds numbers with a point
    return cell if isinstance(cell, int) and not isinstance(cell, bool) and 0 <= cell <= LONGEST else None


def score_of(row: dict[str, Any]) -> float | None:
    """The score of a result, or minus its rank where there is only a rank; None where it is no finite number."""
    given, sign = (row["score"], 1.0) if row.get("score") is not None else (row.get("rank"), -1.0)
    number = finite_number(given)
    return None if number is None else sign * number


def ordered_run(
    source: Source,
    nested: dict[str, list[str]],
    long: dict[str, tuple[list[str], list[float]]],
    lengths: dict[str, dict[str, list[int | None]]] | None = None,
    fields: dict[str, dict[str, list[Any]]] | None = None,
) -> Run:
    """A run of lists whose order is given, or of results that scores put in order; with what stands beside them."""
    lists = Lists(
        rankings=nested or {qid: own[0] for qid, own in long.items()},
        scores={qid: own[1] for qid, own in long.items()} if long else None,
        lengths=lengths or {},
        fields={key: lambda own=own: own for key, own in (fields or {}).items()},  # type: ignore[misc]  # bound now
    )
    return Run(lists, name=run_name(source), source=str(source.path))


def beside_of(row: dict[str, Any], id_column: str = "doc_id") -> dict[str, Any]:
    """What a result carries besides its id and score: its `text`, its `parent`, and the `span` of its document.

    >>> beside_of({"doc_id": "a", "start": "3", "end": "9", "contents": "…"})
    {'text': '…', 'span': {'doc': 'a', 'start': 3, 'end': 9}}
    """
    found: dict[str, Any] = {}
    column = next((name for name in CONTENTS if name in row), None)
    if column is not None:
        found["text"] = row[column]
    if "parent" in row:
        found["parent"] = row["parent"]
    if "start" in row and "end" in row:
        bounds = {key: _whole(row[key]) for key in ("start", "end")}
        found["span"] = {"doc": row.get(DOCUMENT, row.get(id_column)), **bounds}
    return found


def _whole(cell: Any) -> Any:
    """A whole number, where the cell of a CSV file is one."""
    length = length_of(cell.strip()) if isinstance(cell, str) else None
    return cell if length is None else length


def run_name(source: Source) -> str:
    """The file's stem, without the ending of its compression.

    >>> from pathlib import Path
    >>> run_name(Source(Path("runs/bm25.v2.trec.gz")))
    'bm25.v2'
    """
    path = source.path
    if path.suffix in (".gz", ".zst"):
        path = path.with_suffix("")
    return path.stem
