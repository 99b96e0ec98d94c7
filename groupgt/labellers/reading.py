"""Texts of results and of alternatives, for labellers that compare what is said and not where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from groupgt.errors import DataError, Faults
from groupgt.labellers.base import Results
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.ids import shown
from groupgt.model.spans import TEXT, kind_of

__all__ = ["Pairs", "alternative_texts", "pairs_of", "result_texts"]

PLACES = "places are what the labeller spans compares"
REFERENCE = "name the corpus it is from as `reference`, or write {text: …}"


def alternative_texts(
    truth: GroundTruth, reference: Mapping[str, str], way: str = REFERENCE, *, blank: bool = False
) -> list[str]:
    """The text of each alternative: itself, or what the reference holds under its id.

    Raises `DataError` that says the way out where there is none.
    """
    faults = Faults()
    found: list[str] = []
    unknown: list[int] = []
    for alternative, name in enumerate(truth.ids):
        form = truth.forms[alternative] if truth.forms else None
        text = name if form == TEXT else reference.get(name) if form is None else None
        where = f"query {truth.qids[int(truth.query_of[alternative])]!r}"
        if kind_of(form) == "span":
            faults.add(where, f"expected a text, or an id of one, found the span {shown(name)}; {PLACES}")
        elif text is None:
            unknown.append(alternative)
        elif not blank and not text.strip():
            faults.add(where, f"the text of the alternative {shown(name)} is blank")
        found.append(text or "")
    if unknown and not reference:
        first = truth.ids[unknown[0]]
        more = f", nor of {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        where = f"query {truth.qids[int(truth.query_of[unknown[0]])]!r}"
        faults.add(where, f"the text of the alternative {shown(first)} is not known{more}; {way}")
    for alternative in unknown if reference else ():
        where = f"query {truth.qids[int(truth.query_of[alternative])]!r}"
        faults.add(where, f"the text of the alternative {shown(truth.ids[alternative])} is not known; {way}")
    faults.stop(DataError)
    return found


def result_texts(
    truth: GroundTruth, query: Ints, keys: list[str], results: Results, corpus: Mapping[str, str], labeller: str
) -> list[str]:
    """The text of each result: what it carries, else what the corpus holds; raises `DataError` where there is none."""
    carried = results.texts()
    if carried.count(None) == len(carried):
        texts = list(map(corpus.get, keys))
        if None not in texts:
            return texts  # type: ignore[return-value]  # none of them is None
    found: list[str] = []
    faults = Faults()
    for place, (key, own) in enumerate(zip(keys, carried)):
        text = own if own is not None else corpus.get(key)
        if text is None:
            where = f"results of query {truth.qids[int(query[place])]!r}"
            if not corpus:
                way = "name a corpus, or results that carry their contents"
                raise DataError(f"{where}: the labeller {labeller} needs the text of the result {shown(key)}; {way}")
            faults.add(where, f"the corpus has no text of the result {shown(key)}")
            continue
        found.append(text)
    faults.stop(DataError)
    return found


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every result of a query beside every alternative of it; `result` and `alternative` number each."""

    result: Ints
    alternative: Ints

    def __len__(self) -> int:
        return len(self.result)


def pairs_of(truth: GroundTruth, query: Ints) -> Pairs:
    """The pairs of results, whose queries these are, and alternatives."""
    sizes = truth.per_query
    starts = np.concatenate(([0], np.cumsum(sizes)))[:-1]
    counts = sizes[query] if len(query) else np.zeros(0, dtype=np.int64)
    result = np.repeat(np.arange(len(query)), counts)
    within = np.arange(len(result)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Pairs(result, np.repeat(starts[query], counts) + within if len(query) else result)
