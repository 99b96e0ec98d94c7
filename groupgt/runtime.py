"""Helps with lazy imports, garbage collection, and running user code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import hashlib
    import html
    from urllib import parse as urls

    import polars as pl
    from backports import zstd
    from pyspark.sql import functions as sql
else:

    class _LazyModule:
        """A module that is imported on first use."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            if attribute.startswith("__"):  # asked for by tools that inspect any object
                raise AttributeError(attribute)
            value = getattr(import_module(self._name), attribute)
            setattr(self, attribute, value)
            return value

    # Importing polars takes longer than evaluating a small file.
    pl = _LazyModule("polars")
    sql = _LazyModule("pyspark.sql.functions")
    # Each takes several milliseconds, and few commands use them.
    hashlib = _LazyModule("hashlib")
    html = _LazyModule("html")
    urls = _LazyModule("urllib.parse")
    # The standard library has it from Python 3.14 on.
    zstd = _LazyModule("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")

__all__ = ["hashlib", "html", "pl", "sql", "urls", "zstd"]  # for modules that import it from here


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Turn off garbage collection, which is slow with millions of live strings. Labelling creates no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def discard(stream: Any) -> None:
    """Discard what is written to a stream from now on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def processors() -> int:
    """Return how many threads may run at once: the polars limit if set, or else the number of available processors."""
    limit = os.environ.get("POLARS_MAX_THREADS", "")
    if limit.isdigit() and int(limit) > 0:
        return int(limit)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def users_code() -> AbstractContextManager[Any]:
    """Run user code with its output sent to standard error."""
    return redirect_stdout(sys.stderr)


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C while processes start. The new processes inherit the mask and leave the signal to their parent."""
    import signal

    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ended(status: int) -> str:
    """Describe how a process ended before it answered, based on its exit status or negated signal number."""
    import signal

    if status >= 0:
        return f"its process ended with exit status {status} before it had answered"
    name = signal.Signals(-status).name if -status in {*signal.Signals} else f"signal {-status}"
    hint = "; it may have run out of memory" if name == "SIGKILL" else ""
    return f"its process was terminated by {name}{hint}"


# The environment variable that `--traceback` sets for this process and its children.
TRACEBACK = "GROUPGT_TRACEBACK"
# With more frames than this, only the first and the last are shown.
MAX_FRAMES, FIRST_FRAMES = 6, 2


def raised(error: BaseException) -> str:
    """Format an exception from user code on one line: `ValueError: no (search.py:3 in search → rank.py:9 in best)`."""
    import sysconfig
    import traceback

    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
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
    """Return this process's memory use in bytes, or else its peak so far, or 0 if both are unknown."""
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


@lru_cache(maxsize=1)
def commit() -> str:
    """Return the commit of the checkout that groupgt runs from, or an empty string for an installed package."""
    import subprocess

    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)  # noqa: S603  # no input
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""
