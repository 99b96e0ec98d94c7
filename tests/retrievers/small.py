"""A small experiment: three documents, three questions, each answered by one of them."""

from __future__ import annotations

import json
from pathlib import Path

TEXTS = {"d1": "ferry times and fares", "d2": "rules for dogs", "d3": "parking at the harbour"}
QUESTIONS = {"q1": ("what are the fares", "d1"), "q2": ("may dogs come", "d2"), "q3": ("where is parking", "d3")}

FILE = """\
version: 1
name: small
datasets:
  set: {{corpus: corpus.jsonl, ground_truth: truth.jsonl}}
systems:
  {systems}
evaluate: {{depth: {depth}, k: [1], metrics: [recall]}}
output: {{folder: out, formats: [json]}}
"""


def small(folder: Path, systems: str, depth: int = 3) -> Path:
    """Writes the data and an experiment file with these systems into a folder."""
    corpus = [{"doc_id": name, "contents": text} for name, text in TEXTS.items()]
    truth = [{"qid": qid, "query": text, "retrieval_gt": [[name]]} for qid, (text, name) in QUESTIONS.items()]
    for name, rows in (("corpus", corpus), ("truth", truth)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = folder / "trial.yaml"
    file.write_text(FILE.format(systems=systems, depth=depth))
    return file
