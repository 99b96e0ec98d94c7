"""A page for each metric: its formulas as mathematics and in words, parameters, source, direction, worked examples."""

from __future__ import annotations

import re
import warnings
from typing import Any

import groupgt
from docs.generate.formulas import NOTATION, tex_of
from docs.generate.markdown import block, bullets, cell, code, page, plain, table
from groupgt.metrics.base import Definition
from groupgt.metrics.description import as_dict
from groupgt.metrics.language import list_metrics

# Two examples: the second has weights and grades, and is shown where it makes a difference.
RESULTS = ["a", "x", "b", "c"]
PLAIN: Any = {"q": [["a", "b"], ["c"]]}
GRADED: Any = {
    "q": [
        {"alternatives": [{"id": "a", "grade": 1}, {"id": "b", "grade": 3}], "weight": 2},
        ["c"],
        [{"id": "x", "grade": 0}],
    ]
}
TEXTS = {"a": "the ferry to Lorrow", "b": "a ferry", "c": "sails at noon", "x": "tickets are sold at noon"}


def pages() -> dict[str, str]:
    definitions = [definition for definition in list_metrics() if definition.name not in _registered()]
    rows = [
        [
            f"[{code(each.name)}]({each.name}.md)",
            cell(", ".join(convention for convention in each.formulas if convention) or "–"),
            cell(each.summary),
        ]
        for each in definitions
    ]
    index = page(
        "Metrics",
        f"This page lists all {len(rows)} metrics. Each metric's page has its formulas, parameters, sources and worked "
        "examples.",
        table(["metric", "conventions", "what it measures"], rows),
        "## Notation",
        NOTATION,
        "## The examples",
        f"Every page evaluates {code(RESULTS)} against the ground truth {code(PLAIN['q'])}. If grades or weights make "
        "a difference, the page also evaluates the results against this ground truth:",
        block(f"{GRADED['q']}", "python"),
    )
    return {"reference/metrics/index.md": index} | {
        f"reference/metrics/{each.name}.md": _page(each) for each in definitions
    }


def _registered() -> list[str]:
    """Return metrics that other packages or this process registered, which the reference leaves out."""
    from groupgt import plugins

    return [name for name in plugins.names("metric") if name not in plugins.ours("metric")]


def _page(definition: Definition) -> str:
    told = as_dict(definition)
    facts = [
        f"{'Higher' if told['higher_is_better'] else 'Lower'} is better"
        + (", and values are between 0 and 1." if definition.bounded else ", and values may exceed 1."),
        "Takes a cutoff, such as " + code(f"{definition.name}@5") + "."
        if told["takes_cutoff"]
        else "Uses the entire ranking and takes no cutoff.",
        "Compares the text of results and alternatives." if definition.reads_texts else "",
        "Also written " + ", ".join(map(code, told["aliases"])) + "." if told["aliases"] else "",
    ]
    parts = [f"{plain(told['summary']).rstrip('.')}.", bullets(filter(None, facts))]
    if told["warning"]:
        parts.append(f"**Note.** {plain(told['warning'])}")
    for formula in told["formulas"]:
        parts += _formula(definition, formula)
    parts.append("[Notation and examples](index.md#notation)")
    return page(definition.name, *parts)


def _formula(definition: Definition, formula: dict[str, Any]) -> list[str]:
    name = formula["metric"]
    tex = tex_of(name, formula["formula"])
    parts = [f"## {name}", f"$$\n{tex}\n$$" if tex else "", f"In `groupgt explain`: `{formula['formula']}`"]
    if formula["source"]:
        is_paper = re.search(r"(19|20)\d\d", formula["source"])
        paper = " ([full reference](../../references.md#metrics))" if is_paper else ""
        parts.append(f"Source: {plain(formula['source'])}{paper}.")
    if formula["parameters"]:
        rows = [[code(one["name"]), cell(one["expected"]), code(one["default"])] for one in formula["parameters"]]
        parts.append(table(["parameter", "expected", "default"], rows))
    asked = f"{name}@3" if definition.takes_cutoff else name
    worked = _worked(asked, PLAIN)
    graded = _worked(asked, GRADED)
    if worked:
        parts += [f"Example with the results {code(RESULTS)} and the ground truth {code(PLAIN['q'])}:", block(worked)]
    if graded and graded != worked:
        parts += ["Example with [grades and weights](index.md#the-examples):", block(graded)]
    return parts


def _worked(metric: str, truth: Any) -> str:
    """Return the example's value and arithmetic, or an empty string if the metric is undefined for the example."""
    corpus = {"corpus": TEXTS} if groupgt.parse_metric(metric).definition.reads_texts else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", groupgt.GroupgtWarning)
        try:
            lines = groupgt.evaluate(truth, {"q": RESULTS}, [metric], **corpus).explain("q", [metric])
        except groupgt.GroupgtError:
            return ""
    head, _, *worked = lines.rpartition("\n\n")[2].split("\n")
    return "\n".join([head, *worked])
