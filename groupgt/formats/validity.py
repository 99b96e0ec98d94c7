"""What an id, a score and a row may be, as polars expressions, and which rows of a source break the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groupgt.errors import DataError, Faults, display
from groupgt.formats.source import LONGEST_ID, bad_id
from groupgt.model.run import Run
from groupgt.runtime import pl

# Runs a step of polars, and says what is wrong with its source.
Guard = Callable[[Callable[[], Any]], Any]


def guarded(title: object, what: str, read: Callable[[], Any]) -> Any:
    """Runs a step of polars; what it says becomes a `DataError`."""
    try:
        return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{title}: {what}: {first}") from None


def find_fault(
    long: pl.LazyFrame, title: str, order: str, guard: Guard = lambda read: read(), *, place: str = "row "
) -> Run:
    """Says which rows are wrong."""
    doubtful = (
        (long if "row" in guard(long.collect_schema) else long.with_row_index("row"))
        .select("row", "qid", "doc", "score")
        .filter(
            pl.any_horizontal(pl.all().is_null())
            | ~pl.col("score").is_finite()
            | (pl.col("qid").str.strip_chars() == "")
            | (pl.col("doc").str.strip_chars() == "")
            | pl.col("qid").str.contains("\0", literal=True)
            | pl.col("doc").str.contains("\0", literal=True)
            | (pl.col("doc").str.len_bytes() > LONGEST_ID)
            | (pl.col("qid").str.len_bytes() > LONGEST_ID)
        )
    )
    faults = Faults()
    for row, qid, document, score in guard(lambda: doubtful.head(1000).collect()).iter_rows():
        where = f"{title}: {place}{row + 1}: query {display(qid)}"
        fault = next((fault for name in (qid, document) if name is not None and (fault := bad_id(name))), None)
        if qid is None or document is None:
            faults.add(where, "expected a qid and a doc_id, found null")
        elif fault:
            faults.add(where, f"an id {fault}")
        else:
            given = score if score is None or order == "score" else -score
            faults.add(where, f"expected a finite number as the {order}, found {given}")
    faults.stop()
    raise DataError(f"{title}: the results changed while they were read")
