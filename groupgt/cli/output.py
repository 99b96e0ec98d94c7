"""What commands print and write: results to standard output, everything else to standard error, files whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from groupgt.cli.terminal import show
from groupgt.errors import ConfigError, Faults, printable
from groupgt.formats.parts import is_url
from groupgt.render import tables
from groupgt.render.exports import check_ending, csv_text, json_text, write_rows
from groupgt.store.files import written_whole

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
