"""Define the interface of all groupgt results, which can be printed, shown as tables, and exported."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from groupgt.errors import ConfigError, printable
from groupgt.model.values import nulls
from groupgt.render import tables
from groupgt.render.exports import frame_of
from groupgt.render.tables import Grid, Table
from groupgt.runtime import pl

if TYPE_CHECKING:
    from groupgt.render.document import Item
    from groupgt.render.drawing import Drawable, Figure

RowT_co = TypeVar("RowT_co", covariant=True)


class Result:
    """A result that can print and export itself. Commands print only `blocks`, `csv_rows` and `to_dict`.

    Result classes contain only data; `report` builds the output when it is requested.
    """

    @property
    def _teller(self) -> Teller[Any]:
        """The `Teller` that formats this result."""
        from groupgt.report.tellers import teller_of

        return teller_of(self)

    @property
    def title(self) -> str:
        """The page title of this result."""
        return self._teller.title

    def blocks(self) -> Sequence[Item]:
        """Return all output in reading order, for `groupgt.render.document` to render."""
        return self._teller.blocks()

    def csv_rows(self) -> Grid:
        """Return headers and rows with full double precision and None for missing values, as in `--format csv`."""
        return self._teller.csv_rows()

    def to_dict(self) -> Any:
        """Return everything as plain Python with None for undefined values, as in `--format json`."""
        return nulls(self._teller.to_dict())

    def table(self, style: str = tables.DEFAULT) -> str:
        """Return only the tables, in any tabulate format."""
        return self._teller.table(style)

    def text(self, style: str = tables.DEFAULT) -> str:
        """Return the full text in any tabulate format, as shown by `print`."""
        from groupgt.render.document import document

        return document(self.blocks(), style, self.title)

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a polars frame with null for missing values."""
        return frame_of(*self._teller.frame_rows())

    def to_pandas(self) -> Any:
        """Return the same rows as a pandas frame. Raise `ConfigError` if pandas or pyarrow is not installed."""
        try:
            return self.to_polars().to_pandas()
        except ImportError:
            raise ConfigError("to_pandas needs pandas and pyarrow: pip install 'groupgt[frames]'") from None

    def __str__(self) -> str:
        return printable(self.text())

    def _repr_html_(self) -> str:
        from groupgt.render.document import bare, rendered
        from groupgt.render.drawing import has_converter

        teller = self._teller
        # A figure's own MIME type would replace the tables.
        figure = teller.plot(teller.main_figure) if has_converter() and teller.main_figure else None
        picture = figure.picture_html() if figure is not None and figure.rows else ""
        return "".join(rendered(bare(item), "html") for item in self.blocks()) + picture


class ResultRows(Result, Sequence[RowT_co]):
    """A result that behaves like a sequence of the rows in its first field."""

    @property
    def _rows(self) -> tuple[RowT_co, ...]:
        rows: tuple[RowT_co, ...] = getattr(self, fields(self)[0].name)  # type: ignore[arg-type]
        return rows

    @overload
    def __getitem__(self, place: int) -> RowT_co: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[RowT_co]: ...
    def __getitem__(self, place: int | slice) -> RowT_co | Sequence[RowT_co]:
        return self._rows[place]

    def __len__(self) -> int:
        return len(self._rows)


ResultT = TypeVar("ResultT", bound=Result)


class Teller(ABC, Generic[ResultT]):
    """Format a `result` for output. Subclasses define blocks, rows, fields and figures. The rest is derived."""

    fields: Sequence[str] = ()
    # Only for results that have one: a single figure, the HTML page, lines that describe what was measured, warnings
    # that limit the conclusions, a Markdown summary for a pull request, the means as a flat dict for experiment
    # trackers, events of queries for their traces, how metrics vary between trials, a LaTeX table and a paragraph on
    # methods for a paper; of one run, an explanation of one query, and means below their minimum.
    figure: Callable[[], Figure]
    page: Callable[..., bytes]
    footer: Callable[[], list[str]]
    warnings: Callable[[], list[str]]
    summary: Callable[[], str]
    metrics: Callable[[], dict[str, float]]
    events: Callable[[], Grid]
    noises: Callable[[], dict[str, Any]]
    latex: Callable[..., str]
    explain: Callable[..., str]
    explain_dict: Callable[[str], dict[str, Any]]
    shortfalls: Callable[..., str]

    def __init__(self, result: ResultT) -> None:
        self.result = result

    @property
    def title(self) -> str:
        """The title of the result's page."""
        return ""

    @property
    def main_figure(self) -> str:
        """The name of the figure that notebooks show below the tables if it has data. The default is no figure."""
        return ""

    @abstractmethod
    def blocks(self) -> Sequence[Item]:
        """Return all output in reading order."""

    @abstractmethod
    def csv_rows(self) -> Grid:
        """Return headers and rows with full double precision and None for missing values."""

    def to_dict(self) -> Any:
        """Return everything to export (by default, the `fields`); `Result` converts it to plain Python."""
        return {name: getattr(self.result, name) for name in self.fields}

    def frame_rows(self) -> Grid:
        """Return headers and rows for the polars frame (default: `csv_rows`)."""
        return self.csv_rows()

    def figures(self, *args: Any, **options: Any) -> Drawable:
        """Return the available figures by name (by default, the only one). Overrides may accept content options."""
        return {self.main_figure: self.figure} if self.main_figure else {}

    def plot(self, name: str, **options: Any) -> Figure:
        """Draw a figure. Raise `ConfigError` for an unknown name."""
        from groupgt.render.figures import figure_named

        return figure_named(name, self.figures(**options))

    def table(self, style: str = tables.DEFAULT) -> str:
        """Return only the tables, in any tabulate format."""
        from groupgt.render.document import document
        from groupgt.render.entries import Entries

        items = [item for item in self.blocks() if isinstance(item, (tuple, Table, Entries))]
        return document(items, style, self.title)
