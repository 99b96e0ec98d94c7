"""`groupgt schema`."""

from __future__ import annotations

import click

from groupgt.experiment.description.editor import schema_text

__all__ = ["command"]


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of experiment files, by which editors complete and check them."""
    click.echo(schema_text(), nl=False)
