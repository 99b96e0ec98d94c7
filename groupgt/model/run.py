"""The results of one system: rankings in memory, or columns that have not been read yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from groupgt.errors import ConfigError, DataError
from groupgt.runtime import pl


@dataclass(frozen=True, eq=False)
class Columns:
    """Results as a lazy frame with `qid` and `doc` as text and `score` as a double, the higher the better.

    Columns `tokens` and `chars`, where there are some, say how long results are; `text`, `parent`, `start` and `end`
    are what else they may carry. A null, or a score that is not finite, is a doubt: `recheck` then reads the same
    source again, slowly, and either says what is wrong and where, or returns rankings. `guard` runs a step of polars
    and turns what it raises into a `DataError`. `ids_checked` says that no id can be blank, too long or hold NUL; else
    such ones are doubts too.
    """

    frame: pl.LazyFrame
    recheck: Callable[[], Run]
    guard: Callable[[Callable[[], Any]], Any] = lambda read: read()
    ids_checked: bool = False
    tie: str = "doc"

    @cached_property
    def checked(self) -> Run:
        """The rankings that the slow reader made of a doubtful source; raises `DataError` where they are at fault."""
        return self.recheck()


@dataclass(frozen=True, eq=False)
class Remote:
    """Results that stay where they are, on a cluster: a frame of its own kind with `qid`, `doc` and `score`.

    `bring` fetches the rows of one query, or the first so many, as a frame of polars. `tie` names the column that
    decides between equal scores. Rows that were `nested` have minus their place as a score, from 0 on.
    """

    frame: Any
    bring: Callable[[Remote, str | None, int | None], pl.DataFrame]
    tie: str = "doc"
    nested: bool = False

    def rows_of(self, qid: str) -> pl.DataFrame:
        """The results of one query."""
        return self.bring(self, qid, None)

    def some(self, limit: int) -> pl.DataFrame:
        """So many results, whichever come first."""
        return self.bring(self, None, limit)


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """The results of one system for many queries, best first.

    `rankings` maps each query to its ids, as lists; or `columns` holds them as a lazy frame, for files too large to be
    worth turning into lists; or they are `remote`, on a cluster. `scores`, where known, stand beside the ids and say
    which results are tied; so do `lengths`, by unit (None where there is none), and what is `beside` them: under
    `text`, `parent` and `span` what reads it when it is asked for. A run whose results were renamed keeps the
    `original`.

    >>> Run.of({"q1": ["a", "b"]}).rankings["q1"]
    ['a', 'b']
    """

    rankings: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    scores: Mapping[str, Sequence[float]] | None = None
    columns: Columns | None = None
    remote: Remote | None = None
    name: str = ""
    source: str = ""
    lengths: Mapping[str, Mapping[str, Sequence[int | None]]] = field(default_factory=dict)
    beside: Mapping[str, Callable[[], Mapping[str, Sequence[Any]]]] = field(default_factory=dict)
    original: Run | None = None

    @classmethod
    def of(cls, rankings: Mapping[Any, Any], name: str = "") -> Run:
        """Wraps `{qid: ranking}`; a ranking is a list of ids, a list of (id, score), or `{id: score}`."""
        if not isinstance(rankings, Mapping):
            kind = type(rankings).__name__
            raise DataError(f"results: expected {{query id: ranking}}, a path or a frame, found {kind}")
        return cls(rankings=rankings, name=name)

    @property
    def settled(self) -> Run:
        """The run itself, or what the slow reader made of it once there was a doubt."""
        if self.columns is not None and "checked" in self.columns.__dict__:
            return self.columns.checked
        return self

    def not_remote(self, what: str) -> None:
        """Raises `ConfigError` where results stay on a cluster, and `what` needs all of them here."""
        if self.remote is not None:
            raise ConfigError(
                f"{self.name or self.source or 'results'}: {what} cannot be had of results that stay on a cluster; "
                "write them to parquet and name the files"
            )

    def __len__(self) -> int:
        return len(self.rankings)

    def __bool__(self) -> bool:
        """A run is one, though it may hold no rankings here."""
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.rankings)

    def __repr__(self) -> str:
        size = f"{len(self.rankings):,} queries"
        if self.columns or self.remote:
            size = "columns, not read yet" if self.columns else "on a cluster"
        return f"Run({self.name or self.source or 'results'}: {size})"
