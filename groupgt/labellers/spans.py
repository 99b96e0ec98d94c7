"""The spans labeller matches a result to a document span if they overlap enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy as np
from annotated_types import Gt, Le

from groupgt.errors import DataError, Faults, display, refuse, warn
from groupgt.labellers.base import NONE, Labeller, Matches, Results, Settled, Table, matches_of, query_of, spread
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Ints
from groupgt.model.values import SPELLED, Chunks, Form, Span
from groupgt.options import Clash, Doc
from groupgt.plugins import Plugin
from groupgt.runtime import pl

# Shares are exact to one part in this number: products with lengths up to 10^12 fit 64-bit integers.
PARTS = 10**6
BLOCK = 4_000_000
# The number of each document with judgments.
Numbers = Mapping[str, int]
Unit = Literal["chars", "pages", "lines"]
UNITS: tuple[Unit, ...] = get_args(Unit)


@dataclass(frozen=True)
class Options:
    """Minimum overlap, and the source of result spans."""

    min_overlap: Annotated[
        float, Gt(0), Le(1), Doc("Minimum overlap, as a fraction of the length that `of` selects.")
    ] = 0.5
    of: Annotated[
        Literal["alternative", "result", "union"],
        Doc(
            "Divide the overlap by the length of the alternative, of the result, or of their union (intersection "
            "over union)."
        ),
    ] = "alternative"
    joint: Annotated[
        bool,
        Doc("Let results jointly cover an alternative. The hit is the result that brings coverage to the minimum."),
    ] = False
    chunks: Annotated[
        Table,
        Doc(
            "Table of result spans (chunk_id, doc_id, start, end). Without a table, spans come from the results or the "
            "corpus."
        ),
    ] = ""
    reference: Annotated[Table, Doc("Spans of alternatives that are chunk ids, as a table like `chunks`.")] = ""
    unit: Annotated[
        Unit, Doc("Unit of the start and end positions. The end is exclusive in chars, inclusive in pages and lines.")
    ] = "chars"

    def clashes(self) -> Iterator[Clash]:
        """Yield errors if the minimum overlap cannot be computed exactly or `joint` is not possible."""
        if self.min_overlap < 1 / PARTS:
            yield Clash("min_overlap", f"expected a share of at least 1/{PARTS:,}, found {self.min_overlap!r}")
        if self.joint and self.of != "alternative":
            what = f"results can cover an alternative together, but of={self.of} measures each result alone"
            yield Clash("joint", what, ("of",))


class Spans(Labeller):
    """A result hits an alternative if they overlap enough."""

    name = "spans"
    described = frozenset({"min_overlap", "of", "joint", "unit"})

    def __init__(self, options: Options, inputs: Any) -> None:
        self.options = options
        self.share = Fraction(repr(float(options.min_overlap))).limit_denominator(PARTS)
        self.chunks: Chunks | None = inputs.chunks(options.chunks, "chunks")
        self.reference: Chunks | None = inputs.chunks(options.reference, "reference") if options.reference else None
        self.reads_results = self.chunks is None
        self.column = "span" if self.reads_results else ""
        # Spans of pages and lines include the last one: half-open intervals end one later.
        self.beyond = 0 if options.unit == "chars" else 1
        if self.chunks is not None and not self.beyond:
            _refuse_empty(self.chunks.ids, self.chunks.start, self.chunks.end, "chunk")

    def unknown_ids(self, ids: Sequence[str]) -> list[str]:
        """Return the results that are not in the chunk table."""
        return [] if self.chunks is None else [name for name in ids if name not in self._names]

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.chunks.ids if self.chunks is not None else ())

    def truth(self, truth: GroundTruth) -> GroundTruth:
        """Return groups of spans. Replace ids with reference spans, or raise `DataError` if any span is missing."""
        reference = self.reference.spans() if self.reference is not None else {}
        faults = Faults()
        spans: list[Form] = []
        for alternative, form in enumerate(truth.forms or [None] * len(truth.ids)):
            name = truth.ids[alternative]
            span = reference.get(name) if form is None else form
            if not isinstance(span, Span):
                faults.add(query_of(truth, alternative), self._no_span(name, form))
                continue
            if not self.beyond and span.end <= span.start:
                faults.add(query_of(truth, alternative), f"expected a span that ends after its start, found {span}")
            spans.append(span)
        faults.stop(DataError)
        renamed = truth.renamed([str(span) for span in spans], spans)
        if self.chunks is not None:
            _refuse_other_documents(self.chunks, list(dict.fromkeys(span.doc for span in _places_of(renamed))))
        return renamed

    def _no_span(self, name: str, form: Form) -> str:
        """Return an error message, with a suggested fix, for an alternative that is not a span."""
        if form is None and self.reference is not None:
            return f"the alternative {display(name)} is not in the reference"
        kind, way = "passage text", "choose the text labeller"
        if form is None:
            kind, way = "an id", "set `reference` to the table of the judged chunks"
        return f"the spans labeller needs alternatives {{doc, start, end}}, but {display(name)} is {kind}; {way}"

    def unreachable(self, truth: GroundTruth) -> tuple[Ints, str]:
        """Return the alternatives not sufficiently covered by any chunk or, with `joint`, by all chunks together."""
        if self.chunks is None:
            return super().unreachable(truth)
        matches = self.match(truth, None)
        reached = matches.alternatives
        if self.options.joint:
            _, reached = first_covered(reached, matches.low, matches.high, self._needed(truth))
        way = "lower min_overlap"
        if self.options.of != "alternative":
            way += " or divide by the length of the alternative (of: alternative)"
        elif not self.options.joint:
            way += " or let several chunks jointly cover an alternative (joint: true)"
        # Documents without any chunks get a separate warning.
        there = set(self.chunks.docs)
        places = [at for at, span in enumerate(_places_of(truth)) if span.doc in there]
        return np.setdiff1d(np.array(places, dtype=np.int64), reached), way

    def match(self, truth: GroundTruth, results: Results | None) -> Matches:
        """Join the spans of results and alternatives by interval, one document at a time."""
        spans = _places_of(truth)
        numbers: dict[str, int] = {}
        document = np.fromiter((numbers.setdefault(span.doc, len(numbers)) for span in spans), np.int64, len(spans))
        start, end = (np.array([span[at] for span in spans], dtype=np.int64) for at in (1, 2))
        alternatives = Places(document, start, end + self.beyond)
        if self.chunks is not None:
            return self._match_chunks(truth, self.chunks, alternatives, numbers)
        if results is None:
            raise DataError("labeller spans: there are no results and no chunk table")
        return self._match_carried(truth, results, alternatives, numbers)

    def _match_chunks(self, truth: GroundTruth, chunks: Chunks, alternatives: Places, numbers: Numbers) -> Matches:
        """Match every chunk in the table. The matches are the same for all queries."""
        document = np.fromiter((numbers.get(name, -1) for name in chunks.docs), np.int64, len(chunks))
        judged = np.flatnonzero(document >= 0)
        places = Places(document[judged], chunks.start[judged], chunks.end[judged] + self.beyond)
        row, alternative, low, high = self._joined(places, alternatives)
        pair = truth.query_of[alternative] * len(chunks) + judged[row]
        pairs, place = np.unique(pair, return_inverse=True)
        names = [chunks.ids[chunk] for chunk in (pairs % max(len(chunks), 1)).tolist()]
        return matches_of(truth, pairs // max(len(chunks), 1), names, place, alternative, low=low, high=high)

    def _match_carried(self, truth: GroundTruth, results: Results, alternatives: Places, numbers: Numbers) -> Matches:
        query, keys = results.queries, results.names
        carried = self._carried(truth, query, keys, numbers)
        size = len(numbers)
        of_alternatives = truth.query_of * size + alternatives.document
        of_results = query * size + carried.document
        judged = np.flatnonzero((carried.document >= 0) & np.isin(of_results, of_alternatives))
        places = Places(of_results[judged], carried.start[judged], carried.end[judged] + self.beyond)
        row, alternative, low, high = self._joined(places, alternatives._replace(document=of_alternatives))
        return matches_of(truth, query, keys, judged[row], alternative, low=low, high=high)

    def _carried(self, truth: GroundTruth, query: Ints, keys: list[str], numbers: Numbers) -> Places:
        """Parse result spans from result names. A document without judgments gets the number −1."""
        names = pl.Series("key", keys, dtype=pl.String)
        parts = names.str.extract_groups(SPELLED).struct.unnest()
        if without := np.flatnonzero(parts["doc"].is_null().to_numpy()).tolist():
            where = f"results of query {truth.qids[int(query[without[0]])]!r}"
            what = "expected results with doc, start and end, or a chunk table (the `chunks` option)"
            more = f", and {len(without) - 1:,} more like it" if len(without) > 1 else ""
            raise DataError(f"{where}: {what}, found {display(keys[without[0]])}{more}")
        table = pl.DataFrame({"doc": pl.Series(list(numbers), dtype=pl.String), "number": np.arange(len(numbers))})
        document = parts.join(table, on="doc", how="left", maintain_order="left")["number"].fill_null(-1)
        if len(document) and not (document >= 0).any():
            there, here = display(next(iter(numbers))), display(parts["doc"][0])
            what = f"no result is from a ground truth document: the results have {here}, the ground truth has {there}"
            warn(f"labeller spans: {what}; give each result's document as doc")
        start, end = (parts[name].cast(pl.Int64).to_numpy() for name in ("start", "end"))
        if not self.beyond:
            _refuse_empty(keys, start, end, "result")
        return Places(document.to_numpy(), start, end)

    def _joined(self, results: Places, alternatives: Places) -> tuple[Ints, Ints, Ints, Ints]:
        """Return (result, alternative, from, to) for pairs that overlap enough (with `joint`, for all overlaps)."""
        blocks = [(NONE, NONE, NONE, NONE)]
        for result, alternative in overlapping(results, alternatives):
            low = np.maximum(results.start[result], alternatives.start[alternative])
            high = np.minimum(results.end[result], alternatives.end[alternative])
            block = result, alternative, low, high
            if not self.options.joint:
                length = results.end[result] - results.start[result]
                size = alternatives.end[alternative] - alternatives.start[alternative]
                enough = self.enough(high - low, length, size)
                block = result[enough], alternative[enough], low[enough], high[enough]
            blocks.append(block)
        row, alternative, low, high = (np.concatenate(column) for column in zip(*blocks))
        return row, alternative, low, high

    def lengths(self, truth: GroundTruth) -> Ints:
        """Return the lengths of alternatives in `unit`. `truth` must come from `self.truth`."""
        return np.array([span.end - span.start + self.beyond for span in _places_of(truth)], dtype=np.int64)

    def _needed(self, truth: GroundTruth) -> Ints:
        """Return how much of each alternative results must jointly cover, in `unit`."""
        return -(-self.lengths(truth) * self.share.numerator // self.share.denominator)

    def enough(self, overlap: Ints, result: Ints, alternative: Ints) -> Bools:
        """Return whether overlaps reach `min_overlap`, given the lengths of results and alternatives."""
        denominator = {"alternative": alternative, "result": result, "union": result + alternative - overlap}
        return np.asarray(overlap * self.share.denominator >= denominator[self.options.of] * self.share.numerator)

    def settle(self, truth: GroundTruth, matches: Matches, query: Ints, rank: Ints, target: Ints) -> Settled:
        """Settle hits. With `joint`, only the result that completes the required share hits an alternative."""
        if not self.options.joint:
            return super().settle(truth, matches, query, rank, target)
        row, place = spread(target, matches.starts, np.arange(len(matches.alternatives)))
        alternative = matches.alternatives[place]
        low, high = matches.low[place], matches.high[place]
        hit, alternative = first_covered(alternative, low, high, self._needed(truth))
        row = row[hit]
        order = np.lexsort((alternative, row))
        row, alternative = row[order], alternative[order]
        return query[row], rank[row], alternative, np.zeros(len(row), dtype=np.bool_)

    def description(self) -> str:
        """Describe the minimum overlap, its denominator and the unit."""
        together = " together" if self.options.joint else ""
        what = {"alternative": "of the alternative", "result": "of the result", "union": "intersection over union"}
        return f"at least {self.options.min_overlap:g} {what[self.options.of]}{together}, in {self.options.unit}"


def _places_of(truth: GroundTruth) -> list[Span]:
    return [form for form in truth.forms or () if isinstance(form, Span)]


def _refuse_empty(names: Sequence[str], start: Ints, end: Ints, what: str) -> None:
    refuse(
        (f"{what} {display(names[place])}", f"expected an end after its start, found {start[place]} to {end[place]}")
        for place in np.flatnonzero(end <= start).tolist()
    )


def _refuse_other_documents(chunks: Chunks, documents: Sequence[str]) -> None:
    """Warn about judged documents without chunks, or raise `DataError` if none of the judged documents has any."""
    there = set(chunks.docs)
    if not (absent := [name for name in documents if name not in there]):
        return
    some = ", ".join(map(display, absent[:3])) + (" …" if len(absent) > 3 else "")
    if len(absent) == len(documents):
        what = f"no ground truth document ({some}) is in the chunk table"
        raise DataError(f"labeller spans: {what}, which contains documents such as {display(min(there, default=''))}")
    what = f"the chunk table has no chunks for {len(absent):,} of {len(documents):,} ground truth documents: {some}"
    warn(f"labeller spans: {what}")


class Places(NamedTuple):
    """Half-open intervals in documents numbered from 0. Empty intervals overlap nothing."""

    document: Ints
    start: Ints
    end: Ints


def overlapping(left: Places, right: Places) -> Iterator[tuple[Ints, Ints]]:
    """Yield pairs (left, right) of overlapping intervals in the same document, in blocks, each pair once.

    Either the right interval starts within the left one, or the left one starts later within the right one.
    """
    points = np.unique(np.concatenate((left.start, left.end, right.start, right.end)))
    # Documents are numbered without gaps, so that no code overflows.
    _, numbers = np.unique(np.concatenate((left.document, right.document)), return_inverse=True)
    left_document, right_document = numbers[: len(left.document)], numbers[len(left.document) :]

    def coded(document: Ints, value: Ints) -> Ints:
        return document * len(points) + np.searchsorted(points, value)

    left_starts, left_ends = coded(left_document, left.start), coded(left_document, left.end)
    right_starts, right_ends = coded(right_document, right.start), coded(right_document, right.end)
    order = np.argsort(right_starts, kind="stable")
    for row, place in _ranges(left_starts, left_ends, right_starts[order], "left"):
        yield row, order[place]
    order = np.argsort(left_starts, kind="stable")
    for row, place in _ranges(right_starts, right_ends, left_starts[order], "right"):
        yield order[place], row


def first_covered(owner: Ints, low: Ints, high: Ints, need: Ints) -> tuple[Ints, Ints]:
    """Find, for each owner, the first row at which the pieces so far cover `need[owner]`. Return (row, owner).

    The union of pieces is cut at every bound. Each part belongs to the first piece that covers it.
    """
    points = np.unique(np.concatenate((low, high)))
    size = len(points)
    begin, end = (owner * size + np.searchsorted(points, value) for value in (low, high))
    bounds = np.unique(np.concatenate((begin, end)))
    first, last = np.searchsorted(bounds, begin), np.searchsorted(bounds, end)
    rows: list[Ints] = []
    parts: list[Ints] = []
    covered = np.zeros(len(bounds), dtype=np.bool_)
    for row, part in _ranges(first, last, np.arange(len(bounds)), "left"):
        # Keep the first piece of each part; pieces are in order, and `np.unique` returns the first index.
        fresh = ~covered[part]
        row, part = row[fresh], part[fresh]
        part, place = np.unique(part, return_index=True)
        rows.append(row[place])
        parts.append(part)
        covered[part] = True
    if not rows:
        return NONE, NONE
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


def _ranges(start: Ints, end: Ints, points: Ints, side: Literal["left", "right"]) -> Iterator[tuple[Ints, Ints]]:
    """Yield (interval, position) for sorted points from each interval's start (`right`: after it) up to its end."""
    low = np.searchsorted(points, start, side=side)
    count = np.maximum(np.searchsorted(points, end, side="left") - low, 0)
    total = np.concatenate(([0], np.cumsum(count)))
    first = 0
    while first < len(start):
        last = max(int(np.searchsorted(total, total[first] + BLOCK, side="right")) - 1, first + 1)
        interval = np.repeat(np.arange(first, last), count[first:last])
        within = np.arange(len(interval)) - np.repeat(total[first:last] - total[first], count[first:last])
        if len(interval):
            yield interval, low[interval] + within
        first = last


PLUGIN = Plugin(Options, Spans)
