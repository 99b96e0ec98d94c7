"""Lists names from earlier versions, and their replacements in the shell, experiment files and Python."""

from __future__ import annotations

from typing import Any, Literal

Kind = Literal["command", "option", "key", "python"]

_SUGGEST = "use `check --near-duplicates --write FILE`, then `convert IN OUT --accept FILE`"
_CANDIDATES = "use check(…, near_duplicates=True).candidates"
_STYLE = "save the figure as .json and style it with Vega-Lite"
_RESULTS_SCHEMA = "results.json and JSON output keep their keys, but no longer have a schema"
_METHODS = "the caption of the LaTeX table states the metrics, the queries, the test and its correction"
_POOL = "the judged@k metric shows what share of the top k is judged"

# A command may be two words. An option may be preceded by its command, and a Python name by its class.
GONE: dict[Kind, dict[str, str]] = {
    "command": {
        "pool": _POOL,
        "suggest": _SUGGEST,
        "schema results": _RESULTS_SCHEMA,
        "schema comparison": _RESULTS_SCHEMA,
    },
    "option": {
        "--methods": _METHODS,
        "--font": _STYLE,
        "--theme": _STYLE,
        "outcomes -m": "compare metrics with `groupgt compare`",
    },
    "key": {"build": "run the script before `groupgt run`, and set corpus to the file that it writes"},
    "python": {
        "Comparison.methods": f"{_METHODS}; call to_latex()",
        "HardestGroups": "misses() for several runs returns a `Misses`, and its `groups` are the hardest groups",
        "Outcomes.metrics": "compare metrics with compare()",
        "Outcomes.refused": "all shares are allowed; with few queries, the interval is wide",
        "Outcomes.winner": "compare metrics with compare()",
        "Pool": _POOL,
        "Suggestions": _CANDIDATES,
        "pool": _POOL,
        "suggest": _CANDIDATES,
    },
}


def way_out(kind: Kind, *names: str) -> str:
    """Return the replacement for the first of these names in the table, or an empty string if the table has none."""
    table = GONE[kind]
    return next((f"{name} was removed: {table[name]}" for name in names if name in table), "")


def attribute(value: Any, name: str) -> Any:
    """Raise `AttributeError` for a missing attribute. If the attribute was removed, suggest a replacement."""
    kind = type(value).__name__
    raise AttributeError(way_out("python", f"{kind}.{name}") or f"{kind!r} object has no attribute {name!r}")
