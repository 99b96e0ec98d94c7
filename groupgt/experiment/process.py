"""Shares the current process with user code during an experiment and restores it afterwards."""

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
    """Lets user code modify the process during a run, and turns any attempt to exit into an error.

    Modules may extend `sys.path` or change the umask, working folder or standard output; these changes last until the
    run ends and are then undone. Imported modules stay in `sys.modules`. Secrets added to the yielded dict are removed
    from errors and warnings.
    """
    secrets: dict[str, str] = {}
    path, mask, streams, folder = [*sys.path], umask(), (sys.stdout, sys.stderr), working_folder()
    try:
        with private_messages(secrets):
            try:
                with no_silent_exit():
                    yield secrets
            except SystemExit as error:
                ended_by = error.code if isinstance(error.code, str) else f"sys.exit({error.code or ''})"
                raise GroupgtError(f"your code ended the run: {ended_by}") from None
    finally:
        sys.path[:] = path
        os.umask(mask)
        sys.stdout, sys.stderr = streams
        if folder is not None and folder != working_folder():
            os.chdir(folder)


def working_folder() -> str | None:
    """Returns the current folder, or None if it no longer exists."""
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None
