"""`groupgt run`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from groupgt.cli import options
from groupgt.experiment.outputs import as_dict, means, report
from groupgt.experiment.runner import plan, run_experiment
from groupgt.render import tables

__all__ = ["command"]


@click.command("run")
@click.argument("config", type=options.FILE)
@click.option(
    "--check", is_flag=True, help="Check everything that can be checked without retrieving, and print the plan."
)
@click.option("--output", type=options.FILE, help="The folder for results, instead of the file's own.")
@options.format_option
def command(config: Path, check: bool, output: Path | None, style: str) -> None:
    """Run the experiment described in CONFIG: retrieve, evaluate, print the table, write the results."""
    tables.check_style(style, "json", "csv")
    if check:
        headers, rows = plan(config)
        if style == "json":
            click.echo(tables.json_text([dict(zip(headers, row)) for row in rows]))
        elif style == "csv":
            click.echo(tables.csv_text(headers, rows).rstrip("\n"))
        else:
            click.echo(tables.table(headers, rows, style))
        return
    progress = sys.stderr.isatty()
    outcome = run_experiment(config, output=output, say=(lambda text: click.echo(text, err=True)) if progress else None)
    if style == "json":
        click.echo(tables.json_text(as_dict(outcome)))
    elif style == "csv":
        click.echo(tables.csv_text(*means(outcome)).rstrip("\n"))
    else:
        click.echo(report(outcome, style))
    click.echo(f"groupgt: results are in {outcome.folder}", err=True)
