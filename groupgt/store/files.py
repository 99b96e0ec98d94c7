"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from groupgt.errors import DataError

__all__ = ["write_text", "written_folder", "written_whole"]


def written_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Calls `write` with a temporary path beside `path` and renames it when it is done; nothing half is left behind."""
    path = path.resolve()  # a link is followed, not replaced
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: expected a file to write to, found {'a folder' if path.is_dir() else 'a device'}")
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
        os.close(handle)
        temporary = Path(name)
        write(temporary)
        _sync(temporary)
        # mkstemp makes files that only their owner reads; a result is an ordinary file.
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
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
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=".part-"))
        write(temporary)
        temporary.chmod(0o777 & ~_umask())
        temporary.rename(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Writes UTF-8 text, whole or not at all."""
    written_whole(path, lambda temporary: _put(temporary, text))


def _put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="")


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
