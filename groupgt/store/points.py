"""Named points of every write and rename, at which a test may end the process."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["reached", "watch"]


def _nobody(name: str) -> None:
    """Nobody watches."""


_watcher: Callable[[str], None] = _nobody


def watch(watcher: Callable[[str], None] | None) -> None:
    """Has `watcher` called with the name of each point that is reached; None ends that."""
    global _watcher  # noqa: PLW0603  # the one switch there is
    _watcher = watcher or _nobody


def reached(name: str) -> None:
    """Says that a point is reached."""
    _watcher(name)
