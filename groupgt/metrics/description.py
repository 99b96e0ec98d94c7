"""Converts the metric catalogue to table rows, and single definitions to text."""

from __future__ import annotations

import re
from typing import Any

from groupgt.metrics.base import Definition
from groupgt.metrics.catalogue import ALIASES, TREC_EVAL
from groupgt.metrics.language import Metric


def as_dict(definition: Definition) -> dict[str, Any]:
    """Convert a definition to plain Python values."""
    facts = {key: getattr(definition, key) for key in ("name", "summary", "higher_is_better", "takes_cutoff")}
    formulas = []
    for convention, formula in definition.formulas.items():
        keys = ("name", "default", "expected")
        parameters = [{key: getattr(each, key) for key in keys} for each in formula.parameters]
        formulas.append(
            {
                "metric": str(Metric(definition.name, convention)),
                "formula": formula.text,
                "source": formula.source or None,
                "parameters": parameters,
            }
        )
    return {**facts, "aliases": _aliases(definition), "formulas": formulas, "warning": definition.warning or None}


def details(definition: Definition) -> str:
    """Format a definition as text: formulas by convention, parameters, sources and caveats."""
    shown = as_dict(definition)
    lines = [f"{definition.name}: {definition.summary}"]
    for formula in shown["formulas"]:
        lines += ["", formula["metric"], f"  {formula['formula']}"]
        lines += [f"  {each['name']}: {each['expected']}; default {each['default']}" for each in formula["parameters"]]
        if formula["source"]:
            lines.append(f"  source: {formula['source']}")
    lines += ["", "higher is better" if definition.higher_is_better else "lower is better"]
    if not definition.takes_cutoff:
        lines.append("uses the entire ranking and takes no cutoff")
    if shown["aliases"]:
        lines.append(f"also written {', '.join(shown['aliases'])}")
    if definition.warning:
        lines.append(f"note: {definition.warning}")
    return "\n".join(lines)


def _aliases(definition: Definition) -> list[str]:
    targets = {**ALIASES, **{f"{name}_10": f"{target}@10" for name, target in TREC_EVAL.items()}}
    aliases = [alias for alias, target in targets.items() if re.split("[.(@]", target)[0] == definition.name]
    return [*aliases, *([f"retrieval_{definition.name}"] if "autorag" in definition.formulas else [])]
