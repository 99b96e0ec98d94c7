"""Compare systems query by query with counterparts of the same name, for example on a baseline data set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from groupgt.comparison.contrast import Builds, Contrast, Values, contrasts_of
from groupgt.comparison.settings import Settings
from groupgt.errors import ConfigError, Faults, near_names
from groupgt.evaluation.estimates import mean_of
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats
from groupgt.render.results import Result


@dataclass(frozen=True, eq=False, kw_only=True)
class Beside:
    """Systems paired with counterparts of the same name. Systems missing from `before` are not compared."""

    metrics: Mapping[str, Metric]
    primary: str
    settings: Settings
    now: Values
    before: Values
    builds_now: Builds[str] = field(default_factory=dict)
    builds_before: Builds[str] = field(default_factory=dict)
    _computed: dict[tuple[Any, ...], dict[str, Contrast]] = field(init=False, default_factory=dict, repr=False)

    def contrasts(
        self, metric: str | None = None, among: Bools | None = None, only: str | None = None
    ) -> dict[str, Contrast]:
        """Compare each system, or `only` one, with its counterpart on one metric, as one family of tests."""
        metric = self.primary if metric is None else metric
        key = metric, b"" if among is None else among.tobytes(), only
        if key not in self._computed:
            names = [name for name in self.now if metric in self.before.get(name, {}) and only in (None, name)]
            keep = slice(None) if among is None else among
            sides = {"now": (self.now, self.builds_now), "before": (self.before, self.builds_before)}
            keys = [(name, side) for name in names for side in sides]
            cells = {(name, side): {metric: sides[side][0][name][metric][keep]} for name, side in keys}
            builds = {
                (name, side): {metric: [each[:, keep] for each in sides[side][1].get(name, {}).get(metric, ())]}
                for name, side in keys
            }
            twos = [((name, "now"), (name, "before")) for name in names]
            contrasts = contrasts_of(cells, {metric: self.metrics[metric]}, twos, self.settings, builds=builds)
            self._computed[key] = dict(zip(names, contrasts.values()))
        return self._computed[key]

    def means(self, name: str, metric: str) -> tuple[float, float]:
        """Return the counterpart's mean and the system's mean over the queries that count for both systems."""
        before, now = self.before[name][metric], self.now[name][metric]
        both = ~np.isnan(before) & ~np.isnan(now)
        return mean_of(before[both]), mean_of(now[both])


def texts_of(truth: GroundTruth) -> dict[str, str]:
    """Return the text of each query that has one."""
    return {qid: text for qid, text in zip(truth.qids, truth.texts or ()) if text}


def reworded(qids: Iterable[str], texts: Mapping[str, str], others: Mapping[str, str]) -> list[str]:
    """Return the queries whose text differs between two data sets, ignoring queries with text in only one of them."""
    return [qid for qid in qids if texts.get(qid, others.get(qid)) != others.get(qid, texts.get(qid))]


@dataclass(frozen=True)
class Changes:
    """The queries in which two versions of a ground truth differ.

    `judged` leaves out `reworded` queries. Queries in `added` are only in the first version, and queries in `gone` only
    in the second.
    """

    reworded: Sequence[str] = ()
    judged: Sequence[str] = ()
    added: Sequence[str] = ()
    gone: Sequence[str] = ()

    @classmethod
    def of(cls, truth: GroundTruth, other: GroundTruth) -> Changes:
        """Compare two versions query by query, ignoring names and the order of queries, groups and alternatives."""
        if truth.digest == other.digest:
            return cls()
        both = [qid for qid in truth.qids if qid in other]
        changed = reworded(both, texts_of(truth), texts_of(other))
        rest = set(both).difference(changed)
        return cls(
            changed,
            [qid for qid in both if qid in rest and _judged(truth, qid) != _judged(other, qid)],
            [qid for qid in truth.qids if qid not in other],
            [qid for qid in other.qids if qid not in truth],
        )


def _judged(truth: GroundTruth, qid: str) -> tuple[bool, list[str], list[frozenset[str]]]:
    """Return a query's judgments in a form that ignores group names and the order of groups and alternatives."""
    groups = []
    for group in truth[qid]:
        described = dict(group) if isinstance(group, Mapping) else {"alternatives": group}
        described.pop("name", None)
        groups.append(repr(sorted({**described, "alternatives": sorted(map(repr, described["alternatives"]))}.items())))
    place = truth.index[qid]
    named = [ids[place] if ids else frozenset() for ids in (truth.excluded, truth.harmful)]
    return bool(truth.unanswerable[place]), sorted(groups), named


@dataclass(frozen=True, eq=False)
class Measured:
    """One data set with its query ids, its query texts (if any), and its metric values by system, metric and build."""

    qids: Sequence[str]
    texts: Mapping[str, str]
    values: Values = field(default_factory=dict)
    builds: Builds[str] = field(default_factory=dict)


class Shared(NamedTuple):
    """Queries shared with the baseline, and how many are only in this data set (`alone`) or the baseline (`absent`)."""

    qids: Sequence[str]
    alone: int
    absent: int
    reworded: Sequence[str]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Across(Beside, Result):
    """A comparison of each system's results on several data sets with its own results on the `baseline` data set.

    `places` maps each name to its system and data set. `sizes` contains mean chunk lengths in characters, if known.
    """

    baseline: str
    convention: str
    places: Mapping[str, tuple[str, str]]
    shared: Mapping[str, Shared]
    sizes: Mapping[str, float] = field(default_factory=dict)

    @property
    def datasets(self) -> list[str]:
        """Names of all data sets, starting with the baseline."""
        return [self.baseline, *self.shared]

    @property
    def label(self) -> str:
        """The name of the primary metric in tables."""
        return self.metrics[self.primary].label(self.primary, self.convention)


def shared_queries(datasets: Mapping[str, Measured], baseline: str) -> dict[str, Shared]:
    """Return the queries that each other data set shares with the baseline, matched by id and text."""
    if baseline not in datasets:
        near = near_names(baseline, datasets)
        raise ConfigError(f"baseline: expected one of the data sets {', '.join(datasets)}, found {baseline!r}{near}")
    first, faults = datasets[baseline], Faults()
    baseline_qids = frozenset(first.qids)
    shared_by_name: dict[str, Shared] = {}
    for name, other in datasets.items():
        if name == baseline:
            continue
        both = [qid for qid in other.qids if qid in baseline_qids]
        changed = reworded(both, other.texts, first.texts)
        kept = [qid for qid in both if qid not in frozenset(changed)]
        shared_by_name[name] = Shared(kept, len(other.qids) - len(both), len(baseline_qids) - len(both), changed)
        if len(kept) < 2:
            what = f"expected at least two queries with the same id and text as in {baseline}, found {len(kept)}"
            faults.add(f"dataset {name!r}", what)
    faults.stop(ConfigError)
    return shared_by_name


def across(
    datasets: Mapping[str, Measured],
    baseline: str,
    metrics_of_file: Mapping[str, Metric],
    settings: Settings,
    convention: str,
    *,
    requested: Sequence[str] = (),
    primary: str | None = None,
    sizes: Mapping[str, float] | None = None,
) -> Across:
    """Compare each system's results on every data set with its results on the baseline, for all or selected metrics."""
    metrics, first = _chosen(metrics_of_file, requested, primary, convention)
    shared = shared_queries(datasets, baseline)
    now: dict[str, dict[str, Floats]] = {}
    before: dict[str, dict[str, Floats]] = {}
    places: dict[str, tuple[str, str]] = {}
    builds: list[dict[str, dict[str, list[Floats]]]] = [{}, {}]
    for dataset, queries in shared.items():
        here, there = (_places(datasets[name].qids, queries.qids) for name in (dataset, baseline))
        for system, values in datasets[dataset].values.items():
            if system in datasets[baseline].values:
                name = f"{system} on {dataset}"
                places[name] = system, dataset
                now[name] = {text: values[text][here] for text in metrics}
                before[name] = {text: datasets[baseline].values[system][text][there] for text in metrics}
                for of_side, side, at in zip(builds, (dataset, baseline), (here, there)):
                    built = datasets[side].builds.get(system, {})
                    of_side[name] = {text: [each[:, at] for each in built.get(text, ())] for text in metrics}
    return Across(
        metrics=metrics,
        primary=first,
        settings=settings,
        now=now,
        before=before,
        builds_now=builds[0],
        builds_before=builds[1],
        baseline=baseline,
        convention=convention,
        places=places,
        shared=shared,
        sizes=sizes or {},
    )


def _chosen(
    metrics: Mapping[str, Metric], requested: Sequence[str], primary: str | None, convention: str
) -> tuple[dict[str, Metric], str]:
    """Return the requested metrics (default: all) and the primary metric with its text, or raise `ConfigError`."""
    texts = {metric: text for text, metric in metrics.items()}

    def text_of(name: str) -> str:
        metric = parse_metric(name, convention)
        if metric not in texts:
            raise ConfigError(
                f"metric: expected one of {', '.join(metrics)}, found {name!r}{near_names(name, metrics)}"
            )
        return texts[metric]

    chosen = [text_of(name) for name in requested] or list(metrics)
    first = chosen[0] if primary is None else text_of(primary)
    return {text: metrics[text] for text in dict.fromkeys([*chosen, first])}, first


def mean_length(texts: Mapping[str, str]) -> float:
    """Return the mean length of the texts in characters."""
    return sum(map(len, texts.values())) / max(len(texts), 1)


def _places(qids: Sequence[str], order: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the index in `qids` of each query in `order`."""
    index = {qid: place for place, qid in enumerate(qids)}
    return np.array([index[qid] for qid in order], dtype=np.int64)
