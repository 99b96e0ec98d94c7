"""`groupgt schema`."""

from __future__ import annotations

import click

from groupgt.render.tables import json_text


@click.command("schema")
@click.argument("of", type=click.Choice(["experiment", "results", "comparison"]), default="experiment")
def command(of: str) -> None:
    """Print a JSON Schema: of experiment files, by which editors complete and check them, or of what is written.

    `results` is results.json of a result folder, `comparison` what `groupgt compare --format json` prints.
    """
    if of == "experiment":
        from groupgt.experiment.json_schema import schema_text

        click.echo(schema_text(), nl=False)
    elif of == "results":
        from groupgt.experiment.json_schema import results_schema

        click.echo(json_text(results_schema()))
    else:
        from groupgt.experiment.json_schema import comparison_schema

        click.echo(json_text(comparison_schema()))
