"""Evaluate your own search function, and see what it missed: `python examples/from_python.py`."""

import json
from pathlib import Path

import groupgt

HANDBOOK = Path(__file__).parent / "handbook"


def my_search(question: str, passages: dict[str, set[str]], k: int) -> list[str]:
    """Rank passages by how many of the question's words they contain."""
    words = set(question.lower().split())
    ranked = sorted(passages, key=lambda name: (-len(words & passages[name]), name))
    return ranked[:k]


def main() -> None:
    truth = groupgt.read_ground_truth(HANDBOOK / "questions.jsonl")
    rows = map(json.loads, (HANDBOOK / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    passages = {row["doc_id"]: set(f"{row['title']} {row['contents']}".lower().split()) for row in rows}
    questions = dict(zip(truth.qids, truth.texts or []))
    run = {qid: my_search(question or "", passages, k=20) for qid, question in questions.items()}

    result = groupgt.evaluate(truth, run, ["recall", "complete", "ndcg"], convention="coverage", k=[5, 20], by="type")
    print(result)

    worst = result.per_query.sort("recall@20", nulls_last=True)["qid"][0]
    print(f"\na worked example for the worst question:\n\n{result.explain(worst, ['recall@20', 'ndcg@20'])}")


if __name__ == "__main__":
    main()
