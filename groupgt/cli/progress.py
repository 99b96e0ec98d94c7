"""How far a run is: a bar on a terminal, silence in a pipe."""

from __future__ import annotations

import sys
from typing import Any

import click


class Bar:
    """Draws on standard error, where that is a terminal."""

    def __init__(self) -> None:
        self.bar: Any = None

    def planned(self, systems: int, tasks: int, kept: int, queries: int) -> None:
        """Says what is to be done, and begins."""
        if not sys.stderr.isatty() or not queries:
            return
        from tqdm import tqdm

        click.echo(
            f"groupgt: {systems:,} systems; {tasks:,} retrievals, {kept:,} of them kept from earlier runs; "
            f"{queries:,} questions to ask",
            err=True,
        )
        self.bar = tqdm(total=queries, unit="q", dynamic_ncols=True, leave=False)

    def started(self, task: str) -> None:
        """Names what is retrieved now."""
        if self.bar is not None:
            self.bar.set_description(task)

    def answered(self, queries: int) -> None:
        """Moves the bar on."""
        if self.bar is not None:
            self.bar.update(queries)

    def ended(self) -> None:
        """Removes the bar."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
