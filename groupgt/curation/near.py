"""Passages of a corpus that nearly equal a judged alternative and are not judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from groupgt.errors import ConfigError, DataError, Faults
from groupgt.labellers.likeness import Normalization
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.spans import TEXT, Span
from groupgt.model.validity import shown

# So many similarities are held at a time.
BLOCK = 10_000_000


@dataclass(frozen=True)
class Candidate:
    """One passage that may belong beside an alternative, with the evidence."""

    qid: str
    query: str
    group: str
    alternative: str
    candidate: str
    similarity: float
    alternative_text: str
    candidate_text: str


def near_duplicates(truth: GroundTruth, corpus: Mapping[str, str], threshold: float = 0.9) -> list[Candidate]:
    """Passages that are not judged and whose similarity to a relevant alternative is at least `threshold`.

    The similarity is RapidFuzz' ratio of normalized texts: 1 − (insertions and deletions) ÷ (both lengths). Sorted by
    query and group, the most similar first. Raises `ConfigError` where RapidFuzz is not installed.

    >>> corpus = {"a": "Thirty days of leave a year.", "b": "thirty days of leave, a year", "c": "No leave."}
    >>> [each.candidate for each in near_duplicates(GroundTruth.of({"q": [["a"]]}), corpus)]
    ['b']
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"threshold: expected a number above 0, at most 1, found {threshold!r}")
    try:
        from rapidfuzz import fuzz, process
    except ImportError:
        raise ConfigError("near-duplicates need RapidFuzz: pip install 'groupgt[text]'") from None
    normal = Normalization()
    names = list(corpus)
    said = [normal(text) for text in corpus.values()]
    wanted = _wanted(truth, corpus)
    distinct = list(dict.fromkeys(normal(text) for text in wanted.values()))
    judged = [{truth.ids[a] for a in own} for own in _by_query(truth)]
    found: dict[str, list[tuple[int, float]]] = {}
    step = max(BLOCK // max(len(said), 1), 1)
    for start in range(0, len(distinct), step):
        block = distinct[start : start + step]
        score = process.cdist(
            block, said, scorer=fuzz.ratio, score_cutoff=100 * threshold - 1e-6, dtype=np.float64, workers=-1
        )
        for row, column in zip(*np.nonzero(score)):
            found.setdefault(block[row], []).append((int(column), float(score[row, column]) / 100))
    candidates: list[Candidate] = []
    for alternative, text in wanted.items():
        group = int(truth.group_of[alternative])
        query = int(truth.group_query[group])
        alike = found.get(normal(text), []) if normal(text) else []
        for column, similarity in sorted(alike, key=lambda each: -each[1]):
            name = names[column]
            if name in judged[query] or corpus[name] in judged[query]:
                continue
            candidates.append(
                Candidate(
                    qid=truth.qids[query],
                    query=(truth.texts[query] if truth.texts else None) or "",
                    group=truth.group_label(group),
                    alternative=truth.ids[alternative],
                    candidate=name,
                    similarity=similarity,
                    alternative_text=text,
                    candidate_text=corpus[name],
                )
            )
    return candidates


def _by_query(truth: GroundTruth) -> list[list[int]]:
    own: list[list[int]] = [[] for _ in truth.qids]
    for alternative, query in enumerate(truth.query_of.tolist()):
        own[query].append(alternative)
    return own


def _wanted(truth: GroundTruth, corpus: Mapping[str, str]) -> dict[int, str]:
    """The texts of the relevant alternatives; those without one are an error."""
    faults = Faults()
    found: dict[int, str] = {}
    for alternative in np.flatnonzero(truth.grade > 0).tolist():
        form, name = truth.forms[alternative] if truth.forms else None, truth.ids[alternative]
        where = f"query {truth.qids[int(truth.query_of[alternative])]!r}"
        if isinstance(form, Span):
            faults.add(where, f"expected a text, or an id of the corpus, found the span {shown(name)}")
        elif form == TEXT:
            found[alternative] = name
        elif name in corpus:
            found[alternative] = corpus[name]
        else:
            faults.add(where, f"the alternative {shown(name)} is not in the corpus")
    faults.stop(DataError)
    return found
