"""`compare`: several runs, one ground truth, a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupgt.comparison.result import Comparison, comparison_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import CorrectionName, TestName
from groupgt.errors import ConfigError, display
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.request import Request
from groupgt.metrics.language import Metric
from groupgt.model.policy import Policy


def compare(
    truth: Any,
    runs: Mapping[str, Any] | Sequence[Any],
    metrics: Sequence[str | Metric],
    *,
    baseline: str | None = None,
    test: TestName = "randomization",
    correction: CorrectionName = "holm",
    alpha: float = 0.05,
    intervals: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    pairs: bool = False,
    convention: str = "autorag",
    k: int | Sequence[int] = (),
    by: Sequence[str] | str = (),
    policy: Policy | str | dict[str, str] | None = None,
    labeller: Any = "id",
    lengths: Any = None,
    corpus: Any = None,
    truth_format: str | None = None,
    run_format: str | None = None,
    engine: Any = "auto",
) -> Comparison:
    """Measures several runs and says which differences are real.

    `runs` are `{name: run}`, or paths that name themselves; the `baseline` is the first where none is named. Every mean
    and every delta has a bootstrap interval of level `intervals`; `test` is randomization, t, wilcoxon (these two need
    SciPy) or bootstrap, `correction` holm, bonferroni or none, over all comparisons of the table. `seed` fixes all that
    is drawn: the same bits every time. Other options are those of `evaluate`: `convention`, `k`, `by`, `labeller`,
    `lengths`, `corpus`, `engine`. Raises `DataError`, `MetricError` or `ConfigError`.

    >>> truth = {f"q{n}": [["a", "b"], ["c"]] for n in range(12)}
    >>> half, whole = {qid: ["a", "x"] for qid in truth}, {qid: ["b", "c"] for qid in truth}
    >>> table = compare(truth, {"half": half, "whole": whole}, ["recall@2"])
    >>> row = table["whole"]["recall@2"]
    >>> row.delta, row.wins, row.p_value  # 2 of the 2^12 sign patterns are as far
    (0.5, 12, 0.00048828125)
    """
    settings = Settings(test, correction, alpha, intervals, resamples, seed, pairs)
    if not isinstance(runs, (Mapping, Sequence)) or isinstance(runs, str):
        raise ConfigError(f"runs: expected {{name: run}} or a list of paths, found {display(runs)}")
    named = runs if isinstance(runs, Mapping) else dict(enumerate(runs))
    if len(named) < 2:
        raise ConfigError(f"runs: expected at least two to compare, found {len(named)}")
    if baseline is not None and not isinstance(baseline, str):
        raise ConfigError(f"baseline: expected the name of a run, found {display(baseline)}")
    request = Request.of(
        metrics,
        convention=convention,
        k=k,
        by=by,
        policy=policy,
        labeller=labeller,
        lengths=lengths,
        corpus=corpus,
        truth_format=truth_format,
        run_format=run_format,
        engine=engine,
    )
    named_runs = [(str(name) if isinstance(runs, Mapping) else "", run) for name, run in named.items()]
    evaluations = {each.name: each for each in evaluate_each(request, request.truth_of(truth), named_runs)}
    return comparison_of(evaluations, next(iter(evaluations)) if baseline is None else baseline, settings)
