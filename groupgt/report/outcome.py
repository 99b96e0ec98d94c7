"""What an `Outcome` shows when it is printed, exported or drawn; `render.results` asks here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from groupgt.experiment.outcome import Outcome
from groupgt.render.document import Item
from groupgt.render.drawing import Figure
from groupgt.render.exports import nulls
from groupgt.render.figures import figure_named
from groupgt.render.tables import Grid
from groupgt.report.document import items, text
from groupgt.report.page import page_bytes_of
from groupgt.report.pictures import drawable
from groupgt.report.results import means_grid, results_of
from groupgt.store.files import write_bytes

__all__ = ["blocks", "csv_rows", "figure", "plot", "text", "to_dict", "to_html"]


def blocks(outcome: Outcome) -> list[Item]:
    """The verdict, the tables of every data set with their populations, and the gates."""
    return list(items(outcome))


def csv_rows(outcome: Outcome) -> Grid:
    """Headers and a row for each mean, of the whole and of each slice: what means.csv holds."""
    return means_grid(outcome)


def to_dict(outcome: Outcome) -> dict[str, Any]:
    """Everything but times as plain Python: what results.json holds."""
    plain: dict[str, Any] = nulls(results_of(outcome))
    return plain


def plot(outcome: Outcome, name: str, dataset: str | None = None) -> Figure:
    """A figure of the only data set or the one named."""
    return figure_named(name, drawable(outcome, dataset))


def figure(outcome: Outcome) -> Figure | None:
    """What a notebook draws below the tables."""
    return plot(outcome, "forest") if sum(map(bool, outcome.evaluations.values())) == 1 else None


def to_html(outcome: Outcome, path: str | os.PathLike[str]) -> None:
    """Writes the page of an experiment."""
    write_bytes(Path(path), page_bytes_of(outcome))
