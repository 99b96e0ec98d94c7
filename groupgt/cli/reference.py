"""What there is to choose from: `groupgt metrics` and `labellers`."""

from __future__ import annotations

from inspect import getdoc
from typing import Any

import click

from groupgt.cli.output import format_option, show_json, show_rows
from groupgt.cli.terminal import show
from groupgt.errors import ConfigError
from groupgt.metrics.description import as_dict, details, overview
from groupgt.metrics.language import list_metrics, parse_metric
from groupgt.options import options_of
from groupgt.plugins import find, ours
from groupgt.render import tables


@click.command("metrics")
@click.argument("name", required=False)
@format_option
def metrics_command(name: str | None, style: str) -> None:
    """The catalogue; with NAME, everything about one metric."""
    chosen = parse_metric(name).definition if name else None
    if style == "json":
        show_json(as_dict(chosen) if chosen else [as_dict(metric) for metric in list_metrics()])
    elif chosen and style != "csv":
        show(details(chosen))
    else:
        show_rows(*overview(), style)


@click.command("labellers")
@click.argument("name", required=False)
def labellers_command(name: str | None) -> None:
    """List what may decide which result hits which alternative; with NAME, its options and what they mean."""
    if name is None:
        rows: list[list[Any]] = [[labeller, find("labeller", labeller).summary] for labeller in ours("labeller")]
        show(tables.table(["labeller", "says"], rows))
        return
    try:
        plugin = find("labeller", name)
    except ConfigError as error:
        raise ConfigError(f"labeller: {error}") from None
    show(plugin.summary)
    show("\n" + (getdoc(plugin.options) or ""))
    options = options_of(plugin.options).values()
    rows = [[option.name, str(option.default) if option.default != "" else "(none)"] for option in options]
    if rows:
        show("\n" + tables.table(["option", "default"], rows))
