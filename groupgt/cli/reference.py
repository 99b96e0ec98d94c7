"""What there is to choose from: `groupgt metrics` and `labellers`."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import click

from groupgt.cli.output import format_option, show
from groupgt.labellers.registry import LABELLERS, kind_named
from groupgt.metrics.description import as_dict, details, overview
from groupgt.metrics.language import list_metrics, parse_metric
from groupgt.render import tables


@click.command("metrics")
@click.argument("name", required=False)
@format_option
def metrics_command(name: str | None, style: str) -> None:
    """The catalogue; with NAME, everything about one metric."""
    tables.check_style(style, "json", "csv")
    chosen = parse_metric(name).definition if name else None
    if style == "json":
        show(tables.json_text(as_dict(chosen) if chosen else [as_dict(metric) for metric in list_metrics()]))
    elif chosen and style != "csv":
        show(details(chosen))
    elif style == "csv":
        show(tables.csv_text(*overview()).rstrip("\n"))
    else:
        show(tables.table(*overview(), style))


@click.command("labellers")
@click.argument("name", required=False)
def labellers_command(name: str | None) -> None:
    """List what may decide which result hits which alternative; with NAME, its options and what they mean."""
    if name is None:
        rows: list[list[Any]] = [[labeller, _first_line(kind_named(labeller).build)] for labeller in LABELLERS]
        show(tables.table(["labeller", "says"], rows))
        return
    kind = kind_named(name)
    show(_first_line(kind.build))
    show("\n" + inspect.cleandoc(kind.options.__doc__ or ""))
    rows = [[each.name, str(each.default) if each.default != "" else "(none)"] for each in fields(kind.options)]
    if rows:
        show("\n" + tables.table(["option", "default"], rows))


def _first_line(made: Any) -> str:
    return inspect.cleandoc(made.__doc__ or "").splitlines()[0]
