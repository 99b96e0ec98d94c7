"""Run an experiment with a LangChain retriever: `python examples/langchain_retriever.py` (needs langchain-core).

The experiment file refers to `build` as `langchain_retriever:build`. To run the experiment from the shell, use
`groupgt run examples/langchain.yaml --allow-code`.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

import groupgt


class WordOverlap(BaseRetriever):
    """Stand in for your retriever: rank passages by the words they share with the question, and favor rare words."""

    passages: list[Document]
    top: int = 50

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        words = {id(each): set(each.page_content.lower().split()) for each in self.passages}
        found_in = Counter(word for own in words.values() for word in own)
        asked = set(query.lower().split())

        def worth(passage: Document) -> float:
            return math.fsum(1 / found_in[word] for word in asked & words[id(passage)])  # the same sum in any order

        return sorted((each for each in self.passages if worth(each) > 0), key=worth, reverse=True)[: self.top]


def build(corpus: Any, top: int = 50) -> WordOverlap:
    """Return the retriever. groupgt calls this function with the corpus."""
    passages = [Document(page_content=text, metadata={"doc_id": name}) for name, text in zip(corpus.ids, corpus.texts)]
    return WordOverlap(passages=passages, top=top)


if __name__ == "__main__":
    outcome = groupgt.run_experiment(Path(__file__).parent / "langchain.yaml", allow_code=True)
    for name, evaluation in outcome.evaluations["handbook"].items():
        print(f"{name}: ndcg@10 {evaluation['ndcg@10']:.4f}, complete@10 {evaluation['complete@10']:.4f}")
