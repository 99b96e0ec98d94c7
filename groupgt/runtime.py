"""What groupgt asks of the Python process: late imports, garbage collection put off, and code of the user's kept in."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import polars as pl
else:

    class _Late:
        """A module that is imported when something of it is first used."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            value = getattr(import_module(self._name), attribute)
            setattr(self, attribute, value)
            return value

    # polars takes longer to import than a small file to evaluate.
    pl = _Late("polars")

__all__ = ["no_garbage_collection", "pl", "users_code"]


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Millions of live strings make every collection slow, and labelling makes no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def users_code() -> Iterator[None]:
    """While code of the user's runs: what it prints goes to standard error, and `os._exit` is an error like `sys.exit`.

    Results go to standard output, and a run that ends without any must not look done.
    """
    exit_at_once, process = os._exit, os.getpid()

    def refused(status: int) -> NoReturn:
        if os.getpid() != process:  # a process that was forked meanwhile ends as it likes
            exit_at_once(status)
        raise SystemExit(f"os._exit({status})")

    os._exit = refused
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os._exit = exit_at_once
