"""`groupgt init`."""

from __future__ import annotations

from pathlib import Path

import click

from groupgt.cli import options
from groupgt.experiment.starter import FILES, write_starter


@click.command("init")
@click.argument("folder", metavar="[DIR]", type=options.FILE, default=Path())
def command(folder: Path) -> None:
    """Write a starter experiment into DIR (here, by default) and say what to put where."""
    for path in write_starter(folder):
        click.echo(f"{path}: {FILES[path.name]}")
    click.echo(f"now run: groupgt run {folder / 'experiment.yaml'}")
