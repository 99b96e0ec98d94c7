"""A page for each command: what it does, its arguments and its options, all taken from click."""

from __future__ import annotations

import re

import click

from docs.generate.markdown import block, cell, code, page, plain, table
from groupgt.cli.main import COMMANDS, cli, sections


def groups() -> str:
    """Return one table of commands for each group in `groupgt --help`, for the page about commands."""
    context = click.Context(cli, info_name="groupgt")
    parts = []
    for title, names in sections().items():
        rows = [[code(_call(name, context)), cell(COMMANDS[name][1])] for name in names]
        parts += [f"## {title}", table(["command", "does"], rows)]
    return "\n\n".join(parts)


def _call(name: str, parent: click.Context) -> str:
    """Return a command with its arguments and the options that it requires."""
    command = cli.get_command(parent, name)
    assert command is not None
    context = click.Context(command, parent=parent, info_name=name)
    required = [
        f"{option.opts[0]} {option.make_metavar(context)}"
        for option in command.params
        if isinstance(option, click.Option) and option.required
    ]
    return " ".join(["groupgt", name, *command.collect_usage_pieces(context)[1:], *required])


def pages() -> dict[str, str]:
    context = click.Context(cli, info_name="groupgt")
    made = {name: command for name in COMMANDS if (command := cli.get_command(context, name)) is not None}
    rows = [[f"[{code(f'groupgt {name}')}]({name}.md)", cell(COMMANDS[name][1])] for name in made]
    index = page(
        "Every command",
        f"This page lists all {len(made)} commands. Each command's page describes its arguments and options. "
        "[Commands](../../commands.md) describes their output.",
        table(["command", "does"], rows),
        "[Exit statuses and files](../outcomes.md) lists the exit statuses.",
    )
    return {"reference/commands/index.md": index} | {
        f"reference/commands/{name}.md": _page(name, command, context) for name, command in made.items()
    }


def _page(name: str, command: click.Command, parent: click.Context) -> str:
    context = click.Context(command, parent=parent, info_name=name)
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    return page(
        f"groupgt {name}",
        block(f"groupgt {name} {' '.join(command.collect_usage_pieces(context))}"),
        _text(command.help or COMMANDS[name][1]),
        table(["option", "meaning"], [_row(option, context) for option in options]) if options else "",
        _text(command.epilog or ""),
    )


def _row(option: click.Option, context: click.Context) -> list[str]:
    record = option.get_help_record(context)
    # An option without a word is still one that can be given.
    names, meaning = record if record else (", ".join(option.opts), "")
    shown = re.findall(r"-[\w-]+", names)
    # A spelling that help leaves out is one that can be given, too.
    names = ", ".join([*(opt for opt in option.opts if opt not in shown), names])
    return [code(names), cell(meaning)]


def _text(text: str) -> str:
    """Return click's help text as Markdown: paragraphs, and unchanged lines after `\\b`."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        kept = paragraph.startswith("\b")
        parts.append(block(paragraph.lstrip("\b\n")) if kept else plain(" ".join(paragraph.split())))
    return "\n\n".join(parts)
