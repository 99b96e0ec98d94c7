"""A metric, a labeller, a retriever and a format for groupgt. `pyproject.toml` registers them."""

from dataclasses import dataclass

import numpy as np

import groupgt
from groupgt.formats.format import Format
from groupgt.labellers.ids import Named
from groupgt.metrics.views import covered_groups
from groupgt.plugins import Plugin
from groupgt.retrievers.base import OneByOne, Options, RetrieverPlugin


@groupgt.metric("steep", formula="(Σ over covered groups of rank^(−power)) ÷ m")
def steep(hits, power: float = 2.0):
    """How early each group is covered. By default, rank 2 is worth a quarter of rank 1."""
    groups = covered_groups(hits)
    return np.bincount(groups.query, groups.rank**-power, minlength=hits.size) / np.maximum(hits.judgments.groups, 1)


class Folded(Named):
    """A result hits every alternative with the same id, ignoring case."""

    name, renames = "folded", True

    def __init__(self, options, inputs):
        pass

    def names(self, ids):
        return [each.casefold() for each in ids]

    def truth(self, truth):
        return truth.renamed(self.names(truth.ids))


@dataclass(frozen=True)
class Counting(Options):
    least: int = 1  # minimum number of letters in a word


class Words(OneByOne):
    """Find the passages that share the most words with a query."""

    def __init__(self, setting, options):
        self.corpus, self.least = setting.corpus, options.least

    def answer(self, query, k):
        words = {word for word in query.casefold().split() if len(word) >= self.least}
        scores = [len(words & {*text.casefold().split()}) for text in self.corpus.texts]
        return sorted(zip(self.corpus.ids, scores), key=lambda result: -result[1])[:k]


def rows_of(source):
    for place, line in source.located_lines():
        qid, colon, ids = line.partition(":")
        if not colon:
            raise groupgt.DataError(f"{place}: expected QUERY: IDS, found {line!r}")
        yield qid.strip(), ids


def read_truth(source, policy):
    """Read lines such as `q1: a | b, c`: (a or b) and c."""
    truth = {qid: [group.replace("|", " ").split() for group in ids.split(",")] for qid, ids in rows_of(source)}
    return groupgt.GroundTruth.of(truth, policy)


def read_run(source):
    """Read lines such as `q1: x a c`, best first."""
    return groupgt.Run.of({qid: ids.split() for qid, ids in rows_of(source)})


FOLDED = Plugin(None, Folded)
WORDS = RetrieverPlugin(Counting, Words)
LINES = Format("lines", truth=read_truth, run=read_run)
