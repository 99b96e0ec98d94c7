"""Compares the words of results and alternatives. `evaluate` uses these scores for content metrics."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping

import numpy as np

from groupgt.engines.carriers import local_carrier_of
from groupgt.labellers.base import pairs_of
from groupgt.labellers.likeness import alternative_texts, common_words, distinct, result_texts, text_pairs
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Contents
from groupgt.model.policy import Policy
from groupgt.model.run import Run

CORPUS = "pass a corpus that contains it (--corpus; corpus= in Python), or write {text: …}"
ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normal_words(text: str) -> list[str]:
    """Split text into words, normalized as in the SQuAD and AutoRAG evaluations."""
    return ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split()


def contents_of(truth: GroundTruth, run: Run, policy: Policy, corpus: Mapping[str, str]) -> Contents:
    """Return the best precision, recall and F1 of each result. A repeat scores 0, unless the policy keeps repeats."""
    relevant = truth.is_relevant
    # Other alternatives need no text.
    others = dict.fromkeys((truth.ids[at] for at in np.flatnonzero(~relevant).tolist()), "")
    alternatives = alternative_texts(truth, {**others, **corpus} if others else corpus, CORPUS, blank=True)
    purpose = "a metric over contents"
    flat = local_carrier_of(run.by_original_ids, purpose).flat(truth, policy, "text")
    results = result_texts(truth, flat.query, flat.ids, flat.fields["text"], corpus, purpose)
    result, alternative = pairs_of(truth, flat.query)
    kept = relevant[alternative]
    result, alternative = result[kept], alternative[kept]
    pairs = text_pairs(results, alternatives, result, alternative)
    common, result_size, alternative_size = common_words(pairs, normal_words)
    # Texts without words have none in common.
    precision = common / np.maximum(result_size[pairs.result], 1)
    recall = common / np.maximum(alternative_size[pairs.alternative], 1)
    f1 = (2 * precision * recall) / np.where(common > 0, precision + recall, 1)
    repeated = np.full(len(flat.query), policy.duplicates != "keep")
    ids, code = distinct(flat.ids)
    repeated[np.unique(flat.query * max(len(ids), 1) + code, return_index=True)[1]] = False
    scores = {}
    for name, column in (("precision", precision), ("recall", recall), ("f1", f1)):
        best = np.zeros(len(flat.query))
        np.maximum.at(best, result, column[pairs.pair_of])
        best[repeated] = 0.0
        scores[name] = best
    return Contents(flat.query, flat.rank, scores)
