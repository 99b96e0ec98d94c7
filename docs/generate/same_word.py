"""The same word, another number: what each tool computes of the same few examples, and what that is called here.

`python -m docs.generate.same_word` writes `docs/same-word.md`; a test says whether it is as it should be.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import groupgt
from docs.generate import DOCS
from docs.generate.markdown import bullets, code, page, table
from docs.generate.peers import EXAMPLES, TOOLS, K, Tool, recorded

PATH = DOCS / "same-word.md"
# For each word, what parts the tools, and what it may be here: metrics in the order in which they are tried.
WORDS: dict[str, tuple[str, list[str]]] = {
    "precision": (
        "Tools divide by k, or by the number of results that came (A, C). A second result for the same piece counts as "
        "relevant everywhere but in `precision.coverage`, which counts only what adds something (B).",
        ["precision.trec@3", "precision.autorag@3", "precision.coverage@3", "p_ia@3"],
    ),
    "recall": (
        "Without groups recall asks for every document: `a` and `b` say the same, and a search that finds one of them "
        "and `c` has two thirds (A). With groups it asks for every piece.",
        ["recall.trec@3", "recall.coverage@3", "recall.autorag@3"],
    ),
    "F1": ("It follows from the two above.", ["f1.trec@3", "f1.autorag@3", "f1.coverage@3"]),
    "hit rate": (
        "1 where anything relevant was found, under whatever name (`success`, `hit_rate`). All agree: it asks for so "
        "little that there is nothing to disagree on.",
        ["hit_rate.trec@3", "hit_rate.coverage@3"],
    ),
    "full recall": (
        "1 where *everything* needed was found. Without groups that is every document, and A has not got it.",
        ["complete.coverage@3", "complete.trec@3", "complete.autorag@3"],
    ),
    "MRR": (
        "Elsewhere the first relevant result decides alone. AutoRAG averages over groups, so that even a perfect "
        "ranking of two groups has 0.75 (A). With equal scores the order decides: trec_eval sorts ties by descending "
        "id, ir_measures by ascending id here and by descending id below, ranx keeps them as given (F).",
        ["mrr.trec@3", "mrr.trec", "mrr.autorag@3", "mrr.coverage@3"],
    ),
    "MAP": (
        "trec_eval divides by all relevant documents; AutoRAG divides by the hits *found*, so that losing a late hit "
        "can raise it; ndeval averages over groups, has no cutoff (D), and sorts ties by ascending id (F).",
        ["map.trec@3", "map.autorag@3", "map.coverage@3", "map_ia"],
    ),
    "NDCG": (
        "Four things differ: what a second hit of a group earns (B), whether the ideal is cut at the length of the "
        "list (C), whether grades count, linear or exponential (E), and how equal scores are put in order (F). "
        "FreshStack and ndeval compute alpha-nDCG, for which groups are subtopics. An id that comes twice earns twice "
        "in AutoRAG, which gives that ranking a full score (G).",
        ["ndcg.trec@3", "ndcg.trec(gain=exp)@3", "ndcg.autorag@3", "ndcg.coverage@3", "novelty_ndcg@3", "alpha_ndcg@3"],
    ),
}
POLICIES: list[dict[str, str]] = [{}, {"ties": "input"}, {"duplicates": "keep"}]
OURS = ("autorag", "trec", "coverage")
METRICS = {
    "precision": "precision",
    "recall": "recall",
    "F1": "f1",
    "hit rate": "hit_rate",
    "full recall": "complete",
    "MRR": "mrr",
    "MAP": "map",
    "NDCG": "ndcg",
}


@cache
def _value(metric: str, letter: str, as_list: bool, policy: tuple[tuple[str, str], ...]) -> float | None:
    """A metric of one example, its results as a list of ids, or as ids with scores; None where it is refused."""
    example = EXAMPLES[letter]
    run: Any = example.ids if as_list or example.run is None else example.run
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return float(groupgt.evaluate({"q": example.groups}, {"q": run}, [metric], policy=dict(policy))[metric])
        except groupgt.GroupgtError:
            return None


def _candidates(word: str, tool: Tool) -> Iterator[tuple[str, dict[str, str]]]:
    """What a tool's values may be; of a tool with groups the conventions with groups first."""
    convention = ".autorag" if "autorag" in tool.module else ".trec"
    for policy in POLICIES:
        for metric in sorted(WORDS[word][1], key=lambda text: convention not in text):
            yield metric, policy


def same(word: str, tool: Tool, values: dict[str, Any]) -> tuple[str, list[str]]:
    """The metric that gives a tool's values, or the nearest; and the examples on which it does not."""
    best: tuple[str, list[str]] = ("", list(values))
    for metric, policy in _candidates(word, tool):
        ours = {letter: _value(metric, letter, tool.lists, tuple(policy.items())) for letter in values}
        wrong = [
            letter
            for letter, by_word in values.items()
            if (own := ours[letter]) is None or abs(own - by_word[word]) > 1.5 * 10**-tool.digits
        ]
        if len(wrong) < len(best[1]):
            told = "".join(f" {key}={choice}" for key, choice in policy.items())
            best = (code(metric) + (f" with {code(told.strip())}" if told else ""), wrong)
    return best


def _section(word: str) -> list[str]:
    rows = []
    for name, held in recorded().items():
        values = held["values"]
        if not all(word in by_word for by_word in values.values()):
            continue
        metric, wrong = same(word, TOOLS[name], values)
        called = metric + (f", but for {', '.join(wrong)}" if wrong else "")
        cells = [f"{values[letter][word]:.4f}" if letter in values else "–" for letter in EXAMPLES]
        rows.append([name, *cells, called])
    for convention in OURS:
        metric = f"{METRICS[word]}.{convention}@{K}"
        found = [_value(metric, letter, False, ()) for letter in EXAMPLES]
        rows.append([code(metric), *("–" if one is None else f"{one:.4f}" for one in found), ""])
    return [f"## {word}", WORDS[word][0], table([word, *EXAMPLES, "the same here as"], rows)]


def text() -> str:
    """The page."""
    letters = [f"**{letter}**: {example.title}, against {code(example.groups)}" for letter, example in EXAMPLES.items()]
    versions = [
        [name, code(TOOLS[name].distribution), held["version"], held["date"]] for name, held in recorded().items()
    ]
    return page(
        "The same word, another number",
        "Tools agree on the names of metrics and not on the numbers. This page has eight tools compute the same seven "
        f"examples, all at a cutoff of {K}, and says which metric of groupgt gives each tool's numbers. "
        "*But for* names the examples on which even the nearest metric differs.",
        bullets(letters),
        "Tools without groups get all alternatives as one list of relevant documents. AutoRAG and AutoRAG-Research "
        f"have no cutoff and get the first {K} results. G cannot be told to tools that read ids with scores.",
        *(part for word in WORDS for part in _section(word)),
        "## Published formulas",
        *_published(),
        "## Versions",
        "Every value was computed by the tool itself. Where a tool is installed, the tests compute its values again "
        "and compare them with those of this page; of AutoRAG, AutoRAG-Research and FreshStack the modules that hold "
        "the metrics were run by themselves.",
        table(["tool", "package", "version", "recorded"], versions),
        "This page is written by `python -m docs.generate.same_word`.",
    )


AXION = ({"q": [[{"id": "doc1", "grade": 3}, {"id": "doc2", "grade": 2}, "doc3"]]}, "doc1 doc4 doc2 doc5 doc3")


def _published() -> list[str]:
    truth, names = AXION
    metrics = ["ndcg.trec@5", "ndcg.trec(gain=exp)@5"]
    means = groupgt.evaluate(truth, {"q": names.split()}, metrics).means
    linear, exponential = (f"{means[metric]:.4f} ({code(metric)})" for metric in metrics)
    return [
        "Tutorials print formulas and figures of their own. The documentation of Axion shows an example of graded "
        f"NDCG: {code(names)} against doc1 with the grade 3, doc2 with 2 and doc3 with 1. It prints 0.876; its formula "
        f"gives {linear} with linear gains and {exponential} with exponential ones. Where a printed figure does not "
        "come out, do the arithmetic: `groupgt explain` fills in every formula."
    ]


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PATH.read_text(encoding="utf-8") != text())
    PATH.write_text(text(), encoding="utf-8")
