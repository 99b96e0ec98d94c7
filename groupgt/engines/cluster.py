"""Labels results on a cluster. Each worker gets all rows of a bucket of queries, and labels the rows as usual.

Only hits and counts come back. Rows on a cluster have no order.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.engines.base import Carrier, Labelled
from groupgt.engines.budgets import ONLY_ORDER
from groupgt.engines.carriers import local_carrier_of, renamed
from groupgt.engines.choice import Engine
from groupgt.engines.measure import in_order, measured
from groupgt.engines.order import contradictions
from groupgt.engines.remote import bucket_of, frame_of
from groupgt.errors import SHOWN, ConfigError, DataError, GroupgtError, without_warnings
from groupgt.formats import frames
from groupgt.formats.fields import CALL_COLUMN, CALL_LIST, FIELDS, NESTED, SCORES
from groupgt.formats.roles import canonical
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Contents, Hits, Ints
from groupgt.model.policy import Policy
from groupgt.model.ranking import Ranking
from groupgt.model.run import Remote, Run
from groupgt.model.values import LENGTH_UNITS, SCORE, Budget, Lengths
from groupgt.runtime import no_garbage_collection, pl

if TYPE_CHECKING:
    import pyarrow as pa

# The columns of ids and order.
READ = {"qid", "doc_id", "score", "rank", SCORES, *NESTED, CALL_COLUMN, CALL_LIST}
GLANCE_ROWS = 1000
WITHOUT_ORDER = "rows on a cluster have no order that could break ties between the equal scores"
Texts = tuple[GroundTruth, Mapping[str, str]]


@dataclass(frozen=True, eq=False)
class Cluster(Remote):
    """Results on a cluster, with the steps that workers apply: they put scores in order and rename results."""

    truth: Any = None
    ascending: bool = False
    labeller: Labeller | None = None

    def carrier_of(self, run: Run) -> ClusterCarrier:
        return ClusterCarrier(run, self)

    @property
    def roles(self) -> dict[str, str]:
        """The role of each column in the frame, by column name."""
        names = frames.remote_names(self.frame)
        return dict(zip(names, canonical(names, self.columns)))

    def read(self, rows: pa.Table, run: Run, truth: GroundTruth, policy: Policy) -> Run:
        """Return all results of a few queries as a local run."""
        here = replace(frames.run_of(rows, run.source, columns=self.columns), name=run.name)
        here = in_order(truth, here, ascending=self.ascending)
        return here if self.labeller is None else renamed(truth, here, self.labeller, policy)

    def of_query(self, run: Run, qid: str, policy: Policy) -> Run:
        """Collect the results of one query."""
        columns, key = self.columns_for(self.labeller)
        return self.read(frame_of(self.frame).of_query(columns, key, qid), run, self.truth, policy)

    def columns_for(self, labeller: Labeller | None, fields: Collection[str] = ()) -> tuple[list[str], str]:
        """Return the columns to read, and the name of the query id column."""
        roles = self.roles
        column = "" if labeller is None else labeller.column
        chosen = {*fields, *(("start", "end", "document", "span") if column == "span" else (column,))}
        wanted = READ.union(*((*field.columns, field.nested) for field in FIELDS if field.name in chosen))
        return [name for name in roles if roles[name] in wanted], next(name for name in roles if roles[name] == "qid")

    def check(self, run: Run) -> None:
        """Raise an error if columns are missing or have the wrong type, before any work is done."""
        import pyarrow as pa

        roles = self.roles
        read = [name for name in roles if roles[name] in frames.RUN_COLUMNS]
        rows = frame_of(self.frame).first(read, 0)
        # Other columns, of whatever type, are only named by messages.
        rows = pa.table({name: rows[name] if name in read else pa.nulls(0) for name in roles})
        frames.run_of(rows, run.source, qids=[], columns=self.columns)
        if "qid" not in roles.values():
            raise ConfigError(f"{run.title}: results on a cluster need a column of query ids (qid)")


def on_cluster(truth: GroundTruth, run: Run, *, ascending: bool) -> Run:
    """Return a run whose results are read with this ground truth."""
    remote: Any = run.contents
    return replace(run, contents=Cluster(remote.frame, remote.columns, truth, ascending), ascending=ascending)


class ClusterCarrier(Carrier):
    """Accesses results on a cluster."""

    def __init__(self, run: Run, cluster: Cluster) -> None:
        self.run, self.cluster = run, cluster

    def label(self, truth: GroundTruth, labeller: Labeller, policy: Policy, engine: Engine) -> Labelled:
        return measured_there(truth, self.run, labeller, policy, engine)

    def rename(self, truth: GroundTruth, labeller: Labeller, policy: Policy) -> Run:
        return replace(self.run, contents=replace(self.cluster, labeller=labeller), original=self.run)

    def ranking(self, qid: str, policy: Policy) -> Ranking:
        """Collect and return the results of one query."""
        return local_carrier_of(self.cluster.of_query(self.run, qid, policy), "reading results").ranking(qid, policy)

    def sample(self, limit: int, queries: Collection[str] = ()) -> Mapping[str, Sequence[str]]:
        """Return the result ids of each query in the first rows that the cluster returns."""
        columns, _ = self.cluster.columns_for(self.cluster.labeller)
        rows = frame_of(self.cluster.frame).first(columns, min(limit, GLANCE_ROWS))
        run = self.cluster.read(rows, self.run, self.cluster.truth, Policy())
        return local_carrier_of(run, "reading results").sample(limit)


def measured_there(
    truth: GroundTruth,
    run: Run,
    labeller: Labeller,
    policy: Policy,
    engine: Engine,
    lengths: Lengths | None = None,
    budgets: Collection[Budget] = (),
    contents: Texts | None = None,
) -> Labelled:
    """Run `groupgt.engines.measure.measured` on the workers of a cluster, bucket by bucket."""
    cluster: Any = run.contents
    frame, lengths = frame_of(cluster.frame), lengths or Lengths()
    counted = {budget.unit for budget in budgets if budget.unit in LENGTH_UNITS and not lengths.has(budget.unit)}
    reads_texts = labeller.reads_results or counted or contents is not None
    fields = {*(budget.unit for budget in budgets), *(["text"] if reads_texts else [])}
    cluster.check(run)
    columns, key = cluster.columns_for(labeller, fields)
    if any(budget.unit == SCORE for budget in budgets) and {"score", SCORES}.isdisjoint(cluster.roles.values()):
        raise DataError(f"{run.title}: {ONLY_ORDER}")
    count = max(-(-len(truth) // engine.bucket), min(frame.parts, len(truth)), 1)
    own = np.array([bucket_of(qid, count) for qid in truth.qids], dtype=np.int64)
    queries, alternatives = _split(own, count), _split(own[truth.query_of], count)
    parts = _parts(truth, own, count)
    others = [None] * count if contents is None else _parts(contents[0], own, count)
    job = {
        "run": replace(run, contents=replace(cluster, frame=None, truth=None), original=None),
        "rest": (labeller, policy, lengths, tuple(budgets), None if contents is None else contents[1]),
    }
    tasks = [pickle.dumps(pair, pickle.HIGHEST_PROTOCOL) for pair in zip(parts, others)]
    found: list[tuple[Labelled, Ints, Ints]] = []
    errors: list[GroupgtError] = []
    for bucket, data in frame.each(columns, key, tasks, worker(_version(), frame.dumps(job))):
        answer = pickle.loads(data)  # noqa: S301  # made by `worker`
        if isinstance(answer, str | None):
            has = f"groupgt {answer}" if answer else "no groupgt"
            what = f"expected groupgt {_version()} on every cluster worker, found {has}"
            raise ConfigError(f"{run.title}: {what}; install that version and pyarrow in every worker's Python")
        if isinstance(answer, GroupgtError):
            errors.append(answer)
        else:
            found.append((answer, queries[bucket], alternatives[bucket]))
    if errors:
        texts = list(chain.from_iterable(error.faults for error in errors))
        distinct = sorted(set(texts))
        raise type(errors[0])(*distinct, total=sum(error.total for error in errors) - len(texts) + len(distinct))
    return _joined(truth, found, policy, budgets)


def _version() -> str:
    # By name, for the package itself is imported by nothing in it.
    return str(import_module("groupgt").__version__)


def worker(version: str, job: bytes) -> Callable[[bytes, pa.Table], bytes]:
    """Return the function that workers run, which imports groupgt by name so that it can report a missing version."""

    home = __name__

    def work(task: bytes, rows: Any) -> bytes:
        import pickle
        from importlib import import_module

        try:
            there = str(import_module("groupgt").__version__)
        except ImportError:
            there = None
        if there != version:
            return pickle.dumps(there)
        answer: bytes = import_module(home).labelled_bucket(job, task, rows)
        return answer

    return work


def labelled_bucket(job: bytes, task: bytes, rows: pa.Table) -> bytes:
    """Label the rows of a bucket. Return pickled hits and counts, or the error to raise."""
    with without_warnings(), no_garbage_collection():
        try:
            found: Labelled | GroupgtError = _labelled_bucket(job, task, rows)
        except GroupgtError as error:
            # Numbers of rows in a bucket say nothing.
            faults = [re.sub(r": row [0-9]+(?=: |, |\))", "", fault) for fault in error.faults]
            found = type(error)(*faults, total=error.total)
    return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)


def _labelled_bucket(job: bytes, task: bytes, rows: pa.Table) -> Labelled:
    sent = pickle.loads(job)  # noqa: S301  # made by `measured_there`
    truth, written = pickle.loads(task)  # noqa: S301  # made by `measured_there`
    labeller, policy, lengths, budgets, texts = sent["rest"]
    # Not the place in the input decides, but the id; if that would matter, it is refused.
    rules = replace(policy, ties="id")
    run = sent["run"].contents.read(rows, sent["run"], truth, rules)
    _refuse_ties(truth, run, policy, all_matter=bool(budgets or written))
    contents = None if written is None else (written, texts)
    labelled = measured(truth, run, labeller, rules, Engine(), lengths, budgets, contents, in_part=True)
    if policy.ties == "input" and len(labelled.tie_query):
        _fail(run, truth.qids[int(labelled.tie_query[0])], policy)
    repeating = None if policy.looks_at_all else local_carrier_of(run, "finding repeats").repeating(truth)
    again = {*(repeating or ()), *labelled.hit_again.tolist()}
    return replace(
        labelled,
        hits=replace(labelled.hits, judgments=None),  # type: ignore[arg-type]  # those of the whole are put in its place
        duplicated=labelled.duplicated if repeating is None else len(again),
        excluded=run.by_original_ids.excluded,
        contradictory=contradictions(run),
    )


def _refuse_ties(truth: GroundTruth, run: Run, policy: Policy, *, all_matter: bool) -> None:
    """Raise `ConfigError` if only input order tells rows apart. With `all_matter`, every tie's order matters."""
    if run.in_memory:
        return
    columns = run.as_columns
    names = columns.guard(columns.frame.collect_schema).names()
    deciding = ["qid", "score", columns.tie]
    if policy.ties == "input":
        deciding = deciding[:2] if all_matter else []
    elif len(names) <= len({*deciding, "doc"}):
        deciding = []
    if deciding:
        rows = columns.guard(columns.frame.filter(pl.col("qid").is_in(truth.qids)).collect)
        tied = rows.filter(rows.select(deciding).is_duplicated()).unique()
        tied = tied.filter(tied.select(deciding).is_duplicated())
        if len(tied):
            _fail(run, tied["qid"].min(), policy)


def _fail(run: Run, qid: Any, policy: Policy) -> None:
    where, way = ("(ties=input)", "choose ties=id, or ") if policy.ties == "input" else ("and ids", "")
    raise ConfigError(f"{run.title}: {WITHOUT_ORDER} {where} of query {qid!r}; {way}add a rank column")


def _split(bucket: Ints, count: int) -> list[Ints]:
    """Return the positions of the rows in each bucket."""
    order = np.argsort(bucket, kind="stable")
    return np.split(order, np.searchsorted(bucket[order], np.arange(1, count)))


def _parts(truth: GroundTruth, own: Ints, count: int) -> list[GroundTruth]:
    """Return the ground truth of each bucket, with everything that labelling reads."""
    whole = replace(truth, columns={}, keys=(), repeated_ids=0, dropped=(), blank=(), comments=0)
    places = zip(*(_split(bucket, count) for bucket in (own, own[truth.group_query], own[truth.query_of])))
    return [_part(whole, *of_bucket) for of_bucket in places]


def _part(truth: GroundTruth, queries: Ints, groups: Ints, alternatives: Ints) -> GroundTruth:
    def chosen(cells: Any, places: Ints) -> Any:
        return cells and [cells[place] for place in places.tolist()]

    return replace(
        truth,
        qids=chosen(truth.qids, queries),
        ids=chosen(truth.ids, alternatives),
        group_of=np.searchsorted(groups, truth.group_of[alternatives]),
        grade=truth.grade[alternatives],
        group_query=np.searchsorted(queries, truth.group_query[groups]),
        group_weight=truth.group_weight[groups],
        set_of=None if truth.set_of is None else truth.set_of[alternatives],
        judged=None if truth.judged is None else truth.judged[queries],
        **{name: chosen(getattr(truth, name), groups) for name in ("group_name", "importance")},
        **{name: chosen(getattr(truth, name), queries) for name in ("texts", "excluded", "harmful")},
        forms=chosen(truth.forms, alternatives),
    )


def _joined(
    truth: GroundTruth, found: list[tuple[Labelled, Ints, Ints]], policy: Policy, budgets: Collection[Budget]
) -> Labelled:
    """Combine the hits of all buckets (each with the places of its queries and alternatives) in ground truth order."""
    parts = [part for part, _, _ in found]

    def rows(read: Callable[[Labelled, Ints, Ints], Any], kind: Any = np.int64) -> Any:
        return np.concatenate([np.zeros(0, dtype=kind), *(read(*of_bucket) for of_bucket in found)])

    def per_query(read: Callable[[Labelled], Ints]) -> Ints:
        column = np.zeros(len(truth), dtype=np.int64)
        for part, queries, _ in found:
            column[queries] = read(part)
        return column

    query = rows(lambda part, queries, _: queries[part.hits.query])
    alternative = rows(lambda part, _, alternatives: alternatives[part.hits.alternative])
    rank, length = rows(lambda part, *_: part.hits.rank), per_query(lambda part: part.hits.length)
    order = np.lexsort((alternative, rank, query))
    tie_query = rows(lambda part, queries, _: queries[part.tie_query])
    tie_first = rows(lambda part, *_: part.tie_first)
    tied = np.lexsort((tie_first, tie_query))
    extra = sum(part.extra for part in parts)
    repeat = rows(lambda part, *_: part.hits.repeat, np.bool_)
    columns = (query[order], rank[order], alternative[order], repeat[order])
    prefixes: Any = {each: per_query(lambda part, key=each: part.hits.prefixes[key]) for each in budgets}  # type: ignore[misc]  # bound now
    contents = _joined_contents([(part.hits.contents, queries) for part, queries, _ in found if part.hits.contents])
    hits = Hits(
        truth.judgments, *columns, length, keep=policy.duplicates == "keep", prefixes=prefixes, contents=contents
    )
    return Labelled(
        hits=hits,
        present=length > 0,
        extra=extra,
        duplicated=sum(part.duplicated for part in parts),
        hit_again=np.sort(rows(lambda part, queries, _: queries[part.hit_again])),
        tie_query=tie_query[tied],
        tie_first=tie_first[tied],
        tie_last=rows(lambda part, *_: part.tie_last)[tied],
        no_match=not len(query) and (bool(length.any()) or bool(extra)),
        extra_names=tuple(sorted(chain.from_iterable(part.extra_names for part in parts))[:SHOWN]),
        excluded=sum(part.excluded for part in parts),
        contradictory=(sum(part.contradictory[0] for part in parts), sum(part.contradictory[1] for part in parts)),
    )


def _joined_contents(parts: list[tuple[Contents, Ints]]) -> Contents | None:
    if not parts:
        return None
    query = np.concatenate([queries[part.query] for part, queries in parts])
    rank = np.concatenate([part.rank for part, _ in parts])
    order = np.lexsort((rank, query))
    scores = {name: np.concatenate([part.scores[name] for part, _ in parts])[order] for name in parts[0][0].scores}
    return Contents(query[order], rank[order], scores)
