"""Refuses options that were typed but do not apply, such as those that have no effect without another option."""

from __future__ import annotations

from collections.abc import Collection

import click
from click.core import ParameterSource

from groupgt.errors import ConfigError, Faults

# For each command and option, the option that it goes with, and the value that this must have, if any.
NEEDS: dict[tuple[str, str], str] = {
    ("check", "--threshold"): "--near-duplicates",
    ("check", "--write"): "--near-duplicates",
    ("compare", "--digits"): "--format latex_booktabs",
    ("compare", "--against"): "--format latex_booktabs",
    ("depth", "--tokenizer"): "--unit tokens",
    ("judge", "--blind"): "--prior",
    ("run", "--allow-no-previous"): "--against",
}


def check_needs(context: click.Context) -> None:
    """Raise `ConfigError` for each typed option that lacks the option it needs."""
    params = {option: param for param in context.command.params for option in param.opts}
    faults = Faults()
    for (command, option), needed in NEEDS.items():
        if command != context.command.name or not typed(params[option].name or ""):
            continue
        other, _, value = needed.partition(" ")
        found = context.params[params[other].name or ""]
        if not (found == value if value else found):
            faults.add(option, f"has no effect without {needed}; add it, or remove {option}")
    faults.stop(ConfigError)


def typed(parameter: str) -> bool:
    """Return whether a parameter of the current command was set on the command line rather than by default."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE


def typed_parameters() -> list[click.Parameter]:
    """Return the parameters of the current command that were set on the command line."""
    return [parameter for parameter in click.get_current_context().command.params if typed(parameter.name or "")]


def refuse(names: Collection[str], reason: str) -> None:
    """Raise `ConfigError` with this reason if a parameter with one of these names was typed."""
    found = [parameter for parameter in typed_parameters() if parameter.name in names]
    if shown := ", ".join(each.opts[0] if isinstance(each, click.Option) else str(each.metavar) for each in found):
        raise ConfigError(f"{shown}: {reason}")
