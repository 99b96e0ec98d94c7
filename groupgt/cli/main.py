"""The command line: results go to stdout, everything else to stderr. Invalid input exits with status 2."""

from __future__ import annotations

import io
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

import groupgt
from groupgt.errors import GroupgtError, near_names, printable, reason
from groupgt.runtime import discard

# Each command: its module, and its description. A module is imported when one of its commands is called.
COMMANDS = {
    "run": ("experiments", "Run an experiment: retrieve, evaluate, compare, check gates."),
    "evaluate": ("evaluate", "Compute metrics for one or more runs."),
    "compare": ("compare", "Compare runs with a baseline: significance, effect size, slices."),
    "explain": ("evaluate", "Show how each metric is calculated for one query."),
    "misses": ("evaluate", "List missed groups, with the rank of their first hit."),
    "depth": ("evaluate", "Find how deep to look until most queries are complete."),
    "stages": ("evaluate", "Find the pipeline stage at which each group is lost."),
    "outcomes": ("evaluate", "Show how often answers are correct with complete and with incomplete retrieval."),
    "identify": ("evaluate", "Find the metric, convention, cutoff and policy behind a number."),
    "power": ("compare", "Show how small a difference these queries can detect, and how many you need."),
    "correlate": ("compare", "Measure how similarly two ground truths or metrics rank systems."),
    "report": ("experiments", "Merge result folders, or show the history of an experiment."),
    "plot": ("plot", "Draw one figure as SVG, PNG, PDF, HTML or Vega-Lite."),
    "judge": ("judge", "Judge passages on a local page, or audit existing ground truth."),
    "sample": ("judge", "Draw a random sample of queries to judge."),
    "check": ("truth", "Check ground truth and runs for errors and suspicious data."),
    "rechunk": ("truth", "Map ground truth to a different chunking."),
    "agree": ("truth", "Measure agreement between two labellers or annotators."),
    "list": ("reference", "List metrics, labellers, retrievers and other plug-ins, with their options."),
    "convert": ("truth", "Convert between file formats."),
    "init": ("experiments", "Write a starter experiment."),
    "cache": ("experiments", "List or clear cached runs."),
    "schema": ("experiments", "Print the JSON Schema of experiment files."),
}

# In help, commands in the order in which people need them; the rest follow under "More".
SECTIONS = {
    "Measure": ("evaluate", "explain", "misses", "depth", "stages", "outcomes", "identify"),
    "Decide": ("compare", "run", "power", "plot", "report"),
    "Ground truth": ("judge", "check", "sample", "rechunk", "agree"),
    "Files": ("init", "convert"),
}


def sections() -> dict[str, tuple[str, ...]]:
    """Return the commands for each section of the help text."""
    grouped = {name for names in SECTIONS.values() for name in names}
    return {**SECTIONS, "More": tuple(name for name in COMMANDS if name not in grouped)}


EXAMPLES = (
    "evaluate qa.jsonl bm25.trec -m recall@5,ndcg@10",
    "compare qa.jsonl bm25.trec dense.jsonl -m ndcg@10",
    "init && groupgt run experiment.yaml",
)


class _Commands(click.Group):
    """A command group that finds each command as `<name>_command` in its module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"groupgt.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = str(args[0]) if args else ""
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}{near_names(name, COMMANDS)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in sections().items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name][1]) for name in names])

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from groupgt.cli.help import write_examples

        super().format_help_text(ctx, formatter)
        write_examples(formatter, EXAMPLES)


def _show_version(context: click.Context, option: click.Parameter, is_set: bool) -> None:
    if not is_set:
        return
    from groupgt import native

    click.echo(f"groupgt {groupgt.__version__}\nnative: {'no' if native.built is None else 'yes'}")
    context.exit()


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and whether the compiled module is used.",
)
def cli() -> None:
    """Evaluate retrieval with grouped ground truth: [["a", "b"], ["c"]] means (a or b) and c.

    Exit status: 0 success, 1 a gate or a check failed, 2 invalid input.
    """


def _prepare_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        # Tables contain characters that the encoding may lack; a terminal keeps its own, and shows "?" for them.
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")


def _drop_unwritten() -> None:
    """Discard unwritten output, so that Python does not report an error when it flushes at exit."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                discard(stream)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit. Errors raised by groupgt are never shown as tracebacks."""
    _prepare_streams()
    warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}")
    warnings.simplefilter("always", groupgt.GroupgtWarning)
    try:
        _run(arguments)
    except OSError:
        # Standard error cannot be written: it is full, or its reader is gone.
        sys.exit(2)
    finally:
        _drop_unwritten()


def _run(arguments: list[str] | None) -> None:
    """Run a command and turn its errors into a message and an exit status."""
    try:
        cli.main(arguments, standalone_mode=False)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        click.echo(printable(text.getvalue()), nl=False, err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        say("stopped")
        sys.exit(130)
    except BaseException as error:
        why = reason(error)
        if why is None:
            raise
        several = f"{error.total:,} errors\n" if isinstance(error, GroupgtError) and error.total > 1 else ""
        say(f"{several}{why}")
        sys.exit(2)


def say(text: str) -> None:
    """Print an error or warning. The code is imported late because help text does not need it."""
    from groupgt.cli.output import say

    say(text)
