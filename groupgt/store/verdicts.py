"""Stores judges' verdicts on pairs of a result and an alternative, line by line because they may have cost money."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupgt.errors import DataError, warn
from groupgt.store.journal import Journal, left_behind, now

if TYPE_CHECKING:
    from groupgt.store.loaded import Loaded


@dataclass(eq=False)
class Verdicts:
    """Scores from one judge, from earlier runs and the current one.

    Without a journal, scores are kept only in memory.

    >>> verdicts = Verdicts()
    >>> verdicts.keep({"a": 1.0})
    >>> verdicts.available(["a", "b"])
    {'a': 1.0}
    """

    journal: Journal = field(default_factory=lambda: Journal(None))
    earlier: Mapping[str, float] = field(default_factory=dict)
    loaded: Loaded | None = None
    header: Mapping[str, Any] = field(default_factory=dict)
    on_begin: Callable[[], None] | None = None
    used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.scores = dict(self.earlier)

    def available(self, keys: Iterable[str]) -> dict[str, float]:
        """Returns the scores available for the given keys."""
        scores = {key: self.scores[key] for key in keys if key in self.scores}
        self.used.update(scores.keys() & self.earlier.keys())
        return scores

    def prepare(self) -> None:
        """Raises `DataError` if verdicts cannot be stored, before any cost is incurred."""
        self.begin()
        self.journal.append()

    def begin(self) -> None:
        """Prepares the folder once, before the first verdict is added; reading verdicts changes nothing on disk."""
        if self.on_begin is not None:
            self.on_begin()
            self.on_begin = None

    def keep(self, scores: Mapping[str, float]) -> None:
        """Adds scores; raises `DataError` if they cannot be written."""
        self.begin()
        self.scores.update(scores)
        if scores and self.journal.path is not None:
            new = {} if self.loaded is None else self.loaded.new()
            about = {**self.header, "modules": new, "at": now()}
            self.header = {}
            self.journal.append(about, *([key, score] for key, score in scores.items()), sync=True)


@dataclass(eq=False)
class VerdictStore:
    """Verdicts from one run, grouped by judge, stored in a folder, or only in memory if the folder is None.

    By default, each run requests its own verdicts. Verdicts from a `vouched` judge are reused; with `reuse`, all
    verdicts are reused. An unfinished run is resumed if the same modules are loaded. With `refresh`, no verdicts are
    reused.
    """

    folder: Path | None
    refresh: bool = False
    reuse: bool = False
    changed: list[str] = field(default_factory=list)
    _judges: dict[str, tuple[Verdicts, Journal]] = field(default_factory=dict)

    def verdicts(self, judge: str, *, vouched: bool) -> Verdicts:
        """Returns the verdicts of a judge, shared by all callers in this run."""
        if judge not in self._judges:
            self._judges[judge] = self._opened(hashlib.sha256(judge.encode()).hexdigest(), vouched=vouched)
        return self._judges[judge][0]

    def _opened(self, name: str, *, vouched: bool) -> tuple[Verdicts, Journal]:
        from groupgt.store.loaded import PROCESS, Loaded, Trace, changed

        if self.folder is None:
            return Verdicts(), Journal(None)
        folder, finished = self.folder, Journal(self.folder / f"{name}.jsonl")
        earlier: dict[str, float] = {}
        left = [] if vouched else [list(Journal(path).lines()) for path in left_behind(folder, name)]
        if (vouched or self.reuse) and not self.refresh:
            lines = [line for lines in (finished.lines(), *left) for line in lines]
            earlier = _scores(lines)
            self.changed += [] if vouched else changed(Trace(lines).modules, sys.path)
        if vouched:
            return Verdicts(finished, earlier), finished
        loaded = Loaded()
        built = loaded.new()
        trace = Trace(left[-1] if left else ())
        resumed = not self.refresh and trace.fits(built, lambda modules: changed(modules, sys.path), shared=True)
        if resumed:
            earlier |= _scores(left.pop())

        def begin() -> None:
            for lines in left:
                finished.append(*lines)  # already paid for: available to `reuse`
            journal = Journal.taken_over(folder, name)
            if not resumed:
                journal.remove()

        header = {"built": built, "process": PROCESS}
        return Verdicts(Journal.of(folder, name), earlier, loaded, header, begin), finished

    def finish(self) -> None:
        """Marks the run as finished, after which its verdicts are reused only with `reuse`."""
        for verdicts, finished in self._judges.values():
            if verdicts.journal.path != finished.path:
                try:
                    verdicts.begin()
                    lines = list(verdicts.journal.lines())
                    if lines:
                        finished.append(*lines, sync=True)
                    verdicts.journal.remove()
                except DataError as error:
                    warn(f"verdicts cannot be kept for --reuse: {error}")

    @property
    def judged(self) -> int:
        """The number of verdicts that this run requested."""
        return sum(len(verdicts.scores) - len(verdicts.earlier) for verdicts, _ in self._judges.values())

    @property
    def used(self) -> int:
        """The number of verdicts from earlier runs that this run used."""
        return sum(len(verdicts.used) for verdicts, _ in self._judges.values())


def _scores(lines: Iterable[Any]) -> dict[str, float]:
    scores = {}
    for line in lines:
        if isinstance(line, list) and len(line) == 2 and isinstance(line[0], str) and isinstance(line[1], (int, float)):
            scores[line[0]] = float(line[1])
    return scores
