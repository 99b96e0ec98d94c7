"""What a run found, and how it is shown: tables, the best, gates; and apart from these, all that is time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupgt.comparison.compare import Comparison
from groupgt.errors import printable
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.tables import MOST_COLUMNS, grids, population, slices_of, slices_side_by_side
from groupgt.experiment import shared
from groupgt.experiment.answers import Reused
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.gates import GateResult
from groupgt.experiment.systems import combined
from groupgt.experiment.timing import Timing
from groupgt.model.ground_truth import GroundTruth
from groupgt.render import tables
from groupgt.render.document import Block, document
from groupgt.render.exports import nulls
from groupgt.render.results import Result
from groupgt.render.tables import Grid, fixed, signed
from groupgt.retrievers.base import Answers

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Result):
    """What an experiment found: `evaluations[dataset][system]`, best first, and the folder the results went to.

    `comparison[dataset]` holds every system against the baseline, `gates` each gate's result,
    `failed[dataset][system]` why a system that may be skipped has no results. `retrieved` and `cached` count
    retrievals, `reused` says which code or services were not asked again, for an earlier run has kept their answers.
    """

    experiment: Experiment
    evaluations: dict[str, dict[str, Evaluation]]
    answers: dict[tuple[str, str], Answers]
    timings: list[Timing]
    digests: dict[str, str] = field(default_factory=dict)
    failed: dict[str, dict[str, str]] = field(default_factory=dict)
    comparison: dict[str, Comparison] = field(default_factory=dict)
    gates: list[GateResult] = field(default_factory=list)
    best: dict[str, str | None] = field(default_factory=dict)
    overall: str | None = None
    retrieved: int = 0
    cached: int = 0
    reused: list[Reused] = field(default_factory=list)
    folder: Path | None = None
    truths: dict[str, GroundTruth] = field(default_factory=dict, repr=False)
    passages: dict[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    texts: dict[str, str] = field(default_factory=dict, repr=False)

    def blocks(self) -> list[Block]:
        """The tables of every data set with their populations, the best, and the gates."""
        return list(_blocks(self))

    def text(self, style: str = tables.DEFAULT) -> str:
        """The same in any tabulate format: what the result folder holds."""
        return report(self, style)

    def csv_rows(self) -> Grid:
        """Headers and a row for each mean, of the whole and of each slice: what means.csv holds."""
        from groupgt.experiment.results import means_grid

        return means_grid(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but times as plain Python: what results.json holds."""
        from groupgt.experiment.results import results_of

        plain: dict[str, Any] = nulls(results_of(self))
        return plain

    def __repr__(self) -> str:
        systems = sum(map(len, self.evaluations.values()))
        gates = f", {sum(gate.passed for gate in self.gates)} of {len(self.gates)} gates passed" if self.gates else ""
        best = f"best {self.best}{gates}, {self.folder}"
        return printable(f"Outcome({self.experiment.config.name}: {systems} evaluations, {best})")

    @property
    def passed(self) -> bool:
        """Whether every gate holds."""
        return all(gate.passed for gate in self.gates)

    def plot(self, name: str = "forest", *, dataset: str | None = None) -> Figure:
        """A figure of `groupgt.render.figures.FIGURES`, of the only data set or the one named."""
        from groupgt.experiment.pictures import drawable
        from groupgt.render.figures import figure_named

        return figure_named(name, drawable(self, dataset))

    def _figure(self) -> Figure | None:
        return self.plot("forest") if sum(map(bool, self.evaluations.values())) == 1 else None

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes the page of this experiment, one HTML file: what `report.html` of its result folder is."""
        from groupgt.experiment.report import page_bytes_of
        from groupgt.store.files import write_bytes

        write_bytes(Path(path), page_bytes_of(self))

    @property
    def idle_gates(self) -> list[int]:
        """The numbers of the gates that matched no system."""
        held = {gate.gate for gate in self.gates}
        return [number for number in range(1, len(self.experiment.config.gate) + 1) if number not in held]

    @property
    def from_cache(self) -> str:
        """One line: which code and services an earlier run has asked, and when; empty where all were asked now."""
        several = len(self.evaluations) > 1
        told = []
        for each in self.reused:
            name = f"{each.dataset}: {each.system}" if several else each.system
            part = f"{each.count:,} of {each.queries:,} queries, " if each.count < each.queries else ""
            told.append(f"{name} ({part}{each.since.replace('T', ' ').removesuffix('Z')} UTC)")
        return f"from the cache, not asked again (--refresh asks): {', '.join(told)}" if told else ""

    @property
    def unseen(self) -> str:
        """One line: what of the code that ran can change without being noticed; empty where no code ran."""
        systems = self.experiment.systems
        names = dict.fromkeys(name for _, name in self.experiment.pairs())
        names = dict.fromkeys(below for name in names for below in combined(systems, name))
        code = [name for name in names if systems[name].kind.runs_code]
        if not code:
            return ""
        return (
            f"{', '.join(code)}: asked again when a file changes that Python loads or opens. Not seen: files that "
            "native code or other processes read, the environment, the network, models; for these, change "
            "`with: {version: …}`"
        )

    def timing(self, dataset: str, system: str) -> Timing | None:
        """How long a system took on a dataset, where that is known."""
        known = (timing for timing in self.timings if (timing.dataset, timing.system) == (dataset, system))
        return next(known, None)


def report(outcome: Outcome, style: str = tables.DEFAULT) -> str:
    """The tables of every dataset with their populations, the best, and the gates: the same bytes each time."""
    if style not in outcome.texts:  # the same is written and printed
        outcome.texts[style] = document(list(_blocks(outcome)), style, outcome.experiment.config.name)
    return outcome.texts[style]


def _blocks(outcome: Outcome) -> Iterator[Block]:
    is_timeless = outcome.experiment.rule.is_timeless
    yield from shared.blocks_of(outcome.experiment, outcome.evaluations)
    for dataset, by_system in outcome.evaluations.items():
        if len(outcome.evaluations) > 1:
            yield f"dataset {dataset}"
        if by_system:
            yield from _grids(outcome, dataset)
            yield "\n".join(population(list(by_system.values()), [outcome.experiment.config.convention]))
        for name, why in outcome.failed.get(dataset, {}).items():
            yield f"failed: {name}: {why}"
        if is_timeless and dataset in outcome.best and len(by_system) > 1:
            yield _best(outcome, outcome.best[dataset], _tied(outcome, dataset)) + _worth(outcome, dataset)
    if is_timeless and outcome.overall is not None:
        yield _overall(outcome)
    yield from _gates(outcome, timed=False)


def _grids(outcome: Outcome, dataset: str) -> Iterator[Block]:
    evaluations = list(outcome.evaluations[dataset].values())
    primary = outcome.experiment.config.evaluate.primary
    yield from grids(evaluations, [outcome.experiment.config.convention])
    if len(evaluations) > MOST_COLUMNS and primary is not None:
        yield from slices_of(evaluations, primary)
    else:
        yield from slices_side_by_side(evaluations)
    if dataset in outcome.comparison and len(evaluations) > 1:
        yield from _against(outcome, dataset)


def _against(outcome: Outcome, dataset: str) -> Iterator[Block]:
    """The whole comparison by the primary metric (by all, where that is not compared), and the deltas of all others."""
    comparison, primary = outcome.comparison[dataset], outcome.experiment.config.evaluate.primary
    first = next(iter(outcome.evaluations[dataset].values()))
    compared = list(comparison.metrics)
    in_full = [text for text in compared if primary is not None and text == first.text_of(primary)] or compared
    if len(in_full) < len(compared):
        yield from _deltas(comparison, first)
    yield from comparison.blocks(in_full, population=False)


def _deltas(comparison: Comparison, first: Evaluation) -> Iterator[Grid]:
    """What each system gains against the baseline; one table for each cutoff, where there are many metrics."""
    columns: dict[object, list[str]] = {}
    for text, metric in comparison.metrics.items():
        columns.setdefault(metric.cutoff if len(comparison.metrics) > tables.WIDEST else None, []).append(text)
    for texts in columns.values():
        headers = [f"against {comparison.baseline}", "queries", *(first.label_of(text) for text in texts)]
        rows: list[list[Any]] = []
        for name in (system.name for system in comparison.systems if system.name != comparison.baseline):
            by_metric = [comparison[name][text] for text in texts]
            cells = [signed(row.delta) + ("*" if row.significant else "") for row in by_metric]
            rows.append([name, min(row.pairs for row in by_metric), *cells])
        yield headers, rows


def _best(outcome: Outcome, name: str | None, tied: int = 0) -> str:
    others = f" (and {tied:,} more with the same figures)" if tied else ""
    return f"best by {outcome.experiment.rule.words}: {name or 'none'}{others}"


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
    rule, evaluations, best = outcome.experiment.rule, outcome.evaluations[dataset], outcome.best[dataset]
    if best is None:
        return 0
    means = rule.means_of(evaluations[best])
    return sum(rule.means_of(evaluation) == means for evaluation in evaluations.values()) - 1


def _overall(outcome: Outcome) -> str:
    count = len(outcome.evaluations)
    return f"best over {count} data sets by {outcome.experiment.rule.words} (macro means): {outcome.overall}"


def _gates(outcome: Outcome, *, timed: bool) -> Iterator[Block]:
    """The gates as a table, and a line for those that nothing was held against."""
    gates = [gate for gate in outcome.gates if gate.timed == timed]
    if gates:
        rows: list[list[Any]] = [[gate.gate, "passed" if gate.passed else "FAILED", gate.reason] for gate in gates]
        yield ["gate", "result", "why"], rows
    if not timed and (idle := outcome.idle_gates):
        yield f"{'gate' if len(idle) == 1 else 'gates'} {' and '.join(map(str, idle))} matched no system"


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
    if not outcome.experiment.rule.is_timeless:
        for dataset, best in outcome.best.items():
            yield f"{f'dataset {dataset}: ' if several else ''}{_best(outcome, best)}"
        if outcome.overall is not None:
            yield _overall(outcome)
    yield from _gates(outcome, timed=True)


def _digits(value: float | None) -> str | None:
    return None if value is None else fixed(value, 2)
