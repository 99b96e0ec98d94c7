"""Refuses options that have no effect without another option, and names the missing option."""

from __future__ import annotations

import click
from click.core import ParameterSource

from groupgt.errors import ConfigError, Faults

# For each command and option, the option that it goes with, and the value that this must have, if any.
NEEDS: dict[tuple[str, str], str] = {
    ("check", "--threshold"): "--near-duplicates",
    ("check", "--write"): "--near-duplicates",
    ("compare", "--digits"): "--format latex_booktabs",
    ("compare", "--against"): "--format latex_booktabs",
    ("judge", "--blind"): "--prior",
    ("run", "--allow-no-previous"): "--against",
}


def check_needs(context: click.Context) -> None:
    """Raise `ConfigError` for each typed option whose counterpart is missing."""
    params = {option: param for param in context.command.params for option in param.opts}
    faults = Faults()
    for (command, option), needed in NEEDS.items():
        if command != context.command.name or not _is_typed(context, params[option]):
            continue
        other, _, value = needed.partition(" ")
        found = context.params[params[other].name or ""]
        if not (found == value if value else found):
            faults.add(option, f"has no effect without {needed}; add it, or remove {option}")
    faults.stop(ConfigError)


def _is_typed(context: click.Context, param: click.Parameter) -> bool:
    return context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
