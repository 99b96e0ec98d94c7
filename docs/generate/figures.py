"""The figures of the pages, drawn by the report's functions, on light and dark backgrounds.

A file next to them lists what they show, so that a test can check it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import groupgt
from docs.generate import DOCS, ROOT
from groupgt.render.drawing import Figure
from groupgt.render.themes import THEMES

FOLDER = DOCS / "figures"
SHOWN = FOLDER / "shown.json"
HANDBOOK = ROOT / "examples" / "handbook"
FIRST = ROOT / "examples" / "first"


def figures() -> dict[str, Figure]:
    """Return every figure by name."""
    from bm25s import BM25, tokenize

    rows = [json.loads(line) for line in (HANDBOOK / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    truth = groupgt.read_ground_truth(HANDBOOK / "questions.jsonl")
    questions = [text or "" for text in truth.texts or []]
    runs: dict[str, dict[str, list[str]]] = {}
    for name, stopwords, b in (
        ("plain", None, 0.75),
        ("stopped", "english", 0.75),
        ("flat", "english", 0.0),
    ):
        index = BM25(k1=1.2, b=b)
        texts = [f"{row['title']}\n{row['contents']}" for row in rows]
        index.index(tokenize(texts, stopwords=stopwords, show_progress=False), show_progress=False)
        found, _ = index.retrieve(
            tokenize(questions, stopwords=stopwords, show_progress=False), k=30, show_progress=False
        )
        runs[name] = {
            qid: [rows[place]["doc_id"] for place in places] for qid, places in zip(truth.qids, found.tolist())
        }
    comparison = groupgt.compare(truth, runs, ["recall@10"], baseline="plain", convention="coverage")
    small = groupgt.evaluate(FIRST / "truth.jsonl", FIRST / "bm25.trec", ["complete@3"], convention="coverage")
    return {
        "differences": comparison.plot("differences"),
        "depth": comparison.plot("depth"),
        "groups": small.plot("groups"),
    }


def shown(made: dict[str, Figure]) -> dict[str, Any]:
    """Return the tables behind the figures."""
    told = {name: {"text": figure.text, "rows": figure.rows} for name, figure in made.items()}
    held: dict[str, Any] = json.loads(json.dumps(told))
    return held


def files() -> dict[Path, str]:
    """Return the file that stores the tables behind the figures."""
    return {SHOWN: json.dumps(shown(figures()), ensure_ascii=False, indent=1) + "\n"}


def draw() -> None:
    """Draw all figures."""
    for name, figure in figures().items():
        for theme in THEMES:
            figure.save(FOLDER / f"{name}{'' if theme == 'light' else f'-{theme}'}.svg", theme=theme)
