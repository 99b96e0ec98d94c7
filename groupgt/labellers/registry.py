"""Every labeller by name. A new one is a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

from groupgt.errors import ConfigError, listed, near_names
from groupgt.labellers.base import Labeller

# Where each lives, and its class; a module is imported when its labeller is chosen.
LABELLERS = {
    "id": "ids:Ids",
    "parents": "parents:Parents",
    "spans": "spans:Spans",
    "text": "text:Text",
    "embedding": "embedding:Embedding",
    "code": "code:Code",
}


@dataclass(frozen=True)
class Kind:
    """How a labeller is made: what options it takes, and what builds it of them and of tables."""

    options: type[Any]
    build: Callable[[Any, Any], Labeller]


def kind_named(name: Any) -> Kind:
    """The labeller of that name; raises `ConfigError` where there is none."""
    if name not in LABELLERS:
        raise ConfigError(f"labeller: expected {listed(LABELLERS)}, found {name!r}{near_names(str(name), LABELLERS)}")
    home, _, made = LABELLERS[name].partition(":")
    module = import_module(f"groupgt.labellers.{home}")
    return Kind(module.Options, getattr(module, made))


def paths_of(kind: Kind, given: Mapping[str, Any]) -> list[str]:
    """Which of these options are paths of files."""
    return [
        each.name
        for each in fields(kind.options)
        if each.metadata.get("path") and isinstance(given.get(each.name), str) and given[each.name]
    ]
