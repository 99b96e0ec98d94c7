"""Same name, different number: what each tool computes for the same few examples, and which metric agrees."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import groupgt
from docs.generate import DOCS, published
from docs.generate.markdown import code, page, table
from docs.generate.peers import EXAMPLES, TOOLS, K, Tool, recorded

PATH = DOCS / "same-word.md"
# For each metric name, how the tools differ, and the groupgt metrics to try, in this order.
WORDS: dict[str, tuple[str, list[str]]] = {
    "precision": (
        "Some tools divide by k, and others by the number of results returned (examples A, C). `precision.coverage` "
        "counts only results that cover a new group (example B).",
        ["precision.trec@3", "precision.autorag@3", "precision.coverage@3", "p_ia@3"],
    ),
    "recall": (
        "Without groups, recall requires every document, so a search that finds all the information scores only two "
        "thirds (example A). With groups, recall requires every piece of information.",
        ["recall.trec@3", "recall.coverage@3", "recall.autorag@3"],
    ),
    "F1": (
        "F1 is the harmonic mean of precision and recall, so it differs wherever they do.",
        ["f1.trec@3", "f1.autorag@3", "f1.coverage@3"],
    ),
    "hit rate": (
        "Hit rate, also called success, is 1 if the search finds anything relevant. All tools agree on hit rate.",
        ["hit_rate.trec@3", "hit_rate.coverage@3"],
    ),
    "full recall": (
        "Full recall is 1 if the search finds *everything* needed. Without groups, full recall "
        "requires every document, so example A scores 0.",
        ["complete.coverage@3", "complete.trec@3", "complete.autorag@3"],
    ),
    "MRR": (
        "For MRR, most tools look only at the first relevant result. AutoRAG averages over groups, so even a perfect "
        "ranking for two groups scores 0.75 (example A). Tools also order equal scores differently (example F). "
        "trec_eval sorts ties by descending id, ir_measures by ascending id for MRR and by descending id for MAP and "
        "NDCG, and ranx keeps the input order.",
        ["mrr.trec@3", "mrr.trec", "mrr.autorag@3", "mrr.coverage@3"],
    ),
    "MAP": (
        "For MAP, trec_eval divides by the number of relevant documents, and AutoRAG by the number of hits *found*, so "
        "losing a late hit can raise AutoRAG's score. ndeval averages over groups, has no cutoff (example D), and "
        "sorts equal scores by ascending id (example F).",
        ["map.trec@3", "map.autorag@3", "map.coverage@3", "map_ia"],
    ),
    "NDCG": (
        "Tools differ in the credit for a second hit on the same group (example B) and in whether they cut the ideal "
        "ranking to the length of the list (example C). Tools also differ in the gain for a grade (none, linear or "
        "exponential, example E) and in the order of equal scores (example F). FreshStack and ndeval compute "
        "alpha-nDCG. In AutoRAG and the published formulas, a repeated id earns credit twice (example G).",
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
    """Return a metric's value for one example (results with or without scores), or None if groupgt refuses it."""
    example = EXAMPLES[letter]
    run: Any = example.ids if as_list or example.run is None else example.run
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return float(groupgt.evaluate({"q": example.groups}, {"q": run}, [metric], policy=dict(policy))[metric])
        except groupgt.GroupgtError:
            return None


def _candidates(word: str, tool: Tool) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield metrics and policies that may give a tool's values, beginning with the tool's own convention."""
    convention = ".autorag" if "autorag" in tool.module else ".trec"
    for policy in POLICIES:
        for metric in sorted(WORDS[word][1], key=lambda text: convention not in text):
            yield metric, policy


def same(word: str, tool: Tool, values: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the metric closest to a tool's values, and the examples for which it differs."""
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


def _called(metric: str, wrong: list[str]) -> str:
    return metric + (f", except {', '.join(wrong)}" if wrong else "")


def _published_row(word: str) -> list[list[str]]:
    """Return the row for the published formulas; empty if they do not include the metric."""
    found = {letter: published.values(example) for letter, example in EXAMPLES.items()}
    if not all(word in by_word for by_word in found.values()):
        return []
    formulas = Tool("", "", published.values, lists=True)
    cells = [f"{by_word[word]:.4f}" for by_word in found.values()]
    return [[published.NAME, *cells, _called(*same(word, formulas, found))]]


def _section(word: str) -> list[str]:
    """Return a metric's title, text and table; tools with the same numbers share a row."""
    rows = []
    for name, held in recorded().items():
        values = held["values"]
        if not all(word in by_word for by_word in values.values()):
            continue
        called = _called(*same(word, TOOLS[name], values))
        cells = [f"{values[letter][word]:.4f}" if letter in values else "–" for letter in EXAMPLES]
        rows.append([name, *cells, called])
    rows += _published_row(word)
    names: dict[tuple[str, ...], list[str]] = {}
    for name, *numbers in rows:
        names.setdefault(tuple(numbers), []).append(name)
    rows = [[", ".join(tools), *numbers] for numbers, tools in names.items()]
    shown = {tuple(row[1:-1]) for row in rows}
    for convention in OURS:
        metric = f"{METRICS[word]}.{convention}@{K}"
        found = [_value(metric, letter, False, ()) for letter in EXAMPLES]
        numbers = tuple("–" if one is None else f"{one:.4f}" for one in found)
        if numbers not in shown:
            rows.append([code(metric), *numbers, ""])
    return [f"## {word}", WORDS[word][0], table([word, *EXAMPLES, "groupgt"], rows)]


def text() -> str:
    """Return the page."""
    examples = [
        [letter, code("\u00a0".join(example.ids)), code(example.groups), example.title]
        for letter, example in EXAMPLES.items()
    ]
    versions = [
        [name, code(TOOLS[name].distribution), held["version"], held["date"]] for name, held in recorded().items()
    ]
    return page(
        "Same name, different number",
        "Tools agree on metric names, but not on the numbers. This page shows the values that eight tools "
        f"and two published sets of formulas give for {_count(len(EXAMPLES))} small examples at a cutoff of {K}. In "
        "each table, the last column names the groupgt metric that gives the same values. The examples after *except* "
        "are those for which even the closest metric gives a different value.",
        table(["example", "results", "ground truth", "what it shows"], examples),
        "Tools without groups get all alternatives as a single list of relevant documents. AutoRAG and "
        f"AutoRAG-Research have no cutoff, so they get the first {K} results. Tools that need one score per id "
        "can't read example G.",
        *(part for word in WORDS for part in _section(word)),
        "## Published formulas",
        *_published(),
        "## Versions",
        "Each tool's own code computed its values. If a tool is installed, the tests recompute its values.",
        table(["tool", "package", "version", "recorded"], versions),
    )


def _count(number: int) -> str:
    return {6: "six", 7: "seven", 8: "eight"}.get(number, str(number))


def _published() -> list[str]:
    rows, agreed = [], 0
    for example in published.PRINTED:
        for word, figures in example.figures.items():
            for k, printed in figures.items():
                metric = f"{METRICS[word]}.trec@{k}"
                ours = groupgt.evaluate(example.truth, example.run, [metric])[metric]
                formula = example.value(word, k)
                if abs(formula - printed) < 0.5 * 10**-3:
                    agreed += 1
                else:
                    rows.append(
                        [
                            example.where,
                            f"{word}@{k}",
                            f"{printed:.4f}",
                            f"{formula:.4f}",
                            f"{ours:.4f} ({code(metric)})",
                        ]
                    )
    return [
        "[Axion's](https://github.com/ax-foundry/axion) documentation (*Retrieval Metrics*) and a lesson called "
        "*Retrieval Quality Metrics* give the formulas of the `trec` convention, except that a repeated id earns "
        "credit twice in their NDCG. Some printed numbers do not follow from their source's own formulas:",
        table(["source", "metric", "printed", "by its own formula", "groupgt"], rows),
        f"The other {agreed} printed numbers follow from their formulas.",
    ]
