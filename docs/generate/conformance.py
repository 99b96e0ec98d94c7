"""Cases for implementations in other languages, in `docs/conformance/`."""

from __future__ import annotations

import json
import math
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import groupgt
from docs.generate import DOCS
from docs.generate.peers import EXAMPLES
from groupgt.experiment.json_schema import heading
from groupgt.metrics.language import Metric, list_metrics

CASES, SCHEMA = DOCS / "conformance" / "cases.json", DOCS / "conformance" / "schema.json"
POLICY = "missing=zero, duplicates=penalize, undefined=skip"
NUMBER = {"type": ["number", "null"]}
ALTERNATIVE = {
    "oneOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"id": {"type": "string"}, "grade": {"type": "number"}},
            "required": ["id", "grade"],
        },
    ]
}


def schema() -> dict[str, Any]:
    """The JSON Schema of the cases."""
    metric = {
        "name": {"type": "string"},
        "convention": {"enum": ["autorag", "trec", "coverage", None]},
        "parameters": {"type": "object"},
        "k": {"type": ["integer", "null"]},
        "formula": {"type": "string"},
    }
    case = {
        "truth": {"type": "array", "items": {"type": "array", "items": ALTERNATIVE}},
        "ranking": {"type": "array", "items": {"type": "string"}},
        "values": {"type": "object", "additionalProperties": NUMBER},
    }
    whole = {
        "policy": {"type": "string"},
        "metrics": {"type": "object", "additionalProperties": _object(metric)},
        "cases": {"type": "array", "items": _object(case)},
    }
    return {**heading("conformance"), **_object(whole)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def cases() -> dict[str, Any]:
    """Every metric of ids on the examples of the documentation and on random queries."""
    metrics = {str(metric): metric for metric in _metrics()}
    queries = [*_examples(), *_random(20)]
    truth = {f"q{number}": groups for number, (groups, _) in enumerate(queries)}
    run = {f"q{number}": ranking for number, (_, ranking) in enumerate(queries)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = groupgt.evaluate(truth, run, list(metrics.values()))
    columns = {text: column.tolist() for text, column in found.values.items()}
    return {
        "policy": POLICY,
        "metrics": {
            text: {
                "name": metric.name,
                "convention": metric.convention,
                "parameters": dict(metric.parameters),
                "k": metric.cutoff,
                "formula": metric.formula.text,
            }
            for text, metric in metrics.items()
        },
        "cases": [
            {
                "truth": groups,
                "ranking": ranking,
                "values": {
                    text: None if math.isnan(column[number]) else column[number] for text, column in columns.items()
                },
            }
            for number, (groups, ranking) in enumerate(queries)
        ],
    }


def _metrics() -> Iterator[Metric]:
    """Every metric that needs only ids, in every convention, for the whole ranking and for its first three results."""
    for definition in list_metrics():
        if definition.reads_texts or definition.aggregate is not None or definition.queries != "answerable":
            continue
        for convention in definition.formulas:
            for k in (None, 3) if definition.takes_cutoff else (None,):
                yield Metric(definition.name, convention, cutoff=k)


def _examples() -> list[tuple[Any, list[str]]]:
    return [(example.groups, example.ids) for example in EXAMPLES.values()]


def _random(count: int) -> Iterator[tuple[Any, list[str]]]:
    """Random queries: groups that overlap, grades, judged non-relevant documents, repeats, empty rankings."""
    rng = random.Random(7)  # noqa: S311  # not a secret
    names = [f"d{number}" for number in range(12)]
    for _ in range(count):
        groups: list[list[Any]] = []
        for _ in range(rng.randrange(1, 5)):
            members = rng.sample(names, rng.randrange(1, 4))
            grades = [rng.choice([1, 1, 1, 2, 3, 0]) for _ in members]
            groups.append(
                [name if grade == 1 else {"id": name, "grade": grade} for name, grade in zip(members, grades)]
            )
        ranking = [rng.choice(names) if rng.random() < 0.1 else name for name in rng.sample(names, rng.randrange(0, 9))]
        yield groups, ranking


def files() -> dict[Path, str]:
    """Return the files with their texts."""
    return {CASES: text_of(cases()), SCHEMA: text_of(schema())}


def text_of(content: Any) -> str:
    """The text of a file; numbers with as many digits as give back the same double."""
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
