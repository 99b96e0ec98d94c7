"""Writes files and folders atomically. Content goes to a temporary path, which is then renamed to the target."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from groupgt.errors import DataError
from groupgt.runtime import hashlib

# Temporary names begin with this and the writer, so that `sweep` can check whether it still runs.
PART = ".part-"
# Leftovers of a process on another host, or of an unknown process, are removed after a day.
OLD_S = 86_400


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` with a temporary path next to `path`, then rename it. Leave no partial file behind."""
    import tempfile

    path = path.resolve()
    temporary: Path | None = None
    try:
        if path.exists() and not path.is_file():
            raise DataError(f"{path}: expected a file to write to, found {'a folder' if path.is_dir() else 'a device'}")
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{PART}{owner()}-")
        os.close(handle)
        temporary = Path(name)
        write(temporary)
        # mkstemp creates files that only the owner can read; a result gets ordinary permissions.
        temporary.chmod(0o666 & ~umask())
        temporary.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from None
    except Exception as error:
        if type(error).__module__.split(".")[0] != "polars":
            raise
        raise DataError(f"cannot write {path}: {str(error).splitlines()[0]}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write bytes atomically."""
    write_atomically(path, lambda temporary: temporary.write_bytes(data))


def write_folder(path: Path, write: Callable[[Path], None]) -> None:
    """Call `write` with a temporary folder next to `path`, then rename it. Never replace an existing folder."""
    path = path.resolve()
    if path.exists():
        raise DataError(f"{path}: already exists; choose another folder")
    with temporary_folder(path.parent) as temporary:
        write(temporary)
        temporary.rename(path)


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Create a folder in `parent`, to be renamed once complete. Remove the folder on exit if it still exists."""
    import shutil
    import tempfile

    temporary: Path | None = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=parent, prefix=f"{PART}{owner()}-"))
        temporary.chmod(0o777 & ~umask())
        yield temporary
    except OSError as error:
        raise DataError(f"cannot write {parent}: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


# --- Leftovers.


def remove(path: Path, *, ignore_errors: bool = False) -> None:
    """Remove a file, or a folder and its contents, if it exists. Links are not followed."""
    if path.is_dir() and not path.is_symlink():
        import shutil

        shutil.rmtree(path, ignore_errors=ignore_errors)
    else:
        path.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove partial files and folders that ended processes left in a folder."""
    if not folder.is_dir():
        return
    for path in folder.glob(f"{PART}*"):
        if is_gone("-".join(path.name.removeprefix(PART).split("-")[:2]), path):
            remove(path, ignore_errors=True)


def owner(process: int | None = None) -> str:
    """Return the name of a process on this host (default: this process) for use in file names."""
    return f"{_host()}-{process or os.getpid()}"


def _host() -> str:
    import socket

    return "".join(letter for letter in socket.gethostname() if letter.isalnum())[:40] or "host"


def is_gone(writer: str, path: Path, after: float = OLD_S) -> bool:
    """Return whether the `owner` of a file has ended or, if unknown, whether the file is older than `after`."""
    host, _, process = writer.partition("-")
    try:
        if host == _host() and process.isdigit() and os.name == "posix":
            os.kill(int(process), 0)  # only checks whether it exists
            after = OLD_S
        return time.time() - path.stat().st_mtime > after
    except ProcessLookupError:
        return True
    except OSError:
        return False


def umask() -> int:
    """Return the permissions that are withheld from new files."""
    current = os.umask(0)
    os.umask(current)
    return current


# --- Names.


def file_name(system: str) -> str:
    """Return a valid file name for a system (if possible, the system's name)."""
    return system if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.,=+\[\]-]{0,98}[A-Za-z0-9_+\]-]", system) else slug(system)


def slug(name: str) -> str:
    """Return the name itself if it is a safe file name, otherwise its letters and digits plus a short hash."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", name):
        return name
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:80]
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


# --- Contents.


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def digest_of(path: Path) -> str:
    """Return a file's digest, or a digest of the names and contents of all files in a folder."""
    if path.is_file():
        return sha256(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    lines = "".join(f"{file.relative_to(path).as_posix()}\0{sha256(file)}\n" for file in files)
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()
