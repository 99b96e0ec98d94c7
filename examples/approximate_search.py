"""A search whose results differ each time, because it overlooks random passages, as approximate indexes do."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Sequence


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return re.findall(r"[a-z0-9]+", text.lower())


class ApproximateSearch:
    """Rank passages by the rare words that they share with a query, but overlook some passages."""

    def __init__(self, ids: Sequence[str], texts: Sequence[str], overlooked: float, seed: int) -> None:
        self.passages = {name: set(words(text)) for name, text in zip(ids, texts)}
        counts = Counter(word for passage in self.passages.values() for word in passage)
        self.weights = {word: math.log(1 + len(self.passages) / count) for word, count in counts.items()}
        self.overlooked, self.random = overlooked, random.Random(seed)

    def retrieve(self, queries: Sequence[str], k: int) -> list[list[tuple[str, float]]]:
        """Return each query's best passages, with their scores."""
        return [self.search(set(words(query)), k) for query in queries]

    def search(self, query: set[str], k: int) -> list[tuple[str, float]]:
        """Return the best passages, without those that are overlooked this time."""
        seen = (name for name in self.passages if self.random.random() >= self.overlooked)
        scores = ((name, sum(self.weights[word] for word in query & self.passages[name])) for name in seen)
        return sorted((pair for pair in scores if pair[1]), key=lambda pair: (-pair[1], pair[0]))[:k]


def build(corpus, overlooked: float, seed: int) -> ApproximateSearch:  # type: ignore[no-untyped-def]
    """Return the search. groupgt calls this function once, and runs the search in every trial."""
    return ApproximateSearch(corpus.ids, corpus.texts, overlooked, seed)


if __name__ == "__main__":
    search = ApproximateSearch(["cat", "dog"], ["A cat sleeps.", "A dog sleeps."], overlooked=0.5, seed=1)
    for trial in range(3):
        print(trial + 1, search.retrieve(["who sleeps"], 2))
