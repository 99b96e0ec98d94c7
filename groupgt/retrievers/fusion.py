"""Provides results without retrieval, either read from files or fused from several systems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from groupgt.errors import RetrieverError
from groupgt.model.hits import Floats
from groupgt.options import Clash, Doc, File
from groupgt.retrievers import base
from groupgt.retrievers.base import Answers, Count, RetrieverPlugin

Integers = NDArray[np.int64]
Normalization = Literal["min_max", "z_score", "theoretical"]


@dataclass(frozen=True)
class ResultsOptions(base.Options):
    """Options for `use: results`."""

    path: Annotated[File, Doc("File with the results. groupgt replaces {dataset} with the data set's name.")]
    format: Annotated[str | None, Doc("Format of the results (default: auto-detect).")] = None
    columns: Annotated[dict[str, str], Doc("Column name for each role, such as {doc_id: chunk}.")] = field(
        default_factory=dict
    )
    traces: Annotated[
        dict[str, str],
        Doc("Search tools in traces, each with the path to the ids in its result, such as {search: hits.id}."),
    ] = field(default_factory=dict)

    @property
    def how(self) -> dict[str, Any]:
        """The options for reading the file, in the form that an evaluation accepts."""
        return {"run_format": self.format, "run_columns": self.columns, "tool_spans": self.traces}

    def searches_texts(self) -> bool:
        return False


@dataclass(frozen=True)
class _Fusion(base.Options):
    """Options that all fusion methods share: input depth (default: evaluate.depth) and weights."""

    depth: Annotated[Count | None, Doc("Number of results taken from each input (default: evaluate.depth).")] = None
    weights: Annotated[list[Annotated[float, Ge(0)]], Doc("Weight of each input (default: all equal).")] = field(
        default_factory=list
    )

    def searches_texts(self) -> bool:
        return False

    def clashes(self) -> Iterator[Clash]:
        """Yield an error if all weights are 0."""
        if self.weights and not any(self.weights):
            yield Clash("weights", f"expected numbers of at least 0, at least one above 0, found {self.weights}")


@dataclass(frozen=True)
class ReciprocalRank(_Fusion):
    """Options for `use: rrf`: score = Σ over inputs of weight ÷ (k + rank), ranks from 1.

    Source: Cormack, Clarke and Büttcher, SIGIR 2009, with k = 60 and no weights.
    """

    k: Annotated[
        int, Ge(0), Le(10**9), Doc("Constant added to ranks; larger values flatten differences between ranks.")
    ] = 60

    def least_score(self) -> float | None:
        return 0.0


@dataclass(frozen=True)
class Convex(_Fusion):
    """Options for `use: convex`: score = Σ over inputs of weight × normalized score, weights divided by their sum.

    If all scores of a query are equal, they become 1 with min_max and theoretical, and 0 with z_score. A result that an
    input did not return gets 0 from that input or, with z_score, the input's lowest value. Source: Bruch, Gai and
    Ingber, TOIS 2023.
    """

    normalization: Annotated[
        Normalization,
        Doc(
            "How to normalize the scores of each input, query by query. min_max: (s − min) ÷ (max − min); z_score: "
            "(s − mean) ÷ population standard deviation; theoretical: (s − lowest) ÷ (max − lowest), where lowest "
            "is the lowest possible score."
        ),
    ] = "min_max"
    least: Annotated[
        list[float],
        Doc("Lowest possible score of each input, for theoretical normalization (default: 0 for bm25, −1 for cosine)."),
    ] = field(default_factory=list)

    def clashes(self) -> Iterator[Clash]:
        """Yield errors for invalid weights, and for minimum scores that do not apply."""
        yield from super().clashes()
        if self.least and self.normalization != "theoretical":
            what = f"`least` applies only to theoretical normalization, not {self.normalization}"
            yield Clash("least", what, ("normalization",))


@dataclass(frozen=True)
class _Flat:
    """Results of all inputs in columns for query, document, source input, rank and score."""

    qids: list[str]
    names: list[str]
    query: Integers
    document: Integers
    source: Integers
    rank: Integers
    scores: Floats | None

    @classmethod
    def of(cls, inputs: Sequence[Answers], depth: int) -> _Flat:
        qids = list(inputs[0].ids)
        lists = [answers.ids[qid][:depth] for answers in inputs for qid in qids]
        names = list(dict.fromkeys(chain.from_iterable(lists)))
        codes = {name: code for code, name in enumerate(names)}
        lengths = np.array(list(map(len, lists)), dtype=np.int64)
        total = int(lengths.sum())
        starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        scored = all(answers.scores is not None for answers in inputs)
        scores = [(answers.scores or {})[qid][:depth] for answers in inputs for qid in qids] if scored else []
        return cls(
            qids=qids,
            names=names,
            query=np.repeat(np.tile(np.arange(len(qids)), len(inputs)), lengths),
            document=np.fromiter(map(codes.__getitem__, chain.from_iterable(lists)), np.int64, total),
            source=np.repeat(np.repeat(np.arange(len(inputs)), len(qids)), lengths),
            rank=np.arange(total) - starts + 1,
            scores=np.fromiter(chain.from_iterable(scores), np.float64, total) if scored else None,
        )


def _fused(flat: _Flat, gains: Floats, missing: Floats, k: int) -> Answers:
    """Sum each document's first gain from every input. Ties go to the earlier input, then to the better rank in it.

    `missing`, shape (inputs, queries), is the gain from an input that did not return the document.
    """
    pair = flat.query * max(len(flat.names), 1) + flat.document
    keys, first, row = np.unique(pair, return_index=True, return_inverse=True)
    query = flat.query[first]
    table = missing[:, query].T.copy()
    once = np.unique(row * len(missing) + flat.source, return_index=True)[1]
    table[row[once], flat.source[once]] = gains[once]
    # Sort before adding, so that equal gains in another order of inputs give the same bits.
    sums = np.sort(table, axis=1).sum(axis=1) if len(keys) else np.zeros(0)
    order = np.lexsort((first, -sums, query))
    ends = np.searchsorted(query[order], np.arange(len(flat.qids) + 1))
    ids: dict[str, list[str]] = {}
    scores: dict[str, list[float]] = {}
    for position, qid in enumerate(flat.qids):
        chosen = order[ends[position] : ends[position + 1]][:k]
        ids[qid] = [flat.names[code] for code in flat.document[first[chosen]].tolist()]
        scores[qid] = sums[chosen].tolist()
    return Answers(ids, scores)


def _weights(options: _Fusion, inputs: int) -> Floats:
    return np.array(options.weights or [1.0] * inputs, dtype=np.float64)


def reciprocal_rank(
    options: ReciprocalRank, inputs: Sequence[Answers], least: Sequence[float | None], k: int
) -> Answers:
    """Combine rankings by reciprocal rank fusion."""
    flat = _Flat.of(inputs, options.depth or k)
    gains = _weights(options, len(inputs))[flat.source] / (options.k + flat.rank)
    return _fused(flat, gains, np.zeros((len(inputs), len(flat.qids))), k)


def convex(options: Convex, inputs: Sequence[Answers], least: Sequence[float | None], k: int) -> Answers:
    """Combine rankings by a convex combination of normalized scores."""
    weights = _weights(options, len(inputs))
    weights /= weights.sum()
    flat = _Flat.of(inputs, options.depth or k)
    if flat.scores is None:
        raise RetrieverError("convex fusion needs a score for every result, but one input has no scores; use rrf")
    floor = np.array(options.least or least, dtype=np.float64)  # None becomes NaN
    if options.normalization == "theoretical" and (len(floor) != len(inputs) or np.isnan(floor).any()):
        what = "theoretical normalization needs a minimum score for each input; list the minimums in `least`"
        raise RetrieverError(what)
    missing = np.zeros((len(inputs), len(flat.qids)))
    if not len(flat.rank):
        return _fused(flat, flat.scores, missing, k)
    floors = floor[flat.source]
    if options.normalization == "theoretical" and (flat.scores < floors).any():
        row = int((flat.scores < floors).argmax())
        where = f"input {flat.source[row] + 1}, found {flat.scores[row]:g} (query {flat.qids[flat.query[row]]!r})"
        raise RetrieverError(f"least: expected scores of at least {floors[row]:g} from {where}")
    # The number of the (input, query) of each result, and the start of each such list.
    lists = flat.source * len(flat.qids) + flat.query
    _, starts, segment = np.unique(lists, return_index=True, return_inverse=True)
    normal = _normalized(options.normalization, flat.scores, segment, floors)
    if options.normalization == "z_score":
        lowest = np.full(len(starts), np.inf)
        np.minimum.at(lowest, segment, normal)
        missing[flat.source[starts], flat.query[starts]] = lowest
    return _fused(flat, weights[flat.source] * normal, weights[:, None] * missing, k)


def _normalized(normalization: Normalization, scores: Floats, segment: Integers, floor: Floats) -> Floats:
    low, high = np.full(segment.max() + 1, np.inf), np.full(segment.max() + 1, -np.inf)
    np.minimum.at(low, segment, scores)
    np.maximum.at(high, segment, scores)
    least = floor if normalization == "theoretical" else low[segment]
    # Use halves, as the difference of two doubles may overflow.
    span = high[segment] / 2 - least / 2
    scaled = np.divide(scores / 2 - least / 2, span, out=np.ones_like(scores), where=span > 0)
    if normalization != "z_score":
        return scaled
    # Scores scaled to 0 to 1 have the same z-scores; squares of tiny or huge scores would not be valid doubles.
    count = np.bincount(segment)
    away = scaled - (np.bincount(segment, scaled) / count)[segment]
    deviation = np.sqrt(np.bincount(segment, away**2) / count)[segment]
    return np.divide(away, deviation, out=np.zeros_like(scores), where=deviation > 0)


RESULTS = RetrieverPlugin(ResultsOptions, summary="Existing results of any system, read from files.", corpus=False)
RRF = RetrieverPlugin(
    ReciprocalRank, fuse=reciprocal_rank, summary="Reciprocal rank fusion of other systems.", corpus=False
)
CONVEX = RetrieverPlugin(
    Convex, fuse=convex, summary="Fusion of other systems by a weighted sum of normalized scores.", corpus=False
)
