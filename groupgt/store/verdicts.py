"""Stores labellers' verdicts on (result, alternative) pairs immediately, because verdicts may cost money."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from groupgt.errors import DataError, warn
from groupgt.runtime import hashlib
from groupgt.store.journal import Journal, Journals, now


@dataclass(eq=False, repr=False)
class Verdicts:
    """One labeller's scores from the current run and earlier runs. Without a journal, scores stay in memory only."""

    journal: Journal = field(default_factory=lambda: Journal(None))
    earlier: Mapping[str, float] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    on_begin: Callable[[], None] | None = None
    used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.scores = dict(self.earlier)

    def available(self, keys: Iterable[str]) -> dict[str, float]:
        """Return the scores available for the given keys."""
        scores = {key: self.scores[key] for key in keys if key in self.scores}
        self.used.update(scores.keys() & self.earlier.keys())
        return scores

    def prepare(self) -> None:
        """Raise `DataError` if verdicts cannot be stored, before any verdict costs money."""
        self.begin()
        self.journal.append()

    def begin(self) -> None:
        """Prepare the folder once, before the first verdict is added. Reading verdicts changes nothing on disk."""
        if self.on_begin is not None:
            self.on_begin()
            self.on_begin = None

    def resume(self, scores: Mapping[str, float]) -> None:
        """Add scores from the interrupted run that this one continues."""
        self.earlier = {**self.earlier, **scores}
        self.scores.update(scores)

    def keep(self, scores: Mapping[str, float]) -> None:
        """Add scores, or raise `DataError` if they cannot be written."""
        self.begin()
        self.scores.update(scores)
        if scores and self.journal.path is not None:
            self.journal.append({**self.about, "at": now()}, *map(list, scores.items()))


@dataclass(eq=False, repr=False)
class VerdictStore:
    """The verdicts of one run by labeller, stored in a folder, or only in memory if the folder is None.

    By default, only the verdicts of `vouched` labellers are reused. `reuse` reuses all verdicts, `refresh` none.
    """

    folder: Path | None
    refresh: bool = False
    reuse: bool = False
    about: dict[str, str] = field(default_factory=dict)
    is_resumed: bool = False
    # The verdicts of each labeller, the journal of finished runs, and the journals of unfinished ones.
    _judges: dict[str, tuple[Verdicts, Journal, Journals]] = field(default_factory=dict)

    def verdicts(self, judge: str, *, vouched: bool) -> Verdicts:
        """Return the verdicts of a labeller, shared by all callers in this run."""
        if judge not in self._judges:
            self._judges[judge] = self._opened(hashlib.sha256(judge.encode()).hexdigest(), vouched=vouched)
        return self._judges[judge][0]

    def _opened(self, name: str, *, vouched: bool) -> tuple[Verdicts, Journal, Journals]:
        finished = Journal(None if self.folder is None else self.folder / f"{name}.jsonl")
        unfinished = Journals(self.folder, name)
        own, earlier = unfinished.own, dict[str, float]()
        if (vouched or self.reuse) and not self.refresh:
            for journal in (finished, *([] if vouched else unfinished.left_behind())):
                earlier |= scores_in(journal.lines())
        if vouched:
            return Verdicts(finished, earlier), finished, unfinished

        def begin() -> None:
            for journal in unfinished.left_behind():
                if not (self.is_resumed and journal.path == own.path):
                    finished.append(*journal.lines())  # already paid for: available to `reuse`
                    journal.remove()

        return Verdicts(own, earlier, self.about, begin), finished, unfinished

    def _unfinished(self) -> list[tuple[Verdicts, Journal, Journals]]:
        """Return the verdicts and journals stored for this run alone."""
        return [each for each in self._judges.values() if each[0].journal.path != each[1].path]

    def left_behind(self) -> list[Journal]:
        """Return the journals that interrupted runs left."""
        return [journal for *_, journals in self._unfinished() for journal in journals.left_behind()]

    def resume(self, of: str) -> None:
        """Continue the run that the ended process `of` left."""
        self.is_resumed = True
        for verdicts, _, journals in self._unfinished():
            verdicts.resume(scores_in(journals.adopted(of).lines()))

    def finish(self) -> None:
        """Mark the run as finished. Later runs reuse its unvouched verdicts only with `reuse`."""
        for verdicts, finished, _ in self._unfinished():
            try:
                verdicts.begin()
                if lines := list(verdicts.journal.lines()):
                    finished.append(*lines)
                verdicts.journal.remove()
            except DataError as error:
                warn(f"verdicts cannot be stored for --reuse: {error}")

    @property
    def judged(self) -> int:
        """The number of verdicts that this run requested."""
        return sum(len(verdicts.scores) - len(verdicts.earlier) for verdicts, *_ in self._judges.values())

    @property
    def used(self) -> int:
        """The number of verdicts from earlier runs that this run used."""
        return sum(len(verdicts.used) for verdicts, *_ in self._judges.values())


def scores_in(lines: Iterable[Any]) -> dict[str, float]:
    """Return the scores in the lines of a journal, by key."""
    scores = {}
    for line in lines:
        if isinstance(line, list) and len(line) == 2 and isinstance(line[0], str) and isinstance(line[1], (int, float)):
            scores[line[0]] = float(line[1])
    return scores
