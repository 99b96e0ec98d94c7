"""Simulate answers to the handbook's queries, with known shares: `python examples/answers/make.py [SEED]`.

The script writes a simple search's run and two files of judged answers to this folder. Whatever was retrieved, an
answer is a slip with a probability of `SLIP`. Any other answer is correct if retrieval is complete, or else, with a
probability of `GUESS`, by a lucky guess. Answers from gold context are drawn separately, and each is a slip or correct.
"""

import json
import math
import random
import re
import sys
from collections import Counter
from pathlib import Path

import groupgt

HERE = Path(__file__).parent
HANDBOOK = HERE.parent / "handbook"
K = 5
SLIP, GUESS = 0.15, 0.25


def words(text: str) -> set[str]:
    """Return a text's words of at least three letters."""
    return set(re.findall(r"\w{3,}", text.lower()))


def search(truth: groupgt.GroundTruth) -> dict[str, list[str]]:
    """Return a ranking for each query, by the rare words that passages share with it."""
    rows = map(json.loads, (HANDBOOK / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    passages = {row["doc_id"]: words(f"{row['title']} {row['contents']}") for row in rows}
    held = Counter(word for passage in passages.values() for word in passage)
    run = {}
    for qid, query in zip(truth.qids, truth.texts or []):
        asked = words(query or "")
        scores = {
            name: math.fsum(math.log(len(passages) / held[word]) for word in sorted(asked & passage))
            for name, passage in passages.items()
        }
        run[qid] = sorted(scores, key=lambda name: (-scores[name], name))[:K]
    return run


def answers(complete: dict[str, bool], seed: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return whether each answer is correct, first from the results and then from gold context."""
    rng = random.Random(seed)
    own, gold = {}, {}
    for qid, is_complete in complete.items():
        slips, guesses = rng.random() < SLIP, rng.random() < GUESS
        own[qid], gold[qid] = int(not slips and (is_complete or guesses)), int(rng.random() >= SLIP)
    return own, gold


def planted(complete: dict[str, bool]) -> dict[str, float]:
    """Return the true values of the shares that `groupgt outcomes` estimates, by their names in its output."""
    missing = 1 - sum(complete.values()) / len(complete)
    lacking = (1 - SLIP) * (1 - GUESS) * missing  # wrong only because context is missing
    wrong = SLIP + lacking
    return {
        "complete": 1 - SLIP,
        "incomplete": (1 - SLIP) * GUESS,
        "difference": (1 - SLIP) * (1 - GUESS),
        "wrong": (SLIP * missing + lacking) / wrong,
        "gold": lacking,
    }


def complete_queries(truth: groupgt.GroundTruth, run: dict[str, list[str]]) -> dict[str, bool]:
    """Return, for each answerable query, whether the results cover all its groups."""
    values = groupgt.evaluate(truth, run, [f"complete.coverage@{K}"]).per_query.rows()
    return {qid: value == 1 for qid, value in values if value is not None}


def main() -> None:
    """Write the run and the two files of answers."""
    truth = groupgt.read_ground_truth(HANDBOOK / "questions.jsonl")
    run = search(truth)
    lines = (
        f"{qid} Q0 {name} {rank} {K - rank} words\n" for qid, ids in run.items() for rank, name in enumerate(ids, 1)
    )
    (HERE / "words.trec").write_text("".join(lines), encoding="utf-8", newline="\n")
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    for name, judged in zip(("answers", "gold"), answers(complete_queries(truth, run), seed)):
        rows = (json.dumps({"qid": qid, "correct": correct}) + "\n" for qid, correct in judged.items())
        (HERE / f"{name}.jsonl").write_text("".join(rows), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
