"""Means as a flat dict, with names that MLflow, Weights & Biases and DVC accept.

A name consists of data set, system and metric, separated by slashes: `handbook/bm25/recall/at_5`. Within each part, `@`
becomes `/at_`, brackets and commas become `/`, `=` becomes an underscore, and any other character except letters,
digits, `_`, `.` and `-` becomes a hyphen. Two texts with the same name are an error.

| text | name |
|---|---|
| `recall@5` | `recall/at_5` |
| `rbp(p=0.95)@20` | `rbp/p_0.95/at_20` |
| `ndcg.trec(gain=exp)` | `ndcg.trec/gain_exp` |
| `bm25[k1=0.9,b=0.4]` | `bm25/k1_0.9/b_0.4` |
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from groupgt.errors import ConfigError

REPLACED = (("@", "/at_"), ("(", "/"), ("[", "/"), (", ", "/"), (",", "/"), (")", ""), ("]", ""), ("=", "_"))


def tracked(means: Iterable[tuple[Sequence[str], Mapping[str, float | None]]]) -> dict[str, float]:
    """Collect the defined means of systems by name. Raise `ConfigError` if two means share a name."""
    values: dict[str, float] = {}
    origin: dict[str, str] = {}
    for path, by_metric in means:
        for text, mean in by_metric.items():
            name, written = "/".join(map(name_of, [*path, text])), " ".join([*path, text])
            if origin.setdefault(name, written) != written:
                raise ConfigError(f"to_metrics: {origin[name]} and {written} would both be {name}; rename one of them")
            if mean is not None and not math.isnan(mean):
                values[name] = mean
    return values


def tracked_pairs(means: Mapping[tuple[str, str], Mapping[str, float | None]], *, several: bool) -> dict[str, float]:
    """Collect means by data set and system. With `several` data sets, names begin with the data set."""
    return tracked((pair if several else pair[1:], by_metric) for pair, by_metric in means.items())


def name_of(text: str) -> str:
    """Return the name of a metric, system or data set."""
    for old, new in REPLACED:
        text = text.replace(old, new)
    return re.sub(r"[^\w./-]", "-", text, flags=re.ASCII)
