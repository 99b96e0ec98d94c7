"""The order of results held as columns: descending score, and the tie rule among equal scores."""

from __future__ import annotations

from typing import TypeVar

from groupgt.model.policy import Policy
from groupgt.runtime import pl

Frame = TypeVar("Frame", "pl.DataFrame", "pl.LazyFrame")


def best_first(rows: Frame, leads: list[str], policy: Policy, *, tie: str = "tie", scored: bool = False) -> Frame:
    """Rows sorted by the columns that lead, then best first, of equals the first `row` first.

    Results with equal leads are equals, or where they are `scored` those of one score: they go by descending bytes of
    the column `tie`, or by the order in which they came.
    """
    falling: list[str] = (["score"] if scored else []) + ([tie] if policy.ties == "id" else [])
    return rows.sort([*leads, *falling, "row"], descending=[False] * len(leads) + [True] * len(falling) + [False])


def best_row(policy: Policy, tie: str) -> pl.Expr:
    """The `row` that comes first among the rows of a group, by the same rule."""
    best = pl.col("score") == pl.col("score").max()
    if policy.ties == "id":
        best &= pl.col(tie) == pl.col(tie).filter(best).max()
    return pl.col("row").filter(best).min()
