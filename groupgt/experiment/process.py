"""The process in which an experiment runs, and which code of the user's shares: put back when the run ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from groupgt.errors import GroupgtError
from groupgt.private import private_messages
from groupgt.runtime import no_silent_exit
from groupgt.store.files import umask


@contextmanager
def shared_process() -> Iterator[dict[str, str]]:
    """Code of the user's may change the process while the run lasts, and end it only as an error.

    Modules put themselves on `sys.path`, change the umask, the working folder or standard output, and may count on it
    as long as the run lasts; then all of it is as it was. What they imported stays in `sys.modules`. What is added to
    the dict that it gives is taken out of errors and warnings.
    """
    secrets: dict[str, str] = {}
    path, mask, streams, folder = [*sys.path], umask(), (sys.stdout, sys.stderr), working_folder()
    try:
        with private_messages(secrets), _exit_as_error(), no_silent_exit():
            yield secrets
    finally:
        sys.path[:] = path
        os.umask(mask)
        sys.stdout, sys.stderr = streams
        if folder is not None and folder != working_folder():
            os.chdir(folder)


@contextmanager
def _exit_as_error() -> Iterator[None]:
    try:
        yield
    except SystemExit as error:
        ended_by = error.code if isinstance(error.code, str) else f"sys.exit({error.code or ''})"
        raise GroupgtError(f"your code ended the run: {ended_by}") from None


def working_folder() -> str | None:
    """The current folder, None where it is there no more."""
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None
