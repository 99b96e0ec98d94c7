"""Report times as a table, a figure of quality against latency, and page data, and report cached results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from groupgt.comparison.systems import Systems
from groupgt.experiment.outcome import Outcome
from groupgt.experiment.retrieval import Left
from groupgt.experiment.timing import COSTS, Kind, Median, Timing, of_one_kind
from groupgt.render import tradeoffs
from groupgt.render.document import Detail, Item
from groupgt.render.drawing import Figure
from groupgt.render.page import data
from groupgt.render.tables import Table, counted, fixed, part_of, shortlist
from groupgt.report.means import about

# Time columns in the page's table of systems, and the fields of a timing that they show.
COLUMNS = {
    "build s": "build_s",
    "median ms": "latency_p50_ms",
    "p95 ms": "latency_p95_ms",
    "batched ms": "batched_p50_ms",
    "mean cost": "cost_mean",
    "p95 cost": "cost_p95",
}
UNITS: dict[Kind, str] = {"alone": "median ms per query", "batched": "median ms per query, in batches"}
NOISE = "the medians differ by less than their CIs (noise)"
# Seconds: if custom code takes longer, a line explains how to cache its answers.
LONG = 30.0


def blocks(outcome: Outcome) -> Iterator[Item]:
    """Yield a table of each system's times, which vary from run to run."""
    several, has_costs = len(outcome.evaluations) > 1, any(timing.costs for timing in outcome.timings)
    rows: list[list[Any]] = []
    for timing in outcome.timings:
        single, batched = (timing.latency_p50_ms, timing.latency_p95_ms), (timing.batched_p50_ms, timing.batched_p95_ms)
        name = f"{timing.dataset}: {timing.system}" if several else timing.system
        costs = [getattr(timing, name) for name in COSTS if has_costs]
        digits = [*(fixed(value, 2) for value in (*single, *batched)), *map(cost_text, costs)]
        rows.append([name, fixed(timing.build_s, 2), len(timing.single_ms), *digits])
    if rows:
        headers = ["time", "build s", "timed", "p50 ms", "p95 ms", "batched p50 ms", "batched p95 ms"]
        headers += ["mean cost", "p95 cost"] if has_costs else []
        yield Detail(Table(headers, rows, ("timed", "batched p95 ms", "batched p50 ms")))


def cost_text(value: float | None) -> str:
    """Format a cost with three significant digits."""
    return "–" if value is None else f"{value:.3g}"


def columns(outcome: Outcome) -> dict[str, str]:
    """Return the columns of the page's table. Leave out costs if no system has any."""
    has_costs = any(timing.costs for timing in outcome.timings)
    return {head: name for head, name in COLUMNS.items() if has_costs or name not in COSTS}


def latencies(outcome: Outcome, dataset: str) -> tuple[Kind, dict[str, Median]]:
    """Return one kind of latency, and the median of each system on a data set that has this kind."""
    return of_one_kind(_timings(outcome, dataset))


def _timings(outcome: Outcome, dataset: str) -> dict[str, Timing]:
    timings = {name: outcome.timing(dataset, name) for name in outcome.evaluations[dataset]}
    return {name: each for name, each in timings.items() if each is not None}


def figure(systems: Systems, latencies: tuple[Kind, Mapping[str, Median]]) -> Figure | None:
    """Draw the latency of systems against their quality. Return None if fewer than two systems were timed."""
    kind, medians = latencies
    rows: list[dict[str, Any]] = []
    for name, each in medians.items():
        if name in systems.values and (mean := systems.mean(name)) is not None:
            low, high = systems.ends(name)
            times = {"latency": each.ms, "fast": each.low, "slow": each.high}
            rows.append({"system": name, **times, "value": mean, "low": low, "high": high})
    if len(rows) < 2:
        return None
    rows.sort(key=lambda row: row["value"], reverse=systems.higher)
    for row in rows:
        row["front"] = "no" if any(_beats(other, row, higher=systems.higher) for other in rows) else "yes"
    is_noise = max(row["fast"] for row in rows) <= min(row["slow"] for row in rows)
    return tradeoffs.latency(rows, about(systems, note=NOISE if is_noise else ""), UNITS[kind])


def _beats(other: Mapping[str, Any], row: Mapping[str, Any], *, higher: bool) -> bool:
    """Return whether one system dominates another. Latencies with overlapping CIs count as equal."""
    gain = other["value"] - row["value"] if higher else row["value"] - other["value"]
    is_faster, is_slower = other["slow"] < row["fast"], row["slow"] < other["fast"]
    return bool(gain >= 0 and not is_slower and (gain > 0 or is_faster))


def page_rows(outcome: Outcome, dataset: str) -> dict[str, data.TimesOfSystem]:
    """Return the times of each system on a data set for the page."""
    rows = {}
    for name, each in _timings(outcome, dataset).items():
        shown = {key: getattr(each, key) for key in columns(outcome).values()}
        texts = [cost_text(value) if key in COSTS else time_text(value) for key, value in shown.items()]
        rows[name] = data.TimesOfSystem(values=list(shown.values()), texts=texts)
    return rows


def time_text(value: float | None) -> str:
    """Format a time with about three digits."""
    return fixed(value, 3 if value is None or value < 1 else 1 if value < 100 else 0)


def machine_text(timings: Sequence[Timing]) -> str:
    """Describe the machine on which times were measured, without its host name."""
    keys = ("system", "machine", "processors")
    machines = {json.dumps(list(map(each.machine.get, keys))) for each in timings if each.machine}
    if len(machines) != 1:
        return "several machines" if machines else ""
    system, machine, processors = json.loads(machines.pop())
    return f"{system} {machine}, {counted(processors or 1, 'processor')}"


def from_cache(outcome: Outcome) -> str:
    """List reused results in one line, with the time of the earlier run. The line is empty if everything is new."""
    kept = outcome.kept
    retrievals = kept.cached - sum(not each.earlier.interrupted for each in kept.answers)
    parts = [f"from the cache: {counted(retrievals, 'retrieval')}"] if retrievals else []
    parts += [text for text in [reused(outcome)] if text]
    return "; ".join(parts) + (" (--refresh starts from scratch)" if parts else "")


def reused(outcome: Outcome, dataset: str | None = None) -> str:
    """List reused answers and verdicts from code and services, for all data sets or one. The list may be empty."""
    kept, parts = outcome.kept, []
    for each in kept.answers:
        if dataset not in (None, each.dataset):
            continue
        name = f"{each.dataset}: {each.system}" if len(outcome.evaluations) > 1 else each.system
        part = part_of(each.earlier.count, each.queries, "answer", f"of {name} is", f"of {name} are")
        what = f"{part} from the run"
        way = f"resumed: {what} interrupted" if each.earlier.interrupted else f"reused: {what} that ended"
        parts.append(f"{way} at {_utc(each.earlier.at)}")
    if kept.verdicts:
        part = part_of(kept.verdicts, kept.verdicts + kept.judged, "verdict")
        parts.append(f"{part} from earlier runs")
    return "; ".join(parts) + ". groupgt did not check code or services for changes" if parts else ""


def could_resume(left: Left) -> str:
    """List in one line the results of an interrupted run that the current run does not use."""
    parts = [f"{counted(count, 'answer')} from {system}" for (_, system), count in left.answers.items()]
    parts += [counted(left.verdicts, "verdict")] if left.verdicts else []
    what = shortlist(parts, 3, " and {:,} more")
    return f"the run that was killed or failed at {_utc(left.at)} left {what}. To continue with them, add --resume"


def _utc(at: str) -> str:
    return f"{at.replace('T', ' ').removesuffix('Z')} UTC"


def ways_to_keep(outcome: Outcome) -> str:
    """Explain in one line how to cache slow systems, if there are any."""
    slow = {name: seconds for name, seconds in outcome.kept.seconds.items() if seconds > LONG}
    if not slow:
        return ""
    times = " and ".join(f"{name} ({seconds:,.0f} s)" for name, seconds in slow.items())
    return f"each run queries {times} again. To cache their results, set `version` next to `use`, or run with --reuse"
