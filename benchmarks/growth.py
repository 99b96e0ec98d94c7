"""How time and memory grow: with queries, with depth, with groups, with systems; figures as JSON and as a picture."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import data
import drawing
import many
import parquet
from drawing import Panel, Row

# What is largest is measured once.
LARGE, ROUNDS = 50_000_000, 3
RESULTS = 100
GROUPS = (1, 2, 4, 8, 16, 32, 64)
Commands = tuple[list[str], list[str]]


def measure(rounds: int, size: int) -> None:
    """Prints a table of each kind of growth, and writes the figures and the picture; a quick look leaves both alone."""
    import report

    report.section(
        "Growth, whole processes",
        f"{', '.join(parquet.METRICS)} at k = {', '.join(map(str, parquet.CUTOFFS))}; medians; "
        "read = polars reads the columns, no more",
    )
    most = 10_000 * size
    found = [
        _series("queries", f"queries, {RESULTS} results each", (100, 1_000, 10_000, 100_000, 1_000_000),
                lambda count: _parquet(parquet.made(count, RESULTS)), RESULTS, most, rounds),
        _series("depth", "results a query, 1,000 queries", (10, 100, 1_000, 10_000, 100_000),
                lambda depth: _parquet(parquet.made(1_000, depth)), 1_000, most, rounds),
        _series("groups", f"groups a query, 10,000 × {RESULTS} results", GROUPS,
                lambda groups: _parquet(parquet.made(10_000, RESULTS), groups), 0, most, rounds),
        _series("systems", "systems, 1,000 × 100 results each", (1, 10, 100, 1_000),
                _systems(most), many.QUERIES * many.DEPTH, most, rounds),
    ]  # fmt: skip
    folder = Path(__file__).resolve().parent
    figures, picture = folder / "growth.json", folder.parent / "docs" / "growth.svg"
    if size < 10_000:
        figures, picture = data.FOLDER / "growth.json", data.FOLDER / "growth.svg"
    told = {"metrics": parquet.METRICS, "cutoffs": parquet.CUTOFFS, "growth": found}
    figures.write_text(_json(told), encoding="utf-8", newline="\n")
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(drawn(found), encoding="utf-8", newline="\n")
    print(f"\nwritten: {figures} and {picture}")


def _parquet(workload: parquet.Made, groups: int = 0) -> Commands:
    return parquet.commands(workload.truth_of(groups) if groups else workload.truth, workload.ordered)


def _systems(most: int) -> Callable[[int], Commands]:
    count = min(max(most // (many.QUERIES * many.DEPTH), 1), 1_000)
    return lambda number: many.commands(many.made(10 ** (len(str(count)) - 1)), number)


def _series(
    title: str,
    axis: str,
    sizes: tuple[int, ...],
    commands: Callable[[int], Commands],
    rows: int,
    most: int,
    rounds: int,
) -> dict[str, Any]:
    """Measures every size, groupgt and the floor in turn; prints the table."""
    import report
    from whole import run

    told: dict[str, Any] = {"title": title, "axis": axis, "at": [], "rounds": []}
    told |= {name: {"seconds": [], "megabytes": []} for name in ("groupgt", "read")}
    lines = []
    for size in sizes:
        if size * rows > most:
            continue
        reading, ours = commands(size)
        times = 1 if size * rows > LARGE else min(rounds, ROUNDS)
        parquet.succeeded(run(reading))  # the files come into the memory of the operating system
        both = [(parquet.succeeded(run(reading)), parquet.succeeded(run(ours))) for _ in range(times)]
        told["at"].append(size)
        told["rounds"].append(times)
        for name, side in zip(("read", "groupgt"), zip(*both)):
            told[name]["seconds"].append(round(statistics.median(each.seconds for each in side), 3))
            told[name]["megabytes"].append(round(statistics.median(each.megabytes or 0 for each in side)))
        last = [f"{told[name][what][-1]:,}" for what in ("seconds", "megabytes") for name in ("groupgt", "read")]
        ratio = told["groupgt"]["seconds"][-1] / told["read"]["seconds"][-1]
        lines.append([f"{size:,}", report.ratio(ratio), *last, times])
    headers = [axis, "groupgt ÷ read", "groupgt s", "read s", "groupgt MB", "read MB", "rounds"]
    report.table(headers, lines)
    print()
    return told


def drawn(found: list[dict[str, Any]]) -> str:
    """The picture of such figures."""
    rows = []
    for title, what, shown in (("Seconds", "seconds", drawing.seconds), ("Megabytes", "megabytes", drawing.megabytes)):
        panels = [
            Panel(each["title"], each["axis"], each["at"], {name: each[name][what] for name in ("groupgt", "read")})
            for each in found
        ]
        rows.append(Row(title, panels, shown))
    metrics, cutoffs = ", ".join(parquet.METRICS), " and ".join(map(str, parquet.CUTOFFS))
    text = [f"{metrics} at k = {cutoffs}, whole processes; systems are TREC files, all else is parquet."]
    text += ["read: a process in which polars reads the columns and does nothing else, the floor. Both axes are "
             "logarithmic."]  # fmt: skip
    return drawing.draw("How time and memory grow", text, rows)


def _json(told: dict[str, Any]) -> str:
    """JSON with a line for each list."""
    lists: list[str] = []

    def kept(value: Any) -> Any:
        if isinstance(value, (list, tuple)) and not any(isinstance(each, dict) for each in value):
            lists.append(json.dumps(value, ensure_ascii=False))
            return f"\0{len(lists) - 1}"
        if isinstance(value, dict):
            return {name: kept(each) for name, each in value.items()}
        return [kept(each) for each in value] if isinstance(value, list) else value

    text = json.dumps(kept(told), indent=2, ensure_ascii=False)
    for number, each in enumerate(lists):
        text = text.replace(f'"\\u0000{number}"', each)
    return text + "\n"
