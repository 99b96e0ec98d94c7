"""Finds plug-ins by name (metrics, labellers, retrievers, formats, tokenizers and engines), built in or installed.

Built-in plug-ins are imported only when they are used. Entry points are slow and read only for other names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import cleandoc
from typing import Any

from groupgt.errors import ConfigError, display, listed, near_names
from groupgt.runtime import one_line, users_code


@dataclass(frozen=True, eq=False)
class Plugin:
    """A plug-in with a dataclass for its `options` (None if it has none) and a function that `build`s it from them.

    `modules` maps required modules to the extras that install them. If the plug-in `runs_code` from the user, it
    requires --allow-code. `summary` defaults to the first docstring line of `build`.
    """

    options: type[Any] | None = None
    build: Callable[..., Any] | None = None
    summary: str = field(default="", kw_only=True)
    modules: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    runs_code: bool = field(default=False, kw_only=True)
    kind: str = field(default="", kw_only=True)
    name: str = field(default="", kw_only=True)

    def named(self, kind: str, name: str) -> Plugin:
        """Return this plug-in with its kind and name filled in."""
        summary = self.summary or cleandoc(getattr(self.build, "__doc__", None) or "").partition("\n")[0]
        return replace(self, kind=kind, name=name, summary=summary)

    def built(self, *arguments: Any) -> Any:
        """Build the object from its options and any other inputs that its kind takes."""
        if self.build is None:
            raise ConfigError(f"{self.kind} {self.name} has no builder")
        return self.build(*arguments)

    @property
    def extras(self) -> list[str]:
        """Extras that the plug-in requires."""
        return sorted(set(self.modules.values()))

    def missing(self) -> str:
        """Return a message about packages that must be installed first, or an empty string if none are missing."""
        if not (absent := [module for module in self.modules if not _is_importable(module)]):
            return ""
        extras = ",".join(sorted({self.modules[module] for module in absent}))
        return f"needs {listed(absent)}: pip install 'groupgt[{extras}]'"


@dataclass(frozen=True, repr=False)
class Kind:
    """A kind of plug-in. Entry points in `group` refer to the class `holds` or, if `holds` is empty, to a module."""

    plural: str
    group: str = ""
    holds: str = "groupgt.plugins:Plugin"


KINDS = {
    "metric": Kind("metrics", "groupgt.metrics", holds=""),
    "labeller": Kind("labellers", "groupgt.labellers"),
    "retriever": Kind("retrievers", "groupgt.retrievers", "groupgt.retrievers.base:RetrieverPlugin"),
    "format": Kind("formats", "groupgt.formats", "groupgt.formats.format:Format"),
    "tokenizer": Kind("tokenizers", "groupgt.tokenizers"),
    "engine": Kind("engines"),
}

# The built-in plug-ins by kind and name, with their modules.
OURS: dict[str, dict[str, str]] = {
    "labeller": {
        "id": "groupgt.labellers.ids:PLUGIN",
        "parents": "groupgt.labellers.parents:PLUGIN",
        "spans": "groupgt.labellers.spans:PLUGIN",
        "text": "groupgt.labellers.text:PLUGIN",
        "embedding": "groupgt.labellers.embedding:PLUGIN",
        "code": "groupgt.labellers.code:PLUGIN",
    },
    "retriever": {
        "bm25": "groupgt.retrievers.bm25:PLUGIN",
        "tfidf": "groupgt.retrievers.tfidf:PLUGIN",
        "lsa": "groupgt.retrievers.tfidf:LSA_PLUGIN",
        "dense": "groupgt.retrievers.vectors:PLUGIN",
        "ann": "groupgt.retrievers.vectors:ANN",
        "rrf": "groupgt.retrievers.fusion:RRF",
        "convex": "groupgt.retrievers.fusion:CONVEX",
        "results": "groupgt.retrievers.fusion:RESULTS",
        "python": "groupgt.retrievers.python:PLUGIN",
        "http": "groupgt.retrievers.http:PLUGIN",
        "command": "groupgt.retrievers.command:PLUGIN",
        "mcp": "groupgt.retrievers.mcp:PLUGIN",
        "pgvector": "groupgt.retrievers.pgvector:PLUGIN",
    },
    "tokenizer": {
        "whitespace": "groupgt.formats.tokenizers:WHITESPACE",
        "tiktoken": "groupgt.formats.tokenizers:TIKTOKEN",
        "tokenizers": "groupgt.formats.tokenizers:TOKENIZERS",
        "python": "groupgt.formats.tokenizers:PYTHON",
    },
    "engine": {
        "auto": "groupgt.engines.choice:AUTO",
        "streaming": "groupgt.engines.choice:STREAMING",
        "spark": "groupgt.engines.choice:SPARK",
    },
}
# Those that come in families have a table of their own.
TABLES = {"metric": "groupgt.metrics.catalogue:CATALOGUE", "format": "groupgt.formats.known:BY_NAME"}

# Plug-ins that were registered in this process, or found by an entry point, by kind and name.
REGISTERED: dict[tuple[str, str], Any] = {}


def find(kind: str, name: Any) -> Any:
    """Return the plug-in (or metric definition) with this name. Raise `ConfigError` if there is no valid plug-in."""
    plugin = looked_up(kind, name) if isinstance(name, str) else None
    if plugin is None:
        choices = names(kind) if isinstance(name, str) else ours(kind)
        raise ConfigError(f"expected {listed(choices)}, found {display(name)}{near_names(str(name), choices)}")
    return plugin


def plugin_named(kind: str, name: str) -> Plugin:
    """Return the plug-in with this name. Error messages start with the kind."""
    try:
        plugin: Plugin = find(kind, name)
    except ConfigError as error:
        raise ConfigError(f"{kind}: {error}") from None
    return plugin


def looked_up(kind: str, name: str) -> Any:
    """Return the plug-in with this name, or None if it does not exist."""
    if name in ours(kind):
        return _ours(kind, name)
    if (kind, name) not in REGISTERED:
        if (point := entry_points(kind).get(name)) is None:
            return None
        REGISTERED[kind, name] = _loaded(kind, name, point)
    return REGISTERED[kind, name]


def ours(kind: str) -> list[str]:
    """Return the names of built-in plug-ins."""
    return list(_attribute(TABLES[kind]) if kind in TABLES else OURS[kind])


def names(kind: str) -> list[str]:
    """Return all names: first built-in names, then names registered in this process or installed by packages."""
    built_in = ours(kind)
    return [*built_in, *sorted({*registered(kind), *entry_points(kind)} - set(built_in))]


def entry_points(kind: str) -> dict[str, Any]:
    """Return the entry points for a kind by name. Ignore entry points that reuse a built-in name."""
    if not KINDS[kind].group:
        return {}
    from importlib.metadata import entry_points as installed

    built_in = ours(kind)
    return {point.name: point for point in installed(group=KINDS[kind].group) if point.name not in built_in}


def registered(kind: str) -> dict[str, Any]:
    """Return plug-ins of a kind, by name, that were registered in this process or loaded from entry points."""
    return {name: made for (other, name), made in REGISTERED.items() if other == kind}


def register(kind: str, name: str, made: Any, *, replacing: bool = False) -> None:
    """Register a plug-in in this process, or raise `ConfigError` if the name is taken."""
    if name in ours(kind):
        raise ConfigError(f"{kind} {name!r}: this name is built in and cannot be replaced; choose another name")
    if (kind, name) in REGISTERED and not replacing:
        raise ConfigError(f"{kind} {name!r}: this name is taken; pass replace=True, or choose another name")
    REGISTERED[kind, name] = made.named(kind, name) if isinstance(made, Plugin) else made


@cache
def _ours(kind: str, name: str) -> Any:
    if kind in TABLES:
        return _attribute(TABLES[kind])[name]
    return _attribute(OURS[kind][name]).named(kind, name)


def _loaded(kind: str, name: str, point: Any) -> Any:
    try:
        with users_code():
            loaded = point.load()
    except (Exception, SystemExit) as error:  # whatever the package raises when it is imported
        raise ConfigError(f"the plug-in {point.value} cannot be loaded: {one_line(error)}") from None
    if (kind, name) in REGISTERED:  # by the module itself
        return REGISTERED[kind, name]
    if not (expected := KINDS[kind].holds):
        raise ConfigError(f"the plug-in {point.value}: expected groupgt.{kind}({name!r}, …), found {display(loaded)}")
    if not isinstance(loaded, _attribute(expected)):
        what = f"expected a {expected.replace(':', '.')}, found {display(loaded)}"
        raise ConfigError(f"the plug-in {point.value}: {what}")
    return loaded.named(kind, name)


def _attribute(home: str) -> Any:
    module, _, attribute = home.partition(":")
    return getattr(import_module(module), attribute)


def _is_importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package does not exist
        return False
