"""Compares the words of results and alternatives; `evaluate` uses this for content metrics."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping

import numpy as np

from groupgt.engines.base import Flat
from groupgt.engines.carriers import local_carrier_of
from groupgt.labellers.base import pairs_of
from groupgt.labellers.likeness import alternative_texts, common_words, distinct, result_texts, text_pairs
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Contents
from groupgt.model.policy import Policy
from groupgt.model.run import Run

CORPUS = "name a corpus that has it (--corpus; corpus= in Python), or write {text: …}"
ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normal_words(text: str) -> list[str]:
    """Split a text into words, normalized as in the SQuAD and AutoRAG evaluations.

    >>> normal_words("The cat, an Owl's friend.")
    ['cat', 'owls', 'friend']
    """
    return ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split()


def contents(truth: GroundTruth, run: Run, policy: Policy, corpus: Mapping[str, str]) -> Contents:
    """Return the best precision, recall and F1 of every result against the relevant alternatives for its query.

    A repeated id scores 0, unless the policy keeps or drops it. Raises `DataError` if a text is unknown.
    """
    relevant = truth.is_relevant
    alternatives = _relevant_texts(truth, relevant, corpus)
    purpose = "a metric over contents"
    flat = local_carrier_of(run.by_original_ids, purpose).flat(truth, policy, "text")
    results = result_texts(truth, flat.query, flat.ids, flat.fields["text"], corpus, purpose)
    result, alternative = pairs_of(truth, flat.query)
    kept = relevant[alternative]
    result, alternative = result[kept], alternative[kept]
    pairs = text_pairs(results, alternatives, result, alternative)
    common, result_size, alternative_size = common_words(pairs, normal_words)
    same = common > 0
    precision, recall, f1 = (np.zeros(len(common)) for _ in range(3))
    precision[same] = common[same] / result_size[pairs.result[same]]
    recall[same] = common[same] / alternative_size[pairs.alternative[same]]
    f1[same] = (2 * precision[same] * recall[same]) / (precision[same] + recall[same])
    repeated = np.zeros(0, dtype=np.int64) if policy.duplicates == "keep" else np.flatnonzero(_repeated(flat))
    scores = {}
    for name, column in (("precision", precision), ("recall", recall), ("f1", f1)):
        best = np.zeros(len(flat.query))
        np.maximum.at(best, result, column[pairs.pair_of])
        best[repeated] = 0.0
        scores[name] = best
    return Contents(flat.query, flat.rank, scores)


def _relevant_texts(truth: GroundTruth, relevant: Bools, corpus: Mapping[str, str]) -> list[str]:
    """Return the texts of relevant alternatives; other alternatives need no text."""
    others = [name for name, is_relevant in zip(truth.ids, relevant.tolist()) if not is_relevant]
    texts = {**dict.fromkeys(others, ""), **corpus} if others else corpus
    return alternative_texts(truth, texts, CORPUS, blank=True)


def _repeated(flat: Flat) -> Bools:
    """Return whether the id of each result occurred earlier in the same query."""
    ids, code = distinct(flat.ids)
    _, first = np.unique(flat.query * max(len(ids), 1) + code, return_index=True)
    repeated = np.ones(len(code), dtype=np.bool_)
    repeated[first] = False
    return repeated
