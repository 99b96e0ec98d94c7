"""What code of the user's loaded and opened, as far as Python sees it, and whether all of it is still the same.

`fresh` has a `Watcher` listen in the process that runs the code; `retrieval` keeps what it saw with the answers, and
asks `unchanged` before they are used again.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import site
import stat
import sys
import sysconfig
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import groupgt
from groupgt.formats.modules import spec_of

# What has changed while the code ran, or cannot be read: no digest equals it.
CHANGED = "changed"
# What is another thing each time it is read.
SYSTEM_FOLDERS = ("/proc/", "/sys/", "/dev/")

State = tuple[int, int, int]


def empty() -> dict[str, Any]:
    """What is seen of a process that has done nothing yet."""
    return {"python": platform.python_version(), "folder": None, "files": {}, "modules": {}, "distributions": {}}


def merged(first: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """What two processes saw, one after the other; where they differ, something has changed between them."""
    both = {**empty(), **then}
    for kind in ("files", "modules", "distributions"):
        both[kind] = {**first[kind], **then[kind]}
        for name in first[kind].keys() & then[kind].keys():
            if first[kind][name] != then[kind][name]:
                both[kind][name] = CHANGED
    if first["folder"] is not None and then["folder"] != first["folder"]:
        both["folder"] = first["folder"] if then["folder"] is None else CHANGED
    return both


def unchanged(seen: Any, folder: Path) -> bool:
    """Whether everything that was seen is there as it was: files, folders, modules, and versions.

    `folder` is the one of the experiment file, in which modules are looked for first.
    """
    try:
        same = seen["python"] == platform.python_version()
        same = same and seen["folder"] in (None, os.getcwd())
        same = same and all(_version(name) == version for name, version in seen["distributions"].items())
        path = [str(folder), *sys.path]
        same = same and all(origin(name, path) == place for name, place in seen["modules"].items())
        return same and all(digest(name) == known for name, known in seen["files"].items())
    except (OSError, TypeError, KeyError, AttributeError, ValueError):
        return False


def origin(module: str, path: list[str]) -> str | None:
    """The file in which a module of this name would be found; nothing of it is run."""
    spec = spec_of(module, path)
    if spec is None:
        return None
    place = spec.origin or next(iter(spec.submodule_search_locations or []), None)
    return None if place is None else os.path.abspath(place)


def digest(name: str) -> str | None:
    """The digest of a file, or of the names in a folder (which ends in a slash); None where it is not there."""
    try:
        if name.endswith("/"):
            return hashlib.sha256("\0".join(sorted(os.listdir(name))).encode("utf-8", "surrogateescape")).hexdigest()
        with open(name, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return CHANGED


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


# --- In the process that runs the code.


class Watcher:
    """Hears what Python opens, lists and loads, and tells the digests of all of it that is nobody's but the user's.

    Files that the code itself makes are none that it depends on; one that it reads and writes is taken as it leaves it.
    """

    def __init__(self, path: list[str]) -> None:
        self.path = path
        self.states: dict[str, State | None] = {}
        self.written: set[str] = set()
        self.is_relative = self.is_paused = False
        self.told = empty()
        self.known: dict[str, tuple[State | None, str | None]] = {}
        self.modules: set[str] = set()

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The audit hook; what it raises would be raised in the user's code."""
        if self.is_paused or event not in HEARD:
            return
        with contextlib.suppress(Exception):
            HEARD[event](self, arguments)

    def opened(self, arguments: tuple[Any, ...]) -> None:
        """A file is opened: to be read, to be written, or both."""
        path, _, flags = arguments
        way = flags & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
        name = self._name(path, is_read=way != os.O_WRONLY)
        if name is None:
            return
        if name.endswith(".pyc"):
            with contextlib.suppress(ValueError):  # it has no source
                name = importlib.util.source_from_cache(name)
        if way != os.O_RDONLY:
            if _state(name) is not None or name in self.states:
                self.written.add(name)
            else:
                self.made(name)
        if way != os.O_WRONLY and not flags & (os.O_TRUNC | os.O_EXCL):
            self.states.setdefault(name, _state(name))

    def made(self, name: str) -> None:
        """The code makes a file that was not there."""
        self.states[name] = None
        self.written.add(name)

    def listed(self, arguments: tuple[Any, ...]) -> None:
        """The names in a folder are read; those that the search for modules reads decide nothing."""
        frame = sys._getframe(2)
        if frame is not None and "importlib" in frame.f_code.co_filename:
            return
        name = self._name(arguments[0] if arguments[0] is not None else ".")
        if name is not None:
            self.states.setdefault(f"{name.rstrip(os.sep)}/", None)

    def loaded(self, arguments: tuple[Any, ...]) -> None:
        """A database or a library is opened by a path, or by the URI of one."""
        path = os.fsdecode(arguments[0])
        path = urlsplit(path).path if path.startswith("file:") else path
        if os.path.isfile(path):
            self.is_relative = self.is_relative or not os.path.isabs(path)
            name = os.path.abspath(path)
            self.states.setdefault(name, _state(name))
            self.written.add(name)

    def _name(self, path: Any, *, is_read: bool = True) -> str | None:
        """The whole path of what is opened, None where it has none."""
        if isinstance(path, int) or path is None:
            return None
        name = os.fsdecode(path)
        if is_read and not os.path.isabs(name):
            self.is_relative = True
        return os.path.abspath(name)

    def seen(self) -> dict[str, Any]:
        """Everything so far."""
        self.is_paused = True
        try:
            self._load()
            for name, before in list(self.states.items()):
                self._file(name, before)
            if self.is_relative:
                self.told["folder"] = os.getcwd()
            return self.told
        finally:
            self.is_paused = False

    def _load(self) -> None:
        """Files of modules; where the first part of their names would be found, as whoever asks later would find it."""
        for name, module in list(sys.modules.items()):
            place = getattr(module, "__file__", None)
            if name in self.modules or not isinstance(place, str):
                continue
            self.modules.add(name)
            place = os.path.abspath(place)
            if _is_of_python(place):
                continue
            top = name.partition(".")[0]
            if top not in self.told["modules"] and top not in ("__main__", "__mp_main__", "groupgt"):
                self.told["modules"][top] = origin(top, self.path)
            self.states.setdefault(place, _state(place))

    def _file(self, name: str, before: State | None) -> None:
        if _is_of_python(name.rstrip("/")) or name.startswith(SYSTEM_FOLDERS):
            return
        owner = _distributions().owner(name)
        if owner is not None:
            self.told["distributions"][owner[0]] = owner[1]
            return
        if name.endswith("/"):
            self.told["files"][name] = digest(name)
            return
        now = _state(name)
        if name in self.written and before is None:
            self.told["files"].pop(name, None)  # the code has made it
            return
        if name in self.known and self.known[name][0] == now:
            return
        is_same = now == before or name in self.written
        found = digest(name) if is_same and _is_plain(name) else CHANGED
        if _is_plain(name):
            self.known[name] = now, found
            self.told["files"][name] = found


HEARD = {
    "open": Watcher.opened,
    "os.listdir": Watcher.listed,
    "os.scandir": Watcher.listed,
    "sqlite3.connect": Watcher.loaded,
    "ctypes.dlopen": Watcher.loaded,
}


def _state(name: str) -> State | None:
    """By what one sees at a glance that a file has changed; None where it is not there."""
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _is_plain(name: str) -> bool:
    """Whether it is a file, or nothing at all: no folder, no pipe."""
    try:
        return stat.S_ISREG(os.stat(name).st_mode)
    except OSError:
        return True


# --- Whose a file is.


@lru_cache(maxsize=1)
def _python_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({f"{os.path.realpath(paths[key])}{os.sep}" for key in ("stdlib", "platstdlib")})


@lru_cache(maxsize=1)
def _site_folders() -> tuple[str, ...]:
    """Where distributions are installed."""
    paths = sysconfig.get_paths()
    folders = [paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages()]
    folders += [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    return tuple(dict.fromkeys(f"{os.path.realpath(path)}{os.sep}" for path in folders))


def _is_of_python(name: str) -> bool:
    """Whether a file is Python's or groupgt's own: their versions stand for it."""
    real = os.path.realpath(name)
    if real.startswith(f"{os.path.realpath(os.path.dirname(groupgt.__file__))}{os.sep}"):
        return True
    return real.startswith(_python_folders()) and not real.startswith(_site_folders())


class Distributions:
    """Which distribution a file belongs to, by the lists of files that installers leave."""

    def __init__(self) -> None:
        self.owners: dict[str, tuple[str, str] | None] = {}
        self.listings = [
            (found.name, found.version, _listing(found))
            for found in importlib.metadata.distributions()
            if found.name and '"file:' not in (found.read_text("direct_url.json") or "")
        ]

    def owner(self, name: str) -> tuple[str, str] | None:
        """Name and version; None of a file that is nobody's, or of a folder somebody works in (an install by path)."""
        real = os.path.realpath(name)
        home = next((folder for folder in _site_folders() if real.startswith(folder)), None)
        if home is None:
            return None
        top = real[len(home) :].replace(os.sep, "/").partition("/")[0]
        if top not in self.owners:
            pattern = re.compile(rf"^{re.escape(top)}(/|,|$)", re.MULTILINE)
            self.owners[top] = next(
                ((owner, version) for owner, version, files in self.listings if pattern.search(files)), None
            )
        return self.owners[top]


def _listing(found: importlib.metadata.Distribution) -> str:
    return found.read_text("RECORD") or found.read_text("top_level.txt") or ""


@lru_cache(maxsize=1)
def _distributions() -> Distributions:
    return Distributions()
