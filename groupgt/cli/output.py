"""Writes results to standard output, messages to standard error, and files atomically."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ContextDecorator, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groupgt.errors import ConfigError, Faults, printable
from groupgt.formats.parts import is_url
from groupgt.private import Hide
from groupgt.render import tables
from groupgt.render.exports import check_ending, csv_text, json_text, write_rows
from groupgt.render.layout import Screen, painted, wrapped
from groupgt.render.results import Result
from groupgt.render.tables import Table
from groupgt.runtime import discard
from groupgt.store.files import write_atomically

if TYPE_CHECKING:
    from groupgt.evaluation.result import Evaluated
    from groupgt.render.document import Item


def show(text: str) -> None:
    """Print a result on standard output, wrapped to fit the terminal."""
    _echo(wrapped(printable(text), screen().width))


def show_prose(text: str) -> None:
    """Print paragraphs, wrapped to the terminal width."""
    width = screen().width
    if width is not None:
        text = "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in text.split("\n\n"))
    _echo(wrapped(printable(text), width, ""))


def say(text: str) -> None:
    """Print a message or warning on standard error."""
    line = f"groupgt: {printable(Hide().message(text))}"
    if _is_colored(sys.stderr):
        if text.startswith("warning:"):
            line = painted(line, "yellow")
        elif text.startswith("gate "):
            line = painted(line, "red")
    _echo(line, err=True, color=True)


def say_wrote(path: Path, what: str = "", more: str = "") -> None:
    """Report on standard error which file was written, and `what` it contains."""
    say(f"wrote {f'{what} to ' if what else ''}{path}{more}")


def show_beside(text: str, style: str) -> None:
    """Print a line next to a table, but on standard error if standard output contains data for other programs."""
    (say if style in ("json", "csv") else show)(text)


def show_document(items: Iterable[Item], style: str = tables.DEFAULT, title: str = "") -> None:
    """Print a document with the terminal's width and colors, and with details on request."""
    from groupgt.render.document import document

    _echo(document(items, style, title, screen()), color=True)


def _echo(text: str, **options: Any) -> None:
    """Print text, and make room for it above a progress bar."""
    bars = sys.modules.get("tqdm")
    try:
        with nullcontext() if bars is None else bars.tqdm.external_write_mode(sys.stderr):
            click.echo(text, **options)
    except BrokenPipeError:
        # The reader, such as `head`, has stopped. A gate fails or passes all the same.
        discard(sys.stderr if options.get("err") else sys.stdout)


# Where display options are stored while a command runs.
WIDE, DETAILS, COLOR = "groupgt.wide", "groupgt.details", "groupgt.color"


def screen() -> Screen:
    """Return the properties of standard output, as changed by --wide, --color and --details."""
    options = _display_options()
    width = None
    if sys.stdout.isatty() and not options.get(WIDE):
        from shutil import get_terminal_size

        width = max(get_terminal_size().columns, MIN_WIDTH)
    is_ascii = not (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    return Screen(width, _is_colored(sys.stdout), bool(options.get(DETAILS)), is_ascii)


# Minimum terminal width for which tables are laid out.
MIN_WIDTH = 40


def _display_options() -> Mapping[str, Any]:
    context = click.get_current_context(silent=True)
    return {} if context is None else context.meta


def _is_colored(stream: Any) -> bool:
    """Return whether to use color: --color first, then NO_COLOR and FORCE_COLOR, then only on a terminal."""
    color = _display_options().get(COLOR, "auto")
    if color != "auto":
        return bool(color == "always")
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


class Bar:
    """A progress bar on standard error, shown only on a terminal."""

    def __init__(self) -> None:
        self.bar: Any = None

    def doing(self, what: str) -> None:
        """Print the current step."""
        if sys.stderr.isatty():
            say(what)

    def planned(self, systems: int, tasks: int, kept: int, queries: int) -> None:
        """Print a summary of the planned work and start the bar."""
        if not sys.stderr.isatty() or not queries:
            return
        cached = f"; {kept:,} of {tables.counted(tasks, 'retrieval')} cached" if kept else ""
        say(f"{tables.counted(systems, 'system')}, {tables.counted(queries, 'query', 'queries')} to run{cached}")
        self.bar = _bar(total=queries, unit="q")

    def started(self, task: str) -> None:
        """Show the current retrieval."""
        if self.bar is not None:
            self.bar.set_description(printable(task))

    def answered(self, queries: int) -> None:
        """Advance the bar."""
        if self.bar is not None:
            self.bar.update(queries)

    def ended(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def left(self, left: Any) -> None:
        """Report results of an interrupted run that this run does not use."""
        from groupgt.report.times import could_resume

        say(could_resume(left))


class Waiting(ContextDecorator):
    """Progress of work that takes more than two seconds, shown on standard error and only on a terminal."""

    def __init__(self) -> None:
        self.what, self.total, self.finished, self.began = "", 0, 0, 0.0
        self.over = threading.Event()
        self.thread: threading.Thread | None = None

    def __enter__(self) -> Waiting:
        if sys.stderr.isatty():
            self.over.clear()
            self.began = time.time()
            self.thread = threading.Thread(target=self._show, daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        if self.thread is not None:
            self.thread.join()

    def doing(self, what: str, total: int = 0) -> None:
        """Name the current step, which consists of `total` parts if they can be counted."""
        self.what, self.total, self.finished = what, total, 0

    def step(self) -> None:
        """Count a finished part of the current step."""
        self.finished += 1

    def _show(self) -> None:
        if self.over.wait(PATIENCE_S):
            return
        with _bar(bar_format="{desc} [{elapsed}]") as bar:
            bar.start_t = self.began
            while not self.over.wait(REFRESH_S):
                parts = f" {self.finished:,} of {self.total:,}" if self.total else ""
                bar.set_description_str(f"groupgt: {self.what or 'working'}{parts}")


# Work of less than this many seconds shows no progress; the display is refreshed after the second number.
PATIENCE_S, REFRESH_S = 2, 0.2


def _bar(**options: Any) -> Any:
    from tqdm import tqdm

    return tqdm(dynamic_ncols=True, leave=False, **options)


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Decorator) -> Decorator:
    """Combine options into one decorator, in the order in which help shows them."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


class _File(click.Path):
    """A path type that rejects the empty string, which would otherwise mean the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value).strip():
            self.fail(f"expected a file path, found the empty string {value!r}", param, ctx)
        # Keeps the slashes of the URL in `NAME=URL` too.
        return value if is_url(value) or is_url(str(value).partition("=")[2]) else super().convert(value, param, ctx)


class _Written(_File):
    """A path type that marks the files a command writes, so that `check_outputs` finds them."""


class _Table(_Written):
    """A path type for table files, which must have a known file extension."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        check_ending(Path(path))
        return path


FILE = _File(path_type=Path)
WRITTEN = _Written(path_type=Path)
default_option = partial(click.option, show_default=True)
file_option = partial(click.option, type=FILE)
repeatable_option = partial(click.option, multiple=True)
written_option = partial(click.option, type=WRITTEN)
table_option = partial(click.option, type=_Table(path_type=Path))
PER_QUERY = table_option("--per-query", help="Write per-query values (.csv, .jsonl, .parquet) or events (.otel.jsonl).")


class _Output(click.Option):
    """The `--output` option, which also accepts `--out` as a hidden alias."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        names, self.opts = self.opts, self.opts[:-1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


def output_option(help: str, **options: Any) -> Decorator:
    """Add the `--output` option, which has the same names in all commands."""
    return written_option("-o", "--output", "--out", "output", cls=_Output, help=help, **options)


def _style(_context: click.Context, _parameter: click.Parameter, style: str) -> str:
    tables.check_style(style, "json", "csv")
    return style


def _display_option(key: str, **options: Any) -> Decorator:
    """Add a display option whose value is stored in the context and not passed to the command."""

    def store(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        context.meta[key] = value

    return click.option(f"--{key.rpartition('.')[2]}", expose_value=False, callback=store, **options)


# --format and the display options of commands that print tables.
format_option = together(
    default_option(
        "--format",
        "style",
        default=tables.DEFAULT,
        callback=_style,
        help="Output format: any tabulate format, csv or json.",
    ),
    _display_option(WIDE, is_flag=True, help="Show all columns regardless of terminal width."),
    _display_option(
        COLOR,
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Set when to use color. With auto, groupgt uses color on a terminal unless NO_COLOR is set.",
    ),
)
details_option = _display_option(DETAILS, is_flag=True, help="Show additional tables, the full policy and all counts.")


def show_json(value: Any) -> None:
    """Print JSON."""
    _echo(printable(json_text(value), as_json=True))


def show_csv(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print CSV. Because CSV has no escapes, control characters are escaped only on a terminal."""
    text = csv_text(headers, rows).rstrip("\n")
    # With `color`, click does not remove escape sequences.
    _echo(printable(text) if sys.stdout.isatty() else text, color=True)


def show_result(result: Result, style: str) -> None:
    """Print a result as JSON, CSV or formatted text."""
    prepared(result, style)()


def prepared(result: Result, style: str) -> Callable[[], None]:
    """Return a function that prints a result. Anything that may raise an error is computed beforehand."""
    if style == "json":
        return partial(show_json, result.to_dict())
    if style == "csv":
        return partial(show_csv, *result.csv_rows())
    return partial(show_document, result.blocks(), style, result.title)


def show_rows(headers: Sequence[str], rows: Sequence[Sequence[Any]], style: str, keep: int = 1) -> None:
    """Print rows as JSON, CSV or a table. The first `keep` columns identify each row."""
    if style == "json":
        show_json([dict(zip(headers, row)) for row in rows])
    elif style == "csv":
        show_csv(headers, rows)
    else:
        show_document([Table(list(headers), [list(row) for row in rows], keep=keep)], style)


def check_outputs(context: click.Context, also_read: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Raise `ConfigError` for output files that cannot be written, that are also read, or that are named twice."""
    files: list[tuple[bool, Any]] = [(False, path) for path in also_read]
    for parameter in context.command.params:
        if isinstance(parameter.type, _File):
            given = context.params.get(parameter.name or "")
            paths = given if isinstance(given, tuple) else [given]
            files += [(isinstance(parameter.type, _Written), path) for path in paths if path is not None]
    faults = Faults()
    taken = {Path(path).resolve(): f"{path}, an input file" for writes, path in files if not (writes or is_url(path))}
    for path in (Path(path) for writes, path in files if writes):
        if not path.resolve().parent.is_dir() or path.is_dir():
            what, problem = "a file that can be written", "a folder"
            if not path.is_dir():
                what, problem = "the path of a file in an existing folder", f"no folder {str(path.parent)!r}"
            faults.add(str(path), f"expected {what}, found {problem}")
        if path.resolve() in taken:
            faults.add(str(path), f"would overwrite {taken[path.resolve()]}; choose another file")
        taken[path.resolve()] = f"{path}, another output file"
    faults.stop(ConfigError)


def write_file(path: Path | None, write: Callable[[Path], object]) -> None:
    """Call `write` with a path and say what was written, or do nothing if `path` is None."""
    if path is not None:
        write(path)
        say_wrote(path)


def write_table(path: Path | None, table: Callable[[], tuple[Sequence[str], Sequence[Sequence[Any]]]]) -> None:
    """Write a table to a file atomically, or do nothing if `path` is None."""

    def write(path: Path) -> None:
        headers, rows = table()
        write_atomically(path, lambda part: write_rows(part, headers, rows, path.suffix))

    write_file(path, write)


def write_values(path: Path | None, evaluations: Sequence[Evaluated]) -> None:
    """Write values per query to a file: rows, or OpenTelemetry events if its name ends in .otel.jsonl."""
    if str(path).lower().endswith(".otel.jsonl"):
        from groupgt.report.events import events as values
    else:
        from groupgt.evaluation.runs import per_query_rows as values
    write_table(path, lambda: values(evaluations))
