"""What every result of groupgt can do: show itself, whole or its tables alone, and hand itself on to other programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from groupgt.errors import printable
from groupgt.render import tables
from groupgt.render.document import Item, Table, bare, document, drawn
from groupgt.render.exports import frame_of, nulls
from groupgt.render.tables import Grid
from groupgt.runtime import pl

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure


class Result:
    """A result that shows itself: commands print what `blocks`, `csv_rows` and `to_dict` give, and nothing else.

    A class holds data; what is told of it is made in `report` when it is asked for.
    """

    @property
    def _teller(self) -> Teller[Any]:
        """What tells this result: the one way from data to what is told of them."""
        from groupgt.report.tellers import teller_of

        return teller_of(self)

    @property
    def title(self) -> str:
        """What a page of it is called."""
        return self._teller.title

    def blocks(self) -> Sequence[Item]:
        """Everything there is to show, in the order in which it is read, for `groupgt.render.document` to set."""
        return self._teller.blocks()

    def csv_rows(self) -> Grid:
        """Headers and rows with full doubles, None where there is no value: what `--format csv` prints."""
        return self._teller.csv_rows()

    def to_dict(self) -> Any:
        """Everything as plain Python, None for undefined: what `--format json` prints."""
        return self._teller.to_dict()

    def table(self, style: str = tables.DEFAULT) -> str:
        """The tables alone, in any tabulate format."""
        return self._teller.table(style)

    def text(self, style: str = tables.DEFAULT) -> str:
        """Everything, in any tabulate format: what `print` shows."""
        return self._teller.text(style)

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars frame, null where there is no value."""
        return frame_of(*self._teller.frame_rows())

    def __str__(self) -> str:
        return printable(self.text())

    def _repr_html_(self) -> str:
        from groupgt.render.drawing import has_converter

        teller = self._teller
        # A figure of its own mime type would stand in place of the tables.
        figure = teller.plot(teller.main_figure) if has_converter() and teller.main_figure else None
        picture = figure.picture_html() if figure is not None and figure.rows else ""
        return "".join(drawn(bare(item), "html") for item in self.blocks()) + picture


ResultT = TypeVar("ResultT", bound=Result)


class Teller(ABC, Generic[ResultT]):
    """What is told of one `result`: `groupgt.report.tellers` names the class for each kind.

    A class says what its blocks are, its rows with full doubles, which `fields` are the result as plain Python, and the
    figures that can be drawn by name; the rest follows.
    """

    fields: Sequence[str] = ()

    def __init__(self, result: ResultT) -> None:
        self.result = result

    @property
    def title(self) -> str:
        """What a page of it is called."""
        return ""

    @property
    def main_figure(self) -> str:
        """The name of the figure that a notebook draws below the tables, where it has data; empty for none."""
        return ""

    @abstractmethod
    def blocks(self) -> Sequence[Item]:
        """Everything there is to show, in the order in which it is read."""

    @abstractmethod
    def csv_rows(self) -> Grid:
        """Headers and rows with full doubles, None where there is no value."""

    def to_dict(self) -> Any:
        """The `fields` as plain Python, None for undefined."""
        return nulls({name: getattr(self.result, name) for name in self.fields})

    def frame_rows(self) -> Grid:
        """Headers and rows of the polars frame: those of `csv_rows`, where nothing else is said."""
        return self.csv_rows()

    def footer(self) -> list[str]:
        """The lines that say what was measured, of results that have any."""
        return []

    def figures(self, *args: Any, **options: Any) -> Mapping[str, Callable[[], Figure]]:
        """The figures that can be drawn, by name; a class may take options that choose what they show."""
        return {}

    def plot(self, name: str, **options: Any) -> Figure:
        """One of the figures; raises `ConfigError` for a name that is none of them."""
        from groupgt.render.figures import figure_named

        return figure_named(name, self.figures(**options))

    def page(self, *args: Any, **options: Any) -> bytes:
        """The page, one HTML file, of results that have one."""
        raise NotImplementedError

    def warnings(self) -> list[str]:
        """What keeps a reader from concluding too much, of results that say so."""
        raise NotImplementedError

    def summary(self) -> str:
        """Short Markdown for a pull request, of results that have it."""
        raise NotImplementedError

    def latex(self, *, digits: int, against: Sequence[str], caption: str) -> str:
        """A LaTeX table for a paper, of results that have one."""
        raise NotImplementedError

    def table(self, style: str = tables.DEFAULT) -> str:
        """The tables alone, in any tabulate format."""
        return document([item for item in self.blocks() if isinstance(item, (tuple, Table))], style, self.title)

    def text(self, style: str = tables.DEFAULT) -> str:
        """Everything, in any tabulate format."""
        return document(self.blocks(), style, self.title)
