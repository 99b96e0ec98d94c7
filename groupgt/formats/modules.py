"""Imports user code, written as `module:name`, from the Python path or the folder of the file that names it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module, invalidate_caches
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from groupgt.errors import ConfigError, near_names
from groupgt.plugins import REGISTERED
from groupgt.runtime import one_line, users_code

# The bytes of target modules at the time of their import.
READ: dict[str, bytes | None] = {}
# The plug-ins that modules registered when they were imported for this, by kind and name.
BROUGHT: dict[str, set[tuple[str, str]]] = {}


def imported(target: str, folder: Path) -> Any:
    """Import the object named by `module:name`, or raise `ConfigError` if it does not exist."""
    module_name, _, name = target.partition(":")
    try:
        value: Any = _module(module_name, folder)
    except ConfigError as error:
        raise ConfigError(f"target: {error}") from None
    for part in name.split("."):
        if not hasattr(value, part):
            raise _no_name(module_name, part, dir(value))
        value = getattr(value, part)
    return value


def import_plugin(name: str, folder: Path) -> None:
    """Import a module that registers plug-ins, replacing its earlier plug-ins, or raise `ConfigError`."""
    _forget(name, folder)
    if name not in sys.modules:
        for key in BROUGHT.pop(name, ()):
            REGISTERED.pop(key, None)
    before = set(REGISTERED)
    _module(name, folder)
    BROUGHT.setdefault(name, set()).update(REGISTERED.keys() - before)


def _module(name: str, folder: Path) -> ModuleType:
    sys.path[:] = [str(folder), *(path for path in sys.path if path != str(folder))]
    _forget(name, folder)
    try:
        with users_code():
            module = import_module(name)
    except ModuleNotFoundError as error:
        raise ConfigError(_no_module(error.name or name)) from None
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{name} cannot be imported: {one_line(error)}") from None
    READ[name] = _source(name)
    return module


def check_target(target: str, folder: Path) -> None:
    """Raise `ConfigError` if the module, or the name in it, certainly does not exist. Never execute the module."""
    module_name, _, name = target.partition(":")
    if (spec := spec_of(module_name, [str(folder), *sys.path])) is None:
        raise ConfigError(f"target: {_no_module(module_name)}")
    if spec.origin is None or not spec.origin.endswith(".py"):
        return
    try:
        source = Path(spec.origin).read_bytes()
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return  # importing it reports the error
    names = set(_bound(tree.body))
    requested = name.partition(".")[0]
    if requested not in names and not names & {"*", "__getattr__"} and b"globals" not in source:
        raise _no_name(module_name, requested, sorted(names))


def _no_module(name: str) -> str:
    return f"module {name!r} is neither next to the file nor installed"


def _no_name(module_name: str, name: str, names: Iterable[str]) -> ConfigError:
    hint = near_names(name, [public for public in names if not public.startswith("_")])
    return ConfigError(f"target: {module_name} has no {name!r}{hint}")


def spec_of(name: str, path: list[str]) -> ModuleSpec | None:
    """Find the spec of a module with the path finder and installed finders, without running it or its packages."""
    parent, _, _ = name.rpartition(".")
    if parent:
        if (package := spec_of(parent, path)) is None:
            return None
        path = list(package.submodule_search_locations or [])
    finders: list[Any] = [PathFinder, *sys.meta_path]
    for finder in finders:
        spec: ModuleSpec | None = finder.find_spec(name, path)
        if spec is not None:
            return spec
    return None


def _bound(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that a module's statements define, or `*` if the names are unknown."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield statement.name
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.alias):
                yield node.asname or node.name.partition(".")[0]
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield node.name


def _source(module_name: str) -> bytes | None:
    path = source_of(module_name)
    return path.read_bytes() if path is not None and path.is_file() else None


def _forget(module_name: str, folder: Path) -> None:
    """Unload a module if it came from another folder or its file has changed: a process may read many experiments."""
    top = module_name.partition(".")[0]
    if top not in sys.modules or top in sys.stdlib_module_names:
        return
    invalidate_caches()
    spec = PathFinder.find_spec(top, [str(folder)])
    path, origin = source_of(top), spec.origin if spec is not None else None
    elsewhere = path is not None and origin is not None and Path(origin).resolve() != path.resolve()
    if elsewhere or (module_name in READ and READ[module_name] != _source(module_name)):
        for name in [module for module in sys.modules if f"{module}.".startswith(f"{top}.")]:
            del sys.modules[name]


def source_of(target: str) -> Path | None:
    """Return the source file of an imported target's module, if it has one."""
    path = getattr(sys.modules.get(target.partition(":")[0]), "__file__", None)
    return Path(path) if path else None
