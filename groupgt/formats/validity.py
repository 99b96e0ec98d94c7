"""What an id, a score and a row may be, as polars expressions, and which rows of a frame break the rules.

The rules are those of `groupgt.model.validity`, and a test holds the two equal. Readers make columns with them, and the
engine that streams columns asks them of every batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from groupgt.errors import DataError, Faults, display
from groupgt.formats.checks import result_fault
from groupgt.model.validity import BLANKS, FORBIDDEN, LONGEST_ID, NUMBER, RANK, finite_number
from groupgt.model.values import CALLS, LONGEST
from groupgt.runtime import pl

# Runs a step of polars, and says what is wrong with its source.
Guard = Callable[[Callable[[], Any]], Any]
# How many rows at fault are looked at.
LOOKED_AT = 1000


def is_id(text: pl.Expr) -> pl.Expr:
    """Whether a text is an id; false if there is none."""
    holds = text.str.len_bytes() <= LONGEST_ID
    holds &= text.str.contains(f"[^{BLANKS}]") & ~text.str.contains(f"[{FORBIDDEN}]")
    return holds.fill_null(False)


def is_plainly_id(text: pl.Expr) -> pl.Expr:
    """Whether a text is an id of visible characters of ASCII: what one glance tells of nearly all; false is a doubt."""
    holds = (text.str.len_bytes() <= LONGEST_ID) & text.str.contains(r"(?-u)^[!-~]+$")
    return holds.fill_null(False)


def is_score(number: pl.Expr) -> pl.Expr:
    """Whether a double is a score: finite; false if there is none."""
    return number.is_finite().fill_null(False)


def is_call(number: pl.Expr) -> pl.Expr:
    """Whether a number is that of a search call: whole, and from 1; false if there is none."""
    value = number.cast(pl.Float64, strict=False)
    return (value.is_between(1, LONGEST) & (value == value.floor())).fill_null(False)


def number_of(text: pl.Expr) -> pl.Expr:
    """The number that a text spells; what is null or not finite is none."""
    return text.cast(pl.Float64, strict=False)


def is_rank(text: pl.Expr) -> pl.Expr:
    """Whether a text looks like a rank; false if there is none."""
    return text.str.contains(f"^(?:{RANK})$").fill_null(False)


def is_number(text: pl.Expr) -> pl.Expr:
    """Whether a text spells a number, however large; false if there is none."""
    return text.str.contains(f"^(?:{NUMBER})$").fill_null(False)


def guarded(title: object, what: str, read: Callable[[], Any]) -> Any:
    """Runs a step of polars; what it says becomes a `DataError`."""
    try:
        return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{title}: {what}: {first}") from None


def explained(recheck: Callable[[], Any]) -> Guard:
    """A guard that reads a source anew, with care, where polars could not: that says what is wrong, and where."""

    def guard(step: Callable[[], Any]) -> Any:
        try:
            return step()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            recheck()
            raise

    return guard


def refuse_rows(
    rows: pl.LazyFrame, title: str, order: str, guard: Guard = lambda read: read(), *, place: str = "row "
) -> NoReturn:
    """Raises `DataError` that names the rows of `qid`, `doc` and `score` which are none; `order` names the score.

    A row has the number in its column `row`, from 0, where there is such a column.
    """
    numbered = rows if "row" in guard(rows.collect_schema) else rows.with_row_index("row")
    call = pl.col(CALLS) if CALLS in guard(rows.collect_schema) else pl.lit(1)
    numbered = numbered.select("row", "qid", "doc", "score", call.alias(CALLS))
    wrong = ~(is_id(pl.col("qid")) & is_id(pl.col("doc")) & is_score(pl.col("score")) & is_call(pl.col(CALLS)))
    found = guard(lambda: numbered.filter(wrong).head(LOOKED_AT).collect())
    faults = Faults()
    for row, qid, document, score, made in found.iter_rows():
        where = f"{title}: {place}{row + 1}: query {display(qid)}"
        if qid is None or document is None:
            faults.add(where, "expected a qid and a doc_id, found null")
        else:
            given = score if score is None or order == "score" else -score
            fault = result_fault(qid, document, finite_number(score), given, order, made)
            faults.add(where, fault or "expected a result")
    faults.stop()
    raise DataError(f"{title}: the results changed while they were being read")
