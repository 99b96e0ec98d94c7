"""`groupgt metrics`."""

from __future__ import annotations

import click

from groupgt.cli import options
from groupgt.metrics.description import as_dict, details, overview
from groupgt.metrics.language import list_metrics, parse_metric
from groupgt.render import tables


@click.command("metrics")
@click.argument("name", required=False)
@options.format_option
def command(name: str | None, style: str) -> None:
    """The catalogue; with NAME, everything about one metric."""
    tables.check_style(style, "json", "csv")
    chosen = parse_metric(name).definition if name else None
    if style == "json":
        click.echo(tables.json_text(as_dict(chosen) if chosen else [as_dict(each) for each in list_metrics()]))
    elif chosen and style != "csv":
        click.echo(details(chosen))
    elif style == "csv":
        click.echo(tables.csv_text(*overview()).rstrip("\n"))
    else:
        click.echo(tables.table(*overview(), style))
