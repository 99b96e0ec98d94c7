"""Which class tells which kind of result: the one way from what is measured to what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from groupgt.render.document import Item
from groupgt.render.results import Result, Teller
from groupgt.render.tables import Grid

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure

# The module of this room, loaded when a result is shown, and the class in it, by the class of the result.
TELLERS = {
    "Agreement": ("curation", "AgreementTeller"),
    "Check": ("curation", "CheckTeller"),
    "Comparison": ("comparison", "ComparisonTeller"),
    "Depths": ("depth", "DepthsTeller"),
    "Evaluation": ("means", "EvaluationTeller"),
    "Evaluations": ("means", "EvaluationsTeller"),
    "HardestGroups": ("misses", "HardestGroupsTeller"),
    "Misses": ("misses", "MissesTeller"),
    "Outcome": ("outcome", "OutcomeTeller"),
    "Rechunked": ("curation", "RechunkedTeller"),
    "Suggestions": ("curation", "SuggestionsTeller"),
}


def teller_of(result: Result) -> Teller[Any]:
    """What tells a result, of its own class or of the one that it extends."""
    for kind in type(result).__mro__:
        if kind.__name__ in TELLERS:
            home, name = TELLERS[kind.__name__]
            teller: Teller[Any] = getattr(import_module(f"groupgt.report.{home}"), name)(result)
            return teller
    return ByItself(result)


class ByItself(Teller[Any]):
    """A result whose class still tells it itself, until all have a section of this room."""

    @property
    def title(self) -> str:
        """The class's own."""
        title: str = "" if type(self.result).title is Result.title else self.result.title
        return title

    @property
    def main_figure(self) -> str:
        """Whether it draws one."""
        return "own" if hasattr(self.result, "_figure") and self.result._figure() is not None else ""

    def blocks(self) -> Sequence[Item]:
        """The class's own."""
        blocks: Sequence[Item] = self.result.blocks()
        return blocks

    def csv_rows(self) -> Grid:
        """The class's own."""
        grid: Grid = self.result.csv_rows()
        return grid

    def to_dict(self) -> Any:
        """The class's own."""
        return self.result.to_dict()

    def plot(self, name: str, **options: Any) -> Figure:
        """The class's own."""
        figure: Figure = self.result._figure()
        return figure
