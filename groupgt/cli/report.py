"""`groupgt report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from groupgt.cli import options
from groupgt.comparison.tests import CORRECTIONS, TESTS
from groupgt.errors import ConfigError
from groupgt.experiment.history import compared, history, merged, settings_of
from groupgt.experiment.result_folders import folders_of, read_folders
from groupgt.render import tables
from groupgt.render.numbers import signed, small
from groupgt.render.tables import Block, Grid, document


@click.command("report")
@click.argument("folders", nargs=-1, required=True, type=options.FILE)
@click.option("--history", "as_history", is_flag=True, help="One row a run: how the best changed over time.")
@click.option("--metric", "-m", metavar="METRIC", help="The metric to show; the primary one in a history, all else.")
@click.option("--baseline", metavar="NAME", help="The system to compare with.")
@click.option("--test", type=click.Choice(list(TESTS)), help="As in the folders, where none is named; so are these:")
@click.option("--correction", type=click.Choice(list(CORRECTIONS)))
@click.option("--alpha", type=float)
@click.option("--seed", type=int)
@options.format_option
def command(
    folders: tuple[Path, ...],
    as_history: bool,
    metric: str | None,
    baseline: str | None,
    test: str | None,
    correction: str | None,
    alpha: float | None,
    seed: int | None,
    style: str,
) -> None:
    """Merge result FOLDERS of `groupgt run` into one comparison, or show the history of one experiment.

    A folder that holds result folders (FOLDER/<name>) stands for all of them; FOLDER/<name>/latest for the newest.
    Folders are compared on the same ground truth alone.
    """
    tables.check_style(style, "json", "csv")
    found = read_folders(folders_of(folders))
    asked: dict[str, Any] = {"test": test, "correction": correction, "alpha": alpha, "seed": seed}
    settings = replace(settings_of(found), **{name: value for name, value in asked.items() if value is not None})
    if as_history:
        if len({each.name for each in found}) > 1:
            names = ", ".join(dict.fromkeys(each.name for each in found))
            raise ConfigError(f"--history: expected runs of one experiment, found {names}")
        if baseline is not None:
            raise ConfigError("--baseline: a history compares each run with the one before; leave it out")
        footer = (
            f"change and p ({settings.described}; not corrected) are against the run before; policy {found[-1].policy}"
        )
        _show(history(found, settings, metric), style, footer)
        return
    comparisons = merged(found, settings, baseline, [metric] if metric else compared(found))
    if style == "json":
        click.echo(tables.json_text({dataset: each.to_dict() for dataset, each in comparisons.items()}))
        return
    if style == "csv":
        parts = [(dataset, each.csv_rows()) for dataset, each in comparisons.items()]
        rows = [[dataset, *row] for dataset, (_, own) in parts for row in own]
        click.echo(tables.csv_text(["dataset", *parts[0][1][0]], rows).rstrip("\n"))
        return
    blocks: list[Block] = []
    for dataset, each in comparisons.items():
        if len(comparisons) > 1:
            blocks.append(f"dataset {dataset}")
        blocks += each.blocks()
    click.echo(document(blocks, style))


def _show(grids: dict[str, Grid], style: str, footer: str) -> None:
    """The history of each data set."""
    if style == "json":
        click.echo(
            tables.json_text({name: [dict(zip(grid[0], row)) for row in grid[1]] for name, grid in grids.items()})
        )
        return
    if style == "csv":
        headers = next(iter(grids.values()))[0]
        rows = [[name, *row] for name, grid in grids.items() for row in grid[1]]
        click.echo(tables.csv_text(["dataset", *headers], rows).rstrip("\n"))
        return
    blocks: list[Block] = []
    for name, (headers, rows) in grids.items():
        told = [[*row[:-3], signed(row[-3]), small(row[-2]), row[-1]] for row in rows]
        blocks += [f"dataset {name}", (headers, told)] if len(grids) > 1 else [(headers, told)]
    click.echo(document([*blocks, footer], style))
