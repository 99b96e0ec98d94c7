"""Cutoffs by length: how many results of each query fit a budget."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from groupgt.engines.base import not_remote
from groupgt.engines.lists import carried, ranked, ranking_of
from groupgt.errors import ConfigError, DataError, Faults
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.lengths import LONGEST, Budget, Lengths
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Run
from groupgt.runtime import pl


@dataclass(frozen=True, eq=False)
class Walk:
    """The lengths of all results in rank order, summed.

    The first r results of query q are total[start[q] + r] − total[start[q]] long.

    `start` has shape (Q + 1,), `total` one number more than there are results.
    """

    start: Ints
    total: Ints

    @classmethod
    def of(cls, sizes: Sequence[int] | Ints, lengths: Ints) -> Walk:
        """From the number of results of each query and their lengths."""
        zero = np.zeros(1, dtype=np.int64)
        return cls(
            np.concatenate((zero, np.cumsum(sizes))).astype(np.int64), np.concatenate((zero, np.cumsum(lengths)))
        )

    def depth(self, amount: int) -> Ints:
        """How many results of each query fit an amount, shape (Q,)."""
        first, last = self.start[:-1], self.start[1:]
        return np.minimum(np.searchsorted(self.total, self.total[first] + amount, side="right") - 1, last) - first

    def spent(self, rank: Ints) -> Ints:
        """How long the first `rank` results of each query are together, shape (Q,)."""
        first = self.start[:-1]
        spent: Ints = self.total[first + rank] - self.total[first]
        return spent


def depths(
    truth: GroundTruth, run: Run, policy: Policy, lengths: Lengths, budgets: Iterable[Budget]
) -> dict[Hashable, Ints]:
    """How many results of each query fit each budget, shape (Q,); raises `DataError` where lengths are not known."""
    wanted = list(budgets)
    walks = {unit: walk(truth, run, policy, lengths, unit) for unit in {each.unit for each in wanted}}
    return {each: walks[each.unit].depth(each.amount) for each in wanted}


def walk(truth: GroundTruth, run: Run, policy: Policy, lengths: Lengths, unit: str) -> Walk:
    """The lengths of a run's results, in the order in which they are ranked."""
    if run.original is not None:
        if policy.duplicates == "drop":
            what = "lengths are those of results by their own ids, and duplicates=drop removes them by other names"
            raise ConfigError(f"{_title(run)}: {what}; choose duplicates=penalize, or the labeller id")
        run = run.original
    run = run.resolved
    not_remote(run, f"a budget in {unit}")
    if isinstance(run.contents, Columns):
        return _of_columns(truth, run, run.contents, policy, lengths, unit)
    return _of_lists(truth, run, policy, lengths, unit)


def _of_lists(truth: GroundTruth, run: Run, policy: Policy, lengths: Lengths, unit: str) -> Walk:
    own = None if lengths.has(unit) else _with_results(run, lengths, unit)
    keys = {str(key): key for key in run.rankings}
    faults = Faults()
    ids: list[str] = []
    sizes: list[int] = []
    found: list[int | None] = []
    for qid in truth.qids:
        key = keys.get(qid, qid)
        given, _ = ranking_of(run.rankings.get(key), policy, faults, f"results of query {qid!r}")
        places = ranked(given, (run.lists.scores or {}).get(key), policy)
        sizes.append(len(places))
        if own is None:
            ids += [given[place] for place in places]
            continue
        beside = own.get(qid, [])
        if len(beside) != len(given) or None in beside:
            known = len(beside) - beside.count(None)
            what = f"expected a length in {unit} (a whole number from 0) for each of {len(given):,} results"
            faults.add(f"{_title(run)}: query {qid!r}", f"{what}, found {known:,}")
            continue
        found += [beside[place] for place in places]
    faults.stop()
    return Walk.of(sizes, lengths.of(unit, ids) if own is None else np.array(found, dtype=np.int64))


def _with_results(run: Run, lengths: Lengths, unit: str) -> dict[str, list[int | None]]:
    """The lengths that came with the results: as numbers, or counted from their texts."""
    named = unit == "tokens" and lengths.count is not None
    texts = _texts(run) if named or (unit == "chars" and unit not in run.lists.lengths) else {}
    if unit in run.lists.lengths and not texts:
        return {str(key): list(row) for key, row in run.lists.lengths[unit].items()}
    if texts:
        # What is no text has no length.
        whole = {str(key): row if all(isinstance(text, str) for text in row) else [] for key, row in texts.items()}
        return {key: list(lengths.measure(unit, row)) for key, row in whole.items()}
    raise DataError(_unknown(run, unit))


def _texts(run: Run) -> Mapping[Any, Sequence[Any]]:
    """The texts that results carry, by query; nothing where they carry none."""
    if "text" in run.lists.fields:
        return run.lists.fields["text"]()
    found = {key: carried(ranking, "text") for key, ranking in run.rankings.items()}
    return {key: texts for key, texts in found.items() if texts is not None}


def _unknown(run: Run, unit: str) -> str:
    way = "a corpus" if unit == "chars" else f"a corpus with a column {unit}, or a corpus and a tokenizer"
    what = f"a budget in {unit} needs the length of every result, which these do not carry"
    return f"{_title(run)}: {what}; name {way} (--corpus, --tokenizer; lengths= in Python)"


def _title(run: Run) -> str:
    return run.source or run.name or "results"


def in_rank_order(truth: GroundTruth, columns: Columns, policy: Policy, wanted: Sequence[str]) -> pl.DataFrame:
    """The results of judged queries, sorted by query and rank: `query`, `doc` and the columns wanted."""
    judged = pl.LazyFrame({"qid": pl.Series(truth.qids, dtype=pl.String), "query": np.arange(len(truth))})
    rows = columns.frame.with_row_index("row").join(judged, on="qid", how="inner")
    ties = ["doc"] if policy.ties == "id" else []
    keys = ["query", "score", *ties, "row"]
    rows = rows.sort(keys, descending=[False, True, *(True for _ in ties), False])
    if policy.duplicates == "drop":
        rows = rows.unique(["query", "doc"], keep="first", maintain_order=True)
    found: pl.DataFrame = columns.guard(lambda: rows.select("query", "doc", *wanted).collect(engine="streaming"))
    return found


def _of_columns(truth: GroundTruth, run: Run, columns: Columns, policy: Policy, lengths: Lengths, unit: str) -> Walk:
    names = columns.frame.collect_schema().names()
    counted = "text" in names and unit not in names and (unit == "chars" or lengths.count is not None)
    if not lengths.has(unit) and unit not in names and not counted:
        raise DataError(_unknown(run, unit))
    beside = "text" if counted else unit
    found = in_rank_order(truth, columns, policy, [] if lengths.has(unit) else [beside])
    if counted and not lengths.has(unit):
        whole = not found["text"].null_count()
        own_lengths = lengths.measure(unit, found["text"].to_list()) if whole else [None] * len(found)
        found = found.with_columns(pl.Series(unit, own_lengths, dtype=pl.Int64))
    sizes = np.bincount(found["query"].to_numpy(), minlength=len(truth))
    if lengths.has(unit):
        ids = found["doc"].unique().to_list()
        table = pl.DataFrame({"doc": pl.Series(ids, dtype=pl.String), "length": lengths.of(unit, ids)})
        found = found.join(table, on="doc", how="left", maintain_order="left")
        return Walk.of(sizes, found["length"].to_numpy().astype(np.int64))
    own = found[unit].cast(pl.Float64, strict=False)
    wrong = found.filter(~own.is_between(0, LONGEST).fill_null(False) | (own != own.round(0)).fill_null(False))
    if len(wrong):
        faults = Faults()
        for query, document, length in wrong.select("query", "doc", unit).head(100).iter_rows():
            what = f"expected a whole number from 0 as the {unit} of {document!r}, found {length}"
            faults.add(f"{_title(run)}: query {truth.qids[query]!r}", what)
        faults.total += max(len(wrong) - 100, 0)
        faults.fail(DataError)
    return Walk.of(sizes, own.to_numpy().astype(np.int64))
