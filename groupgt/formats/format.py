"""Defines a file format, which can recognize its files and read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.written import Shape
from groupgt.records import record


@record
class Format:
    """A file format, with its name, a function to recognize it, and its readers (None for unsupported content).

    `look` returns `truth`, `run`, or `either` for a file in this format, depending on its content, and None for any
    other file. `usually` replaces `either`. Formats without `look` and formats from other packages are used only if
    users name them. `folder` checks whether a folder is in this format. `shape` is the ground truth shape if the reader
    does not set it.
    """

    name: str
    look: Callable[[Source], str | None] | None = None
    truth: Callable[[Source, Policy], GroundTruth] | None = None
    run: Callable[[Source], Run] | None = None
    usually: str = "run"
    folder: Callable[[Path], bool] | None = None
    shape: Shape | None = None
    # As a plug-in, it has no options and needs nothing else.
    options: ClassVar[None] = None
    extras: ClassVar[list[str]] = []
    runs_code: ClassVar[bool] = False

    @property
    def summary(self) -> str:
        """A sentence about what the format reads."""
        read = [what for what, reader in (("ground truth", self.truth), ("results", self.run)) if reader is not None]
        return f"Reads {' and '.join(read)}{', recognized by content' if self.look else ''}."

    def reads(self, *, is_truth: bool) -> bool:
        """Return whether the format reads ground truth, or results."""
        return (self.truth if is_truth else self.run) is not None

    def named(self, kind: str, name: str) -> Format:
        """Return this format with the name that a package gives it."""
        return replace(self, name=name)
