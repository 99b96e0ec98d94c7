"""The process that a run shares with code of the user's: put back when the run ends, and never ended unsaid.

`runner` and `plan` run inside of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from groupgt.errors import GroupgtError
from groupgt.runtime import no_silent_exit
from groupgt.store.files import umask


@contextmanager
def shared_process() -> Iterator[None]:
    """Code of the user's may change the process while the run lasts, and end it only as an error.

    Modules put themselves on `sys.path`, change the umask, the working folder or standard output, and may count on it
    as long as the run lasts; then all of it is as it was. What they imported stays in `sys.modules`.
    """
    path, mask, streams, folder = [*sys.path], umask(), (sys.stdout, sys.stderr), working_folder()
    try:
        with no_silent_exit():
            yield
    except SystemExit as error:
        ended_by = error.code if isinstance(error.code, str) else f"sys.exit({error.code or ''})"
        raise GroupgtError(f"code of yours ended the run: {ended_by}") from None
    finally:
        sys.path[:] = path
        os.umask(mask)
        sys.stdout, sys.stderr = streams
        if folder is not None and folder != working_folder():
            os.chdir(folder)


def working_folder() -> str | None:
    """The current folder, None where it is there no more."""
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None
