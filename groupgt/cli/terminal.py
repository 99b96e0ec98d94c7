"""The one place from which text reaches the terminal: results, what is said beside them, and how far a run is."""

from __future__ import annotations

import sys
from typing import Any

import click

from groupgt.errors import printable


def show(text: str) -> None:
    """Prints a result for people to read, on standard output."""
    click.echo(printable(text))


def say(text: str) -> None:
    """Says what was done, or what is doubtful, on standard error."""
    click.echo(f"groupgt: {printable(text)}", err=True)


class Bar:
    """Draws on standard error, where that is a terminal."""

    def __init__(self) -> None:
        self.bar: Any = None

    def planned(self, systems: int, tasks: int, kept: int, queries: int) -> None:
        """Says what is to be done, and begins."""
        if not sys.stderr.isatty() or not queries:
            return
        from tqdm import tqdm

        say(
            f"{systems:,} systems; {tasks:,} retrievals, {kept:,} of them kept from earlier runs; "
            f"{queries:,} questions to ask"
        )
        self.bar = tqdm(total=queries, unit="q", dynamic_ncols=True, leave=False)

    def started(self, task: str) -> None:
        """Names what is retrieved now."""
        if self.bar is not None:
            self.bar.set_description(printable(task))

    def answered(self, queries: int) -> None:
        """Moves the bar on."""
        if self.bar is not None:
            self.bar.update(queries)

    def ended(self) -> None:
        """Removes the bar."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
