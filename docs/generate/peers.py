"""Values of other tools for the smallest examples: recorded with version and date, and recomputed if possible.

`python -m docs.generate.peers` records the values of the installed tools again.
"""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

RECORDED = Path(__file__).with_name("peers.json")
K = 3


@dataclass(frozen=True)
class Example:
    """Ground truth and results of one query, and what the example shows."""

    title: str
    groups: list[list[Any]]
    results: list[tuple[str, float]]

    @property
    def ids(self) -> list[str]:
        """The results in the order given."""
        return [name for name, _ in self.results]

    @property
    def plain(self) -> list[list[str]]:
        """The groups without grades."""
        return [[cell["id"] if isinstance(cell, dict) else cell for cell in group] for group in self.groups]

    @property
    def qrels(self) -> dict[str, int]:
        """The grades of all alternatives, as tools without groups read them."""
        cells = [cell for group in self.groups for cell in group]
        return {cell["id"]: cell["grade"] for cell in cells if isinstance(cell, dict)} | {
            cell: 1 for cell in cells if isinstance(cell, str)
        }

    @property
    def run(self) -> dict[str, float] | None:
        """The results as ids with scores; None where an id comes twice, which a mapping cannot hold."""
        return dict(self.results) if len(set(self.ids)) == len(self.results) else None


def _ranked(*names: str) -> list[tuple[str, float]]:
    return [(name, float(len(names) - place)) for place, name in enumerate(names)]


TWO = [["a", "b"], ["c"]]
EXAMPLES = {
    "A": Example("everything needed, in two results", TWO, _ranked("a", "c")),
    "B": Example("the second result adds nothing", TWO, _ranked("a", "b", "c")),
    "C": Example("half of what is needed, in a single result", TWO, _ranked("a")),
    "D": Example("the second group is covered only below the cutoff", TWO, _ranked("x", "a", "y", "c")),
    "E": Example("the better document comes second", [["a", {"id": "b", "grade": 3}]], _ranked("a", "b")),
    "F": Example("all three scores are equal", [["c"]], [("b", 1.0), ("c", 1.0), ("a", 1.0)]),
    "G": Example("an id is repeated", TWO, _ranked("a", "a", "c")),
}

# What a tool computes: a word, and the value of one example; None where it has none.
Values = dict[str, float | None]


def _trec_eval(example: Example) -> Values:
    import pytrec_eval

    names = {
        "precision": ("P", f"P_{K}"),
        "recall": ("recall", f"recall_{K}"),
        "hit rate": ("success", f"success_{K}"),
        "MRR": ("recip_rank", "recip_rank"),
        "MAP": ("map_cut", f"map_cut_{K}"),
        "NDCG": ("ndcg_cut", f"ndcg_cut_{K}"),
    }
    asked = {name if name == "recip_rank" else f"{name}.{K}" for name, _ in names.values()}
    found = pytrec_eval.RelevanceEvaluator({"q": example.qrels}, asked).evaluate({"q": example.run})["q"]
    return {word: found[key] for word, (_, key) in names.items()}


def _ranx(example: Example) -> Values:
    import ranx

    names = {"precision": "precision", "recall": "recall", "F1": "f1", "hit rate": "hit_rate"}
    names |= {"MRR": "mrr", "MAP": "map", "NDCG": "ndcg"}
    asked = [f"{name}@{K}" for name in names.values()]
    found = ranx.evaluate(ranx.Qrels({"q": example.qrels}), ranx.Run({"q": example.run}), asked)
    return {word: float(found[f"{name}@{K}"]) for word, name in names.items()}


def _ir_measures(example: Example) -> Values:
    import ir_measures

    names = {"precision": "P", "recall": "R", "hit rate": "Success", "MRR": "RR", "MAP": "AP", "NDCG": "nDCG"}
    measures = {word: ir_measures.parse_measure(f"{name}@{K}") for word, name in names.items()}
    found = ir_measures.calc_aggregate(list(measures.values()), {"q": example.qrels}, {"q": example.run})
    return {word: found[measure] for word, measure in measures.items()}


def _evret(example: Example) -> Values:
    import evret

    names = {"precision": "Precision", "recall": "Recall", "hit rate": "HitRate", "MRR": "MRR"}
    names |= {"MAP": "AveragePrecision", "NDCG": "NDCG"}
    relevant = list(example.qrels)
    return {word: getattr(evret, name)(k=K).score_query(example.ids, relevant) for word, name in names.items()}


def _ndeval(example: Example) -> Values:
    import pyndeval

    qrels = [
        pyndeval.SubtopicQrel("q", str(number), name, 1)
        for number, group in enumerate(example.plain, 1)
        for name in group
    ]
    scored = [pyndeval.ScoredDoc("q", name, score) for name, score in (example.run or {}).items()]
    names = {"recall": f"strec@{K}", "precision": f"P-IA@{K}", "MAP": "MAP-IA", "NDCG": f"alpha-nDCG@{K}"}
    found = pyndeval.ndeval(qrels, scored, measures=list(names.values()))["q"]
    return {word: found[name] for word, name in names.items()}


def _autorag(example: Example, package: str = "autorag.evaluation.metric.retrieval") -> Values:
    module = importlib.import_module(package)
    names = {"precision": "precision", "recall": "recall", "F1": "f1", "full recall": "full_recall"}
    names |= {"MRR": "mrr", "MAP": "map", "NDCG": "ndcg"}
    # Neither has a cutoff: it is given the first K.
    told = SimpleNamespace(retrieval_gt=example.plain, retrieved_ids=example.ids[:K], relevance_scores=example.qrels)
    functions = {word: getattr(module, f"retrieval_{name}", None) for word, name in names.items()}
    return {word: function.__wrapped__(told) for word, function in functions.items() if function is not None}


def _autorag_research(example: Example) -> Values:
    return _autorag(example, "autorag_research.evaluation.metrics.retrieval")


def _freshstack(example: Example) -> Values:
    metrics = importlib.import_module("freshstack.retrieval.metrics")
    nuggets = {f"n{number}": dict.fromkeys(group, 1) for number, group in enumerate(example.plain)}
    run = {"q": example.run}
    return {
        "recall": metrics.coverage(nuggets, {"q": list(nuggets)}, run, [K])[f"Coverage@{K}"],
        "NDCG": metrics.alpha_ndcg(nuggets, {"q": list(nuggets)}, run, [K])[f"alpha-nDCG@{K}"],
    }


@dataclass(frozen=True)
class Tool:
    """One tool: the module that must be importable, the distribution that has its version, and what it computes.

    `lists`: it takes lists of ids, which may hold duplicates. Its values are rounded to `digits` digits.
    """

    module: str
    distribution: str
    values: Callable[[Example], Values]
    lists: bool = False
    digits: int = 9


TOOLS = {
    "trec_eval": Tool("pytrec_eval", "pytrec_eval-terrier", _trec_eval),
    "ndeval": Tool("pyndeval", "pyndeval", _ndeval),
    "ranx": Tool("ranx", "ranx", _ranx, digits=6),
    "ir_measures": Tool("ir_measures", "ir_measures", _ir_measures),
    "Evret": Tool("evret", "evret", _evret, lists=True),
    "AutoRAG": Tool("autorag.evaluation.metric.retrieval", "autorag", _autorag, lists=True),
    "AutoRAG-Research": Tool(
        "autorag_research.evaluation.metrics.retrieval", "autorag-research", _autorag_research, lists=True
    ),
    "FreshStack": Tool("freshstack.retrieval.metrics", "freshstack", _freshstack, digits=4),
}


def computed(name: str) -> dict[str, Any] | None:
    """Return the values that a tool computes, or None if it is not installed."""
    tool = TOOLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module(tool.module)
        except ImportError:
            return None
        values = {
            letter: {word: _rounded(value, tool.digits) for word, value in tool.values(example).items()}
            for letter, example in EXAMPLES.items()
            if tool.lists or example.run is not None
        }
    return {"version": version(tool.distribution), "values": values}


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(float(value), digits)


def recorded() -> dict[str, Any]:
    """Return the recorded values for each tool."""
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def record() -> None:
    """Record the values of installed tools again; keep those of other tools."""
    held = recorded() if RECORDED.is_file() else {}
    today = datetime.now(UTC).date().isoformat()
    for name in TOOLS:
        found = computed(name)
        if found is not None and {key: held.get(name, {}).get(key) for key in found} != found:
            held[name] = {"version": found["version"], "date": today, "values": found["values"]}
    RECORDED.write_text(json.dumps({name: held[name] for name in TOOLS}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
