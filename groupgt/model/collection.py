"""Garbage collection, put off while millions of strings are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_garbage_collection"]


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
