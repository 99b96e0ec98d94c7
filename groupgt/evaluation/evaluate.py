"""Evaluates runs from user data. `evaluate` returns an `Evaluated`, and `label` returns a hit vector."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import numpy as np

from groupgt.engines.base import Labelled
from groupgt.engines.calls import in_call_order
from groupgt.engines.carriers import renamed
from groupgt.engines.choice import Engine
from groupgt.engines.excluded import check_condensed, condensed
from groupgt.engines.measure import measured
from groupgt.engines.order import Scores
from groupgt.errors import ConfigError, DataError, Faults, listed, near_names, refuse
from groupgt.evaluation.estimates import FEWEST
from groupgt.evaluation.options import EvaluateOptions, Metrics, Truth, takes_options
from groupgt.evaluation.reading import refuse_swapped
from groupgt.evaluation.request import Audit, Request
from groupgt.evaluation.result import Evaluated, Evaluation
from groupgt.evaluation.slices import check_columns
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.evaluation.unknown_ids import Seen, warn_of_corpus, warn_of_mismatch
from groupgt.formats.source import SMALL
from groupgt.labellers.base import Labeller
from groupgt.metrics.language import check_sets
from groupgt.metrics.values import values_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.populations import Populations
from groupgt.model.run import Run
from groupgt.model.values import Budget, Lengths
from groupgt.options import Doc
from groupgt.runtime import no_garbage_collection, processors

if TYPE_CHECKING:
    from numpy.typing import NDArray


@takes_options(EvaluateOptions)
def evaluate(
    truth: Truth,
    run: Annotated[
        Any,
        Doc(
            "`{qid: ranking}`, a `Run`, a frame, a URL or a file path; with `parts`, also a folder, a glob or a list of"
            " files. For several runs, use `evaluate_runs`."
        ),
    ],
    metrics: Metrics,
    **options: Unpack[EvaluateOptions],
) -> Evaluated:
    """Evaluate one run against grouped ground truth.

    Raises a `DataError`, `MetricError` or `ConfigError` that lists every problem.

    >>> truth = {"q1": [["a", "b"], ["c"]], "q2": [["d"]]}
    >>> run = {"q1": ["a", "x", "b", "y"], "q2": [("e", 0.9), ("d", 0.4)]}
    >>> evaluate(truth, run, ["recall@5", "mrr"]).means
    {'recall@5': 0.75, 'mrr': 0.5}
    """
    with no_garbage_collection():
        return evaluate_given(Request.of(metrics, **options), truth, run)


def evaluate_given(request: Request, truth: Any, run: Any) -> Evaluated:
    """Evaluate one run on ground truth, each in any form that users may pass."""
    refuse_swapped(truth, run)
    return evaluate_one(request, request.truth_of(truth), run)


def evaluate_one(request: Request, truth: GroundTruth, run: Any) -> Evaluated:
    """Evaluate one run in any form, and refuse options that do not apply to it."""
    request.reading.require_columns([run])
    evaluation = evaluate_run(request, truth, run)
    check_directions(request.options["scores"], [evaluation.name])
    return evaluation


def evaluate_run(request: Request, truth: GroundTruth, run: Any, name: str = "") -> Evaluated:
    """Label one run, compute every requested metric, and warn about likely mistakes."""
    request = request.resolved(truth)
    labeller, policy = request.labeller, request.policy
    if policy.unjudged == "drop":
        check_condensed(labeller)
    with no_garbage_collection():
        grouped = labeller.read(truth)
        check_sets(request.metrics.values(), grouped.set_of is not None)
        if request.by:
            check_columns(grouped, request.by)
        warn_of_corpus(grouped, request)
        results = request.run_of(run, grouped, name)
        if results.trials:
            from groupgt.evaluation.trials import check_trials, over_trials

            check_trials(request.metrics.values(), len(results.trials))
            plain = {text: replace(metric, passes=None) for text, metric in request.metrics.items()}
            of_one = replace(request, metrics=plain)
            trials = [_evaluated(of_one, truth, grouped, each) for each in results.trials]
            evaluation: Evaluated = over_trials(trials, request.metrics)
        else:
            evaluation = _evaluated(request, truth, grouped, results)
    seen = Seen.of([each.labelled for each in evaluation.each], grouped)
    warn_of_mismatch(grouped, evaluation.results, request, seen)
    if request.audit is None and not request.annotators:
        return evaluation
    # Queries without an audit are no mistake, and ids that the corpus lacks were already reported.
    lenient = replace(policy, extra="ignore", absent="ignore")
    audit_request = replace(request, policy=lenient, by=(), audit=None, annotators=())

    def by(other: GroundTruth) -> Evaluated:
        return evaluate_run(audit_request, replace(other, shape=truth.shape), run, evaluation.name)

    if request.audit is None:
        return replace(evaluation, annotators=tuple(by(_shared(other, truth)) for other in request.annotators))
    if request.annotators:
        raise ConfigError("annotators: an audit has only one annotator; pass either an audit or further annotators")
    check_audit(request.audit, truth)
    return replace(evaluation, audit=by(request.audit.truth))


def _evaluated(request: Request, truth: GroundTruth, grouped: GroundTruth, results: Run) -> Evaluation:
    """Label the results of one trial and compute every metric. `grouped` is the truth as the labeller reads it."""
    labeller, policy = request.labeller, request.policy
    system = renamed(grouped, results, labeller, policy)
    texts = {**labeller.texts(), **request.sources.texts(None, "corpus")} if request.reads_texts else {}
    labelled = label_run(
        grouped,
        system,
        policy,
        labeller,
        lengths=request.lengths,
        budgets=request.budgets,
        contents=(truth, texts) if request.reads_texts else None,
        engine=request.engine,
    )
    if "error" in (policy.missing, policy.extra):
        _check_population(grouped, labelled, policy)
    return Evaluation(
        truth=grouped,
        run=system,
        metrics=request.metrics,
        values=values_of(request.metrics, labelled.hits, labelled.present, policy),
        labelled=labelled,
        policy=policy,
        convention=request.convention,
        is_auto=request.is_auto,
        by=request.by,
        labeller=labeller,
    )


def _shared(other: GroundTruth, truth: GroundTruth) -> GroundTruth:
    """Select an annotator's queries that are also in the ground truth, or raise `DataError` if there are none."""
    places = [place for place, qid in enumerate(other.qids) if qid in truth.index]
    if not places:
        raise DataError("annotators: an annotator judged none of the queries in the ground truth")
    return other if len(places) == len(other) else other.select(places)


def check_audit(audit: Audit, truth: GroundTruth) -> None:
    """Raise an error if an audit is too small, contains unknown queries, or may not be a random sample."""
    from groupgt.model.sample import SAMPLE, sample_fault

    judged = audit.truth
    if others := [qid for qid in judged.qids if qid not in truth.index]:
        raise DataError(f"audit: query {others[0]!r} is not in the audited ground truth")
    if len(judged) < FEWEST:
        what = f"expected at least {FEWEST} audited queries, found {len(judged)}"
        raise ConfigError(f"audit: {what}; a smaller audit says too little about unaudited judgments")
    fault = None if audit.assume_random else sample_fault(judged.qids, judged.columns.get(SAMPLE, ()), truth.qids)
    if fault:
        way_out = "draw one with groupgt sample (or judge --sample), or add --assume-random if you know it is random"
        raise ConfigError(f"audit: expected a random sample of the queries, but {fault}; {way_out}")


def _check_population(truth: GroundTruth, labelled: Labelled, policy: Policy) -> None:
    faults = Faults(grouped=False)
    if policy.missing == "error":
        for query in np.flatnonzero(Populations(truth.judgments, labelled.present).missing).tolist():
            faults.add(f"query {truth.qids[query]!r}", "has ground truth but no results (missing=error)")
    if policy.extra == "error" and labelled.extra:
        for qid in labelled.extra_names:
            faults.add(f"query {qid!r}", "has results but no ground truth (extra=error)")
        faults.total += labelled.extra - len(labelled.extra_names)
    faults.stop(DataError)


# Reading one file already keeps more than one processor busy.
MOST_AT_ONCE = 8


def evaluate_each(
    request: Request, truth: GroundTruth, runs: Iterable[tuple[str, Any]], finished: Callable[[], object] = lambda: None
) -> list[Evaluated]:
    """Evaluate each (name, run) in order, and call `finished` after each.

    Files are evaluated in threads, because polars and NumPy release the GIL. Python lists are read one run at a time.
    """
    named = list(runs)
    check_directions(request.options["scores"], [name for name, _ in named])
    request.reading.require_columns([run for _, run in named])

    def evaluated(pair: tuple[str, Any]) -> Evaluated:
        evaluation = evaluate_run(request, truth, pair[1], pair[0])
        finished()
        return evaluation

    paths = [run for _, run in named if isinstance(run, (str, os.PathLike))]
    alone = len(paths) < len(named) or len(named) < 2 or request.labeller.name == "code"
    if alone or max(map(_size, paths)) <= SMALL:
        return list(map(evaluated, named))
    from concurrent.futures import ThreadPoolExecutor

    first = evaluated(named[0])
    with ThreadPoolExecutor(min(processors(), MOST_AT_ONCE)) as threads:
        # If one fails, `map` cancels those that are still queued.
        return [first, *threads.map(evaluated, named[1:])]


def _size(path: Any) -> int:
    """Return the file size. For a URL or many files, return a size large enough to justify threads."""
    return os.path.getsize(path) if os.path.isfile(path) else SMALL + 1


def check_directions(scores: Scores, names: Sequence[str]) -> None:
    """Raise `ConfigError` if a score direction is set for a run that does not exist."""
    unknown = [] if isinstance(scores, str) else [name for name in scores if name not in names]
    found = (f"{listed(names)}, found {name!r}{near_names(name, names)}" for name in unknown)
    refuse((("scores", f"expected the name of a run, {what}") for what in found), ConfigError)


def label(
    truth: Any,
    ranking: Any,
    *,
    groups: bool = False,
    policy: Policy | str | Sequence[str] | dict[str, Any] | None = None,
    labeller: Any = "id",
    corpus: Any = None,
) -> NDArray[np.uint8]:
    """Return the hit vector of one ranking, shape (n,). With `groups`, return the hit matrix, shape (m, n).

    An entry is 1 if the result is the first to hit an alternative; repeats are 0 unless the policy keeps them.

    Args:
        truth: Groups of one query.
        ranking: Results of that query, best first: ids, (id, score) pairs, or `{id: score}`.
        groups: Return the matrix, with one row per group.
        policy: How to handle invalid or ambiguous data: a `Policy`, text (`trec,missing=zero`) or `{field: value}`.
        labeller: How to match results to alternatives: a name, or `{"use": name, "with": options}`.
        corpus: A path, a frame or `{id: text}`, for the labeller.

    >>> label([["a", "b"], ["c"]], ["a", "x", "b", "y"])
    array([1, 0, 1, 0], dtype=uint8)
    >>> label([["a", "b"], ["c"]], ["a", "x", "b", "c"], groups=True)
    array([[1, 0, 1, 0],
           [0, 0, 0, 1]], dtype=uint8)
    """
    rules = Policy.of(policy)
    judge = labeller_of(labeller, Sources(corpus))
    grouped = judge.read(GroundTruth.of({"query": truth}, rules))
    run = renamed(grouped, in_call_order(Run.of({"query": ranking})), judge, rules)
    hits = label_run(grouped, run, rules, judge).hits
    matrix = np.zeros((len(grouped.group_query), int(hits.length[0])), dtype=np.uint8)
    matrix[grouped.relevant_groups[hits.group[hits.counted]], hits.rank[hits.counted] - 1] = 1
    return matrix if groups else np.asarray(matrix.any(axis=0), dtype=np.uint8)


def label_run(
    truth: GroundTruth,
    run: Run,
    policy: Policy,
    labeller: Labeller,
    *,
    lengths: Lengths | None = None,
    budgets: Collection[Budget] = (),
    contents: tuple[GroundTruth, Mapping[str, str]] | None = None,
    engine: Engine | None = None,
) -> Labelled:
    """Label a run that is `renamed` for the labeller, and measure how much fits into each budget.

    For content metrics, also pass the ground truth before the labeller read it, and texts by id.
    """
    if policy.unjudged == "drop":
        check_condensed(labeller)
    measure: Callable[..., Labelled] = measured
    if run.is_remote:
        from groupgt.engines.cluster import measured_there

        measure = measured_there
    labelled = measure(truth, run, labeller, policy, engine or Engine(), lengths, budgets, contents)
    return condensed(labelled, truth) if policy.unjudged == "drop" else labelled
