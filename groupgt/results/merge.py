"""Compare results in several folders, the data sets of one folder, or the history of an experiment."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from groupgt.comparison.across import Across, Changes, Measured, across, mean_length, texts_of
from groupgt.comparison.compare import Comparison, comparison_of
from groupgt.comparison.draws import SLACK
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import p_values
from groupgt.engines.order import Direction
from groupgt.errors import ConfigError, DataError, Faults, GroupgtError, GroupgtWarning, near_names, without_warnings
from groupgt.evaluation.estimates import estimate_of, mean_of, plain_of
from groupgt.evaluation.evaluate import evaluate_run
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluated
from groupgt.formats.corpus import read_corpus, read_lengths
from groupgt.formats.tokenizers import tokenizer_named
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.hits import Floats
from groupgt.model.values import Lengths
from groupgt.options import paths_of
from groupgt.plugins import find
from groupgt.render.tables import Grid, counted, shortlist
from groupgt.results.folder import ResultFolder, Scored, order_of
from groupgt.store.files import sha256
from groupgt.store.stamped import age_of, has_stamp

# Maximum number of queries in an error.
NAMED = 3
OTHER_QUERIES = "its queries differ from the queries of the first folder, although the ground truth is the same"


def merged(
    folders: Sequence[ResultFolder],
    settings: Settings,
    baseline: str | None = None,
    metrics: Sequence[str] = (),
    compared: Sequence[str] = (),
) -> dict[str, Comparison]:
    """Return one comparison per data set over the systems in all folders, using the given metrics or all common ones.

    Results are measured again if possible. A system whose values differ between folders appears
    once for each version, with its folder's name.
    """
    _check(folders)
    comparisons: dict[str, Comparison] = {}
    for dataset in _datasets(folders):
        holders = [replace(folder, dataset=dataset) for folder in folders if dataset in folder.systems]
        measured = _common_metrics(holders, metrics)
        common = _common_metrics(holders, metrics or compared)
        systems = _versions(holders, dataset, common)
        # The name of the first version of each system.
        versions = {system.origin[1]: system.name for system in reversed(systems)}
        first, manifest = holders[0], holders[0].manifest
        decisive = None if first.primary is None else parse_metric(first.primary, first.convention)
        primary = next((text for text, metric in common.items() if metric == decisive), None)
        names = [system.name for system in systems]
        # The requested system, the first folder's baseline, or the first system.
        chosen = baseline if baseline is not None else first.baseline or ""
        if baseline is not None and baseline not in (*names, *versions):
            near = near_names(baseline, names)
            raise ConfigError(f"baseline: expected one of {', '.join(names)}, found {baseline!r}{near}")
        if chosen not in names:
            chosen = versions.get(chosen, "")
        held = ((folder.path, counted(len(folder.systems[dataset]), "system")) for folder in holders)
        footer = [f"dataset {dataset}: {path} ({count})" for path, count in held]
        footer.append(f"ground truth {manifest.ground_truth[dataset][:12]}, convention {first.convention}")
        footer.append(f"policy {manifest.policy}")
        warned = [text for folder in holders for text in (folder.manifest.warnings or {}).get(dataset, ())]
        if silent := [folder.stamp for folder in holders if folder.manifest.warnings is None]:
            footer.append(f"{shortlist(silent)}: written by an earlier version, which kept no warnings")
        table = Comparison(
            systems[0].qids,
            common,
            first.convention,
            {system.name: system.values for system in systems},
            primary or next(iter(common)),
            policy=first.policy,
            labeller="" if first.labeller_spec["use"] == "id" else first.labeller_spec["use"],
            baseline=chosen,
            settings=settings,
            population=footer,
            warned=list(dict.fromkeys(warned)),
        )
        table = _measured_again(table, list(measured), holders, {system.name: system for system in systems})
        if primary is not None:
            table = table.sorted_by(primary)
        if not chosen:
            # The run had no baseline, or it failed, so nothing was compared. Several folders are joined to be compared.
            table = replace(table, baseline=table.names[0], is_baseline_named=len(folders) > 1)
        comparisons[dataset] = table
    return comparisons


def settings_of(folders: Sequence[ResultFolder]) -> Settings:
    """Return the comparison settings of the experiments. If settings differ, warn and use the first value."""
    compared = [folder.compare for folder in folders if folder.config.get("compare")]
    chosen: dict[str, Any] = {}
    for name in (field.name for field in fields(Settings)):
        values = [each[name] for each in compared if name in each]
        default = f"{Settings().corrects} (default)"
        distinct = list(dict.fromkeys(default if value is None else str(value) for value in values))
        if values:
            chosen[name] = values[0]
        if len(distinct) > 1:
            text = f"the folders used different values of {name}: {', '.join(distinct)}. groupgt uses the first"
            warnings.warn(text, GroupgtWarning, stacklevel=2)
    return Settings(**chosen)


def compared_metrics(folders: Sequence[ResultFolder]) -> list[str]:
    """Return the metrics that every experiment compared, or nothing if no experiment lists metrics to compare."""
    named = [folder.compare.get("metrics", []) for folder in folders]
    lists = [[parse_metric(text, folders[0].convention) for text in texts] for texts in named if texts]
    return [str(metric) for metric in lists[0] if all(metric in metrics for metrics in lists)] if lists else []


def _datasets(folders: Sequence[ResultFolder]) -> list[str]:
    return list(dict.fromkeys(dataset for folder in folders for dataset in folder.systems))


def _check(folders: Sequence[ResultFolder]) -> None:
    """Raise `DataError` with every difference between folders that makes them incomparable."""
    faults = Faults()
    holders: dict[str, ResultFolder] = {}
    for folder in folders:
        for dataset in folder.manifest.ground_truth:
            for _, what in _differences(folder, holders.setdefault(dataset, folder), dataset):
                faults.add(str(folder.path), what)
        for _, what in _differences(folder, folders[0]):
            faults.add(str(folder.path), what)
    faults.stop()


def _differences(folder: ResultFolder, other: ResultFolder, dataset: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield each reason why two folders are not comparable, on one data set or on all, as a name and a message."""
    same = "evaluate both with the same"
    if dataset is None:
        (labeller, _), (other_labeller, _) = _labeller_of(folder), _labeller_of(other)
        for what, mine, theirs, way in (
            ("convention", folder.convention, other.convention, f"run both with `convention: {other.convention}`"),
            ("labeller", labeller, other_labeller, f"{same} labeller"),
            ("policy", *_apart(folder.manifest.policy, other.manifest.policy), f"{same} policy"),
        ):
            if mine != theirs:
                yield what, f"the {what} is {mine}, but {theirs} in {other.path}; {way}"
        return
    if changes := _changed_truth(replace(folder, dataset=dataset), replace(other, dataset=dataset)):
        what = f"the ground truth of data set {dataset!r} differs from that in {other.path} {changes}"
        yield "ground truth", f"{what}; {same} file"
    audit, other_audit = (replace(each, dataset=dataset).audit for each in (folder, other))
    if audit is None or other_audit is None:
        is_other = audit is not other_audit
        what = f"data set {dataset!r} is {'not ' if audit is None else ''}audited, unlike in {other.path}"
    else:
        is_other = sha256(audit) != sha256(other_audit)
        what = f"the audit of data set {dataset!r} differs from that in {other.path}"
    if is_other:
        yield "audit", f"{what}; {same} audit"
    (_, files), (_, other_files) = _labeller_of(folder, dataset), _labeller_of(other, dataset)
    for name, (path, digest) in files.items():
        if name in other_files and digest != other_files[name][1]:
            what = f"the labeller's {name}, {path}, differs from {other_files[name][0]} in {other.path}"
            yield "labeller", f"data set {dataset!r}: {what}; {same} file"


def _changed_truth(folder: ResultFolder, other: ResultFolder) -> str:
    """Describe the queries in which two folders differ in ground truth, if any."""
    digests = [each.manifest.ground_truth[each.dataset] for each in (folder, other)]
    if digests[0] == digests[1]:
        return ""
    try:
        truth, other_truth = (each.truth(each.policy) for each in (folder, other))
    except GroupgtError:
        return f"(digests {digests[0][:12]} and {digests[1][:12]})"
    changes = Changes.of(truth, other_truth)
    kinds = {"with different text": changes.reworded, "with different judgments": changes.judged}
    kinds |= {"added": changes.added, "left out": changes.gone}
    parts = [f"{len(qids):,} {kind} ({shortlist(qids, NAMED)})" for kind, qids in kinds.items() if qids]
    count, total = sum(map(len, kinds.values())), len(truth) + len(changes.gone)
    return f"in {count:,} of {counted(total, 'query')}: {', '.join(parts)}" if parts else ""


def _apart(policy: str, other: str) -> tuple[str, str]:
    """Return the fields in which two policies differ."""
    mine, theirs = policy.split(", "), other.split(", ")
    one, two = ([each for each in mine if each not in theirs], [each for each in theirs if each not in mine])
    return ", ".join(one), ", ".join(two)


def _labeller_of(folder: ResultFolder, dataset: str = "") -> tuple[str, dict[str, tuple[str, str]]]:
    """Describe a folder's labeller without its files, and return each file's name and digest by option."""
    spec = folder.labeller_spec
    options, files = dict(spec.get("with") or {}), {}
    with suppress(GroupgtError):  # of a plug-in that is not installed
        for name in paths_of(find("labeller", spec["use"]).options, options):
            path = options.pop(name).replace("{dataset}", dataset)
            files[name] = path, folder.manifest.files.get(path, "unknown")
    return json.dumps({**spec, "with": options}, sort_keys=True, ensure_ascii=False), files


def _common_metrics(holders: Sequence[ResultFolder], texts: Sequence[str]) -> dict[str, Metric]:
    """Return the metrics that all folders share (if any were requested, only those), as named in the first folder."""
    common = {
        text: metric
        for text, metric in holders[0].metrics.items()
        if all(metric in other.metrics.values() for other in holders[1:])
    }
    if not common:
        raise DataError(f"{holders[-1].path}: has no metric in common with {holders[0].path}")
    if not texts:
        return common
    requested = [parse_metric(text, holders[0].convention) for text in texts]
    for text, metric in zip(texts, requested):
        if metric not in common.values():
            raise ConfigError(f"metric: expected one of {', '.join(common)}, found {text!r}{near_names(text, common)}")
    return {text: metric for text, metric in common.items() if metric in requested}


def _versions(holders: Sequence[ResultFolder], dataset: str, metrics: dict[str, Metric]) -> list[Scored]:
    """Return the versions of all systems: one version for each distinct set of values."""
    qids = next(iter(holders[0].systems[dataset].values())).qids
    names = [folder.stamp for folder in holders]
    versions: dict[str, list[Scored]] = {}
    for folder in holders:
        # Use the full path if another folder has the same name.
        title = folder.stamp if names.count(folder.stamp) == 1 else str(folder.path)
        texts = {metric: text for text, metric in folder.metrics.items()}
        for name, system in folder.systems[dataset].items():
            order = order_of(system.qids, qids, f"{folder.path}: {OTHER_QUERIES}")
            values: dict[str, Floats] = {text: system.values[texts[metric]][order] for text, metric in metrics.items()}
            variants = versions.setdefault(name, [])
            if not any(
                all(np.array_equal(column, other.values[text], equal_nan=True) for text, column in values.items())
                for other in variants
            ):
                variants.append(replace(system, name=title, qids=qids, values=values))
    return [
        replace(system, name=name if len(variants) == 1 else f"{name} ({system.name})")
        for name, variants in versions.items()
        for system in variants
    ]


# The population of a comparison whose systems could not be measured again.
AS_STORED = "stored values only, without anything that needs rankings, because the systems cannot be evaluated again: "


def why_stored(table: Comparison) -> str:
    """Return why a comparison contains only stored values, or an empty string if it was measured again."""
    return next((text.removeprefix(AS_STORED) for text in table.population if text.startswith(AS_STORED)), "")


def _measured_again(
    table: Comparison, metrics: Sequence[str], holders: Sequence[ResultFolder], scored: Mapping[str, Scored]
) -> Comparison:
    """Measure a comparison's systems again to add rankings, groups and trials. If that fails, add the reason."""
    folders = {folder.path: folder for folder in holders}
    first = holders[0]
    runs = {name: (folders[each.origin[0]], each.origin[1]) for name, each in scored.items()}
    try:
        evaluations = _evaluations(metrics, first, runs)
        one = next(iter(evaluations.values()))
        text_of = {metric: text for text, metric in one.metrics.items()}
        order = order_of(one.truth.qids, table.qids, f"{first.path}: {OTHER_QUERIES}")
        for name, evaluation in evaluations.items():
            for text, column in table.values[name].items():
                again = evaluation.values[text_of[table.metrics[text]]][order]
                if not np.allclose(again, column, rtol=0, atol=SLACK, equal_nan=True):
                    raise DataError(f"{runs[name][0].path}: {name} has different values for {text} if evaluated again")
        names = [text_of[metric] for metric in table.metrics.values()]
        measured = comparison_of(evaluations, table.baseline, table.settings, names, table.primary)
    except GroupgtError as error:
        built = [name for name, (folder, original) in runs.items() if folder.is_of_builds(original)]
        lost = f"{AS_STORED}{error}"
        settings, population = replace(table.settings, these_queries=False), [*table.population, lost]
        if table.settings.these_queries:
            population.append(
                "intervals cover other queries, because intervals for only these queries need the values of each trial"
            )
        if any(folder.audit for folder in holders):
            population.append("not corrected by the audit")
        if built:
            population.append(f"no p-values for {shortlist(built)}, because values of individual builds are not stored")
        return replace(table, settings=settings, population=population, means_of_builds=built)
    passages = {} if first.corpus is None else read_corpus(first.corpus)
    return replace(measured, passages=passages, population=table.population, warned=table.warned)


def _evaluations(
    metrics: Sequence[str], first: ResultFolder, runs: Mapping[str, tuple[ResultFolder, str]]
) -> dict[str, Evaluated]:
    """Evaluate runs, each in its folder, without the warnings that were issued when they were first evaluated."""
    scores = {name: folder.direction(original) for name, (folder, original) in runs.items()}
    request = _request(first, metrics, scores)
    truth = first.truth(first.policy)
    with without_warnings():
        return {
            name: evaluate_run(request, truth, folder.run_of(original), name)
            for name, (folder, original) in runs.items()
        }


def _request(folder: ResultFolder, metrics: Sequence[str], scores: Mapping[str, Direction]) -> Request:
    """Build the request to measure the folder's runs, or raise an error if files changed or user code is needed."""
    count = None if folder.tokenizer is None else tokenizer_named(folder.tokenizer)
    is_budget = any(parse_metric(text, folder.convention).budget is not None for text in metrics)
    lengths = read_lengths(folder.corpus, count) if is_budget and folder.corpus is not None else Lengths(count=count)
    return Request.of(
        metrics,
        convention=folder.convention,
        by=folder.config["evaluate"].get("by") or (),
        policy=folder.policy,
        labeller=folder.labeller(allow_code=False),
        audit=folder.audit,
        assume_random=folder.audit is not None,
        lengths=lengths,
        corpus=lengths.texts or None,
        scores=scores,
    )


def across_in(
    folder: ResultFolder,
    settings: Settings,
    baseline: str | None = None,
    metrics: Sequence[str] = (),
    primary: str | None = None,
) -> Across:
    """Compare the data sets in a result folder with a baseline data set (default: the first)."""
    if len(folder.systems) < 2:
        raise ConfigError(f"{folder.path}: expected several data sets, found only {', '.join(folder.systems)}")
    names = list(dict.fromkeys(name for by_system in folder.systems.values() for name in by_system))
    for name in folder.chosen:
        if name not in names:
            raise ConfigError(f"system: expected one of {shortlist(names)}, found {name!r}{near_names(name, names)}")
    measured: dict[str, Measured] = {}
    sizes: dict[str, float] = {}
    for dataset, table in merged([folder], settings).items():
        one = replace(folder, dataset=dataset)
        texts = texts_of(one.truth(one.policy)) if one.truth_path.is_file() else {}
        values = {name: each for name, each in table.values.items() if name in (folder.chosen or table.values)}
        measured[dataset] = Measured(table.qids, texts, values, table.builds)
        if one.corpus is not None:
            sizes[dataset] = mean_length(read_corpus(one.corpus))
    return across(
        measured,
        baseline or folder.across or next(iter(measured)),
        folder.metrics,
        settings,
        folder.convention,
        requested=metrics,
        primary=primary or (None if metrics else folder.primary),
        sizes=sizes,
    )


HEADERS = ("run", "groupgt", "systems", "queries", "best")
CHANGE = ("change", "p", "note")


def history(folders: Sequence[ResultFolder], settings: Settings, metric: str | None = None) -> dict[str, Grid]:
    """Return one table per data set, with each run's best system and its tested change, oldest run first."""
    for folder in folders:
        if not has_stamp(folder.path):
            what = "expected the original folder name, which begins with the run's time"
            raise ConfigError(f"{folder.path}: {what}; the run's position in the history is unknown")
    by_age = sorted(folders, key=lambda folder: age_of(folder.path))
    tables = {folder.path: merged([folder], settings) for folder in folders if folder.is_audited}
    return {dataset: _history(by_age, dataset, settings, metric, tables) for dataset in _datasets(folders)}


def _history(
    by_age: Sequence[ResultFolder],
    dataset: str,
    settings: Settings,
    requested: str | None,
    tables: Mapping[Path, Mapping[str, Comparison]],
) -> Grid:
    holders = [replace(folder, dataset=dataset) for folder in by_age if dataset in folder.systems]
    label = requested or holders[-1].primary or next(iter(holders[-1].metrics))
    metric = parse_metric(label, holders[-1].convention)
    all_metrics = dict.fromkeys(each for folder in holders for each in folder.metrics.values())
    if metric not in all_metrics:
        raise ConfigError(f"metric: expected one of {', '.join(map(str, all_metrics))}, found {label!r}")
    rows: list[list[Any]] = []
    before: tuple[ResultFolder, Floats] | None = None
    for folder in holders:
        systems = list(folder.systems[dataset].values())
        text = next((text for text, candidate in folder.metrics.items() if candidate == metric), None)
        table = tables[folder.path][dataset] if folder.audit else None
        best, values, note = "–", np.full(len(systems[0].qids), np.nan), ""
        if table is not None and not table.evaluations:
            note = f"not corrected by the audit: {why_stored(table)}"
        elif text is not None:
            columns = {each.name: each.values for each in systems} if table is None else table.tested
            means = {name: metric.worth(mean_of(column[text])) for name, column in columns.items()}
            best = max(means, key=means.__getitem__)
            # By query id, so that runs can be compared.
            qids = folder.systems[dataset][best].qids if table is None else table.qids
            values = columns[best][text][np.argsort(np.array(qids, dtype=object), kind="stable")]
        queries = int((~np.isnan(plain_of(values))).sum())
        change = [None, None, note] if before is None or note else _change(before, (folder, values), dataset, settings)
        rows.append([folder.stamp, folder.manifest.groupgt, len(systems), queries, best, mean_of(values), *change])
        if queries:
            before = folder, values
    return [*HEADERS, str(metric), *CHANGE], rows


def _change(
    before: tuple[ResultFolder, Floats], after: tuple[ResultFolder, Floats], dataset: str, settings: Settings
) -> list[Any]:
    """Return the change since the previous run, its p-value, and a reason if the runs are not comparable."""
    (folder_before, values_before), (folder_after, values_after) = before, after
    for of in (dataset, None):
        for what, _ in _differences(folder_after, folder_before, of):
            return [None, None, f"other {what}"]
    difference = values_after - values_before
    if difference.ndim > 1:
        estimate = estimate_of(difference, delta=True)
        return [None, None, ""] if estimate is None else [estimate.mean, estimate.p_value, ""]
    # Skip CIs for a thousand runs, which are slow and not shown.
    deltas, delta = difference[~np.isnan(difference)], mean_of(difference)
    p_value = p_values(settings.test, deltas[:, np.newaxis], settings.resamples, settings.seed)[0]
    return [0.0 if math.fabs(delta) < SLACK else delta, float(p_value), ""]
