"""Formulas that were published without a package, with the numbers printed next to them."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Any

from docs.generate.peers import Example, K, Values

NAME = "Axion, the lesson"


def values(example: Example) -> Values:
    """Return the formulas' values for an example: sets of ids, linear grades, all judged documents as ideal."""
    return computed(example.qrels, example.ids, K)


def computed(grades: dict[str, int], ids: list[str], k: int) -> Values:
    """Compute the five formulas of both sources, for graded documents and a list of ids."""
    top, relevant = ids[:k], set(grades)
    found = len(set(top) & relevant)
    first = next((rank for rank, name in enumerate(ids, 1) if name in relevant), None)
    return {
        "precision": found / k,
        "recall": found / len(relevant),
        "hit rate": float(found > 0),
        "MRR": 1 / first if first else 0.0,
        "NDCG": _dcg([grades.get(name, 0) for name in top]) / _dcg(sorted(grades.values(), reverse=True)[:k]),
    }


def _dcg(gains: list[int]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, 1))


@dataclass(frozen=True)
class Printed:
    """An example with its printed numbers: grades and ids of each query, and the numbers by metric and k."""

    where: str
    queries: list[tuple[dict[str, int], str]]
    figures: dict[str, dict[int, float]]

    @property
    def truth(self) -> dict[str, Any]:
        """The ground truth, with each document as its own group."""
        return {
            f"q{number}": [[{"id": name, "grade": grade}] for name, grade in grades.items()]
            for number, (grades, _) in enumerate(self.queries)
        }

    @property
    def run(self) -> dict[str, list[str]]:
        """The results of each query."""
        return {f"q{number}": ids.split() for number, (_, ids) in enumerate(self.queries)}

    def value(self, word: str, k: int) -> float:
        """Return the mean that the formula gives."""
        found = [computed(grades, ids.split(), k)[word] or 0.0 for grades, ids in self.queries]
        return sum(found) / len(found)


PRINTED = [
    Printed(
        "Axion",
        [({"doc1": 3, "doc2": 2, "doc3": 1}, "doc1 doc4 doc2 doc5 doc3")],
        {"hit rate": {5: 1}, "MRR": {5: 1}, "NDCG": {5: 0.876}, "precision": {5: 0.6}, "recall": {5: 1}},
    ),
    Printed(
        "the lesson",
        [
            ({"d1": 3, "d2": 2, "d4": 1, "d6": 2}, "d1 d3 d5 d2 d7 d8 d4 d9 d10 d6"),
            ({"d1": 3, "d2": 2}, "d3 d1 d7 d2 d5 d4 d8 d9 d10 d6"),
            ({"d1": 3, "d3": 2, "d5": 1}, "d1 d2 d3 d4 d5 d6 d7 d8 d9 d10"),
        ],
        {
            "MRR": {10: 0.8333},
            "recall": {1: 0.3056, 3: 0.5278, 5: 0.6389, 10: 1},
            "precision": {1: 0.6667, 3: 0.4444, 5: 0.4, 10: 0.3},
            "NDCG": {1: 0.7778, 3: 0.7649, 5: 0.8083, 10: 0.8697},
            "hit rate": {1: 0.6667, 3: 1, 5: 1, 10: 1},
        },
    ),
]
