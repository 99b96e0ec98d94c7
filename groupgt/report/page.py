"""The page of an experiment, in one file, and the figures that an experiment can draw."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import groupgt
from groupgt.evaluation.report import drawing
from groupgt.experiment.outcome import Outcome
from groupgt.experiment.timing import Timing
from groupgt.render.page import data
from groupgt.render.page.page import page_bytes
from groupgt.render.tables import counted
from groupgt.report import pictures
from groupgt.report.comparison import dataset_of
from groupgt.report.verdict import across, on_time, verdict

# What the table of systems shows of times, and where a timing has it.
TIMES = {
    "build s": "build_s",
    "median ms": "latency_p50_ms",
    "p95 ms": "latency_p95_ms",
    "batched ms": "batched_p50_ms",
}
# What of a data set is data, which secrets are not taken out of.
MEASURED = ("questions", "details", "passages")


def page_bytes_of(outcome: Outcome) -> bytes:
    """The file of an experiment's page."""
    return page_bytes(page_of(outcome), outcome.experiment.config.report.max_size)


def page_of(outcome: Outcome) -> data.Page:
    """The page of an experiment's outcome: every data set with its systems, gates, times and versions."""
    parts = {name: Part(outcome, name) for name, found in outcome.evaluations.items() if found}
    sure = outcome.experiment.hide.sure
    datasets: list[Any] = [
        {key: held if key in MEASURED else sure(held) for key, held in part.dataset().items()}
        for part in parts.values()
    ]
    page: data.Page = {
        "title": outcome.experiment.title,
        "datasets": datasets,
        "facts": _facts(outcome),
        "across": list(across(outcome, timed=False)),
        "times": {
            "made": datetime.now().astimezone().isoformat(timespec="seconds"),
            "machine": _machine(outcome.timings),
            "columns": list(TIMES),
            "systems": {name: part.times() for name, part in parts.items()},
            "gates": {name: part.gates(timed=True) for name, part in parts.items()},
            "drawings": {name: part.timed_drawings() for name, part in parts.items()},
            "verdict": {name: list(on_time(outcome, name)) for name in parts},
        },
    }
    return {**page, "times": sure(page["times"])}


class Part:
    """One data set of an outcome."""

    def __init__(self, outcome: Outcome, name: str) -> None:
        self.outcome, self.name = outcome, name
        self.found = outcome.evaluations[name]
        self.systems = outcome.systems[name]

    def dataset(self) -> data.Dataset:
        """Its tables."""
        dataset = dataset_of(self.systems, self.name)
        dataset["failed"] = list(self.outcome.failed.get(self.name, {}).items())
        dataset["gates"] = self.gates(timed=False)
        dataset["verdict"] = verdict(self.outcome, self.name, timed=False)
        for system in dataset["systems"]:
            system["about"] = self._about(system["name"])
        dataset["drawings"] |= {
            key: drawing(figure) for key, figure in pictures.sweeps(self.outcome, self.systems).items()
        }
        return dataset

    def _about(self, name: str) -> str:
        """What a system is made of: the retriever and its options, as the file has them."""
        system, options = self.outcome.experiment.systems[name], self.outcome.experiment.shown_options(name)
        plain = {key: json.dumps(value, ensure_ascii=False, default=str) for key, value in options.items()}
        listed = ", ".join(f"{key}={value}" for key, value in plain.items() if value != "null")
        inputs = f" of {', '.join(system.inputs)}" if system.inputs else ""
        return f"{system.config.use}{inputs}" + (f": {listed}" if listed else "")

    def gates(self, *, timed: bool) -> list[data.Gate]:
        """The gates held against its systems."""
        own = [gate for gate in self.outcome.gates if gate.dataset == self.name and gate.timed == timed]
        return [
            {"number": gate.gate, "system": gate.system, "passed": gate.passed, "reason": gate.reason} for gate in own
        ]

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
        figure = pictures.latency(self.systems, pictures.latencies(self.outcome, self.name))
        return {} if figure is None else {"latency": drawing(figure)}


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
    return [*facts, *((name, f"SHA-256 {digest}") for name, digest in outcome.digests.items())]
