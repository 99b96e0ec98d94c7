"""How long systems took: the table, quality against latency, and their part of the page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from groupgt.comparison.systems import Systems
from groupgt.experiment.outcome import Outcome
from groupgt.experiment.timing import Timing
from groupgt.render import tradeoffs
from groupgt.render.document import Block, Table
from groupgt.render.drawing import Figure
from groupgt.render.tables import counted, fixed
from groupgt.report.means import about

# Systems on the front are named where their latencies differ by this factor at least.
APART = 3.0
# What the page's table of systems shows of times, and where a timing has it.
COLUMNS = {
    "build s": "build_s",
    "median ms": "latency_p50_ms",
    "p95 ms": "latency_p95_ms",
    "batched ms": "batched_p50_ms",
}


def blocks(outcome: Outcome) -> Iterator[Block]:
    """How long each system took: other figures each time."""
    several = len(outcome.evaluations) > 1
    rows: list[list[Any]] = []
    for timing in outcome.timings:
        single, batched = (timing.latency_p50_ms, timing.latency_p95_ms), (timing.batched_p50_ms, timing.batched_p95_ms)
        name = f"{timing.dataset}: {timing.system}" if several else timing.system
        rows.append([name, _digits(timing.build_s), len(timing.single_ms), *map(_digits, (*single, *batched))])
    if rows:
        headers = ["time", "build s", "timed", "p50 ms", "p95 ms", "batched p50 ms", "batched p95 ms"]
        yield Table(headers, rows, ("timed", "batched p95 ms", "batched p50 ms"))


def _digits(value: float | None) -> str | None:
    return None if value is None else fixed(value, 2)


def latencies(outcome: Outcome, dataset: str) -> dict[str, float]:
    """The median milliseconds of a query, of systems of which they are known."""
    timings = {name: outcome.timing(dataset, name) for name in outcome.evaluations[dataset]}
    medians = {name: each.latency_p50_ms or each.batched_p50_ms for name, each in timings.items() if each is not None}
    return {name: value for name, value in medians.items() if value}


def figure(systems: Systems, milliseconds: Mapping[str, float]) -> Figure | None:
    """Quality against latency, where that is known of two systems at least."""
    rows: list[dict[str, Any]] = []
    for name, value in milliseconds.items():
        if (mean := systems.mean(name)) is not None:
            low, high = systems.ends(name)
            rows.append({"system": name, "latency": value, "value": mean, "low": low, "high": high})
    if len(rows) < 2:
        return None
    named = 0.0
    for row in sorted(rows, key=lambda row: -row["latency"]):
        row["front"] = "no" if any(_beats(other, row, higher=systems.higher) for other in rows) else "yes"
        # Names too near to one another would cover each other.
        if row["front"] == "yes" and (not named or row["latency"] * APART < named):
            row["label"], named = row["system"], row["latency"]
    return tradeoffs.latency(rows, about(systems, systems.label))


def _beats(other: Mapping[str, Any], row: Mapping[str, Any], *, higher: bool) -> bool:
    """Whether one is as good in both, and better in one."""
    gain = other["value"] - row["value"] if higher else row["value"] - other["value"]
    saved = row["latency"] - other["latency"]
    return bool(gain >= 0 and saved >= 0 and (gain > 0 or saved > 0))


def page_rows(outcome: Outcome, dataset: str) -> dict[str, list[float | None]]:
    """The times of each system of a data set, for the page."""
    timings = {name: outcome.timing(dataset, name) for name in outcome.evaluations[dataset]}
    return {
        name: [getattr(timing, key) for key in COLUMNS.values()]
        for name, timing in timings.items()
        if timing is not None
    }


def machine_text(timings: Sequence[Timing]) -> str:
    """What times were taken on, without its name."""
    machines = {json.dumps([each.machine.get(key) for key in ("system", "machine", "processors")]) for each in timings}
    if len(machines) != 1:
        return "several machines" if machines else ""
    system, machine, processors = json.loads(next(iter(machines)))
    return f"{system} {machine}, {counted(processors or 1, 'processor')}"
