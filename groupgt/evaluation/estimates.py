"""Estimates from columns with several values per query, corrected by an audit or averaged over annotators."""

from __future__ import annotations

from groupgt.evaluation.annotators import Averaged, averaged
from groupgt.evaluation.corrected import OF_DELTAS, Corrected, of_column
from groupgt.model.hits import Floats

Estimate = Corrected | Averaged


def estimate_of(column: Floats, *, delta: bool = False) -> Estimate | None:
    """Estimate a mean or a mean difference; return None if the column has too few values."""
    if column.ndim == 3:
        return averaged(column)
    return of_column(column, *OF_DELTAS) if delta else of_column(column)


def plain_of(column: Floats) -> Floats:
    """Return one value per query, shape (Q,): the value under the audited ground truth, or the mean over annotators."""
    plain: Floats = column[:, 0, :].mean(axis=1) if column.ndim == 3 else column[:, 0] if column.ndim == 2 else column
    return plain
