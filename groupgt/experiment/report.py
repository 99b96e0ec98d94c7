"""The page of an experiment: every data set with its systems, gates, times and versions, in one file."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import groupgt
from groupgt.comparison.report import Differences
from groupgt.comparison.result import comparison_of
from groupgt.comparison.tests import Settings
from groupgt.evaluation.report import drawing
from groupgt.experiment.gates import GateResult
from groupgt.experiment.outcome import Outcome
from groupgt.experiment.systems import System
from groupgt.experiment.timing import Timing
from groupgt.render import figures
from groupgt.render.drawing import Figure
from groupgt.render.numbers import counted
from groupgt.render.page import data

# What the table of systems shows of times, and where a timing has it.
TIMES = {
    "build s": "build_s",
    "median ms": "latency_p50_ms",
    "95th percentile ms": "latency_p95_ms",
    "batched median ms": "batched_p50_ms",
}

# Systems on the front are named where their latencies differ by this factor at least.
APART = 3.0


def page_of(outcome: Outcome) -> data.Page:
    """The page of an experiment's outcome."""
    parts = {name: Part(outcome, name) for name, found in outcome.evaluations.items() if found}
    datasets = [part.dataset() for part in parts.values()]
    return {
        "title": outcome.experiment.config.name,
        "datasets": datasets,
        "facts": _facts(outcome),
        "across": list(_across(outcome)),
        "times": {
            "made": datetime.now().astimezone().isoformat(timespec="seconds"),
            "machine": _machine(outcome.timings),
            "columns": list(TIMES),
            "systems": {name: part.times() for name, part in parts.items()},
            "gates": {name: part.gates(timed=True) for name, part in parts.items()},
            "drawings": {name: {key: drawing(each) for key, each in part.timed_figures().items()} for name, part in parts.items()},
            "verdict": {name: list(part.timed_verdict()) for name, part in parts.items()},
        },
    }


class Part:
    """One data set of an outcome."""

    def __init__(self, outcome: Outcome, name: str) -> None:
        self.outcome, self.name = outcome, name
        self.found = outcome.evaluations[name]
        config = outcome.experiment.config
        table = outcome.comparison.get(name)
        if table is None:
            settings = Settings(seed=config.seed)
            table = comparison_of(self.found, next(iter(self.found)), settings)
        scores = {system: outcome.answers[name, system].scores or {} for system in self.found if (name, system) in outcome.answers}
        passages = outcome.passages.get(name, {})
        self.differences = Differences.of(table, config.evaluate.primary, passages=passages, scores=scores)
        self.systems = self.differences.systems

    def dataset(self) -> data.Dataset:
        """Its tables."""
        dataset = self.differences.dataset(self.name)
        dataset["failed"] = list(self.outcome.failed.get(self.name, {}).items())
        dataset["gates"] = self.gates(timed=False)
        dataset["verdict"] += list(self._verdict(timed=False))
        for system in dataset["systems"]:
            system["about"] = self._about(self.outcome.experiment.systems[system["name"]])
        dataset["drawings"] |= {key: drawing(figure) for key, figure in self.sweeps().items()}
        return dataset

    def _about(self, system: System) -> str:
        """What a system is made of: the retriever and its options, as the file has them."""
        shown = self.outcome.experiment.document.shown
        options = {
            field.name: shown(getattr(system.options, field.name), system.paths.get(field.name, ()))
            for field in fields(system.options)
        }
        inputs = f" of {', '.join(system.inputs)}" if system.inputs else ""
        listed = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in options.items() if value is not None)
        return f"{system.config.use}{inputs}{f': {listed}' if listed else ''}"

    def gates(self, *, timed: bool) -> list[data.Gate]:
        """The gates held against its systems."""
        return [_gate(gate) for gate in self.outcome.gates if gate.dataset == self.name and gate.timed == timed]

    def _verdict(self, *, timed: bool) -> Iterator[data.Sentence]:
        gates = [gate for gate in self.outcome.gates if gate.dataset == self.name and gate.timed == timed]
        if gates:
            broken = [gate for gate in gates if not gate.passed]
            kind = " on time" if timed else ""
            if not broken:
                yield {"kind": "gate", "parts": [f"{'The' if len(gates) == 1 else 'All'} {counted(len(gates), 'gate')}{kind} passed."]}
            else:
                said = f"{len(broken):,} of {counted(len(gates), 'gate')}{kind} failed: {'; '.join(gate.reason for gate in broken[:3])}."
                yield {"kind": "failed", "parts": [said]}
        if not timed:
            for name, why in self.outcome.failed.get(self.name, {}).items():
                yield {"kind": "doubt", "parts": ["", name, f" failed and has no results: {why}"]}

    def timed_verdict(self) -> Iterator[data.Sentence]:
        """Sentences that depend on time."""
        yield from self._verdict(timed=True)

    def times(self) -> dict[str, list[float | None]]:
        """How long each system took."""
        found: dict[str, list[float | None]] = {}
        for name in self.found:
            timing = self.outcome.timing(self.name, name)
            if timing is not None:
                found[name] = [getattr(timing, key) for key in TIMES.values()]
        return found

    def timed_figures(self) -> dict[str, Figure]:
        """Quality against latency, where that is known of two systems at least."""
        known = {name: self._latency(name) for name in self.found}
        rows: list[dict[str, Any]] = []
        for name, latency in known.items():
            value = self.systems.means[name][self.systems.primary]
            if latency is not None and latency > 0 and value is not None:
                low, high = self.systems.intervals.get((name, self.systems.primary)) or (None, None)
                rows.append({"system": name, "latency": latency, "value": value, "low": low, "high": high})
        if len(rows) < 2:
            return {}
        for row in rows:
            row["front"] = "no" if any(self._beats(other, row) for other in rows) else "yes"
        named = 0.0
        for row in sorted(rows, key=lambda each: -each["latency"]):
            # Names too near to one another would cover each other.
            if row["front"] == "yes" and (not named or row["latency"] * APART < named):
                row["label"], named = row["system"], row["latency"]
        return {"latency": figures.latency(rows, self.systems.about(self.systems.label))}

    def _latency(self, name: str) -> float | None:
        timing = self.outcome.timing(self.name, name)
        return None if timing is None else timing.latency_p50_ms or timing.batched_p50_ms

    def _beats(self, other: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
        """Whether one is as good in both, and better in one."""
        gain = other["value"] - row["value"] if self.systems.higher else row["value"] - other["value"]
        saved = row["latency"] - other["latency"]
        return bool(gain >= 0 and saved >= 0 and (gain > 0 or saved > 0))

    def sweeps(self) -> dict[str, Figure]:
        """A figure for each entry that sweeps one option, or two."""
        found: dict[str, Figure] = {}
        about = self.systems.about(self.systems.label)
        for family, config in self.outcome.experiment.config.systems.items():
            keys = [key for key, values in config.matrix.items() if len(values) > 1]
            own = [name for name in self.found if self.outcome.experiment.systems[name].family == family]
            if len(own) < 2 or len(keys) not in (1, 2):
                continue
            rows = []
            for name in own:
                options = self.outcome.experiment.systems[name].options
                low, high = self.systems.intervals.get((name, self.systems.primary)) or (None, None)
                row = {"family": family, "value": self.systems.means[name][self.systems.primary], "low": low, "high": high}
                rows.append(row | {axis: _plain(getattr(options, key)) for axis, key in zip(("x", "y"), keys)})
            rows.sort(key=lambda row: [_place(config.matrix[key], row[axis]) for axis, key in zip(("x", "y"), keys)])
            found[f"sweep {family}"] = figures.sweep(rows, about, [f"{key} of {family}" for key in keys])
        return found


def _place(values: Sequence[Any], value: Any) -> int:
    plain = [_plain(each) for each in values]
    return plain.index(value) if value in plain else len(plain)


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else json.dumps(value)


def _gate(gate: GateResult) -> data.Gate:
    return {"number": gate.gate, "system": gate.system, "passed": gate.passed, "reason": gate.reason}


def _machine(timings: Sequence[Timing]) -> str:
    machines = {json.dumps([each.machine.get(key) for key in ("system", "machine", "processors")]) for each in timings}
    if len(machines) != 1:
        return "several machines" if machines else ""
    system, machine, processors = json.loads(next(iter(machines)))
    return f"{system} {machine}, {counted(processors or 1, 'processor')}"


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    """Versions and digests."""
    facts = [("groupgt", groupgt.__version__), ("python", platform.python_version())]
    facts += [("seed", str(outcome.experiment.config.seed))]
    facts += [(name, f"SHA-256 {digest}") for name, digest in outcome.digests.items()]
    return facts


def _across(outcome: Outcome) -> Iterator[data.Sentence]:
    """The best over several data sets."""
    if outcome.overall is not None:
        count = len(outcome.evaluations)
        yield {"kind": "best", "parts": ["", outcome.overall, f" is the best over all {count:,} data sets, by the mean of its means."]}
