"""Texts of results and of alternatives, for labellers that compare what is said and not where it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from groupgt.errors import DataError, Faults
from groupgt.labellers.base import Labeller, listed_by, spread
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.ids import shown
from groupgt.model.spans import TEXT, kind_of

__all__ = ["Reader", "alternative_texts", "pairs_of", "result_texts"]

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
    truth: GroundTruth,
    query: Ints,
    keys: list[str],
    carried: Sequence[str | None],
    corpus: Mapping[str, str],
    who: str,
) -> list[str]:
    """The text of each result: what it carries, else what the corpus holds; raises `DataError` where there is none."""
    found = [corpus.get(key) if own is None else own for key, own in zip(keys, carried)]
    if None in found and not corpus:
        first = found.index(None)
        where = f"results of query {truth.qids[int(query[first])]!r}"
        way = "name a corpus, or results that carry their contents"
        raise DataError(f"{where}: {who} needs the text of the result {shown(keys[first])}; {way}")
    faults = Faults()
    for place in [place for place, text in enumerate(found) if text is None]:
        where = f"results of query {truth.qids[int(query[place])]!r}"
        faults.add(where, f"the corpus has no text of the result {shown(keys[place])}")
    faults.stop(DataError)
    return [text for text in found if text is not None]


def pairs_of(truth: GroundTruth, query: Ints) -> tuple[Ints, Ints]:
    """Every result, whose queries these are, beside every alternative of its query: (result, alternative)."""
    return spread(query, listed_by(truth.query_of, len(truth)), np.arange(len(truth.ids)))


class Reader(Labeller):
    """A labeller that reads texts: those of results in its `corpus`, those of alternatives in its `reference`."""

    corpus: Mapping[str, str] = MappingProxyType({})
    reference: Mapping[str, str] = MappingProxyType({})

    def texts(self) -> Mapping[str, str]:
        """The texts of its reference and its corpus."""
        return {**self.reference, **self.corpus}
