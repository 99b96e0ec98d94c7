"""What commands print and write: results to standard output, everything else to standard error, files whole.

Nothing else writes to the terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from groupgt.errors import ConfigError, Faults, printable
from groupgt.formats.parts import is_url
from groupgt.render import tables
from groupgt.render.exports import check_ending, csv_text, json_text, write_rows
from groupgt.store.files import written_whole


def show(text: str) -> None:
    """Prints a result for people to read, on standard output."""
    click.echo(printable(text))


def say(text: str) -> None:
    """Says what was done, or what is doubtful, on standard error."""
    click.echo(f"groupgt: {printable(text)}", err=True)


class Bar:
    """Draws on standard error, where that is a terminal."""

    def __init__(self) -> None:
        self.bar: Any = None

    def planned(self, systems: int, tasks: int, kept: int, queries: int) -> None:
        """Says what is to be done, and begins."""
        if not sys.stderr.isatty() or not queries:
            return
        from tqdm import tqdm

        say(
            f"{systems:,} systems; {tasks:,} retrievals, {kept:,} of them kept from earlier runs; "
            f"{queries:,} questions to ask"
        )
        self.bar = tqdm(total=queries, unit="q", dynamic_ncols=True, leave=False)

    def started(self, task: str) -> None:
        """Names what is retrieved now."""
        if self.bar is not None:
            self.bar.set_description(printable(task))

    def answered(self, queries: int) -> None:
        """Moves the bar on."""
        if self.bar is not None:
            self.bar.update(queries)

    def ended(self) -> None:
        """Removes the bar."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class _File(click.Path):
    """A path; an empty text is none, though it would name the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value).strip():
            self.fail(f"expected the path of a file, found the empty text {value!r}", param, ctx)
        if is_url(value):
            return value
        return super().convert(value, param, ctx)


FILE = _File(path_type=Path)


def _style(_context: click.Context, _parameter: click.Parameter, style: str) -> str:
    tables.check_style(style, "json", "csv")
    return style


format_option: Decorator = click.option(
    "--format",
    "style",
    default=tables.DEFAULT,
    show_default=True,
    callback=_style,
    help="Any tabulate format, csv, or json.",
)


def show_json(value: Any) -> None:
    """Prints JSON."""
    click.echo(printable(json_text(value), as_json=True))


def show_csv(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints CSV as it is, for CSV has no escapes; on a terminal, what people may read."""
    text = csv_text(headers, rows).rstrip("\n")
    # With `color` click leaves escape sequences where they are.
    click.echo(printable(text) if sys.stdout.isatty() else text, color=True)


def show_rows(headers: Sequence[str], rows: Sequence[Sequence[Any]], style: str) -> None:
    """Prints rows as JSON, as CSV or as a table."""
    if style == "json":
        show_json([dict(zip(headers, row)) for row in rows])
    elif style == "csv":
        show_csv(headers, rows)
    else:
        show(tables.table(headers, rows, style))


def check_outputs(inputs: Sequence[str | os.PathLike[str]], outputs: Sequence[Path | None]) -> None:
    """Raises `ConfigError` for files that cannot be written, are read as well, or are named twice."""
    faults = Faults()
    taken = {Path(path).resolve(): f"{path}, which is read" for path in inputs if not is_url(path)}
    for path in outputs:
        if path is None:
            continue
        if not path.resolve().parent.is_dir() or path.is_dir():
            problem = "a folder" if path.is_dir() else "no folder to write it in"
            faults.add(str(path), f"expected a file that can be written, found {problem}")
        if path.resolve() in taken:
            faults.add(str(path), f"would overwrite {taken[path.resolve()]}; name another file")
        taken[path.resolve()] = f"{path}, which is written as well"
    faults.stop(ConfigError)


def check_table_ending(path: Path | None) -> None:
    """Raises `ConfigError` for a file of rows whose ending names no format."""
    if path is not None:
        check_ending(path)


def write_table(path: Path | None, table: Callable[[], tuple[Sequence[str], Sequence[Sequence[Any]]]]) -> None:
    """Writes headers and rows to the file that an option names, whole or not at all; nothing where it names none."""
    if path is not None:
        headers, rows = table()
        written_whole(path, lambda part: write_rows(part, headers, rows, path.suffix))
