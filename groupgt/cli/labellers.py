"""`groupgt labellers`."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import click

from groupgt.labellers.registry import LABELLERS, kind_named
from groupgt.render import tables


@click.command("labellers")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List what may decide which result hits which alternative; with NAME, its options and what they mean."""
    if name is None:
        rows: list[list[Any]] = [[each, _first_line(kind_named(each).build)] for each in LABELLERS]
        click.echo(tables.table(["labeller", "says"], rows))
        return
    kind = kind_named(name)
    click.echo(_first_line(kind.build))
    click.echo("\n" + inspect.cleandoc(kind.options.__doc__ or ""))
    rows = [[each.name, str(each.default) if each.default != "" else "(none)"] for each in fields(kind.options)]
    if rows:
        click.echo("\n" + tables.table(["option", "default"], rows))


def _first_line(made: Any) -> str:
    return inspect.cleandoc(made.__doc__ or "").splitlines()[0]
