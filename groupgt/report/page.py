"""Builds the HTML page of an experiment."""

from __future__ import annotations

import json
import platform
from datetime import datetime
from typing import Any

import groupgt
from groupgt.experiment.outcome import Outcome
from groupgt.render.drawing import drawing, pictured
from groupgt.render.page import data
from groupgt.render.page.page import page_bytes
from groupgt.report import curves, gates, times
from groupgt.report.comparison import dataset_of
from groupgt.report.experiment import across, on_time, sentences
from groupgt.report.stages import funnel_of

# Parts of a data set that are data; secrets are not removed from them.
MEASURED = ("questions", "details", "passages")


def page_bytes_of(outcome: Outcome) -> bytes:
    """Returns the page of an experiment as a single HTML file."""
    return page_bytes(page_of(outcome), outcome.experiment.config.report.max_size)


def page_of(outcome: Outcome) -> data.Page:
    """Builds the page data of an outcome: every data set with its systems, gates, times and versions."""
    sure = outcome.experiment.hide.sure
    datasets: list[Any] = [
        {key: value if key in MEASURED else sure(value) for key, value in _dataset(outcome, name).items()}
        for name in outcome.systems
    ]
    latencies = {name: times.figure(each, times.latencies(outcome, name)) for name, each in outcome.systems.items()}
    page: data.Page = {
        "title": outcome.experiment.title,
        "datasets": datasets,
        "facts": [
            ("groupgt", groupgt.__version__),
            ("python", platform.python_version()),
            ("seed", str(outcome.experiment.config.seed)),
            *((name, f"SHA-256 {digest}") for name, digest in outcome.digests.items()),
        ],
        "across": list(across(outcome, timed=False)),
        "times": {
            "made": datetime.now().astimezone().isoformat(timespec="seconds"),
            "machine": times.machine_text(outcome.timings),
            "columns": list(times.COLUMNS),
            "systems": {name: times.page_rows(outcome, name) for name in outcome.systems},
            "gates": {name: gates.page_rows(gates.of_dataset(outcome, name, timed=True)) for name in outcome.systems},
            "drawings": {name: {"latency": drawing(each)} if each else {} for name, each in latencies.items()},
            "verdict": {name: list(on_time(outcome, name)) for name in outcome.systems},
        },
    }
    return {**page, "times": sure(page["times"])}


def _dataset(outcome: Outcome, name: str) -> data.Dataset:
    """Builds the page data of one data set."""
    dataset = dataset_of(outcome.systems[name], name)
    dataset["failed"] = list(outcome.failed.get(name, {}).items())
    judged = gates.of_dataset(outcome, name, timed=False)
    dataset["gates"] = gates.page_rows(judged)
    dataset["verdict"] = [*gates.sentences(judged, timed=False), *sentences(outcome, name, timed=False)]
    for system in dataset["systems"]:
        # The retriever, inputs and options, as written in the file.
        resolved = outcome.experiment.systems[system["name"]]
        options = outcome.experiment.shown_options(system["name"])
        plain = {key: json.dumps(value, ensure_ascii=False, default=str) for key, value in options.items()}
        listed = ", ".join(f"{key}={value}" for key, value in plain.items() if value != "null")
        inputs = f" of {', '.join(resolved.inputs)}" if resolved.inputs else ""
        system["about"] = f"{resolved.config.use}{inputs}" + (f": {listed}" if listed else "")
    staged = {f"stages {system}": funnel_of(stages) for system, stages in outcome.stages.get(name, {}).items()}
    dataset["drawings"] |= pictured({**curves.sweeps(outcome, outcome.systems[name]), **staged})
    return dataset
