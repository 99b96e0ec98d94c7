"""Rules for valid ids, scores and rows as polars expressions, and functions that report invalid rows in a frame.

The rules match `groupgt.model.validity`, and a test checks that they agree. Readers build columns with them, and the
streaming engine applies them to every batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from groupgt.errors import DataError, Faults, display
from groupgt.formats.fields import result_fault
from groupgt.model.run import Columns, Run
from groupgt.model.validity import BLANKS, FORBIDDEN, LONGEST_ID, NUMBER, finite_number
from groupgt.model.values import CALLS, LONGEST
from groupgt.runtime import pl

# Runs a polars step and reports what is wrong with its source.
Guard = Callable[[Callable[[], Any]], Any]
MAX_INVALID_ROWS = 1000
T = TypeVar("T")


def is_id(text: pl.Expr) -> pl.Expr:
    """Return whether a text is a valid id; false for null."""
    is_valid = text.str.len_bytes() <= LONGEST_ID
    is_valid &= text.str.contains(f"[^{BLANKS}]") & ~text.str.contains(f"[{FORBIDDEN}]")
    return is_valid.fill_null(False)


def is_plainly_id(text: pl.Expr) -> pl.Expr:
    """Return whether an id has only visible ASCII characters, as nearly all ids do; false if uncertain."""
    is_valid = (text.str.len_bytes() <= LONGEST_ID) & text.str.contains(r"(?-u)^[!-~]+$")
    return is_valid.fill_null(False)


def is_score(number: pl.Expr) -> pl.Expr:
    """Return whether a double is a valid score, that is, finite; false for null."""
    return number.is_finite().fill_null(False)


def is_call(number: pl.Expr) -> pl.Expr:
    """Return whether a number is a valid call number, that is, a positive whole number; false for null."""
    value = number.cast(pl.Float64, strict=False)
    return (value.is_between(1, LONGEST) & (value == value.floor())).fill_null(False)


def number_of(text: pl.Expr) -> pl.Expr:
    """Parse a number from text; null if it is not a finite number."""
    return text.cast(pl.Float64, strict=False)


def normal_texts(text: pl.Expr) -> pl.Expr:
    """Normalize texts as `normal_text` does. Like Python, treat four ASCII separators as blanks too."""
    return text.str.normalize("NFC").str.replace_all(r"[\s\x1c-\x1f]+", " ").str.strip_chars(" ")


def is_number(text: pl.Expr) -> pl.Expr:
    """Return whether a text is a number of any size; false for null."""
    return text.str.contains(f"^(?:{NUMBER})$").fill_null(False)


def guarded(title: object, what: str, read: Callable[[], T]) -> T:
    """Run a polars step and convert its exceptions to a `DataError`."""
    try:
        return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise DataError(f"{title}: {what}: {first_line(error)}") from None


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, or the name of its class if it has no message."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def rechecked(frame: pl.LazyFrame, recheck: Callable[[], Run], *, ids_checked: bool = False) -> Columns:
    """Return columns that are read again row by row to locate the error if polars fails."""

    def guard(step: Callable[[], Any]) -> Any:
        try:
            return step()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            recheck()
            raise

    return Columns(frame, recheck, guard, ids_checked=ids_checked)


def refuse_rows(rows: pl.LazyFrame, title: str, order: str, guard: Guard = lambda read: read()) -> NoReturn:
    """Raise `DataError` listing rows with an invalid `qid`, `doc` or `score`; `order` names the score column."""
    call = pl.col(CALLS) if CALLS in guard(rows.collect_schema) else pl.lit(1)
    numbered = rows.with_row_index("row", 1).select("row", "qid", "doc", "score", call.alias(CALLS))
    is_invalid = ~(is_id(pl.col("qid")) & is_id(pl.col("doc")) & is_score(pl.col("score")) & is_call(pl.col(CALLS)))
    invalid = guard(lambda: numbered.filter(is_invalid).head(MAX_INVALID_ROWS).collect())
    faults = Faults()
    for row, qid, document, score, call_number in invalid.iter_rows():
        where = f"{title}: row {row}: query {display(qid)}"
        if qid is None or document is None:
            faults.add(where, "expected a qid and a doc_id, found null")
        else:
            cell = score if score is None or order == "score" else -score
            fault = result_fault(qid, document, finite_number(score), cell, order, call_number)
            faults.add(where, fault or "expected a result")
    faults.stop()
    raise DataError(f"{title}: the results changed while they were being read")
