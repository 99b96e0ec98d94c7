"""What results say, word by word, beside what alternatives say: for the metrics over contents."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping

import numpy as np

from groupgt.engines.base import not_remote
from groupgt.engines.budgets import in_rank_order
from groupgt.engines.lists import ranked
from groupgt.engines.results import rows_of
from groupgt.labellers.likeness import alternative_texts, common_words, distinct, meeting, pairs_of, result_texts
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Contents, Ints
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Run
from groupgt.runtime import pl

CORPUS = "name a corpus that has it (--corpus; corpus= in Python), or write {text: …}"
ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normal_words(text: str) -> list[str]:
    """The words of a text as SQuAD's evaluation, and AutoRAG's, have them.

    >>> normal_words("The cat, an Owl's friend.")
    ['cat', 'owls', 'friend']
    """
    return ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split()


def contents(truth: GroundTruth, run: Run, policy: Policy, corpus: Mapping[str, str]) -> Contents:
    """Of every result its best precision, recall and F1 against the relevant alternatives of its query.

    A repeated id scores 0, unless the policy keeps or drops it. Raises `DataError` where a text is not known.
    """
    relevant = truth.grade > 0
    wanted = _wanted(truth, relevant, corpus)
    not_remote(run, "a metric over contents")
    query, rank, ids, carried = _results(truth, run, policy)
    said = result_texts(truth, query, ids, carried, corpus, "a metric over contents")
    result, alternative = pairs_of(truth, query)
    kept = relevant[alternative]
    result, alternative = result[kept], alternative[kept]
    met = meeting(said, wanted, result, alternative)
    common, mine, theirs = common_words(met, normal_words)
    same = common > 0
    precision, recall, f1 = (np.zeros(len(common)) for _ in range(3))
    precision[same] = common[same] / mine[met.first[same]]
    recall[same] = common[same] / theirs[met.second[same]]
    f1[same] = (2 * precision[same] * recall[same]) / (precision[same] + recall[same])
    scores = {}
    for name, column in (("precision", precision), ("recall", recall), ("f1", f1)):
        best = np.zeros(len(query))
        np.maximum.at(best, result, column[met.each])
        scores[name] = best
    if policy.duplicates != "keep":
        again = _again(query, ids)
        for column in scores.values():
            column[again] = 0.0
    return Contents(query, rank, scores)


def _wanted(truth: GroundTruth, relevant: np.ndarray, corpus: Mapping[str, str]) -> list[str]:
    """The texts of relevant alternatives; of others nothing is asked."""
    names = [name for name, asked in zip(truth.ids, relevant.tolist()) if not asked]
    known = {**dict.fromkeys(names, ""), **corpus} if names else corpus
    return alternative_texts(truth, known, CORPUS, blank=True)


def _results(truth: GroundTruth, run: Run, policy: Policy) -> tuple[Ints, Ints, list[str], list[str | None]]:
    """Query, rank, id and carried text of every result, in rank order."""
    run = run.by_own_ids.resolved
    if isinstance(run.contents, Columns):
        wanted = [name for name in ("text",) if name in run.contents.frame.collect_schema().names()]
        found: pl.DataFrame = in_rank_order(truth, run.contents, policy, wanted)
        query = found["query"].to_numpy().astype(np.int64)
        texts = found["text"].to_list() if wanted else [None] * len(found)
        return query, _ranks(query), found["doc"].to_list(), texts
    sizes: list[int] = []
    ids: list[str] = []
    texts = []
    for number, own, _, said in rows_of(truth, run, "text", policy):
        places = ranked(own, (run.lists.scores or {}).get(truth.qids[number]), policy)
        sizes.append(len(places))
        ids += [own[place] for place in places]
        texts += [None if said is None or not isinstance(said[place], str) else said[place] for place in places]
    query = np.repeat(np.arange(len(truth)), sizes).astype(np.int64)
    return query, _ranks(query), ids, texts


def _ranks(query: Ints) -> Ints:
    if not len(query):
        return query
    starts = np.flatnonzero(np.concatenate(([True], query[1:] != query[:-1])))
    sizes = np.diff(np.append(starts, len(query)))
    return np.arange(len(query)) - np.repeat(starts, sizes) + 1


def _again(query: Ints, ids: list[str]) -> np.ndarray:
    """Whether an id stood in its query before."""
    _, code = distinct(ids)
    key = query * (int(code.max()) + 1 if len(code) else 1) + code
    _, first = np.unique(key, return_index=True)
    again = np.ones(len(ids), dtype=np.bool_)
    again[first] = False
    return again
