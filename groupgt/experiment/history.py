"""Several result folders as one comparison, and one experiment's history."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from groupgt.comparison.contrast import Scored, bounds_of, contrast
from groupgt.comparison.result import Comparison
from groupgt.comparison.settings import Settings
from groupgt.errors import ConfigError, DataError, Faults, GroupgtWarning, near_names
from groupgt.evaluation.result import mean_of
from groupgt.experiment.result_folders import ResultFolder
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.hits import Floats
from groupgt.render.numbers import counted
from groupgt.render.tables import Grid
from groupgt.store.stamped import age_of, has_stamp

# What a result folder says of how it compared.
FIELDS = ("test", "correction", "alpha", "intervals", "resamples", "pairs", "seed")


def merged(
    folders: Sequence[ResultFolder], settings: Settings, baseline: str | None = None, metrics: Sequence[str] = ()
) -> dict[str, Comparison]:
    """One comparison a data set over the systems of all folders, by some metrics, or by all that all of them have.

    A system that stands in several folders is told apart by the folder's name, unless its values are the same in all.
    Raises `DataError` where ground truth, convention, labeller or policy differ: their figures mean different things.
    """
    _check(folders)
    found: dict[str, Comparison] = {}
    for dataset in dict.fromkeys(name for each in folders for name in each.systems):
        own = [each for each in folders if dataset in each.systems]
        common = _common(own, dataset, metrics)
        bases = _systems(own, dataset, common)
        systems = _ranked([one for each in bases.values() for one in each], own[0].primary)
        chosen = _baseline(own, bases, [each.name for each in systems], baseline)
        footer = [f"dataset {dataset}: {each.path} ({counted(len(each.systems[dataset]), 'system')})" for each in own]
        footer.append(f"ground truth {own[0].truths[dataset][:12]}, convention {own[0].convention}")
        found[dataset] = Comparison(chosen, settings, systems, {}, [*footer, f"policy {own[0].policy}"])
    return found


def _check(folders: Sequence[ResultFolder]) -> None:
    faults = Faults()
    first = folders[0]
    for each in folders[1:]:
        for dataset, digest in each.truths.items():
            other = next(one for one in folders if dataset in one.truths)
            if other.truths[dataset] != digest:
                faults.add(
                    str(each.path),
                    f"the ground truth of data set {dataset!r} is another one (digest {digest[:12]}, "
                    f"{other.truths[dataset][:12]} in {other.path}); evaluate both on the same",
                )
        for what in ("convention", "labeller", "policy"):
            mine, theirs = getattr(each, what), getattr(first, what)
            if mine != theirs:
                faults.add(str(each.path), f"the {what} is {mine}, and {theirs} in {first.path}; evaluate both alike")
    faults.stop()


def _common(folders: Sequence[ResultFolder], dataset: str, asked: Sequence[str]) -> dict[str, Metric]:
    """The metrics that every folder has (of these those asked), by the text of the first."""
    every = [next(iter(each.systems[dataset].values())).metrics for each in folders]
    common = {text: metric for text, metric in every[0].items() if all(metric in one.values() for one in every)}
    if not common:
        raise DataError(f"{folders[-1].path}: has no metric in common with {folders[0].path}")
    if not asked:
        return common
    wanted = [parse_metric(text, folders[0].convention) for text in asked]
    for text, metric in zip(asked, wanted):
        if metric not in common.values():
            near = near_names(text, common)
            raise ConfigError(f"metric: expected one of {', '.join(common)}, found {text!r}{near}")
    return {text: metric for text, metric in common.items() if metric in wanted}


def _systems(folders: Sequence[ResultFolder], dataset: str, metrics: dict[str, Metric]) -> dict[str, list[Scored]]:
    """The versions of each system: those whose values differ."""
    first = next(iter(folders[0].systems[dataset].values())).qids
    versions: dict[str, list[Scored]] = {}
    titles = _titles(folders)
    for each in folders:
        for name, own in each.systems[dataset].items():
            texts = {metric: text for text, metric in own.metrics.items()}
            order = _order(own.qids, first, each)
            values: dict[str, Floats] = {text: own.values[texts[metric]][order] for text, metric in metrics.items()}
            known = versions.setdefault(name, [])
            if not any(_same(one.values, values) for one in known):
                known.append(replace(own, name=titles[each.path], qids=first, metrics=metrics, values=values))
    return {
        name: [replace(one, name=name if len(known) == 1 else f"{name} ({one.name})") for one in known]
        for name, known in versions.items()
    }


def _ranked(systems: list[Scored], primary: str | None) -> list[Scored]:
    """Best first by the primary metric, where it is compared."""
    wanted = None if primary is None else parse_metric(primary, systems[0].convention)
    text = next((text for text, metric in systems[0].metrics.items() if metric == wanted), None)
    if text is None:
        return systems
    sign = -1 if systems[0].metrics[text].higher_is_better else 1

    def worse(system: Scored) -> tuple[bool, float]:
        mean = mean_of(system.values[text])
        return math.isnan(mean), sign * mean

    return sorted(systems, key=worse)


def settings_of(folders: Sequence[ResultFolder]) -> Settings:
    """How the experiments compared; where they differ, as the first of them did, with a warning."""
    given = [{**each.config["compare"], "seed": each.config.get("seed", 0)} for each in folders if each.baseline]
    chosen: dict[str, Any] = {}
    for name in FIELDS:
        values = list(dict.fromkeys(str(one[name]) for one in given if name in one))
        if values:
            chosen[name] = next(one[name] for one in given if name in one)
        if len(values) > 1:
            text = f"the folders compare with other {name}: {', '.join(values)}; that of the first is taken"
            warnings.warn(text, GroupgtWarning, stacklevel=2)
    return Settings(**chosen)


def compared(folders: Sequence[ResultFolder]) -> list[str]:
    """The metrics that every experiment compared by; all where none was named."""
    named = [each.config["compare"].get("metrics") for each in folders if each.baseline]
    lists = [[parse_metric(text, folders[0].convention) for text in own] for own in named if own]
    return [str(metric) for metric in lists[0] if all(metric in own for own in lists)] if lists else []


def _titles(folders: Sequence[ResultFolder]) -> dict[Path, str]:
    """How each folder is called: by its name, by its whole path where others have that name."""
    names = [each.stamp for each in folders]
    return {each.path: each.stamp if names.count(each.stamp) == 1 else str(each.path) for each in folders}


def _same(values: Mapping[str, Floats], others: Mapping[str, Floats]) -> bool:
    return all(np.array_equal(column, others[text], equal_nan=True) for text, column in values.items())


def _order(qids: Sequence[str], wanted: Sequence[str], folder: ResultFolder) -> Any:
    """Where each wanted query stands."""
    places = {qid: place for place, qid in enumerate(qids)}
    if list(qids) != list(wanted) and set(places) != set(wanted):
        raise DataError(f"{folder.path}: holds other queries than the first folder, on the same ground truth")
    return np.array([places[qid] for qid in wanted], dtype=np.int64)


def _baseline(
    folders: Sequence[ResultFolder], bases: Mapping[str, list[Scored]], names: list[str], asked: str | None
) -> str:
    """The system asked, else that of the first folder, else the first; of several versions the first."""
    wanted = asked if asked is not None else folders[0].baseline
    if wanted in names:
        return str(wanted)
    if wanted is not None and wanted in bases:
        return bases[wanted][0].name
    if asked is not None:
        raise ConfigError(f"baseline: expected one of {', '.join(names)}, found {asked!r}{near_names(asked, names)}")
    return names[0]


def history(folders: Sequence[ResultFolder], settings: Settings, metric: str | None = None) -> dict[str, Grid]:
    """For each data set a row a run, oldest first: the best system by a metric, and its change to the run before.

    The metric is the primary one where none is named. A change is told, and tested (p is not corrected), where ground
    truth and policy are those of the run before; else it is told what is another. Raises `ConfigError` for a metric
    that no run has.
    """
    for each in folders:
        if not has_stamp(each.path):
            raise ConfigError(
                f"{each.path}: expected a folder named by its time, as it was written; its place is unknown"
            )
    found: dict[str, Grid] = {}
    for dataset in dict.fromkeys(name for each in folders for name in each.systems):
        rows: list[list[Any]] = []
        before: tuple[ResultFolder, Floats] | None = None
        last = max((each for each in folders if dataset in each.systems), key=lambda each: age_of(each.path))
        label = metric or last.primary or next(iter(next(iter(last.systems[dataset].values())).metrics))
        kind = parse_metric(label, last.convention)
        known_metrics = [one for each in folders if dataset in each.systems for one in _metrics(each, dataset)]
        if kind not in known_metrics:
            told = ", ".join(dict.fromkeys(map(str, known_metrics)))
            raise ConfigError(f"metric: expected one of {told}, found {label!r}")
        for each in sorted(folders, key=lambda one: age_of(one.path)):
            if dataset not in each.systems:
                continue
            best, values = _best(each, dataset, kind)
            change: list[Any] = [None, None, ""]
            if before is not None:
                other = _other(before[0], each, dataset)
                if other or len(before[1]) != len(values):
                    change = [None, None, f"other {other or 'queries'}"]
                else:
                    bounds = bounds_of(kind, [values, before[1]])
                    against = contrast([values], [before[1]], kind, bounds, settings)[0]
                    change = [against.delta, against.raw_p_value, ""]
            known = int((~np.isnan(values)).sum())
            rows.append([each.stamp, each.version, len(each.systems[dataset]), known, best, mean_of(values), *change])
            if known:
                before = each, values
        found[dataset] = (["run", "groupgt", "systems", "queries", "best", str(kind), "change", "p", "note"], rows)
    return found


def _metrics(folder: ResultFolder, dataset: str) -> list[Metric]:
    return list(next(iter(folder.systems[dataset].values())).metrics.values())


def _other(before: ResultFolder, after: ResultFolder, dataset: str) -> str:
    """What keeps two runs from being compared: ground truth or policy."""
    if before.truths[dataset] != after.truths[dataset]:
        return "ground truth"
    return "policy" if before.policy != after.policy else ""


def _best(folder: ResultFolder, dataset: str, metric: Metric) -> tuple[str, Floats]:
    """The system with the best mean and its values, in the order of query ids; NaN where it was not evaluated."""
    own = folder.systems[dataset]
    first = next(iter(own.values()))
    text = next((text for text, each in first.metrics.items() if each == metric), None)
    if text is None:
        return "–", np.full(len(first.qids), np.nan)

    def worth(scored: Scored) -> float:
        mean = mean_of(scored.values[text])
        return -math.inf if math.isnan(mean) else mean if metric.higher_is_better else -mean

    best = max(own.values(), key=worth)
    order = np.argsort(np.array(best.qids, dtype=object), kind="stable")
    return best.name, best.values[text][order]
