"""Tracks the third-party modules that a process has loaded, and uses digests to find which have changed since.

User code is called again in each run. Its answers are reused only after an interrupted run, and only if the modules are
unchanged: the same bytes outside the standard library and site-packages, and the same versions inside them.
"""

from __future__ import annotations

import hashlib
import os
import site
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from groupgt.formats.modules import READ, spec_of
from groupgt.store.files import owner
from groupgt.store.journal import TIME

STARTED = time.time()
PROCESS = f"{owner()} {STARTED}"
# Leftovers of an interrupted run are ignored after this time.
OLDEST = timedelta(days=1)


class Loaded:
    """Tracks modules loaded in this process that belong neither to Python nor to groupgt."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def new(self) -> dict[str, str]:
        """Returns {module: digest} for modules loaded since the last call; installed modules appear as packages."""
        names = sys.modules.keys() - self._names
        self._names |= names
        digests: dict[str, str] = {}
        for name in sorted(names):
            module = sys.modules.get(name)
            spec = getattr(module, "__spec__", None)
            # A module cannot be found again by an alias; it is also listed under its own name.
            if name.startswith("__") or (spec is not None and spec.name != name):
                continue
            before = _LOOKED_AT.get(name)
            if before is None or before[0] is not module:
                file = getattr(module, "__file__", None)
                before = _LOOKED_AT[name] = module, _digest(name, file, since=STARTED)
            digest = before[1]
            package = name.partition(".")[0]
            digests[package if digest and digest == _versions(package) else name] = digest
        return {name: digest for name, digest in digests.items() if digest}


# Each module checked, with its digest at that time: this process keeps it even if its file changes.
_LOOKED_AT: dict[str, tuple[Any, str]] = {}


def changed(modules: Mapping[str, str], path: Iterable[str]) -> list[str]:
    """Returns the modules that have changed, looking them up in the folders in `path` without executing them."""
    folders = list(path)
    return [name for name, digest in modules.items() if _digest(name, _origin(name, folders)) != digest]


def _origin(module: str, path: list[str]) -> str | None:
    """Returns the file, or else the folder, from which a module with this name would be imported."""
    spec = spec_of(module, path)
    return None if spec is None else spec.origin or next(iter(spec.submodule_search_locations or ()), None)


def _digest(module: str, file: str | None, since: float | None = None) -> str:
    """Returns the digest of a module, or an empty string if it belongs to Python or groupgt.

    A file written after the process started may differ from the loaded module, so its digest never matches.
    """
    if not isinstance(file, str):
        return ""
    path = os.path.realpath(file)
    if path.startswith(OUR_FOLDER):
        return ""
    if path.startswith(_site_folders(tuple(sys.path))):
        versions = _versions(module.partition(".")[0])
        if versions:
            return versions
    elif path.startswith(PYTHON_FOLDERS):
        return ""
    try:
        if since is not None and READ.get(module) is not None:
            return hashlib.sha256(READ[module] or b"").hexdigest()
        if since is not None and os.stat(path).st_mtime > since:
            return f"written while it ran, {time.time_ns()}"
        with open(path, "rb") as source:
            return hashlib.file_digest(source, "sha256").hexdigest()
    except OSError:
        return f"not to be read, {time.time_ns()}"


def _beginning(folder: str) -> str:
    """Returns the path prefix shared by all files in a folder."""
    return os.path.join(os.path.realpath(folder), "")


OUR_FOLDER = _beginning(os.path.dirname(os.path.dirname(__file__)))
PYTHON_FOLDERS = tuple(_beginning(sysconfig.get_path(key)) for key in ("stdlib", "platstdlib"))


@lru_cache(maxsize=4)
def _site_folders(path: tuple[str, ...]) -> tuple[str, ...]:
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    folders += [site.getusersitepackages()]
    folders += [folder for folder in path if os.path.basename(folder) in ("site-packages", "dist-packages")]
    return tuple(map(_beginning, dict.fromkeys(folders)))


@lru_cache
def _versions(package: str) -> str:
    """Returns the versions of the distributions that provide a package, or an empty string if there are none."""
    from importlib.metadata import version

    names = sorted(set(_distributions().get(package, ())))
    return ", ".join(f"{name} {version(name)}" for name in names)


@lru_cache(maxsize=1)
def _distributions() -> Mapping[str, list[str]]:
    from importlib.metadata import packages_distributions

    return packages_distributions()


# --- Leftovers of an unfinished run.


class Trace:
    """All modules of a run, those loaded when it was `built`, and the time of the last line in its journal.

    `process` is the process that built the run, if the same process ran groupgt.
    """

    def __init__(self, lines: Iterable[Any]) -> None:
        """Reads a trace from journal lines with the keys built, modules, at and process."""
        self.built: dict[str, str] = {}
        self.at = self.process = ""
        later: dict[str, str] = {}
        for line in lines:
            if isinstance(line, dict):
                self.built = line.get("built", self.built)
                later |= line.get("modules", {})
                self.at = line.get("at", self.at)
                self.process = line.get("process", self.process)
        self.modules = {**self.built, **later}

    def fits(
        self, built: Mapping[str, str], changed: Callable[[Mapping[str, str]], list[str]], *, shared: bool
    ) -> bool:
        """Returns whether a run that has `built` can resume from this trace.

        The trace must be recent, and the loaded modules must be the same. In a process `shared` with other code, some
        modules may not be loaded yet; in the original process, other code may have loaded unrelated modules.
        """
        if self.process == PROCESS:
            same = all(built.get(name) == digest for name, digest in self.built.items())
        else:
            same = built.items() <= self.modules.items() if shared else built == self.built
        absent = {name: digest for name, digest in self.modules.items() if name not in built}
        return self.is_recent and same and not changed(absent)

    @property
    def is_recent(self) -> bool:
        """True if the trace is recent enough to be used; older answers are computed again."""
        try:
            age = datetime.now(UTC) - datetime.strptime(self.at, TIME).replace(tzinfo=UTC)
        except ValueError:
            return False
        return age < OLDEST
