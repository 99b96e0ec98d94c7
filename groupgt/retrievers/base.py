"""Defines the interface of retrievers and its inputs, and validates rankings."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray

from groupgt.errors import ConfigError, Faults, GroupgtError, RetrieverError, display, near_names, strange_result, warn
from groupgt.formats.roles import id_in
from groupgt.model.policy import Policy
from groupgt.model.validity import are_plainly_ids, finite_number, id_fault, id_text, note_cost, shown
from groupgt.model.values import unnamed
from groupgt.options import Called, Doc, options_of
from groupgt.plugins import Plugin, ours
from groupgt.runtime import raised, users_code

Ranking = Sequence[Any]
T = TypeVar("T")
# If at least this many queries have the same number of results, this is not a coincidence.
SEVERAL = 5
BATCH = 32
# Maximum characters of a response that a message shows.
SHOWN_CHARS = 200
# Options of several retrievers.
IdField = Annotated[str, Doc("Field that holds the result's id, or a path to that field, such as document.id.")]
ScoreField = Annotated[str, Doc("Field that holds the result's score, or a path to that field.")]
Send = Annotated[list[str], Doc("Columns of the ground truth to send with each query, such as qid or tenant.")]
Count = Annotated[int, Ge(1)]
Seconds = Annotated[float, Called("seconds"), Gt(0), Le(86_400)]
Timeout = Annotated[Seconds, Doc("Seconds to wait for each answer.")]


@dataclass(frozen=True, eq=False)
class Corpus:
    """The ids and texts of the documents that a retriever searches, in corpus order."""

    ids: list[str]
    texts: list[str]
    made: dict[object, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Corpus:
        """Build a corpus from `{id: text}`."""
        return cls(list(texts), list(texts.values()))

    def __len__(self) -> int:
        return len(self.ids)

    def once(self, key: object, make: Callable[[], T]) -> T:
        """Return the cached result of `make`, such as the corpus's words, which systems can share."""
        if key not in self.made:
            self.made[key] = make()
        value: T = self.made[key]
        return value


class Queries(list[str]):
    """A list of query texts with their `ids`, and the `columns` that a retriever receives with them."""

    def __init__(
        self, texts: Sequence[str], ids: Sequence[str], columns: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        super().__init__(texts)
        self.ids, self.columns = list(ids), dict(columns or {})

    @property
    def shown(self) -> str:
        """A short description of the queries, for messages."""
        more = f" and {len(self) - 1:,} more" if len(self) > 1 else ""
        return f"query {self.ids[0]!r}{more}" if self.ids else "no query"

    def part(self, start: int, end: int) -> Queries:
        """Return the queries from `start` up to `end`."""
        columns = {name: values[start:end] for name, values in self.columns.items()}
        return Queries(self[start:end], self.ids[start:end], columns)

    def sending(self, names: Iterable[str], way: str = "") -> Queries:
        """Return the queries with only these columns, or raise a `ConfigError` that says how the call works (`way`)."""
        columns = {"qid": self.ids} | {name: values for name, values in self.columns.items() if name not in ALWAYS}
        for name in names:
            if name not in columns:
                start, near = f"{way}: " if way else "", near_names(name, columns)
                raise ConfigError(f"{start}the queries have no column {name!r}{near}; they have {', '.join(columns)}")
        return Queries(self, self.ids, {name: columns[name] for name in names})


# Names of what every call receives.
ALWAYS = ("query", "queries", "k")


def columns_of(queries: Sequence[str]) -> Mapping[str, Sequence[Any]]:
    """Return the columns that a retriever receives with queries. A plain list has no columns."""
    return getattr(queries, "columns", {})


def rows_of(queries: Sequence[str]) -> list[dict[str, Any]]:
    """Return the values that a retriever receives with each query, by column."""
    columns = columns_of(queries)
    return [{name: values[row] for name, values in columns.items()} for row in range(len(queries))]


@dataclass(frozen=True, eq=False)
class Setting:
    """The inputs of a retriever: the corpus, the ids of all queries in file order, and the random seed.

    `folder` is the experiment file's folder. If scores are `ascending`, lower ones are better. `policy` orders ties.
    """

    corpus: Corpus
    qids: Sequence[str] = ()
    seed: int = 0
    folder: Path = Path()
    ascending: bool = False
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True)
class Options:
    """Base class for the options under `with:`.

    A subclass is a dataclass whose fields are the keys and whose annotations define valid values. A field with type
    `File` from `groupgt.options` is a path relative to the experiment file, with `{dataset}` filled in. A `clashes`
    method in a subclass may yield errors that annotations cannot express.
    """

    def searches_texts(self) -> bool:
        """Return whether the retriever needs query texts."""
        return True

    def batch_size(self) -> int:
        """Return the number of queries per call."""
        return BATCH

    def asks_singly(self) -> bool | None:
        """Return whether each call has a single query, or None if only the retriever can determine this."""
        return self.batch_size() == 1

    def sends(self) -> Sequence[str]:
        """Return the columns that are sent with each query."""
        return getattr(self, "send", ())

    def least_score(self) -> float | None:
        """Return the minimum possible score, for theoretical normalization, or None if there is none."""
        return None

    def program(self) -> Sequence[str]:
        """Return the command to start, which needs --allow-code, or an empty string if there is none."""
        return ()


class Retriever(Protocol):
    """The interface of retrievers. A retriever has one method, which returns a ranking per query, best result first.

    A ranking contains `(id, score)` pairs, mappings with these keys, or only ids. Results without ids are mappings with
    the key `text`. `{"results": ranking, "cost": 0.002}` also reports the cost of a query, in any unit. A retriever
    that makes several calls per batch may set `spent` to the duration of each call in the last batch, in milliseconds.
    If a retriever has a `close` method, groupgt calls it at the end. If a retriever's options have a field `send:
    Send`, `queries.columns` contains these columns, with one value per query.
    """

    def retrieve(self, queries: Sequence[str], k: int) -> Sequence[Ranking]:
        """Return a ranking of at most k results for each query, in query order."""
        ...


class OneByOne:
    """Base class for retrievers that take one query at a time. Errors say which query failed."""

    def answer(self, query: str, k: int, **sent: Any) -> Any:
        """Return at most k results for a query and the values `sent` with it, by column."""
        raise NotImplementedError

    def retrieve(self, queries: Sequence[str], k: int) -> list[Ranking]:
        """Return a ranking for each query."""
        rankings = []
        for query, name, sent in zip(queries, getattr(queries, "ids", queries), rows_of(queries)):
            try:
                rankings.append(self.answer(query, k, **sent))
            except RetrieverError as error:
                raise RetrieverError(f"query {name!r}: {error}") from None
        return rankings


def ask(system: str, retriever: Retriever, queries: Queries, k: int) -> tuple[Answers, list[float]]:
    """Call a retriever, and return its results and the milliseconds that each call took. Errors list the queries."""
    which, qids, start = queries.shown, [*queries.ids], time.perf_counter()  # the retriever may change its own
    try:
        with users_code():
            rankings = retriever.retrieve(queries, k)
    except (GroupgtError, KeyboardInterrupt):
        raise
    except BaseException as error:  # neither a library's panic nor sys.exit in code of the user's is an `Exception`
        raise RetrieverError(f"{which}: {raised(error)}") from error
    took = 1000 * (time.perf_counter() - start)
    return checked(system, qids, rankings, k), list(getattr(retriever, "spent", None) or [took])


@dataclass(frozen=True, eq=False)
class Answers:
    """The results of one system for every query, best first, with scores if all results have one.

    `excluded` counts results that the ground truth excludes. Results without ids have `texts` and are numbered.
    """

    ids: dict[str, list[str]]
    scores: dict[str, list[float]] | None = None
    costs: dict[str, float] = field(default_factory=dict, kw_only=True, repr=False)
    excluded: int = field(default=0, repr=False)
    texts: dict[str, list[str]] | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class RetrieverPlugin(Plugin):
    """A plug-in for one `use:` value: the `options` that it accepts and the function that builds systems.

    `build` creates a retriever from a `Setting` and options, and `fuse` combines results of other systems. Without
    `build` and `fuse`, results are read from files. `libraries` lists distributions whose versions affect results. Set
    `live` if results come from a service and may change, `cheap` if it runs in this process and its queries may be
    repeated to measure latency, `corpus` if it searches a corpus, and `probed` if `--dry-run` builds it to check its
    options. `note` is shown next to the name.
    """

    options: type[Options] = Options
    build: Callable[[Setting, Any], Retriever] | None = None
    fuse: Callable[[Any, Sequence[Answers], Sequence[float | None], int], Answers] | None = None
    libraries: tuple[str, ...] = ()
    corpus: bool = True
    live: bool = False
    cheap: bool = False
    probed: bool = False
    note: str = ""

    @property
    def is_foreign(self) -> bool:
        """True for services and third-party code, which are queried on each run because they may change unnoticed."""
        return self.live or self.runs_code or self.name not in ours("retriever")

    @property
    def imports_target(self) -> bool:
        """True if the `target` option names the user's code, which is imported in a separate process."""
        return self.runs_code and "target" in options_of(self.options)


def as_list(value: Any) -> Any:
    """Convert a tuple, an array, a series or an iterator to a list. Leave other values unchanged."""
    if isinstance(value, (list, tuple)):
        return list(value)
    for method in ("tolist", "to_list"):
        if hasattr(value, method) and not np.isscalar(value):
            return getattr(value, method)()
    return list(value) if isinstance(value, Iterator) else value


def is_reply(value: Any) -> bool:
    """Return whether a value is `{"results": ranking}`, not `{id: score}`."""
    return isinstance(value, Mapping) and not isinstance(value.get("results", 0), (int, float))


def as_pairs(ranking: Any, id_field: str, score_field: str) -> Any:
    """Convert the objects in a ranking that was read from JSON to pairs. Leave other values for `checked` to handle."""
    if is_reply(ranking):
        pairs = as_pairs(ranking["results"], id_field, score_field)
        return {"results": pairs, "cost": ranking["cost"]} if "cost" in ranking else pairs
    if not isinstance(ranking, list):
        return ranking
    results = []
    for result in ranking:
        if isinstance(result, dict):
            doc_id, score = value_at(result, id_field), value_at(result, score_field)
            if doc_id is ABSENT:
                what = f"expected a result with the field {id_field!r} (id_field), found {display(result, SHOWN_CHARS)}"
                raise RetrieverError(what)
            result = doc_id if score is ABSENT else (doc_id, score)
        results.append(result)
    return results


# What a path leads to that does not exist.
ABSENT = object()


def value_at(value: Any, path: str) -> Any:
    """Return the value at a field or path of an object that was read from JSON, or `ABSENT`."""
    for key in [path] if isinstance(value, dict) and path in value else path.split("."):
        value = value.get(key, ABSENT) if isinstance(value, dict) else ABSENT
    return value


def checked(name: str, qids: Sequence[str], rankings: Sequence[Ranking], k: int) -> Answers:
    """Check the rankings of a retriever, keeping their order, or raise `RetrieverError` with queries and ranks."""
    faults = Faults()
    if not isinstance(rankings, (list, tuple)):
        raise RetrieverError(f"system {name!r}: expected a list of rankings, found {type(rankings).__name__}")
    if len(rankings) != len(qids):
        what = f"system {name!r}: expected {len(qids):,} rankings, one per query, found {len(rankings):,}"
        raise RetrieverError(what)
    ids: dict[str, list[str]] = {}
    scores: dict[str, list[float]] = {}
    texts: dict[str, list[str]] = {}
    costs: dict[str, float] = {}
    for qid, ranking in zip(qids, rankings):
        where = f"system {name!r}: query {qid!r}"
        if is_reply(ranking):
            note_cost(costs, qid, ranking.get("cost"), faults, where)
            ranking = ranking["results"]
        if not isinstance(ranking, (list, tuple)):
            faults.add(where, f"expected a list of results, found {type(ranking).__name__}")
            continue
        if len(ranking) > k:
            faults.add(where, f"expected at most {k:,} results, found {len(ranking):,}")
        if ranking and all(map(_is_text, ranking)):
            texts[qid] = [result["text"] for result in ranking]
            ranking = [{**result, "id": name} for result, name in zip(ranking, unnamed(len(ranking)))]
        ids[qid], scores[qid] = _read(ranking, where, faults)
    faults.stop(RetrieverError)
    are_scored = all(len(scores[qid]) == len(ranking) for qid, ranking in ids.items())
    return Answers(ids, scores if are_scored else None, texts=texts or None, costs=costs)


def _is_text(result: Any) -> bool:
    """Return whether a result has text but no id."""
    return isinstance(result, Mapping) and id_in(result) is None and isinstance(result.get("text"), str)


def warn_of_doubts(
    name: str, answers: Answers, k: int, corpus_ids: Collection[str] | None = None, *, counted: bool = True
) -> None:
    """Warn if a system returns too few results (if `counted`) or ids that are not in the corpus."""
    if corpus_ids:
        check_ids(name, answers, corpus_ids)
    lengths = set(map(len, answers.ids.values()))
    most = min(k, len(corpus_ids)) if corpus_ids is not None else k
    if counted and len(answers.ids) >= SEVERAL and len(lengths) == 1 and 0 < max(lengths) < most:
        count = f"{max(lengths):,} result{'' if lengths == {1} else 's'}"
        text = f"system {name!r}: returned exactly {count} for every query, but {most:,} were asked for. "
        warn(text + "Metrics use only the results it returned", "few results")


def check_ids(name: str, answers: Answers, corpus_ids: Collection[str]) -> None:
    """Warn about ids that are not in the corpus, or raise `RetrieverError` if the corpus has none of the ids."""
    returned = dict.fromkeys(chain.from_iterable(answers.ids.values()))
    absent = [doc_id for doc_id in returned if doc_id not in corpus_ids]
    if not absent:
        return
    shown_ids = ", ".join(map(shown, absent[:3])) + (" …" if len(absent) > 3 else "")
    if len(absent) == len(returned):
        what = f"none of the ids it returns ({len(returned):,}) is in the corpus: {shown_ids}"
        raise RetrieverError(f"system {name!r}: {what}; expected ids such as {shown(min(corpus_ids))}")
    verb = "is" if len(absent) == 1 else "are"
    text = f"system {name!r}: {len(absent):,} of the {len(returned):,} ids it returns {verb} not in the corpus: "
    warn(text + shown_ids, "unknown ids")


def _read(ranking: Ranking, where: str, faults: Faults) -> tuple[list[str], list[float]]:
    if (plain := _plain_pairs(ranking)) is not None:
        return plain
    ids: list[str] = []
    scores: list[float] = []
    for rank, result in enumerate(ranking, 1):
        cell: Any = result
        if isinstance(result, Mapping) and (found := id_in(result)) is not None:
            cell = (found, result["score"]) if "score" in result else found
        pair = isinstance(cell, (tuple, list)) and len(cell) == 2
        name = id_text(cell[0] if pair else cell)
        if name is None and isinstance(cell, Mapping):
            faults.add(where, strange_result(cell))
            break
        if name is None:
            faults.add(where, f"expected an id (a string or integer) at rank {rank}, found {shown(cell)}")
            continue
        if fault := id_fault(name):
            faults.add(where, f"the id at rank {rank} {fault}")
            continue
        if pair:
            score = finite_number(cell[1])
            if score is None:
                faults.add(where, f"expected a finite score at rank {rank}, found {shown(cell[1])}")
                continue
            scores.append(score)
        ids.append(name)
    return ids, scores


def _plain_pairs(ranking: Ranking) -> tuple[list[str], list[float]] | None:
    """Return the ids and scores of a list of (text, float) pairs, or None if any pair may be invalid."""
    if set(map(type, ranking)) != {tuple} or set(map(len, ranking)) != {2}:
        return None
    ids, scores = map(list, zip(*ranking))
    if set(map(type, ids)) != {str} or set(map(type, scores)) != {float}:
        return None
    return (ids, scores) if are_plainly_ids(ids) and bool(np.isfinite(scores).all()) else None


def best(
    ids: Sequence[str], scores: NDArray[Any], k: int, places: NDArray[Any] | None = None, *, above: float | None = None
) -> Ranking:
    """Return the k best of `scores`, shape (n,), as (id, score) pairs. Ties are in index order.

    `places` has the ascending index of each score in `ids` (default: 0, 1, …). Scores must exceed `above`, if set.
    """
    chosen = np.arange(len(scores)) if above is None else np.flatnonzero(scores > above)
    if len(chosen) > k:
        # Keep everything from the k-th score up, so that only position decides between equal scores at the cut.
        lowest = np.partition(scores[chosen], len(chosen) - k)[len(chosen) - k]
        chosen = chosen[scores[chosen] >= lowest]
    chosen = chosen[np.argsort(-scores[chosen], kind="stable")[:k]]
    rows = chosen if places is None else places[chosen]
    return [(ids[row], score) for row, score in zip(rows.tolist(), scores[chosen].tolist())]
