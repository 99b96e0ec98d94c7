"""Finds candidates for review: unjudged corpus passages that are nearly identical to a judged alternative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from groupgt.errors import ConfigError, DataError, Faults, display
from groupgt.labellers.likeness import Normalization
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.values import TEXT, Span

# Maximum number of similarities in memory at a time.
BLOCK = 10_000_000


@dataclass(frozen=True)
class Candidate:
    """A passage that may belong to the same group as an alternative, with evidence."""

    qid: str
    query: str
    group: str
    alternative: str
    candidate: str
    similarity: float
    alternative_text: str
    candidate_text: str


def near_duplicates(truth: GroundTruth, corpus: Mapping[str, str], threshold: float = 0.9) -> list[Candidate]:
    """Find unjudged passages with a similarity of at least `threshold` to a relevant alternative.

    The similarity is RapidFuzz's ratio of normalized texts: 1 − (insertions and deletions) ÷ (both lengths).
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"threshold: expected a number above 0, at most 1, found {threshold!r}")
    texts = _texts_of_alternatives(truth, corpus)
    similar = Passages(corpus).similar_to(list(texts.values()), threshold)
    judged: list[set[str]] = [set() for _ in truth.qids]
    for alternative, query in enumerate(truth.query_of.tolist()):
        judged[query].add(truth.ids[alternative])
    candidates: list[Candidate] = []
    for alternative, text in texts.items():
        group = int(truth.group_of[alternative])
        query = int(truth.group_query[group])
        for name, similarity in similar[text]:
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


def _texts_of_alternatives(truth: GroundTruth, corpus: Mapping[str, str]) -> dict[int, str]:
    """Return the text of each relevant alternative by index, unless the corpus lacks it. Refuse spans."""
    faults = Faults()
    texts: dict[int, str] = {}
    for alternative in np.flatnonzero(truth.is_relevant).tolist():
        form, name = truth.forms[alternative] if truth.forms else None, truth.ids[alternative]
        where = f"query {truth.qids[int(truth.query_of[alternative])]!r}"
        if isinstance(form, Span):
            faults.add(where, f"expected passage text or the id of a corpus passage, found the span {display(name)}")
        elif form == TEXT:
            texts[alternative] = name
        elif name in corpus:
            texts[alternative] = corpus[name]
    faults.stop(DataError)
    return texts


class Passages:
    """Corpus passages, normalized once, for near-duplicate search."""

    def __init__(self, corpus: Mapping[str, str]) -> None:
        self.names = list(corpus)
        self.normalized = list(map(Normalization(), corpus.values()))

    def similar_to(self, texts: Sequence[str], threshold: float) -> dict[str, list[tuple[str, float]]]:
        """Return the passages that are at least this similar to each text, with their scores, best first."""
        try:
            from rapidfuzz import fuzz, process
        except ImportError:
            raise ConfigError("near-duplicates need RapidFuzz: pip install 'groupgt[text]'") from None
        normalized = dict(zip(texts, map(Normalization(), texts)))
        # Empty after normalization: similar to nothing.
        targets = [text for text in dict.fromkeys(normalized.values()) if text]
        matches: dict[str, list[tuple[str, float]]] = {}
        step = max(BLOCK // max(len(self.names), 1), 1)
        for start in range(0, len(targets), step):
            block = targets[start : start + step]
            score = process.cdist(
                block,
                self.normalized,
                scorer=fuzz.ratio,
                score_cutoff=100 * threshold - 1e-6,
                dtype=np.float64,
                workers=-1,
            )
            for row, passage in zip(*np.nonzero(score)):
                matches.setdefault(block[row], []).append((self.names[passage], float(score[row, passage]) / 100))
        for similar in matches.values():
            similar.sort(key=lambda match: -match[1])
        return {text: matches.get(target, []) for text, target in normalized.items()}
