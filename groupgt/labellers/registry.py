"""Every labeller by name. A new one is a file of its own and a line here."""

from __future__ import annotations

from groupgt.errors import ConfigError, listed, near_names
from groupgt.labellers.base import Labeller
from groupgt.labellers.ids import Ids

__all__ = ["LABELLERS", "labeller_named"]

LABELLERS: dict[str, type[Labeller]] = {Ids.name: Ids}


def labeller_named(name: str | Labeller) -> Labeller:
    """The labeller of that name; raises `ConfigError` where there is none."""
    if not isinstance(name, str):
        return name
    if name not in LABELLERS:
        raise ConfigError(f"labeller: expected {listed(LABELLERS)}, found {name!r}{near_names(name, LABELLERS)}")
    return LABELLERS[name]()
