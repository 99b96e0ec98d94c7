"""Lists available metrics and plug-ins with `groupgt list`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from inspect import getdoc
from textwrap import fill
from typing import Any

import click

from groupgt.cli.help import command
from groupgt.cli.output import format_option, screen, show, show_json, show_prose, show_rows
from groupgt.errors import GroupgtError
from groupgt.metrics.description import as_dict, details
from groupgt.metrics.language import parse_metric
from groupgt.options import Option, options_of
from groupgt.plugins import KINDS, Plugin, find, names, plugin_named
from groupgt.render import tables
from groupgt.schemas import schema_of

# What JSON tells of an option, next to its schema.
OPTION_KEYS = ("name", "expected", "needed", "default")


@command("list")
@click.argument("kind", required=False, type=click.Choice([kind.plural for kind in KINDS.values()]))
@click.argument("name", required=False)
@format_option
def list_command(kind: str | None, name: str | None, style: str) -> None:
    """List metrics, labellers, retrievers, formats, tokenizers and engines, one KIND, or the options of one NAME.

    The list includes plug-ins from installed packages, and says why if a plug-in cannot be loaded.
    """
    if kind is None:
        _list_kinds(style)
        return
    single = next(single for single, entry in KINDS.items() if entry.plural == kind)
    if name is None:
        _list_kind(single, style)
    elif single == "metric":
        definition = parse_metric(name).definition
        if style == "json":
            show_json(as_dict(definition))
        else:
            show(details(definition))
    else:
        _show_plugin(single, name, style)


def _list_kinds(style: str) -> None:
    names_by_kind = {kind.plural: names(single) for single, kind in KINDS.items()}
    if style == "json":
        show_json(names_by_kind)
    elif style == tables.DEFAULT:
        for plural, listed in names_by_kind.items():
            width = min(screen().width or 100, 100)
            show(f"{plural}\n" + fill(", ".join(listed), width, initial_indent="  ", subsequent_indent="  "))
        show("\nTry `groupgt list retrievers` for descriptions, or `groupgt list retrievers bm25` for options.")
    else:
        show_rows(["kind", "names"], [[plural, ", ".join(listed)] for plural, listed in names_by_kind.items()], style)


def _list_kind(kind: str, style: str) -> None:
    """List all plug-ins of a kind with descriptions and requirements, and say why if a plug-in could not be loaded."""
    rows: list[dict[str, Any]] = []
    for name in names(kind):
        try:
            plugin = find(kind, name)
        except GroupgtError as error:
            rows.append({"name": name, "summary": None, "needs": [], "fault": str(error)})
        else:
            extras = plugin.extras if isinstance(plugin, Plugin) else []
            rows.append({"name": name, "summary": plugin.summary, "needs": extras, "fault": None})
    if style == "json":
        show_json(rows)
    else:
        cells = [[row["name"], row["summary"] or row["fault"], _packages(row["needs"])] for row in rows]
        show_rows([kind, "summary", "needs"], cells, style)


def _packages(extras: Sequence[str]) -> str:
    return ", ".join(f"groupgt[{extra}]" for extra in extras)


def _show_plugin(kind: str, name: str, style: str) -> None:
    """Show the description, requirements and options of a plug-in."""
    plugin = plugin_named(kind, name)
    options = list(options_of(plugin.options).values())
    meaning = (getdoc(plugin.options) or "") if plugin.options is not None else ""
    if style == "json":
        schema = {} if plugin.options is None else schema_of(plugin.options)["properties"]
        keys = [{key: getattr(option, key) for key in OPTION_KEYS} for option in options]
        described = [{**each, "schema": schema[each["name"]]} for each in keys]
        facts = {"kind": kind, "name": name, "summary": plugin.summary, "needs": plugin.extras}
        show_json({**facts, "runs_code": plugin.runs_code, "meaning": meaning, "options": described})
        return
    rows = [[option.name, option.expected, _default(option)] for option in options]
    if style == "csv":
        show_rows(["option", "expected", "default"], rows, style)
        return
    show(f"{name}: {plugin.summary}")
    if plugin.extras:
        show(f"needs {_packages(plugin.extras)}")
    if plugin.runs_code:
        show("runs your code and needs --allow-code")
    if meaning:
        show("")
        show_prose(meaning)
    if rows:
        show("")
        show_rows(["option", "expected", "default"], rows, style)
        show("")
        for option in options:
            if option.description:
                show_prose(f"{option.name}: {option.description}")


def _default(option: Option) -> str:
    """Format the default of an option as it is written in a file."""
    if option.needed:
        return "(needed)"
    return "(none)" if option.default in ("", None, [], {}) else json.dumps(option.default).strip('"')
