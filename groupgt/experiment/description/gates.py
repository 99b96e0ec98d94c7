"""Gates as the file has them: what they name must be there, and each must ask one thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupgt.errors import GroupgtError
from groupgt.evaluation.slices import Slicer
from groupgt.experiment.description.families import Families
from groupgt.experiment.description.matrix import matching
from groupgt.experiment.description.schema import Config, Gate
from groupgt.experiment.description.systems import System
from groupgt.experiment.description.yamlfile import Document, Path_
from groupgt.metrics.language import Metric, parse_metric

__all__ = ["LATENCIES", "check_gate", "check_slice"]

# What a gate may ask of a timing.
LATENCIES = ("build_s", "latency_p50_ms", "latency_p95_ms", "batched_p50_ms", "batched_p95_ms")


def check_gate(
    number: int,
    gate: Gate,
    document: Document,
    config: Config,
    families: Families,
    systems: Mapping[str, System],
    metrics: Mapping[str, Metric],
    convention: str,
) -> None:
    """Faults of one gate: what it names must be there, and it must ask one thing.

    `metrics` are empty where not all of them are known.
    """
    path: Path_ = ("gate", number)
    matched = matching(gate.system, systems)
    datasets = matching(gate.dataset, config.datasets)
    if not matched and not families.may_be(gate.system):
        document.unknown((*path, "system"), gate.system, list(systems), also="a pattern")
    if not datasets and document.whole("datasets"):
        document.unknown((*path, "dataset"), gate.dataset, list(config.datasets), also="a pattern")
    asked = [key for key in ("min", "max", "max_drop") if getattr(gate, key) is not None]
    if len(asked) != 1:
        found = " and ".join(asked) or "nothing"
        document.fault(path, f"expected one of min, max and max_drop, found {found}")
    if gate.max_drop is not None:
        _check_drop(path, document, config, systems, matched, datasets)
    if gate.unless is not None and gate.max_drop is None:
        document.fault((*path, "unless"), "a drop is significant or not; it goes with max_drop")
    if gate.metric in LATENCIES:
        if gate.slice or gate.max_drop is not None:
            document.fault(path, f"{gate.metric} has a min or max, and no slices")
        if matched and not any(_is_timed(name, systems) for name in matched):
            document.fault((*path, "system"), "results that are read from files have no latency")
        if gate.metric.startswith("latency") and not config.evaluate.timed:
            document.fault((*path, "metric"), f"{gate.metric} needs questions that are timed; evaluate.timed is 0")
        return
    try:
        asked_for = parse_metric(gate.metric, convention)
    except GroupgtError as error:
        document.fault((*path, "metric"), f"{error}; or one of {', '.join(LATENCIES)}")
        return
    if metrics and asked_for not in metrics.values():
        known = [*metrics, *LATENCIES]
        document.unknown((*path, "metric"), gate.metric, known, "one of evaluate.metrics, or a latency: ")


def _check_drop(
    path: Path_,
    document: Document,
    config: Config,
    systems: Mapping[str, System],
    matched: Sequence[str],
    datasets: Sequence[str],
) -> None:
    """Whether there is a baseline wherever a drop is asked for."""
    if config.compare is None:
        if document.whole("compare"):
            document.fault((*path, "max_drop"), "a drop is against a baseline; name it as compare.baseline")
        return
    baseline = systems.get(config.compare.baseline)
    if baseline is None:
        return
    for dataset in datasets:
        if not baseline.serves(dataset) and any(systems[name].serves(dataset) for name in matched):
            what = f"the baseline {baseline.name} is not run on dataset {dataset!r}; see its `only`"
            document.fault((*path, "max_drop"), what)


def _is_timed(name: str, systems: Mapping[str, System]) -> bool:
    system = systems[name]
    return not system.is_stored and all(_is_timed(each, systems) for each in system.inputs)


def check_slice(number: int, gate: Gate, slicer: Slicer, dataset: str, document: Document) -> None:
    """Faults of a gate's slice, which only the data can show: a column, and a value that some question has."""
    for column, value in gate.slice.items():
        values = [text for name, text, _ in slicer if name == column]
        if str(value) not in values:
            known = ", ".join(values[:20])
            document.fault(
                ("gate", number, "slice", column),
                f"no question of dataset {dataset!r} has {str(value)!r}; there are {known}",
            )
