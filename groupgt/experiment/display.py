"""What an experiment says of its outcome: tables, the best, gates; and apart from these, all that is time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from groupgt.comparison.result import Comparison
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.tables import (
    MANY,
    grids,
    means_and_slices,
    per_query_rows,
    population,
    slices_of,
    slices_side_by_side,
)
from groupgt.experiment.best import described, looked_at
from groupgt.experiment.gates import GateResult
from groupgt.experiment.outcome import Outcome
from groupgt.render import tables
from groupgt.render.numbers import fixed, signed
from groupgt.render.tables import Block, document

Grid = tuple[list[str], list[list[Any]]]


def report(outcome: Outcome, style: str = tables.DEFAULT) -> str:
    """The tables of every dataset with their populations, the best, and the gates: the same bytes each time."""
    if style not in outcome.texts:  # the same is written and printed
        outcome.texts[style] = document(list(_blocks(outcome)), style, outcome.experiment.config.name)
    return outcome.texts[style]


def _blocks(outcome: Outcome) -> Iterator[Block]:
    for dataset, found in outcome.evaluations.items():
        if len(outcome.evaluations) > 1:
            yield f"dataset {dataset}"
        if found:
            yield from _grids(outcome, dataset)
            yield "\n".join(population(list(found.values()), [outcome.experiment.config.convention]))
        for name, why in outcome.failed.get(dataset, {}).items():
            yield f"failed: {name}: {why}"
        if _is_timeless(outcome) and dataset in outcome.best and len(found) > 1:
            yield _best(outcome, outcome.best[dataset], _tied(outcome, dataset)) + _worth(outcome, dataset)
    if _is_timeless(outcome) and outcome.overall is not None:
        yield _overall(outcome)
    yield from _gates(outcome, timed=False)


def _grids(outcome: Outcome, dataset: str) -> Iterator[Block]:
    evaluations = list(outcome.evaluations[dataset].values())
    primary = outcome.experiment.config.evaluate.primary
    yield from grids(evaluations, [outcome.experiment.config.convention])
    if len(evaluations) > MANY and primary is not None:
        yield from slices_of(evaluations, primary)
    else:
        yield from slices_side_by_side(evaluations)
    if dataset in outcome.comparison and len(evaluations) > 1:
        yield from _against(outcome, dataset)


def _against(outcome: Outcome, dataset: str) -> Iterator[Block]:
    """The whole comparison by the primary metric (by all, where that is not compared), and the deltas of all others."""
    found, primary = outcome.comparison[dataset], outcome.experiment.config.evaluate.primary
    first = next(iter(outcome.evaluations[dataset].values()))
    chosen = [text for text in found.metrics if primary is not None and text == first.text_of(primary)]
    chosen = chosen or list(found.metrics)
    if len(chosen) < len(found.metrics):
        yield from _deltas(found, first)
    yield from found.blocks(chosen, population=False)


def _deltas(found: Comparison, first: Evaluation) -> Iterator[Grid]:
    """What each system gains against the baseline; one table for each cutoff, where there are many metrics."""
    columns: dict[object, list[str]] = {}
    for text, metric in found.metrics.items():
        columns.setdefault(metric.cutoff if len(found.metrics) > tables.WIDEST else None, []).append(text)
    for texts in columns.values():
        headers = [f"against {found.baseline}", "queries", *(first.label_of(text) for text in texts)]
        rows: list[list[Any]] = []
        for name in (each.name for each in found.systems if each.name != found.baseline):
            own = [found[name][text] for text in texts]
            cells = [signed(row.delta) + ("*" if row.significant else "") for row in own]
            rows.append([name, min(row.pairs for row in own), *cells])
        yield headers, rows


def _is_timeless(outcome: Outcome) -> bool:
    """Whether no time has a say in what is the best."""
    return outcome.experiment.config.evaluate.best.max_latency_ms is None


def _rule(outcome: Outcome) -> str:
    section = outcome.experiment.config.evaluate
    texts = looked_at(section.best, section.primary, list(outcome.experiment.metrics))
    return described(section.best, texts)


def _best(outcome: Outcome, name: str | None, tied: int = 0) -> str:
    others = f" (and {tied:,} more with the same figures)" if tied else ""
    return f"best by {_rule(outcome)}: {name or 'none'}{others}"


def _worth(outcome: Outcome, dataset: str) -> str:
    """What the best gains against the baseline, and whether that is real."""
    section, table, best = outcome.experiment.config.evaluate, outcome.comparison.get(dataset), outcome.best[dataset]
    if table is None or best is None or best == table.baseline or section.best.strategy != "primary":
        return ""
    first = outcome.evaluations[dataset][best]
    if section.primary is None or (text := first.text_of(section.primary)) not in table.metrics:
        return ""
    row = table[best][text]
    return f" ({signed(row.delta)} against {table.baseline}, {'' if row.significant else 'not '}significant)"


def _tied(outcome: Outcome, dataset: str) -> int:
    """How many systems have the figures of the best, of the metrics that decide."""
    section = outcome.experiment.config.evaluate
    texts = looked_at(section.best, section.primary, list(outcome.experiment.metrics))
    found, best = outcome.evaluations[dataset], outcome.best[dataset]
    if best is None:
        return 0
    return sum(all(each[text] == found[best][text] for text in texts) for each in found.values()) - 1


def _overall(outcome: Outcome) -> str:
    count = len(outcome.evaluations)
    return f"best over {count} data sets by {_rule(outcome)} (macro means): {outcome.overall}"


def _gates(outcome: Outcome, *, timed: bool) -> Iterator[Block]:
    """The gates as a table, and a line for those that nothing was held against."""
    gates = [gate for gate in outcome.gates if gate.timed == timed]
    if gates:
        rows: list[list[Any]] = [[gate.gate, "passed" if gate.passed else "FAILED", gate.reason] for gate in gates]
        yield ["gate", "result", "why"], rows
    if not timed and (idle := _idle(outcome)):
        yield f"not held against any system of this run: gate {', '.join(map(str, idle))}"


def _idle(outcome: Outcome) -> list[int]:
    done = {gate.gate for gate in outcome.gates}
    return [number for number in range(1, len(outcome.experiment.config.gate) + 1) if number not in done]


def times(outcome: Outcome, style: str = tables.DEFAULT) -> str:
    """How long each system took, and what follows from that: of other bytes each time."""
    return document(list(_time_blocks(outcome)), style)


def _time_blocks(outcome: Outcome) -> Iterator[Block]:
    several = len(outcome.evaluations) > 1
    rows: list[list[Any]] = []
    for timing in outcome.timings:
        single, batched = (timing.latency_p50_ms, timing.latency_p95_ms), (timing.batched_p50_ms, timing.batched_p95_ms)
        name = f"{timing.dataset}: {timing.system}" if several else timing.system
        rows.append([name, _digits(timing.build_s), len(timing.single_ms), *map(_digits, (*single, *batched))])
    if rows:
        yield ["time", "build s", "timed", "one by one: p50 ms", "p95 ms", "in batches: p50 ms", "p95 ms"], rows
    if not _is_timeless(outcome):
        for dataset, best in outcome.best.items():
            yield f"{f'dataset {dataset}: ' if several else ''}{_best(outcome, best)}"
        if outcome.overall is not None:
            yield _overall(outcome)
    yield from _gates(outcome, timed=True)


def _digits(value: float | None) -> str | None:
    return None if value is None else fixed(value, 2)


def as_dict(outcome: Outcome) -> dict[str, Any]:
    """Everything but times as plain Python: what results.json holds."""
    timeless = _is_timeless(outcome)
    out: dict[str, Any] = {
        "name": outcome.experiment.config.name,
        "datasets": {
            dataset: {
                **({"best": outcome.best.get(dataset)} if timeless else {}),
                "systems": [each.to_dict() for each in found.values()],
                **({"failed": outcome.failed[dataset]} if dataset in outcome.failed else {}),
                **({"comparison": outcome.comparison[dataset].to_dict()} if dataset in outcome.comparison else {}),
            }
            for dataset, found in outcome.evaluations.items()
        },
    }
    if timeless and outcome.overall is not None:
        out["best"] = outcome.overall
    if outcome.experiment.config.gate:
        out["gates"] = gates_dict(outcome, timed=False)
    return out


def gates_dict(outcome: Outcome, *, timed: bool) -> list[dict[str, Any]]:
    """The gates as plain Python."""
    return [_gate_dict(gate) for gate in outcome.gates if gate.timed == timed]


def _gate_dict(gate: GateResult) -> dict[str, Any]:
    return {name: value for name, value in vars(gate).items() if name != "timed"}


def times_dict(outcome: Outcome) -> dict[str, Any]:
    """All that is time as plain Python: what timings.json holds."""
    out: dict[str, Any] = {"systems": [timing.as_dict() for timing in outcome.timings]}
    if not _is_timeless(outcome):
        out["best"] = outcome.best
        out["overall"] = outcome.overall
    if timed := gates_dict(outcome, timed=True):
        out["gates"] = timed
    return out


def means(outcome: Outcome) -> Grid:
    """Headers and a row for each mean, of the whole and of each slice: what means.csv holds."""
    headers: list[str] = []
    rows: list[list[Any]] = []
    for dataset, found in outcome.evaluations.items():
        own_headers, own_rows = means_and_slices(list(found.values()))
        headers = ["dataset", *own_headers]
        rows += [[dataset, *row] for row in own_rows]
    return headers, rows


def compared(outcome: Outcome) -> Grid:
    """Headers and a row for each system and metric of the comparisons: what comparison.csv holds."""
    headers: list[str] = []
    rows: list[list[Any]] = []
    for dataset, found in outcome.comparison.items():
        own_headers, own_rows = found.csv_rows()
        headers = ["dataset", *own_headers]
        rows += [[dataset, *row] for row in own_rows]
    return headers, rows


def per_query(outcome: Outcome) -> Grid:
    """Headers and a row for each system and question: what per_query.csv holds."""
    headers: list[str] = []
    rows: list[list[Any]] = []
    for dataset, found in outcome.evaluations.items():
        if found:
            own_headers, own_rows = per_query_rows(list(found.values()))
            headers = ["dataset", *own_headers]
            rows += [[dataset, *row] for row in own_rows]
    return headers, rows
