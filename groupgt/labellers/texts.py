"""The texts that labellers read: those of results and of alternatives, carried or from a corpus.

Labellers that read texts are a `Reader`; metrics over contents ask for texts too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from groupgt.errors import DataError, Faults, display
from groupgt.labellers.base import Labeller, query_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.spans import TEXT, kind_of

# The way out where the texts of alternatives are not known.
REFERENCE = "name the corpus it is from as `reference`, or write {text: …}"


class Reader(Labeller):
    """A labeller that reads texts: those of results in its `corpus`, those of alternatives in its `reference`."""

    corpus: Mapping[str, str] = MappingProxyType({})
    reference: Mapping[str, str] = MappingProxyType({})

    def texts(self) -> Mapping[str, str]:
        """The texts of its reference and its corpus."""
        return {**self.reference, **self.corpus}


def alternative_texts(
    truth: GroundTruth, reference: Mapping[str, str], way: str = REFERENCE, *, blank: bool = False
) -> list[str]:
    """The text of each alternative: itself, or what the reference holds under its id.

    Raises `DataError` that says the `way` out where there is none; a `blank` text is one where that is allowed.
    """
    faults = Faults()
    texts: list[str] = []
    unknown: list[int] = []
    for alternative, name in enumerate(truth.ids):
        form = truth.forms[alternative] if truth.forms else None
        text = name if form == TEXT else reference.get(name) if form is None else None
        where = query_of(truth, alternative)
        if kind_of(form) == "span":
            what = "expected a text, or an id of one, found the span"
            faults.add(where, f"{what} {display(name)}; places are what the labeller spans compares")
        elif text is None:
            unknown.append(alternative)
        elif not blank and not text.strip():
            faults.add(where, f"the text of the alternative {display(name)} is blank")
        texts.append(text or "")
    # Without a reference one line is enough: there is nothing to look into.
    for place, alternative in enumerate(unknown if reference else unknown[:1]):
        others = len(unknown) - 1 if not reference and place == 0 else 0
        more = f", nor of {others:,} more" if others else ""
        what = f"the text of the alternative {display(truth.ids[alternative])} is not known{more}; {way}"
        faults.add(query_of(truth, alternative), what)
    faults.stop(DataError)
    return texts


def result_texts(
    truth: GroundTruth,
    query: Ints,
    keys: list[str],
    carried: Sequence[str | None],
    corpus: Mapping[str, str],
    who: str,
) -> list[str]:
    """The text of each result: what it carries, else what the corpus holds.

    Raises `DataError` where there is none; `who` needs them.
    """
    texts = [corpus.get(key) if text is None else text for key, text in zip(keys, carried)]
    unknown = [place for place, text in enumerate(texts) if text is None]
    faults = Faults()
    for place in unknown if corpus else unknown[:1]:
        what = f"the corpus has no text of the result {display(keys[place])}"
        if not corpus:
            way = "name a corpus, or results that carry their contents"
            what = f"{who} needs the text of the result {display(keys[place])}; {way}"
        faults.add(f"results of query {truth.qids[int(query[place])]!r}", what)
    faults.stop(DataError)
    return [text for text in texts if text is not None]
