"""Options of commands that compare, made of the fields of `Settings`: a new field is a new option."""

from __future__ import annotations

from typing import Any

import click

from groupgt.cli.output import Decorator
from groupgt.comparison.settings import Settings
from groupgt.options import Option, choices, options_of, plain_type


def setting_options(*names: str, overriding: bool = False) -> Decorator:
    """Gives a command an option for each setting, or for those named; `overriding`: without a default."""
    settings = [option for option in options_of(Settings).values() if not names or option.name in names]

    def decorate(command: Any) -> Any:
        for setting in reversed(settings):
            command = _option(setting, overriding=overriding)(command)
        return command

    return decorate


def _option(setting: Option, *, overriding: bool) -> Decorator:
    name, kind = f"--{setting.name}", plain_type(setting.hint)
    default = None if overriding else setting.default
    if kind is bool:
        return click.option(name, is_flag=True, default=default, help=setting.description)
    spelled = click.Choice(choices(setting.hint)) if choices(setting.hint) else kind
    return click.option(name, type=spelled, default=default, show_default=not overriding, help=setting.description)
