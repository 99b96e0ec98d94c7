"""Applies the rules for ids, calls and text to polars columns, and reports invalid rows in a frame.

A quick test lets nearly all values pass, and a Python function decides on the distinct values that remain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from groupgt.errors import DataError, Faults, display
from groupgt.formats.fields import call_of, result_fault
from groupgt.model.run import Columns, Run
from groupgt.model.validity import LONGEST_ID, NUMBER, finite_number, id_fault
from groupgt.model.values import CALLS, normal_text
from groupgt.runtime import pl

# Runs a polars step and reports what is wrong with its source.
Guard = Callable[[Callable[[], Any]], Any]
MAX_INVALID_ROWS = 1000
T = TypeVar("T")


def by_value(column: pl.Expr, rule: Callable[[Any], Any], kind: type[pl.DataType]) -> pl.Expr:
    """Apply a rule to the distinct values of a column, including null."""

    def apply(values: pl.Series) -> pl.Series:
        distinct = values.unique()
        return values.replace_strict(distinct, pl.Series(list(map(rule, distinct)), dtype=kind), return_dtype=kind)

    return column.map_batches(apply, return_dtype=kind, is_elementwise=True)


def is_id(text: pl.Expr) -> pl.Expr:
    """Return whether text is a valid id; false for null."""

    def apply(names: pl.Series) -> pl.Series:
        is_valid = names.to_frame("name").select(is_plainly_id(pl.col("name"))).to_series()
        if is_valid.all():
            return is_valid
        others = names.filter(~is_valid).drop_nulls().unique()
        valid = others.filter(pl.Series([id_fault(name) is None for name in others], dtype=pl.Boolean))
        return (is_valid | names.is_in(valid.implode())).fill_null(value=False)

    return text.map_batches(apply, return_dtype=pl.Boolean, is_elementwise=True)


def is_plainly_id(text: pl.Expr) -> pl.Expr:
    """Return whether an id has only visible ASCII characters, as nearly all ids do; false if uncertain."""
    is_valid = (text.str.len_bytes() <= LONGEST_ID) & text.str.contains(r"(?-u)^[!-~]+$")
    return is_valid.fill_null(False)


def is_score(number: pl.Expr) -> pl.Expr:
    """Return whether a double is a valid score, that is, finite; false for null."""
    return number.is_finite().fill_null(False)


def call_numbers(cells: pl.Expr) -> pl.Expr:
    """Convert cells to call numbers; null if a cell is not a positive whole number."""
    return by_value(cells, call_of, pl.Int64)


def number_of(text: pl.Expr) -> pl.Expr:
    """Parse a number from text; null if it is not a finite number."""
    return text.cast(pl.Float64, strict=False)


def normal_texts(text: pl.Expr) -> pl.Expr:
    """Normalize query text; null stays null."""
    return by_value(text, lambda each: None if each is None else normal_text(each), pl.String)


def is_number(text: pl.Expr) -> pl.Expr:
    """Return whether text is a number of any size; false for null."""
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
    """Return columns that, if polars fails, are read again row by row to locate the error."""

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
    is_invalid = ~(
        is_id(pl.col("qid"))
        & is_id(pl.col("doc"))
        & is_score(pl.col("score"))
        & call_numbers(pl.col(CALLS)).is_not_null()
    )
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
