"""Files and folders that are there whole or not at all; result folders, the newest named in `latest`."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from groupgt.errors import DataError


def _nobody(name: str) -> None:
    """Nobody watches."""


_watcher: Callable[[str], None] = _nobody


def watch(watcher: Callable[[str], None] | None) -> None:
    """Has `watcher` called with the name of each point that is reached; None ends that."""
    global _watcher  # noqa: PLW0603  # the one switch there is
    _watcher = watcher or _nobody


def reached(name: str) -> None:
    """Says that a point is reached."""
    _watcher(name)


PART = ".part-"
# What a process on another host, or an unknown one, left behind is removed after a day.
OLD = 86_400


def written_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Calls `write` with a temporary path beside `path` and renames it when it is done; nothing half is left behind."""
    path = path.resolve()  # a link is followed, not replaced
    temporary: Path | None = None
    try:
        if path.exists() and not path.is_file():
            raise DataError(f"{path}: expected a file to write to, found {'a folder' if path.is_dir() else 'a device'}")
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_mark())
        os.close(handle)
        temporary = Path(name)
        reached(f"made a part of {path.suffix or path.name}")
        write(temporary)
        reached(f"wrote a part of {path.suffix or path.name}")
        sync(temporary)
        # mkstemp makes files that only their owner reads; a result is an ordinary file.
        temporary.chmod(0o666 & ~_umask())
        reached(f"about to rename {path.suffix or path.name}")
        temporary.replace(path)
        reached(f"renamed {path.suffix or path.name}")
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from None
    except Exception as error:
        if type(error).__module__.split(".")[0] != "polars":
            raise
        raise DataError(f"{path}: cannot be written: {str(error).splitlines()[0]}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def written_folder(path: Path, write: Callable[[Path], None]) -> None:
    """Calls `write` with a temporary folder beside `path` and renames it when it is done; replaces nothing."""
    path = path.resolve()
    if path.exists():
        raise DataError(f"{path}: there already; name another folder")
    with temporary_folder(path.parent) as temporary:
        write(temporary)
        temporary.rename(path)


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """A new folder in `parent`, to be renamed when it is whole; what is still there in the end is removed."""
    temporary: Path | None = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=parent, prefix=_mark()))
        temporary.chmod(0o777 & ~_umask())
        yield temporary
    except OSError as error:
        raise DataError(f"{parent}: cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Writes UTF-8 text, whole or not at all."""
    written_whole(path, lambda temporary: _put(temporary, text))


def sync(path: Path) -> None:
    """Has the bytes of a file on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sweep(folder: Path) -> None:
    """Removes what processes that are no more have left half done in a folder."""
    if not folder.is_dir():
        return
    for path in folder.glob(f"{PART}*"):
        if _abandoned(path):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _mark() -> str:
    """How temporary names begin: who writes is in them, so that `sweep` can tell whether it still does."""
    return f"{PART}{_host()}-{os.getpid()}-"


def _host() -> str:
    return "".join(letter for letter in socket.gethostname() if letter.isalnum())[:40] or "host"


def _abandoned(path: Path) -> bool:
    """Whether its process is no more; where that cannot be known, whether it is old: parts live for seconds."""
    host, _, rest = path.name.removeprefix(PART).partition("-")
    owner = rest.partition("-")[0]
    try:
        if host == _host() and owner.isdigit() and os.name == "posix":
            os.kill(int(owner), 0)  # asks whether it is there, and does nothing to it
        return time.time() - path.stat().st_mtime > OLD
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False


def _put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="")


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


LAST = "manifest.json"


def write_folder(parent: Path, digest: str, files: Mapping[str, Callable[[Path], None]]) -> Path:
    """Writes `files` (name → what writes it) into a new folder `<time>-<digest>`; the manifest goes in last.

    They are written into a temporary folder beside it, which is renamed when it is whole; two at once do not mix.
    """
    with temporary_folder(parent) as temporary:
        sweep(parent)
        reached("made the part of a result folder")
        for name in sorted(files, key=lambda name: (name == LAST, name)):
            target = temporary / name
            target.parent.mkdir(parents=True, exist_ok=True)
            files[name](target)
            sync(target)
            reached(f"wrote {target.suffix or name} of a result folder")
        folder = _renamed(temporary, parent, digest)
        reached("renamed a result folder")
        write_text(parent / "latest", folder.name + "\n")
        return folder


def _renamed(temporary: Path, parent: Path, digest: str) -> Path:
    for number in range(1000):
        time = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        folder = parent / f"{time}-{digest}{f'-{number}' if number else ''}"
        if not folder.exists():
            try:
                return temporary.rename(folder)
            except OSError:
                if not folder.exists():
                    raise
    raise DataError(f"{parent}: there is no free name left for a result folder")
