"""The rules for ids, scores and rows as polars expressions, and the rows of a frame that break them.

The rules match `groupgt.model.validity`; a test checks that both agree. Readers use them to make columns, and the
streaming engine applies them to every batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from groupgt.errors import DataError, Faults, display
from groupgt.formats.checks import result_fault
from groupgt.model.run import Columns, Run
from groupgt.model.validity import BLANKS, FORBIDDEN, LONGEST_ID, NUMBER, RANK, finite_number
from groupgt.model.values import CALLS, LONGEST
from groupgt.runtime import pl

# Runs a polars step and reports what is wrong with its source.
Guard = Callable[[Callable[[], Any]], Any]
# The most invalid rows that are reported.
MAX_INVALID_ROWS = 1000
T = TypeVar("T")


def is_id(text: pl.Expr) -> pl.Expr:
    """Whether a text is an id; false for null."""
    is_valid = text.str.len_bytes() <= LONGEST_ID
    is_valid &= text.str.contains(f"[^{BLANKS}]") & ~text.str.contains(f"[{FORBIDDEN}]")
    return is_valid.fill_null(False)


def is_plainly_id(text: pl.Expr) -> pl.Expr:
    """Whether a text is an id of visible ASCII characters, as nearly all ids are; false means unsure."""
    is_valid = (text.str.len_bytes() <= LONGEST_ID) & text.str.contains(r"(?-u)^[!-~]+$")
    return is_valid.fill_null(False)


def is_score(number: pl.Expr) -> pl.Expr:
    """Whether a double is a score, that is, finite; false for null."""
    return number.is_finite().fill_null(False)


def is_call(number: pl.Expr) -> pl.Expr:
    """Whether a number is a valid call number, a whole number from 1; false for null."""
    value = number.cast(pl.Float64, strict=False)
    return (value.is_between(1, LONGEST) & (value == value.floor())).fill_null(False)


def number_of(text: pl.Expr) -> pl.Expr:
    """The number that a text spells; null if it is not a finite number."""
    return text.cast(pl.Float64, strict=False)


def is_rank(text: pl.Expr) -> pl.Expr:
    """Whether a text looks like a rank; false for null."""
    return text.str.contains(f"^(?:{RANK})$").fill_null(False)


def is_number(text: pl.Expr) -> pl.Expr:
    """Whether a text spells a number, however large; false for null."""
    return text.str.contains(f"^(?:{NUMBER})$").fill_null(False)


def guarded(title: object, what: str, read: Callable[[], T]) -> T:
    """Runs a polars step and converts its exceptions to a `DataError`."""
    try:
        return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise DataError(f"{title}: {what}: {first_line(error)}") from None


def first_line(error: BaseException) -> str:
    """The first line of the message of an exception, or its class if it has none."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def rechecked(frame: pl.LazyFrame, recheck: Callable[[], Run], *, ids_checked: bool = False) -> Columns:
    """Results that are read again row by row if polars fails, to locate the error."""

    def guard(step: Callable[[], Any]) -> Any:
        try:
            return step()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            recheck()
            raise

    return Columns(frame, recheck, guard, ids_checked=ids_checked)


def refuse_rows(rows: pl.LazyFrame, title: str, order: str, guard: Guard = lambda read: read()) -> NoReturn:
    """Raises `DataError` with the rows whose `qid`, `doc` or `score` is invalid; `order` is the name of the score."""
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
