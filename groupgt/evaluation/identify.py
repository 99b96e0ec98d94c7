"""Identifies the metric, convention, cutoff and policy that reproduce a reported number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from groupgt.errors import ConfigError, MetricError, printable, without_warnings
from groupgt.evaluation.estimates import mean_of
from groupgt.evaluation.evaluate import evaluate_run
from groupgt.evaluation.options import OneRun, OneRunOptions, Truth, takes_options
from groupgt.evaluation.reading import refuse_swapped
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluated, Evaluation
from groupgt.metrics import views
from groupgt.metrics.base import OF_SHAPE
from groupgt.metrics.ideals import descending
from groupgt.metrics.language import Metric, list_metrics, parse_metric
from groupgt.metrics.values import values_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Floats, Hits
from groupgt.model.values import means_over_trials, total
from groupgt.render.results import Result

# How unusual each choice is in reports: the smaller, the earlier it is listed.
USUAL = {"ndcg": 0.0, "map": 0.0, "mrr": 0.0, "recall": 0.0, "precision": 0.0, "hit_rate": 0.2, "f1": 0.3}
SPECIAL = {"complete": 0.6, "r_precision": 0.6, "bpref": 0.7, "rbp": 0.8, "err": 0.8, "alpha_ndcg": 0.6, "judged": 1.0}
RARE = 1.4
CUTOFFS = {10: 0.0, **dict.fromkeys((5, 100), 0.1), **dict.fromkeys((1, 3, 20, 1000), 0.2)}
CUTOFFS |= dict.fromkeys((15, 30, 50, 200, 500), 0.6)
ODD = dict.fromkeys((2, 4, 6, 7, 8, 9, 25, 40), 1.2)
WITHOUT_CUTOFF = {"map", "mrr", "bpref", "r_precision", "rbp", "err", "gm_map", "completion_rr", "iprec"}
WITHOUT_CUTOFF |= {"nrbp", "nnrbp", "map_ia"}
_RECALLS = [round(0.1 * step, 1) for step in range(1, 11)]
PARAMETERS: dict[str, list[tuple[tuple[str, float | str], ...]]] = {
    "ndcg": [(("gain", "exp"),)],
    "dcg": [(("gain", "exp"),)],
    "rbp": [
        *[(("p", p),) for p in (0.5, 0.9, 0.95)],
        *[(("graded", "True"), ("p", p)) for p in (0.5, 0.9, 0.95)],
        (("graded", "True"),),
    ],
    "err": [(("max_grade", grade),) for grade in (1, 2, 3)],
    "iprec": [
        *[(("recall", recall),) for recall in _RECALLS],
        # Without a recall, and for a recall of 1, the versions are the same.
        *[(("recall", recall), ("version", "10")) for recall in _RECALLS[:-1]],
    ],
}
# Metrics that are not in 0 to 1, or that need texts.
LEFT_OUT = ("num_ret", "num_rel", "hits")
# How much less usual another setting of the policy is.
POLICIES = {
    "ties=input": 0.3,
    "duplicates=drop": 0.8,
    "autorag": 0.4,
    "unjudged=drop": 0.5,
    "level=2": 0.6,
    "level=3": 0.9,
}
NEAREST = 3


@dataclass(frozen=True)
class Setting:
    """One way to compute a number, with a metric, a policy, and the set of queries to average over.

    `metric` is the text of a groupgt metric, or a description of a number that another tool computes. `also` lists
    other settings with the same values on this data.
    """

    metric: str
    policy: str
    over: str
    value: float
    queries: int
    oddness: float
    also: Sequence[str] = ()


@dataclass(frozen=True, repr=False)
class Identified(Result):
    """Settings that reproduce a number, most common first, and settings that come close.

    The number before rounding is between `low` and `high`. `tried` is the number of settings with distinct values on
    this data; `chance` is the number of these settings expected in that range by chance.
    """

    number: str
    low: float
    high: float
    matches: tuple[Setting, ...]
    nearest: tuple[Setting, ...]
    tried: int
    chance: float

    def __repr__(self) -> str:
        named = ", ".join(each.metric for each in self.matches[:3]) or "nothing"
        more = f", and {len(self.matches) - 3:,} more" if len(self.matches) > 3 else ""
        return printable(f"Identified({self.number}: {named}{more})")


@takes_options(
    OneRunOptions,
    number='The number as reported, such as `".6131"` or `"61.3%"`; its digits determine its precision.',
    metrics="Names of metrics to try, with all conventions and cutoffs (default: all metrics).",
)
def identify(
    truth: Truth, run: OneRun, number: str | float, metrics: Sequence[str] = (), **options: Unpack[OneRunOptions]
) -> Identified:
    """Identify the metric, convention, cutoff and policy that give a reported number on this data.

    Tries the default settings of common tools, known deviations in other tools, and `policy`. A number with few digits
    has many explanations, so pass all available digits. Raises `ConfigError` if the number is invalid.

    >>> truth = {"q1": [["a"], ["b"]], "q2": [["c"], ["d"]]}
    >>> run = {"q1": ["a", "x", "b"], "q2": ["x", "c", "y"]}
    >>> identify(truth, run, ".7500", ["mrr"]).matches[0].metric
    'mrr.trec'
    """
    request = Request.of([], **options)
    refuse_swapped(truth, run)
    request.reading.require_columns([run])
    return identified(request.truth_of(truth), run, str(number), request, metrics)


def identified(truth: GroundTruth, run: Any, number: str, request: Request, metrics: Sequence[str] = ()) -> Identified:
    """Find the settings that give a number on a request's data. The request's metrics are ignored."""
    low, high = _bounds(number)
    names = {parse_metric(text, "trec").name for text in metrics}
    settings_of: dict[bytes, list[Setting]] = {}
    for setting in _settings(truth, run, request, names):
        settings_of.setdefault(np.float64(setting.value).tobytes(), []).append(setting)
    settings = sorted(map(_joined, settings_of.values()), key=lambda each: each.oddness)
    matches = [each for each in settings if low <= each.value <= high]
    others = [each for each in settings if not low <= each.value <= high]
    # The sort keeps settings at the same distance in the order of their oddness.
    others.sort(key=lambda each: round(min(abs(each.value - low), abs(each.value - high)), 3))
    # The expected number of accidental matches: those nearby, scaled by the width of the range.
    width = 50 * (high - low)
    about = sum(low - width <= each.value <= high + width for each in settings) - len(matches)
    chance = about * (high - low) / (2 * width)
    return Identified(number, low, high, tuple(matches), tuple(others[:NEAREST]), len(settings), chance)


def _bounds(number: str) -> tuple[float, float]:
    """Return the bounds of the original number, before it was rounded to the digits shown."""
    text = number.strip()
    percent = text.endswith("%")
    match = re.fullmatch(r"([0-9]*)[.,]?([0-9]*)", text.removesuffix("%").strip())
    if match is None or not (match[1] or match[2]):
        raise ConfigError(f"number: expected a number such as 0.6131 or 61.3%, found {number!r}")
    scale = 100 if percent else 1
    value, unit = float(f"{match[1] or 0}.{match[2] or 0}"), 10.0 ** -len(match[2])
    return (value - unit / 2) / scale - 1e-12, (value + unit / 2) / scale + 1e-12


def _joined(same: list[Setting]) -> Setting:
    """Merge settings that give the same value into the most common one."""
    same.sort(key=lambda each: each.oddness)
    first, *others = same
    also = [each.metric + (f" with {each.policy}" if each.policy else "") for each in others]
    return replace(first, also=[text for text in dict.fromkeys(also) if text != first.metric])


def _settings(truth: GroundTruth, run: Any, request: Request, names: set[str]) -> Iterator[Setting]:
    grades = truth.judgments.alternative_grade
    rules = request.policy
    # Queries that are skipped are one of the populations.
    given = replace(rules, undefined="zero", missing="error" if rules.missing == "error" else "zero")
    base = replace(given, duplicates="penalize", unjudged="nonrelevant", ties="id", level=None, importance=())
    policies = {
        "": base,
        "ties=input": replace(base, ties="input"),
        "duplicates=drop": replace(base, duplicates="drop"),
        "autorag": replace(base, ties="input", duplicates="keep"),
    }
    if truth.judgments.rejected.any() and request.labeller.name == "id":
        policies["unjudged=drop"] = replace(base, unjudged="drop")
    for level in (2, 3):
        if (grades >= level).any() and (grades < level).any():
            policies[f"level={level}"] = replace(base, level=float(level))
    if given not in policies.values():
        policies[rules.changes] = given
    usual = OF_SHAPE[truth.shape]
    oddness_of = dict(_metrics(names, usual))
    system: Any = run
    for text, policy in policies.items():
        chosen = [metric for metric in oddness_of if policy.duplicates != "keep" or metric.convention == "autorag"]
        if not chosen:
            continue
        how = replace(request, metrics={}, policy=policy, convention=usual, is_auto=False, by=())
        # Each policy would repeat the warnings about suspicious data.
        with without_warnings() if text else nullcontext():
            evaluation = evaluate_run(how, truth.under(policy), system)
        system = evaluation.results
        columns: dict[str, _Column] = {}
        for metric in chosen:
            with suppress(MetricError):  # not defined for this ground truth
                values = [
                    values_of({"": metric}, each.labelled.hits, each.labelled.present, policy)[""]
                    for each in evaluation.each
                ]
                mean = means_over_trials(np.stack(values))
                columns[str(metric)] = _Column(mean, oddness_of[metric], metric.definition.aggregate)
        reads_flat = not text and truth.set_of is None  # other tools have no sets of passages needed together
        if reads_flat:
            of_trials = [_of_other_tools(each, names) for each in evaluation.each]
            for name, column in of_trials[0].items():
                mean = means_over_trials(np.stack([each[name].values for each in of_trials]))
                columns[name] = column._replace(values=mean)
        for name, column in columns.items():
            yield from _means(evaluation, name, text, column)
        if reads_flat:
            yield from _of_means(evaluation, names)


class _Column(NamedTuple):
    """Values of one metric, with a measure of how unusual the metric is. `aggregate`, if set, converts the mean."""

    values: Floats
    oddness: float
    aggregate: Callable[[float], float] | None = None


def _means(evaluation: Evaluated, name: str, policy: str, column: _Column) -> Iterator[Setting]:
    """Yield the mean of a metric over each set of queries that tools average over."""
    judgments, present = evaluation.truth.judgments, ~evaluation.populations.absent
    groups = judgments.groups > 0
    oddness = column.oddness + POLICIES.get(policy, 0.0)
    values = np.where(groups, column.values, 0.0 if column.aggregate is None else np.nan)
    populations = {
        "queries with a relevant document": (groups, 0.0),
        "queries that are in the run": (present, 0.05),
        "queries in the run with a relevant document": (present & groups, 0.1),
        "all queries": (np.ones(len(groups), dtype=np.bool_), 0.1),
    }
    seen: set[bytes] = set()
    for over, (among, more) in populations.items():
        defined = values[among]
        defined = defined[~np.isnan(defined)]
        is_new = among.tobytes() not in seen
        seen.add(among.tobytes())
        if is_new and len(defined):
            mean = mean_of(defined)
            value = mean if column.aggregate is None else column.aggregate(mean)
            yield Setting(name, policy, over, value, int(among.sum()), oddness + more)


def _metrics(names: set[str], usual: str) -> Iterator[tuple[Metric, float]]:
    for definition in list_metrics():
        name = definition.name
        if definition.reads_texts or name in LEFT_OUT or (names and name not in names):
            continue
        for convention, formula in definition.formulas.items():
            parameter_names = {each.name for each in formula.parameters}
            for parameters in [(), *PARAMETERS.get(name, [])]:
                if not {key for key, _ in parameters} <= parameter_names:
                    continue
                oddness = USUAL.get(name, SPECIAL.get(name, RARE))
                oddness += 0.7 * (convention not in (None, usual)) + 0.5 * bool(parameters)
                yield Metric(name, convention, parameters), oddness + (0.0 if name in WITHOUT_CUTOFF else 0.5)
                if definition.takes_cutoff:
                    for k, more in (CUTOFFS | ODD).items():
                        yield Metric(name, convention, parameters, k), oddness + more


def _of_other_tools(evaluation: Evaluation, names: set[str]) -> dict[str, _Column]:
    """Return columns for known deviations in other tools, which use different denominators, ideals and gains."""
    columns: dict[str, _Column] = {}
    hits, requested = evaluation.labelled.hits, names or {"map", "recall", "ndcg", "rbp"}
    relevant = Metric("num_rel").values(hits)
    if "map" in requested:
        values = Metric("map", "trec").values(hits) * (relevant / np.maximum(Metric("hits").values(hits), 1))
        columns["AP divided by the number of relevant results"] = _Column(values, 0.6)
    for k, more in CUTOFFS.items():
        share = relevant / np.maximum(np.minimum(relevant, k), 1)
        for name, title in (("map", "AP"), ("recall", "recall")):
            if name in requested:
                values = Metric(name, "trec", cutoff=k).values(hits)
                columns[f"{title}@{k} divided by min(k, relevant)"] = _Column(values * share, 0.6 + more)
        if "ndcg" in requested:
            columns[f"ndcg@{k} with all grades 1"] = _Column(_ndcg(hits, k, "binary"), 0.7 + more)
            for ideal, documents in (("retrieved", "all retrieved documents"), ("within", f"the first {k} results")):
                columns[f"ndcg@{k} with an ideal of {documents}"] = _Column(_ndcg(hits, k, ideal), 0.7 + more)
    if "rbp" in requested:
        rows = views.relevant_documents(hits)
        highest = np.zeros(hits.size)
        np.maximum.at(highest, hits.judgments.document_query, hits.judgments.document_grade)
        for p in (0.5, 0.8, 0.9, 0.95):
            gains = total(rows.query, rows.grade * (1 - p) * p ** (rows.rank - 1), hits.size)
            columns[f"rbp(p={p}) times grades"] = _Column(gains, 0.9)
            columns[f"rbp(p={p}) times grades ÷ each query's highest"] = _Column(gains / np.maximum(highest, 1), 0.9)
    return columns


def _ndcg(hits: Hits, k: int, ideal: str) -> Floats:
    """Compute NDCG with an ideal based on all `retrieved` documents, on documents `within` k, or on `binary` gains."""
    rows = views.relevant_documents(hits)
    gains = np.ones(len(rows.rank)) if ideal == "binary" else rows.grade
    within = rows.rank <= k
    discounted = np.where(within, gains / np.log2(rows.rank + 1), 0.0)
    reached = np.bincount(rows.query, discounted, minlength=hits.size)
    if ideal == "binary":
        query = np.repeat(np.arange(hits.size), hits.judgments.relevant)
        best = descending(query, np.ones(len(query)))
    else:
        chosen = within if ideal == "within" else slice(None)
        best = descending(rows.query[chosen], gains[chosen])
    highest = np.bincount(best.query, np.where(best.rank <= k, best.gain / np.log2(best.rank + 1), 0.0), hits.size)
    return np.divide(reached, highest, out=np.zeros(hits.size), where=highest > 0)


def _of_means(evaluation: Evaluated, names: set[str]) -> Iterable[Setting]:
    """Yield F1 computed from mean precision and mean recall."""
    counts = evaluation.truth.judgments.groups > 0
    if (names and "f1" not in names) or not counts.any():
        return
    for k, more in CUTOFFS.items():
        metrics = (Metric(name, "trec", cutoff=k) for name in ("precision", "recall"))
        precision, recall = (mean_of(evaluation.averaged(metric.values)[counts]) for metric in metrics)
        if precision + recall:
            value = 2 * precision * recall / (precision + recall)
            words = f"F1 of the mean precision@{k} and the mean recall@{k}"
            yield Setting(words, "", "queries with a relevant document", value, int(counts.sum()), 0.9 + more)
