"""`evaluate` and `label`: from what the user has to an `Evaluation`; of many runs, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groupgt.engines import memory
from groupgt.engines.base import Labelled
from groupgt.engines.budgets import depths
from groupgt.engines.choice import Engine, engine_of
from groupgt.engines.results import renamed
from groupgt.errors import DataError, Faults
from groupgt.evaluation.request import Sources, as_ground_truth, as_run, labeller_of
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.slices import Slicer
from groupgt.evaluation.unknown_ids import check_known, warn_of_near_ids
from groupgt.formats.source import SMALL
from groupgt.labellers.base import Labeller
from groupgt.metrics.language import Metric, parse_metrics
from groupgt.metrics.values import check_policy, values_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.values import Budget, Lengths, as_lengths
from groupgt.runtime import no_garbage_collection, pl


def evaluate(
    truth: Any,
    run: Any,
    metrics: Sequence[str | Metric],
    *,
    convention: str = "autorag",
    k: int | Sequence[int] = (),
    by: Sequence[str] | str = (),
    policy: Policy | str | dict[str, str] | None = None,
    labeller: Any = "id",
    lengths: Any = None,
    corpus: Any = None,
    name: str = "",
    truth_format: str | None = None,
    run_format: str | None = None,
    engine: Any = "auto",
) -> Evaluation:
    """Measures one run against grouped ground truth.

    `truth` is `{qid: groups}`, a `GroundTruth`, a path or a frame; `run` is `{qid: ranking}`, a `Run`, a path (a file;
    a folder, a glob or a list of files that are its parts; a URL) or a frame of polars, pandas, Arrow or Spark.
    Metrics without a cutoff of their own are taken at each `k`. `by` names columns of the ground truth, or
    `n_groups`, to slice by. `lengths` say how long results are, for budgets such as `@2000tokens`: `Lengths`,
    `{"tokens": {id: length}}`, or `{id: text}` for characters; else they come with the results. `labeller` decides
    which result hits which alternative: `id`, `parents`, `spans`, `text`, `embedding`, `code`, or `{"use": name,
    "with": {option: value}}`; `corpus`, a path or `{id: text}`, is where it finds what its options do not name.
    `engine` is `auto`, `streaming` or `spark`, or `{"use": name, "with": {option: value}}`, such as a `memory` ceiling
    for `streaming` or a `master` for `spark`. Raises `DataError`, `MetricError` or `ConfigError` with everything that
    is wrong.

    >>> truth = {"q1": [["a", "b"], ["c"]], "q2": [["d"]]}
    >>> run = {"q1": ["a", "x", "b", "y"], "q2": [("e", 0.9), ("d", 0.4)]}
    >>> evaluate(truth, run, ["recall@5", "mrr"]).means
    {'recall@5': 0.75, 'mrr': 0.5}
    """
    rules = Policy.of(policy)
    how = engine_of(engine)
    asked = parse_metrics(
        [metrics] if isinstance(metrics, (str, Metric)) else metrics, convention, [k] if isinstance(k, int) else k
    )
    check_policy(rules, asked)
    with no_garbage_collection():
        sources = Sources(corpus)
        chosen = labeller_of(labeller, sources)
        given = as_ground_truth(truth, rules, truth_format)
        grouped = chosen.read(given)
        slicer = Slicer(grouped, [by] if isinstance(by, str) else by)
        system = renamed(grouped, as_run(run, grouped, run_format, name, engine=how), chosen, rules)
        budgets = {metric.budget for metric in asked.values() if metric.budget is not None}
        measured = as_lengths(lengths)
        if budgets and lengths is None and corpus is not None:
            measured = Lengths(texts=sources.texts(None, "corpus"))
        labelled = label_run(grouped, system, rules, chosen, lengths=measured, budgets=budgets, engine=how)
        if any(metric.definition.reads_texts for metric in asked.values()):
            from groupgt.engines.contents import contents

            known = {**chosen.texts(), **sources.texts(None, "corpus")}
            said = contents(given, system, rules, known)
            labelled = replace(labelled, hits=replace(labelled.hits, contents=said))
    _check_population(grouped, labelled, rules)
    told = check_known(system, chosen)
    if labelled.no_match and not told:
        warn_of_near_ids(grouped, system, chosen, int((grouped.judgments.defined & labelled.present).sum()))
    return Evaluation(
        truth=grouped,
        run=system,
        metrics=asked,
        values=values_of(asked, labelled.hits, labelled.present, rules),
        labelled=labelled,
        policy=rules,
        convention=convention,
        slicer=slicer,
        labeller=chosen,
    )


def label(
    truth: Any,
    ranking: Any,
    *,
    groups: bool = False,
    policy: Policy | str | dict[str, str] | None = None,
    labeller: Any = "id",
    corpus: Any = None,
) -> NDArray[np.uint8]:
    """The hit vector of one ranking, shape (n,); with `groups` the hit matrix, shape (m, n): one row per group.

    A 1 stands where a result is the first to hit an alternative; repeats are 0 unless the policy keeps them.

    >>> label([["a", "b"], ["c"]], ["a", "x", "b", "y"])
    array([1, 0, 1, 0], dtype=uint8)
    >>> label([["a", "b"], ["c"]], ["a", "x", "b", "c"], groups=True)
    array([[1, 0, 1, 0],
           [0, 0, 0, 1]], dtype=uint8)
    """
    rules = Policy.of(policy)
    judge = labeller_of(labeller, Sources(corpus))
    grouped = judge.read(GroundTruth.of({"query": truth}, rules))
    hits = label_run(grouped, Run.of({"query": ranking}), rules, judge).hits
    matrix = np.zeros((len(grouped.group_query), int(hits.length[0])), dtype=np.uint8)
    chosen = (grouped.grade[hits.alternative] > 0) & (hits.keep | ~hits.repeat)
    matrix[grouped.group_of[hits.alternative[chosen]], hits.rank[chosen] - 1] = 1
    return matrix if groups else np.asarray(matrix.any(axis=0), dtype=np.uint8)


def label_run(
    truth: GroundTruth,
    run: Run,
    policy: Policy,
    labeller: Labeller,
    *,
    lengths: Lengths | None = None,
    budgets: Collection[Budget] = (),
    engine: Engine | None = None,
) -> Labelled:
    """Labels a run, and measures how much of it fits each budget; which engine does is decided by what the results are.

    The ground truth is what the labeller reads (`labeller.read`).
    """
    run = renamed(truth, run, labeller, policy)
    if run.remote is not None:
        from groupgt.engines import spark

        broadcast = engine.options.largest if engine is not None and engine.name == "spark" else spark.BROADCAST
        labelled = spark.label(truth, run, policy, labeller, broadcast)
    elif run.columns is not None:
        from groupgt.engines.columns import carrier

        labelled = carrier.label(truth, run, policy, labeller, engine.ceiling if engine is not None else 0)
    else:
        labelled = memory.label(truth, run, policy, labeller)
    if not budgets:
        return labelled
    found = depths(truth, run, policy, lengths or Lengths(), budgets)
    return replace(labelled, hits=replace(labelled.hits, prefixes=found))


def _check_population(truth: GroundTruth, labelled: Labelled, policy: Policy) -> None:
    faults = Faults()
    if policy.missing == "error":
        for position in np.flatnonzero(truth.judgments.defined & ~labelled.present).tolist():
            faults.add(f"query {truth.qids[position]!r}", "has ground truth and no results (missing: error)")
    if policy.extra == "error" and labelled.extra:
        for qid in labelled.extra_names:
            faults.add(f"query {qid!r}", "has results and no ground truth (extra: error)")
        faults.total += labelled.extra - len(labelled.extra_names)
    faults.stop(DataError)


# Reading a file keeps more than one processor busy by itself.
MOST_AT_ONCE = 8


def evaluate_each(
    truth: GroundTruth, runs: Iterable[tuple[str, Any]], labeller: Labeller, options: Mapping[str, Any]
) -> list[Evaluation]:
    """An `Evaluation` of each (name, run), in their order; `options` are those of `evaluate`.

    Files are evaluated on as many threads as there are processors: polars and NumPy let others run meanwhile. What is
    in memory already is not, for Python lets one thread at a time look at lists.
    """
    given = list(runs)

    def one(each: tuple[str, Any]) -> Evaluation:
        name, run = each
        return evaluate(truth, run, labeller=labeller, name=name, **options)

    paths = [run for _, run in given if isinstance(run, (str, os.PathLike))]
    if len(paths) < len(given) or len(given) < 2 or labeller.name == "code":
        return [one(each) for each in given]
    if sum(map(_size, paths)) <= SMALL:
        return [one(each) for each in given]
    first = one(given[0])
    workers = min(os.cpu_count() or 1, MOST_AT_ONCE, pl.thread_pool_size())
    with ThreadPoolExecutor(workers) as threads:
        return [first, *_in_order(threads.map(one, given[1:]), threads.shutdown)]


def _in_order(found: Iterable[Evaluation], shutdown: Callable[..., None]) -> Iterable[Evaluation]:
    """What threads found; where one fails, those that wait are not begun."""
    try:
        yield from found
    except BaseException:
        shutdown(wait=False, cancel_futures=True)
        raise


def _size(path: Any) -> int:
    """The size of a file; of a URL or of many files, enough to be worth it."""
    try:
        size = Path(path).stat().st_size
    except (OSError, ValueError):
        return SMALL + 1
    return size if Path(path).is_file() else SMALL + 1
