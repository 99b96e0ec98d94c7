"""The process that a run shares with code of the user's: put back when the run ends, and never ended unsaid.

`runner` and `plan` run inside of it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from groupgt.errors import GroupgtError
from groupgt.store.files import umask


@contextmanager
def shared_process() -> Iterator[None]:
    """Code of the user's may change the process while the run lasts, and end it only as an error.

    Modules put themselves on `sys.path`, change the umask, the working folder or standard output, and may count on it
    as long as the run lasts; then all of it is as it was. What they imported stays in `sys.modules`.
    """
    path, mask, streams, folder = [*sys.path], umask(), (sys.stdout, sys.stderr), working_folder()
    exits = _Exits()
    try:
        yield
    except SystemExit as error:
        ended_by = error.code if isinstance(error.code, str) else f"sys.exit({error.code or ''})"
        raise GroupgtError(f"code of yours ended the run: {ended_by}") from None
    finally:
        exits.remove()
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


class _Exits:
    """Stands in for `os._exit`: a run that it ends with the status of success would have no results, unsaid.

    This process alone is guarded, and not a child in which the code is run: that would read all data once more, and
    keep modules, debuggers and whatever the code holds in memory from the one who runs it.
    """

    def __init__(self) -> None:
        self.process, self.thread, self.is_active = os.getpid(), threading.get_ident(), True
        self.leave, os._exit = os._exit, self.exit

    def remove(self) -> None:
        """Lets `os._exit` be what it was."""
        self.is_active = False
        if os._exit == self.exit:
            os._exit = self.leave

    def exit(self, status: int) -> NoReturn:
        """Leaves, but not with the status of success."""
        if status or not self.is_active or os.getpid() != self.process:  # a fork of the user's may leave as it likes
            self.leave(status)
        if threading.get_ident() == self.thread:
            raise SystemExit("os._exit(0)")
        # Nobody hears what is raised in another thread.
        print("groupgt: code of yours ended the run: os._exit(0)", file=sys.stderr, flush=True)  # noqa: T201
        self.leave(2)
