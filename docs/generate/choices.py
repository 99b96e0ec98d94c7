"""Labellers, retrievers, tokenizers and engines with their options, and the policies."""

from __future__ import annotations

import json
from dataclasses import fields
from inspect import getdoc

import groupgt
from docs.generate import populations
from docs.generate.markdown import bullets, cell, code, docstring, page, plain, table
from groupgt.cli.reference import _default as default_of
from groupgt.model.policy import PRESETS
from groupgt.options import choices, options_of
from groupgt.plugins import KINDS, OURS, Plugin, find

SAYS = {
    "labeller": "A labeller decides which results hit which alternatives. [Labellers](../labellers.md) shows examples.",
    "retriever": "Experiments can use these retrievers, under `systems.NAME.use`. "
    "[Experiments](../experiments.md) shows examples.",
    "tokenizer": "A tokenizer counts the tokens of results, for budgets such as `@2000tokens`.",
    "engine": "An engine labels results in memory, as a stream of files, or on a cluster. "
    "[Very large runs and clusters](../how-to/large.md) helps you choose.",
}


def pages() -> dict[str, str]:
    made = {}
    for kind, names in OURS.items():
        plural = KINDS[kind].plural
        parts = [part for name in names for part in _plugin(find(kind, name))]
        made[f"reference/{plural}.md"] = page(plural.capitalize(), SAYS[kind], *parts)
    return made | {"reference/policies.md": _policies()}


def _plugin(plugin: Plugin) -> list[str]:
    rows = [
        [code(option.name), cell(option.expected), code(default_of(option)), cell(option.description)]
        for option in options_of(plugin.options).values()
    ]
    told = any(row[-1] for row in rows)
    facts = [f"Needs {code(f'groupgt[{extra}]')}." for extra in plugin.extras]
    facts += ["Runs your code, so it needs `--allow-code`."] if plugin.runs_code else []
    headers = ["option", "expected", "default", "meaning"]
    return [
        f"## {plugin.name}",
        f"{plain(plugin.summary).rstrip('.')}.",
        bullets(facts),
        docstring(getdoc(plugin.options) or "") if plugin.options is not None else "",
        table(headers if told else headers[:3], rows if told else [row[:3] for row in rows]) if rows else "",
    ]


def _policies() -> str:
    default = groupgt.Policy()
    rows = [
        [
            code(name),
            cell(", ".join(choices(option.hint)) or option.expected),
            code(json.dumps(getattr(default, name)).strip('"')),
            cell(option.description),
        ]
        for name, option in options_of(groupgt.Policy).items()
    ]
    presets = [f"{code(name)}: {cell(', '.join(_of(name))) or 'the defaults'}" for name in PRESETS]
    return page(
        "Policies",
        "A policy determines how groupgt handles undefined, missing and ambiguous data. A line below the results table "
        "lists changes from the default policy. [Policies](../metrics.md#policies) shows examples.",
        docstring((getdoc(groupgt.Policy) or "").partition(">>>")[0]),
        table(["field", "choices", "default", "meaning"], rows),
        "## Presets",
        bullets(presets),
        *populations.section(),
    )


def _of(preset: str) -> list[str]:
    """Return the fields that a preset changes."""
    chosen, default = groupgt.Policy.of(preset), groupgt.Policy()
    values = [(each.name, getattr(chosen, each.name)) for each in fields(chosen)]
    return [f"{name}={value}" for name, value in values if value != getattr(default, name)]
