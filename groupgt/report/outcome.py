"""What an `Outcome` shows when it is printed, exported or drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from groupgt.experiment.outcome import Outcome
from groupgt.render import tables
from groupgt.render.document import Item
from groupgt.render.drawing import Figure
from groupgt.render.exports import nulls
from groupgt.render.results import Teller
from groupgt.render.tables import Grid
from groupgt.report.experiment import drawable, items, text
from groupgt.report.page import page_bytes_of
from groupgt.report.results import means_grid, results_of


class OutcomeTeller(Teller[Outcome]):
    """The verdict, the tables of every data set with their populations, and the gates."""

    @property
    def title(self) -> str:
        """What the experiment is called."""
        return self.result.experiment.title

    @property
    def main_figure(self) -> str:
        """The forest of the only data set."""
        return "forest" if sum(map(bool, self.result.evaluations.values())) == 1 else ""

    def blocks(self) -> list[Item]:
        """Everything but times."""
        return list(items(self.result))

    def csv_rows(self) -> Grid:
        """Headers and a row for each mean, of the whole and of each slice: what means.csv holds."""
        return means_grid(self.result)

    def to_dict(self) -> dict[str, Any]:
        """Everything but times as plain Python: what results.json holds."""
        plain: dict[str, Any] = nulls(results_of(self.result))
        return plain

    def figures(self, dataset: str | None = None) -> Mapping[str, Callable[[], Figure]]:
        """The figures of the only data set or the one named."""
        return drawable(self.result, dataset)

    def text(self, style: str = tables.DEFAULT) -> str:
        """What the result folder holds."""
        return text(self.result, style)

    def page(self) -> bytes:
        """The page of the experiment, one HTML file."""
        return page_bytes_of(self.result)
