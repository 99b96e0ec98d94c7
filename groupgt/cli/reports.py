"""Reports for other programs, `--junit` and `--summary`, which also contain any error that ends a command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from groupgt.cli.help import Command
from groupgt.errors import ConfigError, GroupgtError, reason
from groupgt.private import Hide


class ReportingCommand(Command):
    """A command with --junit or --summary. Errors are also written to these reports, in place of earlier ones."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> click.Context:
        """Parse the command line, and also report any errors in it."""
        # The file name itself may be wrong: in `--junit experiment.yaml` the name of the report is missing.
        paths = {name: path for name, path in _named_in(args).items() if _is_report(path)}
        with _error_written(paths, f"groupgt {info_name}"):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, but never overwrite its input with a report."""
        source = next(Path(ctx.params[each.name or ""]) for each in self.params if isinstance(each, click.Argument))
        named = {**REPORTS, "--metrics-json": "metrics_json"}
        paths = {option: path for option, name in named.items() if (path := ctx.params.get(name)) is not None}
        for option, path in paths.items():
            if path.resolve() == source.resolve():
                raise ConfigError(f"{option} {path}: would overwrite {source.name}; choose another file")
        reports = {option: path for option, path in paths.items() if option in REPORTS and _is_report(path)}
        with _error_written(reports, source.name, source.parent.resolve()):
            return super().invoke(ctx)


# Options for files that other programs read, and their parameters.
REPORTS = {"--junit": "junit", "--summary": "summary_path"}


def _named_in(args: list[str]) -> dict[str, Path]:
    """Return the report files named in arguments, which may be invalid."""
    following = {option: Path(value) for option, value in pairwise(args) if option in REPORTS and value}
    joined = (arg.partition("=") for arg in args)
    return following | {option: Path(value) for option, _, value in joined if option in REPORTS and value}


def _is_report(path: Path) -> bool:
    """Return whether a file is missing, empty, or looks like an earlier report."""
    try:
        with path.open("rb") as file:
            return file.read(5).startswith((b"<?xml", b"## ")) if path.stat().st_size else True
    except OSError:
        return not path.exists()


@contextmanager
def _error_written(paths: Mapping[str, Path], title: str, folder: Path | None = None) -> Iterator[None]:
    """Write any error that ends a command to its reports, and remove reports that cannot be written."""
    try:
        yield
    except click.exceptions.Exit:
        raise
    except BaseException as error:
        if isinstance(error, SystemExit) and error.code in (0, 1, 2):  # the reports say what was found
            raise
        from groupgt.report.experiment import failure_summary
        from groupgt.report.gates import failure_junit
        from groupgt.store.files import write_text

        if isinstance(error, click.ClickException):
            why = error.format_message()
        elif isinstance(error, (click.Abort, KeyboardInterrupt, SystemExit)):
            why = "stopped"
        else:
            why = reason(error) or f"{type(error).__name__}: {error}"
        texts = {"--junit": failure_junit, "--summary": failure_summary}
        for option, path in paths.items():
            try:
                write_text(path, texts[option](title, Hide(folder=folder)(why)) + "\n")
            except GroupgtError:
                with suppress(OSError):
                    path.unlink()
        raise
