"""What every result of groupgt can do: show itself, whole or its tables alone, and hand itself on to other programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from groupgt.errors import printable
from groupgt.render import tables
from groupgt.render.document import Detail, Item, Table, document, drawn
from groupgt.render.exports import frame_of
from groupgt.render.tables import Grid
from groupgt.runtime import pl

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure


class Result(ABC):
    """A result that shows itself: commands print what `blocks`, `csv_rows` and `to_dict` give, and nothing else.

    A class says what its blocks are, its rows with full doubles, and itself as plain Python; the rest follows.
    """

    @property
    def title(self) -> str:
        """What a page of it is called."""
        return ""

    @abstractmethod
    def blocks(self) -> Sequence[Item]:
        """Everything there is to show, in the order in which it is read, for `groupgt.render.document` to set."""

    @abstractmethod
    def csv_rows(self) -> Grid:
        """Headers and rows with full doubles, None where there is no value: what `--format csv` prints."""

    @abstractmethod
    def to_dict(self) -> Any:
        """Everything as plain Python, None for undefined: what `--format json` prints."""

    def table(self, style: str = tables.DEFAULT) -> str:
        """The tables alone, in any tabulate format."""
        return document([item for item in self.blocks() if isinstance(item, (tuple, Table))], style, self.title)

    def text(self, style: str = tables.DEFAULT) -> str:
        """Everything, in any tabulate format: what `print` shows."""
        return document(self.blocks(), style, self.title)

    def to_polars(self) -> pl.DataFrame:
        """The rows of `csv_rows` as a polars frame, null where there is no value."""
        return frame_of(*self.csv_rows())

    def __str__(self) -> str:
        return printable(self.text())

    def _figure(self) -> Figure | None:
        """What a notebook draws below the tables; None where there is nothing to draw."""
        return None

    def _repr_html_(self) -> str:
        from groupgt.render.drawing import has_converter

        bare = (item.item if isinstance(item, Detail) else item for item in self.blocks())
        # A figure of its own mime type would stand in place of the tables.
        figure = self._figure() if has_converter() else None
        return "".join(drawn(item, "html") for item in bare) + ("" if figure is None else figure.picture_html())


class Told(Result):
    """A result that `report` tells: what it shows is made there, when it is asked for."""

    @property
    def _teller(self) -> Any:
        """The module of `report` that is named after this class: the one way from data to what is told of it."""
        from importlib import import_module

        return import_module(f"groupgt.report.{type(self).__name__.lower()}")

    def blocks(self) -> Sequence[Item]:
        """Everything there is to show."""
        shown: Sequence[Item] = self._teller.blocks(self)
        return shown

    def text(self, style: str = tables.DEFAULT) -> str:
        """Everything, in any tabulate format: what `print` shows."""
        return str(self._teller.text(self, style))

    def csv_rows(self) -> Grid:
        """Headers and rows with full doubles, None where there is no value."""
        grid: Grid = self._teller.csv_rows(self)
        return grid

    def to_dict(self) -> Any:
        """Everything as plain Python, None for undefined."""
        return self._teller.to_dict(self)

    def _figure(self) -> Figure | None:
        figure: Figure | None = self._teller.figure(self)
        return figure
