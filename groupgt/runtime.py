"""What groupgt asks of the Python process: late imports, and garbage collection put off."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

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

__all__ = ["no_garbage_collection", "pl"]


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
