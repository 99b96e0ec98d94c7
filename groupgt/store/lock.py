"""Locks an open file against other processes. The operating system releases the lock when the process ends."""

from __future__ import annotations

import errno
import os
import sys

# The byte that Windows locks lies behind any content, so that others can read the file.
_FAR = 0x7FFF_FFF0
_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


def lock(handle: int) -> bool:
    """Lock an open file without waiting, or return False if this or another process has locked it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(handle, _FAR, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True
