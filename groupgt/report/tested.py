"""Describes how differences were tested: the test, the corrected family, and the marks in tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Basis
from groupgt.comparison.tests import TESTS
from groupgt.render import tables
from groupgt.render.document import Item, Table
from groupgt.render.tables import counted

# Tests of differences that are not those of one ground truth.
ESTIMATED: dict[str, str] = {
    "audit": "t test of differences corrected by the audit",
    "annotators": "t test of differences averaged over annotators",
}
# Meanings of marks in tables.
MEANINGS = {
    tables.BETTER: "significantly better",
    tables.WORSE: "significantly worse",
    tables.MARK: "significantly different",
}


def marks_in(items: Iterable[Item]) -> list[str]:
    """Returns the marks that occur in the given tables."""
    grids = [item for item in items if isinstance(item, (tuple, Table))]
    rows = chain.from_iterable(grid.rows if isinstance(grid, Table) else grid[1] for grid in grids)
    ends = {cell[-1:] for row in rows for cell in row if isinstance(cell, str)}
    return [mark for mark in MEANINGS if mark in ends]


def corrected_over(settings: Settings, count: int, families: int = 1) -> str:
    """Describes the correction of p-values and the number of comparisons it covers."""
    if settings.correction == "none":
        return "not corrected"
    each = " per metric" if families > 1 else ""
    return f"corrected ({settings.correction}) over {counted(count, 'comparison')}{each}"


def how_tested(settings: Settings, count: int, families: int = 1, marks: Sequence[str] = (), basis: Basis = "") -> str:
    """Describes how comparisons were tested, and what the marks in their tables mean."""
    meanings = ", ".join(f"{mark} {MEANINGS[mark]}" for mark in marks)
    over = corrected_over(settings, count, families)
    return f"{described(settings, basis)}, p {over}; {meanings}{' at ' if marks else ''}alpha {settings.alpha:g}"


def verdict_by(label: str) -> str:
    """Returns a note that names the metric behind the verdict."""
    return f"\nverdict by {label}; the other metrics are exploratory"


def described(settings: Settings, basis: Basis = "") -> str:
    """Describes the test, including resamples and seed if it is randomized.

    >>> described(Settings(test="bootstrap", resamples=2000, seed=7))
    'paired bootstrap test, 2,000 resamples, seed 7'
    """
    if basis:
        return ESTIMATED[basis]
    resampling = f", {counted(settings.resamples, 'resample')}, seed {settings.seed}"
    return TESTS[settings.test].title + (resampling if settings.draws else "")
