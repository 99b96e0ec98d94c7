"""What judges said of pairs of a result and an alternative: line by line in files, for it may have been paid for."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupgt.store.journal import Journal, now

if TYPE_CHECKING:
    from groupgt.store.loaded import Loaded


class Verdicts:
    """The scores of one judge: what is known of it from earlier runs, and what it says in this one.

    Without a journal they are kept in memory alone.

    >>> verdicts = Verdicts()
    >>> verdicts.keep({"a": 1.0})
    >>> verdicts.known(["a", "b"])
    {'a': 1.0}
    """

    def __init__(
        self,
        journal: Journal | None = None,
        earlier: Mapping[str, float] | None = None,
        loaded: Loaded | None = None,
        header: Mapping[str, Any] | None = None,
    ) -> None:
        self.journal = journal or Journal(None)
        self.earlier = dict(earlier or {})
        self.scores = dict(self.earlier)
        self.used: set[str] = set()
        self.loaded = loaded
        self.header = header or {}

    def known(self, keys: Iterable[str]) -> dict[str, float]:
        """The scores there are of these keys."""
        scores = {key: self.scores[key] for key in keys if key in self.scores}
        self.used.update(scores.keys() & self.earlier.keys())
        return scores

    def prepare(self) -> None:
        """Raises `DataError` where nothing could be kept: before anything is paid for."""
        self.journal.append()

    def keep(self, scores: Mapping[str, float]) -> None:
        """Adds scores; raises `DataError` where they cannot be written."""
        self.scores.update(scores)
        if scores and self.journal.path is not None:
            new = {} if self.loaded is None else self.loaded.new()
            about = {**self.header, "modules": new, "at": now()}
            self.header = {}
            self.journal.append(about, *([key, score] for key, score in scores.items()), sync=True)


@dataclass(eq=False)
class VerdictStore:
    """The verdicts of one run, by judge, in a folder.

    Each run asks for its own. Those of a judge that is `vouched` for are used again, and so, with `reuse`, are those of
    any. A run that did not finish is gone on from where the same modules are loaded; with `refresh` nothing is used.
    """

    folder: Path
    refresh: bool = False
    reuse: bool = False
    changed: list[str] = field(default_factory=list)
    _judges: dict[str, tuple[Verdicts, Journal]] = field(default_factory=dict)

    def verdicts(self, judge: str, *, vouched: bool) -> Verdicts:
        """What is known of a judge, the same for all that ask in this run."""
        if judge not in self._judges:
            self._judges[judge] = self._opened(hashlib.sha256(judge.encode()).hexdigest(), vouched=vouched)
        return self._judges[judge][0]

    def _opened(self, name: str, *, vouched: bool) -> tuple[Verdicts, Journal]:
        from groupgt.store.loaded import PROCESS, Loaded, Trace, changed

        finished = Journal(self.folder / f"{name}.jsonl")
        loaded = Loaded()
        built = {} if vouched else loaded.new()
        journal = finished if vouched else Journal.taken_over(self.folder, name)
        earlier: dict[str, float] = {}
        if (vouched or self.reuse) and not self.refresh:
            lines = list(finished.lines())
            earlier = _scores(lines)
            self.changed += [] if vouched else changed(Trace.of(lines).modules, sys.path)
        if not vouched:
            lines = list(journal.lines())
            trace = Trace.of(lines)
            if not self.refresh and trace.fits(built) and not changed(trace.later, sys.path):
                earlier |= _scores(lines)
            elif lines:
                finished.append(*lines)  # paid for: `reuse` knows them
                journal.remove()
        header = {} if vouched else {"built": built, "process": PROCESS}
        return Verdicts(journal, earlier, None if vouched else loaded, header), finished

    def finish(self) -> None:
        """The run is finished: its verdicts are used again only where they are asked for by `reuse`."""
        for verdicts, finished in self._judges.values():
            if verdicts.journal.path != finished.path:
                finished.append(*verdicts.journal.lines(), sync=True)
                verdicts.journal.remove()

    @property
    def judged(self) -> int:
        """How many verdicts this run has asked for."""
        return sum(len(verdicts.scores) - len(verdicts.earlier) for verdicts, _ in self._judges.values())

    @property
    def used(self) -> int:
        """How many verdicts of earlier runs it has used."""
        return sum(len(verdicts.used) for verdicts, _ in self._judges.values())


def _scores(lines: Iterable[Any]) -> dict[str, float]:
    """The verdicts among the lines of a journal."""
    scores = {}
    for line in lines:
        if isinstance(line, list) and len(line) == 2 and isinstance(line[0], str) and isinstance(line[1], (int, float)):
            scores[line[0]] = float(line[1])
    return scores
