"""Process helpers: lazy imports, delayed garbage collection, and guards for user code."""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import functions as sql
else:

    class _LazyModule:
        """Module that is imported when it is first used."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            if attribute.startswith("__"):  # asked for by tools that inspect any object
                raise AttributeError(attribute)
            if _was_forked:
                raise RuntimeError(FORKED)
            value = getattr(import_module(self._name), attribute)
            setattr(self, attribute, value)
            return value

    # Importing polars takes longer than evaluating a small file.
    pl = _LazyModule("polars")
    sql = _LazyModule("pyspark.sql.functions")

FORKED = (
    "this process was forked after polars had started threads, which the fork lost: polars "
    'would wait for them without end; start workers with multiprocessing.get_context("spawn") or "forkserver"'
)
_was_forked = False


def _polars_works() -> bool:
    """Return whether polars has running threads in this process or, if unknown, whether it has been imported."""
    if "polars" not in sys.modules:
        return False
    try:
        names = [task.joinpath("comm").read_text() for task in Path("/proc/self/task").iterdir()]
    except OSError:
        return True
    return any(re.match("polars-[0-9]", name) for name in names)


def _before_fork() -> None:
    global _is_at_work  # noqa: PLW0603  # between the two hooks of one fork
    _is_at_work = _polars_works()


def _after_fork() -> None:
    """Forget the imported parts of polars in a child process, so that using them raises an error."""
    global _was_forked  # noqa: PLW0603  # of this process, once
    _was_forked = _was_forked or _is_at_work
    if _was_forked:
        for name in [name for name in vars(pl) if name != "_name"]:
            delattr(pl, name)


_is_at_work = False
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)

__all__ = ["pl", "sql"]  # for modules that import it from here


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Turn off garbage collection, which is slow with millions of live strings; labelling creates no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def users_code() -> Iterator[None]:
    """Run user code with its output sent to standard error; raise an error if it tries to end the process."""
    with no_silent_exit(), redirect_stdout(sys.stderr):
        yield


@contextmanager
def no_silent_exit() -> Iterator[None]:
    """Make `os._exit(0)` in user code act like `sys.exit`, since otherwise it would look like success without results.

    User code runs in this process because a child process would have to read all data again, and would hide the code's
    modules, debuggers and objects from the user.
    """
    leave, process, thread, is_active = os._exit, os.getpid(), threading.get_ident(), True

    def refused(status: int) -> NoReturn:
        if status or not is_active or os.getpid() != process:  # the user's own forks may exit in any way
            leave(status)
        if threading.get_ident() == thread:
            raise SystemExit("os._exit(0)")
        # Exceptions in another thread would be lost.
        print("groupgt: your code ended the run: os._exit(0)", file=sys.stderr, flush=True)  # noqa: T201
        leave(2)

    os._exit = refused
    try:
        yield
    finally:
        is_active = False
        if os._exit is refused:
            os._exit = leave


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C while processes start; they inherit the mask and leave the signal to their parent."""
    import signal

    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# The environment variable that `--traceback` sets for this process and its children.
TRACEBACK = "GROUPGT_TRACEBACK"
# With more frames than this, only the first and the last are shown.
MAX_FRAMES, FIRST_FRAMES = 6, 2


def raised(error: BaseException) -> str:
    """Format an exception from user code on one line: `ValueError: no (search.py:3 in search → rank.py:9 in best)`.

    It shows the frames in the user's own files, or else the frame that raised the error. With `--traceback`, all frames
    are printed to standard error.
    """
    import sysconfig
    import traceback

    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    installed = tuple({os.path.join(sysconfig.get_path(key), "") for key in ("stdlib", "platlib", "purelib")})
    ours = os.path.join(os.path.dirname(__file__), "")
    users = [frame for frame in frames if not frame.filename.startswith((*installed, ours, "<frozen"))]
    texts = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in users or frames[-1:]]
    if len(texts) > MAX_FRAMES:
        texts[FIRST_FRAMES : FIRST_FRAMES - MAX_FRAMES] = ["…"]
    return one_line(error) + (f" ({' → '.join(texts)})" if texts else "")


def one_line(error: BaseException) -> str:
    """Format an exception on one line: its class and the first line of its message."""
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}".rstrip(": ")


def resident() -> int:
    """Return the memory in use by this process in bytes, or else the peak so far, or 0 if both are unknown."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # not a user's file
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        pass
    try:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    except ImportError:
        return 0
