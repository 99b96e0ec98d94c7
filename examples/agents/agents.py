"""Searches for the experiments in this folder: a memory, a conversation, and an agent that searches several times.

- `groupgt run examples/agents/memory.yaml --allow-code`: questions in LongMemEval's format, each with its haystack.
- `groupgt run examples/agents/conversation.yaml --allow-code`: turns in MTRAG's format, each with the earlier turns.
- `groupgt run examples/agents/agent.yaml`: an agent's searches in three trials.
  `python examples/agents/agents.py` writes the searches to agent.jsonl.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np

import groupgt
from groupgt.metrics.views import relevant_results

HERE = Path(__file__).parent


def words(text):
    """Return a text's words of at least three letters."""
    return set(re.findall(r"\w{3,}", text.lower()))


def best(scores, k):
    """Return the k highest scores above 0, with their names."""
    return sorted(((name, score) for name, score in scores.items() if score), key=lambda pair: -pair[1])[:k]


def memory(path):
    """Search the sessions in a question's own history. A session's score is its share of the question's words."""
    sessions = {}
    for record in json.loads((HERE / path).read_text(encoding="utf-8")):
        for name, turns in zip(record["haystack_session_ids"], record["haystack_sessions"]):
            sessions[name] = words(" ".join(turn["content"] for turn in turns))

    def search(query, k, haystack_session_ids):
        asked = words(query)
        return best({name: len(asked & sessions[name]) / len(asked) for name in haystack_session_ids}, k)

    return search


@groupgt.metric(
    "ndcg_any", formula="Σ over relevant results of 1/log2(max(rank, 2)) ÷ the same sum for the best ranking"
)
def ndcg_any(hits, cut):
    """LongMemEval's NDCG. The discount starts at rank 3, not at rank 2 as in `ndcg`."""
    rows = relevant_results(hits)
    gains = np.bincount(rows.query, 1 / np.log2(np.maximum(rows.rank, 2)), minlength=hits.size)
    needed = np.minimum(hits.judgments.groups, cut.k)
    ideal = np.cumsum(1 / np.log2(np.maximum(np.arange(1, needed.max(initial=1) + 1), 2)))
    return gains / ideal[np.maximum(needed, 1) - 1]


def conversation(corpus, earlier):
    """Search with the last turn. Words from the user's earlier turns count too, with the weight `earlier`."""
    passages = {name: words(text) for name, text in zip(corpus.ids, corpus.texts)}

    def search(query, k, input):
        said = [words(turn["text"]) for turn in input if turn["speaker"] == "user"]
        worth = Counter({word: earlier for turn in said for word in turn} | dict.fromkeys(said[-1], 1))
        return best({name: sum(worth[word] for word in passage) for name, passage in passages.items()}, k)

    return search


def agent(question, passages, chance):
    """Search for each part of a question, or sometimes only for the first, and return the ids, calls and cost."""
    parts = question.split(",")
    ids, calls = [], []
    for call, part in enumerate(parts if chance.random() < 0.6 else parts[:1], 1):
        found = best({name: len(words(part) & passage) for name, passage in passages.items()}, 1)
        ids += [name for name, _ in found]
        calls += [call for _ in found]
    return ids, calls, 0.002 * call


def main():
    read = groupgt.read_ground_truth(HERE / "questions.jsonl")
    rows = map(json.loads, (HERE / "passages.jsonl").read_text(encoding="utf-8").splitlines())
    passages, chance = {row["doc_id"]: words(row["contents"]) for row in rows}, random.Random(1)
    lines = []
    for trial in (1, 2, 3):
        for qid, question in zip(read.qids, read.texts):
            ids, calls, cost = agent(question, passages, chance)
            about = {"qid": qid, "trial": trial, "cost": cost}
            lines.append(json.dumps({**about, "retrieved_ids": ids, "retrieved_calls": calls}) + "\n")
    (HERE / "agent.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
