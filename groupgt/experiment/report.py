"""The page of an experiment: every data set with its systems, gates, times and versions, in one file."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import groupgt
from groupgt.comparison.compare import comparison_of
from groupgt.comparison.pictures import Differences
from groupgt.comparison.report import dataset_of
from groupgt.comparison.settings import Settings
from groupgt.evaluation.report import drawing
from groupgt.experiment.display import Outcome
from groupgt.experiment.gates import GateResult
from groupgt.experiment.systems import System
from groupgt.experiment.timing import Timing
from groupgt.render import figures
from groupgt.render.drawing import Figure
from groupgt.render.page import data
from groupgt.render.tables import counted

# What the table of systems shows of times, and where a timing has it.
TIMES = {
    "build s": "build_s",
    "median ms": "latency_p50_ms",
    "p95 ms": "latency_p95_ms",
    "batched ms": "batched_p50_ms",
}
# Systems on the front are named where their latencies differ by this factor at least.
APART = 3.0
# Reasons of failed gates that a sentence holds.
REASONS = 3


def page_of(outcome: Outcome) -> data.Page:
    """The page of an experiment's outcome."""
    parts = {name: Part(outcome, name) for name, found in outcome.evaluations.items() if found}
    return {
        "title": outcome.experiment.config.name,
        "datasets": [part.dataset() for part in parts.values()],
        "facts": _facts(outcome),
        "across": list(_across(outcome)),
        "times": {
            "made": datetime.now().astimezone().isoformat(timespec="seconds"),
            "machine": _machine(outcome.timings),
            "columns": list(TIMES),
            "systems": {name: part.times() for name, part in parts.items()},
            "gates": {name: part.gates(timed=True) for name, part in parts.items()},
            "drawings": {name: part.timed_drawings() for name, part in parts.items()},
            "verdict": {name: list(part.gate_verdict(timed=True)) for name, part in parts.items()},
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
            table = comparison_of(self.found, next(iter(self.found)), Settings(seed=config.seed))
        answers = {system: outcome.answers.get((name, system)) for system in self.found}
        scores = {system: own.scores for system, own in answers.items() if own is not None and own.scores}
        passages = outcome.passages.get(name, {})
        self.differences = Differences.of(table, config.evaluate.primary, passages=passages, scores=scores)
        self.systems = self.differences.systems

    def dataset(self) -> data.Dataset:
        """Its tables."""
        dataset = dataset_of(self.differences, self.name)
        failed = self.outcome.failed.get(self.name, {})
        dataset["failed"] = list(failed.items())
        dataset["gates"] = self.gates(timed=False)
        dataset["verdict"] += self.gate_verdict(timed=False)
        for name, why in failed.items():
            dataset["verdict"].append({"kind": "doubt", "parts": ["", name, f" failed and has no results: {why}"]})
        for system in dataset["systems"]:
            system["about"] = self._about(self.outcome.experiment.systems[system["name"]])
        dataset["drawings"] |= {key: drawing(figure) for key, figure in self.sweeps().items()}
        for key in ("verdict", "failed", "gates", "facts"):
            dataset[key] = harmless(dataset[key])
        return dataset

    def _about(self, system: System) -> str:
        """What a system is made of: the retriever and its options, as the file has them."""
        shown = self.outcome.experiment.document.as_written
        options = {
            field.name: shown(getattr(system.options, field.name), system.paths.get(field.name, ()))
            for field in fields(system.options)
        }
        plain = {key: json.dumps(value, ensure_ascii=False, default=str) for key, value in options.items()}
        listed = ", ".join(f"{key}={value}" for key, value in plain.items() if value != "null")
        inputs = f" of {', '.join(system.inputs)}" if system.inputs else ""
        return str(harmless(f"{system.config.use}{inputs}" + (f": {listed}" if listed else "")))

    def gates(self, *, timed: bool) -> list[data.Gate]:
        """The gates held against its systems."""
        return [_gate(gate) for gate in self.outcome.gates if gate.dataset == self.name and gate.timed == timed]

    def gate_verdict(self, *, timed: bool) -> Iterator[data.Sentence]:
        """What the gates said."""
        gates = self.gates(timed=timed)
        broken = [gate for gate in gates if not gate["passed"]]
        kind = " on time" if timed else ""
        if broken:
            count = f"{len(broken):,} of {counted(len(gates), 'gate')}{kind} failed"
            reasons = "; ".join(gate["reason"] for gate in broken[:REASONS])
            yield {"kind": "failed", "parts": [f"{count}: {reasons}."]}
        elif gates:
            passed = f"The gate{kind} passed." if len(gates) == 1 else f"All {len(gates):,} gates{kind} passed."
            yield {"kind": "gate", "parts": [passed]}

    def times(self) -> dict[str, list[float | None]]:
        """How long each system took."""
        found: dict[str, list[float | None]] = {}
        for name in self.found:
            timing = self.outcome.timing(self.name, name)
            if timing is not None:
                found[name] = [getattr(timing, key) for key in TIMES.values()]
        return found

    def timed_drawings(self) -> dict[str, data.Drawing]:
        """The figures that show times."""
        figure = self.latency()
        return {} if figure is None else {"latency": drawing(figure)}

    def latency(self) -> Figure | None:
        """Quality against latency, where that is known of two systems at least."""
        rows: list[dict[str, Any]] = []
        for name in self.found:
            timing, value = self.outcome.timing(self.name, name), self.systems.mean(name)
            latency = None if timing is None else timing.latency_p50_ms or timing.batched_p50_ms
            if latency is not None and latency > 0 and value is not None:
                low, high = self.systems.ends(name)
                rows.append({"system": name, "latency": latency, "value": value, "low": low, "high": high})
        if len(rows) < 2:
            return None
        named = 0.0
        for row in sorted(rows, key=lambda each: -each["latency"]):
            row["front"] = "no" if any(self._beats(other, row) for other in rows) else "yes"
            # Names too near to one another would cover each other.
            if row["front"] == "yes" and (not named or row["latency"] * APART < named):
                row["label"], named = row["system"], row["latency"]
        return figures.latency(rows, self.systems.about(self.systems.label))

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
            axes = dict(zip(("x", "y"), keys))
            rows = []
            for name in own:
                low, high = self.systems.ends(name)
                options = self.outcome.experiment.systems[name].options
                row = {"family": family, "value": self.systems.mean(name), "low": low, "high": high}
                rows.append(row | {axis: _plain(getattr(options, key)) for axis, key in axes.items()})
            rows.sort(key=lambda row: [_place(config.matrix[key], row[axis]) for axis, key in axes.items()])
            found[f"sweep {family}"] = figures.sweep(rows, about, [f"{key} of {family}" for key in keys])
        return found


CREDENTIALS = re.compile(r"(?<=://)[^/\s@\"']+@")
PATHS = re.compile(r"(?<![\w.:/])(?:/|[A-Za-z]:[\\/])(?:[^\s\"'/\\:,;]+[\\/])+")


def harmless(value: Any) -> Any:
    """Texts about an experiment without passwords in URLs, and of paths of this machine the last part alone.

    >>> harmless("https://me:secret@host/a failed for /home/me/data/run.trec")
    'https://…@host/a failed for run.trec'
    """
    if isinstance(value, str):
        return PATHS.sub("", CREDENTIALS.sub("…@", value))
    if isinstance(value, dict):
        return {key: harmless(each) for key, each in value.items()}
    return type(value)(harmless(each) for each in value) if isinstance(value, (list, tuple)) else value


def _place(values: Sequence[Any], value: Any) -> int:
    """Where a value stands in the file's list."""
    plain = [_plain(each) for each in values]
    return plain.index(value) if value in plain else len(plain)


def _plain(value: Any) -> Any:
    """A number or text, as an axis has it."""
    return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else json.dumps(value)


def _gate(gate: GateResult) -> data.Gate:
    return {"number": gate.gate, "system": gate.system, "passed": gate.passed, "reason": gate.reason}


def _machine(timings: Sequence[Timing]) -> str:
    """What times were taken on, without its name."""
    machines = {json.dumps([each.machine.get(key) for key in ("system", "machine", "processors")]) for each in timings}
    if len(machines) != 1:
        return "several machines" if machines else ""
    system, machine, processors = json.loads(next(iter(machines)))
    return f"{system} {machine}, {counted(processors or 1, 'processor')}"


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    """Versions and digests."""
    facts = [("groupgt", groupgt.__version__), ("python", platform.python_version())]
    facts.append(("seed", str(outcome.experiment.config.seed)))
    return [*facts, *((str(harmless(name)), f"SHA-256 {digest}") for name, digest in outcome.digests.items())]


def _across(outcome: Outcome) -> Iterator[data.Sentence]:
    """The best over several data sets."""
    if outcome.overall is not None:
        said = f" is the best over all {len(outcome.evaluations):,} data sets, by the mean of its means."
        yield {"kind": "best", "parts": ["", outcome.overall, said]}
