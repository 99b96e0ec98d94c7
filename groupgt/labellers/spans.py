"""The spans labeller: alternatives are places in documents, and a result hits those it covers enough of."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal, get_args

import numpy as np
from annotated_types import Gt, Le

from groupgt.errors import DataError, Faults, GroupgtWarning
from groupgt.labellers.base import Labeller, Matches, Results, Table, Tables, matches_of, spread
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Ints
from groupgt.model.spans import SPELLED, Form, Span, kind_of
from groupgt.model.validity import shown
from groupgt.options import Clash
from groupgt.plugins import Plugin
from groupgt.runtime import pl

# So many pairs are looked at at a time.
BLOCK = 4_000_000


def overlapping(
    left_key: Ints, left_start: Ints, left_end: Ints, right_key: Ints, right_start: Ints, right_end: Ints
) -> Iterator[tuple[Ints, Ints]]:
    """Pairs (left, right) of half-open intervals with one key that overlap, in blocks, each pair once.

    Two intervals overlap when the right one starts within the left one, or the left one starts behind the start of the
    right one and before its end; starts being sorted, each of the two is a range. Keys are from 0; empty intervals
    overlap nothing.

    >>> one = lambda *values: np.array(values)
    >>> [pair] = overlapping(one(0), one(3), one(7), one(0, 0, 1), one(5, 7, 5), one(9, 8, 9))
    >>> [each.tolist() for each in pair]
    [[0], [0]]
    """
    points = np.unique(np.concatenate((left_start, left_end, right_start, right_end)))
    # Numbered closely, so that no code overflows.
    _, keys = np.unique(np.concatenate((left_key, right_key)), return_inverse=True)
    left_key, right_key = keys[: len(left_key)], keys[len(left_key) :]

    def coded(key: Ints, value: Ints) -> Ints:
        return key * len(points) + np.searchsorted(points, value)

    starts, ends = coded(left_key, left_start), coded(left_key, left_end)
    other_starts, other_ends = coded(right_key, right_start), coded(right_key, right_end)
    order = np.argsort(other_starts, kind="stable")
    for own, other in _ranges(starts, ends, other_starts[order], "left"):
        yield own, order[other]
    order = np.argsort(starts, kind="stable")
    for own, other in _ranges(other_starts, other_ends, starts[order], "right"):
        yield order[other], own


def _ranges(start: Ints, end: Ints, points: Ints, side: str) -> Iterator[tuple[Ints, Ints]]:
    """(interval, place) for all sorted points from its start to before its end; `right`: not those at its start."""
    low = np.searchsorted(points, start, side="right" if side == "right" else "left")
    count = np.maximum(np.searchsorted(points, end, side="left") - low, 0)
    total = np.concatenate(([0], np.cumsum(count)))
    first = 0
    while first < len(start):
        last = max(int(np.searchsorted(total, total[first] + BLOCK, side="right")) - 1, first + 1)
        own = np.repeat(np.arange(first, last), count[first:last])
        within = np.arange(len(own)) - np.repeat(total[first:last] - total[first], count[first:last])
        if len(own):
            yield own, low[own] + within
        first = last


def first_covered(owner: Ints, low: Ints, high: Ints, need: Ints) -> tuple[Ints, Ints]:
    """Where pieces that come one after the other first cover `need[owner]` of their owner together.

    Returns (row, owner) of those that do. The union of pieces is cut at every bound; each part belongs to the first
    piece that covers it, and parts are added up in the order of pieces.

    >>> one = lambda *values: np.array(values)
    >>> row, owner = first_covered(one(0, 0, 0), one(0, 2, 8), one(4, 5, 9), one(6))
    >>> row.tolist(), owner.tolist()
    ([2], [0])
    """
    points = np.unique(np.concatenate((low, high)))
    size = len(points)
    begin, end = (owner * size + np.searchsorted(points, value) for value in (low, high))
    bounds = np.unique(np.concatenate((begin, end)))
    first, last = np.searchsorted(bounds, begin), np.searchsorted(bounds, end)
    rows: list[Ints] = []
    parts: list[Ints] = []
    covered = np.zeros(len(bounds), dtype=np.bool_)
    for row, part in _pieces(first, last):
        # Of each part the first piece: pieces come in their order, and assigning backwards leaves the first.
        fresh = ~covered[part]
        row, part = row[fresh], part[fresh]
        part, place = np.unique(part, return_index=True)
        rows.append(row[place])
        parts.append(part)
        covered[part] = True
    if not rows:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    row, part = np.concatenate(rows), np.concatenate(parts)
    length = points[bounds[part + 1] % size] - points[bounds[part] % size]
    of = bounds[part] // size
    order = np.lexsort((row, of))
    row, of, length = row[order], of[order], length[order]
    sums = np.cumsum(length)
    starts = np.flatnonzero(np.concatenate(([True], of[1:] != of[:-1])))
    before = np.repeat(sums[starts] - length[starts], np.diff(np.append(starts, len(of))))
    enough = np.flatnonzero(sums - before >= need[of])
    _, place = np.unique(of[enough], return_index=True)
    chosen = enough[place]
    return row[chosen], of[chosen]


def _pieces(first: Ints, last: Ints) -> Iterator[tuple[Ints, Ints]]:
    """(piece, part) for all parts of each piece, in blocks."""
    yield from _ranges(first, last, np.arange(int(last.max()) if len(last) else 0), "left")


Unit = Literal["chars", "pages", "lines"]
UNITS: tuple[Unit, ...] = get_args(Unit)
# Shares are exact to so many parts: lengths up to 10^12 times this are whole numbers still.
PARTS = 10**6


@dataclass(frozen=True)
class Options:
    """How much must be covered, and where the places of results stand.

    `min_overlap` is the least share, above 0, `of` the alternative, of the result, or of the union of the two
    (intersection over union). `joint`: results may cover an alternative together, and the one that completes the share
    hits. `chunks` is a table of results' places (`chunk_id, doc_id, start, end`), without which results carry theirs,
    or the corpus does; `reference` one of the chunks that alternatives name by id. `unit`: in chars a span ends before
    its `end`, in pages and lines it holds it.
    """

    min_overlap: Annotated[float, Gt(0), Le(1)] = 0.5
    of: Literal["alternative", "result", "union"] = "alternative"
    joint: bool = False
    chunks: Table = ""
    reference: Table = ""
    unit: Unit = "chars"

    def clashes(self) -> Iterator[Clash]:
        """A share that can be computed exactly, and results that cover together only what they can."""
        if self.min_overlap < 1 / PARTS:
            yield Clash("min_overlap", f"expected a share of at least 1/{PARTS:,}, found {self.min_overlap!r}")
        if self.joint and self.of != "alternative":
            what = f"results cover an alternative together; of={self.of} measures each by itself"
            yield Clash("joint", what, ("of",))


class Spans(Labeller):
    """A result hits an alternative when their overlap is at least `min_overlap` of the one, the other, or both.

    >>> import groupgt
    >>> truth = {"q": [[{"doc": "d", "start": 100, "end": 200}]]}
    >>> chunks = {"c1": ("d", 0, 140), "c2": ("d", 140, 300)}
    >>> labeller = {"use": "spans", "with": {"chunks": chunks}}
    >>> groupgt.evaluate(truth, {"q": ["c1", "c2"]}, ["mrr"], labeller=labeller).means  # c1 covers 40 of 100, c2 60
    {'mrr': 0.5}
    """

    name = "spans"

    def __init__(self, options: Options, tables: Tables) -> None:
        self.options = options
        self.share = Fraction(repr(float(options.min_overlap))).limit_denominator(PARTS)
        self.chunks = tables.chunks(options.chunks, "chunks")
        self.reference = tables.chunks(options.reference, "reference") if options.reference else None
        self.column = "" if self.chunks is not None else "span"
        # Pages and lines are named by their first and last: half-open intervals end one behind.
        self.beyond = 0 if options.unit == "chars" else 1
        if self.chunks is not None and not self.beyond:
            self._refuse_empty(self.chunks.ids, self.chunks.start, self.chunks.end, "chunk")

    def strange(self, ids: Sequence[str]) -> list[str]:
        """The results that the chunk table does not have."""
        return [] if self.chunks is None else [name for name in ids if name not in self.places]

    @cached_property
    def places(self) -> frozenset[str]:
        """The chunks of the table."""
        return frozenset(self.chunks.ids if self.chunks is not None else ())

    def _refuse_empty(self, names: Sequence[str], start: Ints, end: Ints, what: str) -> None:
        faults = Faults()
        for place in np.flatnonzero(end <= start).tolist():
            bounds = f"{start[place]} to {end[place]}"
            faults.add(f"{what} {shown(names[place])}", f"expected an end behind its start, found {bounds}")
        faults.stop(DataError)

    def truth(self, truth: GroundTruth) -> GroundTruth:
        """Groups of spans: ids become places of the reference; raises `DataError` for what has no place."""
        places = self.reference.spans() if self.reference is not None else {}
        faults = Faults()
        forms: list[Form] = []
        for alternative, form in enumerate(truth.forms or [None] * len(truth.ids)):
            name = truth.ids[alternative]
            found = places.get(name) if form is None else form
            if not isinstance(found, Span):
                where = f"query {truth.qids[int(truth.query_of[alternative])]!r}"
                way = "name the table of the chunks that were judged as `reference`"
                if form is None and self.reference is not None:
                    faults.add(where, f"the alternative {shown(name)} is not in the reference")
                else:
                    kind = {"id": "an id", "text": "a text"}[kind_of(form)]
                    faults.add(
                        where,
                        f"the labeller spans reads alternatives {{doc, start, end}}, and {shown(name)} is {kind}"
                        + (f"; {way}" if form is None else "; choose the labeller text"),
                    )
                continue
            if not self.beyond and found.end <= found.start:
                where = f"query {truth.qids[int(truth.query_of[alternative])]!r}"
                faults.add(where, f"expected a span whose end is behind its start, found {found}")
            forms.append(found)
        faults.stop(DataError)
        return truth.renamed([str(form) for form in forms], forms)

    def match(self, truth: GroundTruth, results: Results) -> Matches:
        """An interval join: of the chunk table's places with those of the alternatives, document by document."""
        spans = [form for form in truth.forms or () if isinstance(form, Span)]
        docs = [span.doc for span in spans]
        start, end = (np.array([span[at] for span in spans], dtype=np.int64) for at in (1, 2))
        end = end + self.beyond
        codes: dict[str, int] = {}
        wanted = np.fromiter((codes.setdefault(doc, len(codes)) for doc in docs), np.int64, len(docs))
        query_of = truth.query_of
        if self.chunks is not None:
            # Other documents than those judged are left out before the join.
            doc = np.fromiter((codes.get(name, -1) for name in self.chunks.docs), np.int64, len(self.chunks))
            own = np.flatnonzero(doc >= 0)
            self._look_for(codes, frozenset(np.unique(doc[own]).tolist()))
            low, high = self.chunks.start[own], self.chunks.end[own] + self.beyond
            part, alternative, begin, stop = self._joined((doc[own], low, high), (wanted, start, end))
            pair = query_of[alternative] * len(self.chunks) + own[part]
            pairs, place = np.unique(pair, return_inverse=True)
            names = [self.chunks.ids[at] for at in (pairs % max(len(self.chunks), 1)).tolist()]
            return matches_of(truth, pairs // max(len(self.chunks), 1), names, place, alternative, begin, stop)
        query, keys = results.pairs()
        doc, low, high = self._places(truth, query, keys, codes)
        size = len(codes)
        asked, given = query_of * size + wanted, query * size + doc
        # Other documents than those judged for the query are left out before the join.
        own = np.flatnonzero((doc >= 0) & np.isin(given, asked))
        results_of = (given[own], low[own], high[own] + self.beyond)
        part, alternative, begin, stop = self._joined(results_of, (asked, start, end))
        return matches_of(truth, query, keys, own[part], alternative, begin, stop)

    def _look_for(self, codes: dict[str, int], there: Set[int]) -> None:
        """Says which judged documents have no chunks; raises `DataError` where none has."""
        absent = [name for name, code in codes.items() if code not in there]
        if not absent or self.chunks is None:
            return
        some = ", ".join(map(shown, absent[:3])) + (" …" if len(absent) > 3 else "")
        if len(absent) == len(codes):
            what = f"no document of the ground truth is in the chunk table: {some} there"
            raise DataError(f"labeller spans: {what}, {shown(min(self.chunks.docs, default=''))} here")
        what = f"{len(absent):,} of {len(codes):,} documents of the ground truth are not in the chunk table: {some}"
        warnings.warn(f"labeller spans: {what}", GroupgtWarning, stacklevel=2)

    def _places(
        self, truth: GroundTruth, query: Ints, keys: list[str], codes: dict[str, int]
    ) -> tuple[Ints, Ints, Ints]:
        """The places that results carry, read back from what they are called."""
        names = pl.Series("key", keys, dtype=pl.String)
        parts = names.str.extract_groups(SPELLED).struct.unnest()
        bad = np.flatnonzero(parts["doc"].is_null().to_numpy()).tolist()
        if bad:
            where = f"results of query {truth.qids[int(query[bad[0]])]!r}"
            what = "expected results that carry doc, start and end, or a chunk table (the option chunks)"
            more = f", and {len(bad) - 1:,} more like it" if len(bad) > 1 else ""
            raise DataError(f"{where}: {what}, found {shown(keys[bad[0]])}{more}")
        table = pl.DataFrame({"doc": pl.Series(list(codes), dtype=pl.String), "code": np.arange(len(codes))})
        doc = parts.join(table, on="doc", how="left", maintain_order="left")["code"].fill_null(-1)
        if len(doc) and codes and not (doc >= 0).any():
            ours, theirs = shown(next(iter(codes))), shown(parts["doc"][0])
            what = f"no result is from a document of the ground truth: {ours} there, {theirs} here"
            warnings.warn(f"labeller spans: {what}; results name theirs as doc", GroupgtWarning, stacklevel=2)
        start, end = (parts[name].cast(pl.Int64).to_numpy() for name in ("start", "end"))
        if not self.beyond:
            self._refuse_empty(keys, start, end, "result")
        return doc.to_numpy(), start, end

    def _joined(
        self, results: tuple[Ints, Ints, Ints], wanted: tuple[Ints, Ints, Ints]
    ) -> tuple[Ints, Ints, Ints, Ints]:
        """(result, alternative, from, to) of those that overlap enough; with `joint`, of all that overlap."""
        kept = []
        for own, other in overlapping(*results, *wanted):
            begin = np.maximum(results[1][own], wanted[1][other])
            stop = np.minimum(results[2][own], wanted[2][other])
            if not self.options.joint:
                length, whole = results[2][own] - results[1][own], wanted[2][other] - wanted[1][other]
                enough = self.enough(stop - begin, length, whole)
                own, other, begin, stop = own[enough], other[enough], begin[enough], stop[enough]
            kept.append((own, other, begin, stop))
        none = np.zeros(0, dtype=np.int64)
        columns = [np.concatenate(each) for each in zip(*kept)] if kept else [none] * 4
        return columns[0], columns[1], columns[2], columns[3]

    def lengths(self, forms: Sequence[Form]) -> Ints:
        """How long places are, in the unit."""
        spans = [form for form in forms if isinstance(form, Span)]
        return np.array([span.end - span.start + self.beyond for span in spans], dtype=np.int64)

    def enough(self, overlap: Ints, result: Ints, alternative: Ints) -> Bools:
        """Whether overlaps of results with alternatives, of these lengths, are what `min_overlap` asks."""
        whole = {"alternative": alternative, "result": result, "union": result + alternative - overlap}
        return np.asarray(overlap * self.share.denominator >= whole[self.options.of] * self.share.numerator)

    def settle(
        self, truth: GroundTruth, matches: Matches, query: Ints, rank: Ints, target: Ints
    ) -> tuple[Ints, Ints, Ints, Bools]:
        """With `joint`, the result that completes the share of an alternative hits it, and no other does."""
        if not self.options.joint or matches.low is None or matches.high is None:
            return super().settle(truth, matches, query, rank, target)
        row, place = spread(target, matches.starts, np.arange(len(matches.alternatives)))
        alternative = matches.alternatives[place]
        length = self.lengths(truth.forms or [])
        need = -(-length * self.share.numerator // self.share.denominator)
        hit, alternative = first_covered(alternative, matches.low[place], matches.high[place], need)
        row = row[hit]
        order = np.lexsort((alternative, row))
        row, alternative = row[order], alternative[order]
        return query[row], rank[row], alternative, np.zeros(len(row), dtype=np.bool_)

    def __str__(self) -> str:
        together = " together" if self.options.joint else ""
        what = {"alternative": "of the alternative", "result": "of the result", "union": "intersection over union"}
        return (
            f"spans (at least {self.options.min_overlap:g} {what[self.options.of]}{together}, in {self.options.unit})"
        )


PLUGIN = Plugin(Options, Spans)
