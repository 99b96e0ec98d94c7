"""Depth analysis finds the cutoff at which a given fraction of queries is complete."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

import numpy as np

from groupgt.engines.budgets import cumulative_lengths
from groupgt.errors import ConfigError, Faults, display, listed
from groupgt.evaluation.evaluate import evaluate_given
from groupgt.evaluation.options import OneRun, OneRunOptions, Truth, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluated, Evaluation
from groupgt.model.hits import Floats, Ints
from groupgt.model.policy import Policy
from groupgt.model.values import SCORE, UNITS, Lengths
from groupgt.options import Doc
from groupgt.render.results import ResultRows

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure

METRIC = "complete.coverage"
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Depth:
    """Number of results (or tokens, chars, calls) needed for a `share` of `queries` to be complete.

    `depth` is the smallest k, or budget, at which at least that share is complete, or None if there is none. `interval`
    is the depth's confidence interval; an end is None if the results do not determine that end. `reached` is the share
    of queries that are complete over the entire ranking. `undefined` counts queries without ground truth, `missing`
    those without results, and `unanswerable` those declared unanswerable. `by` and `value` identify the slice, if any.
    """

    run: str
    share: float
    unit: str
    depth: int | None
    interval: tuple[int | None, int | None]
    queries: int
    reached: float
    undefined: int = 0
    missing: int = 0
    unanswerable: int = 0
    by: str = ""
    value: str = ""


@dataclass(frozen=True)
class Depths(ResultRows[Depth]):
    """Depths for each run and share, first over all queries, then for each slice.

    `confidence` is the confidence level of the intervals; `sliced` is True if there are slices.
    """

    depths: tuple[Depth, ...]
    confidence: float
    policy: Policy
    sliced: bool = False
    evaluations: tuple[Evaluated, ...] = field(default=(), repr=False, compare=False)

    def plot(self, name: str = "ecdf") -> Figure:
        """Plot, by rank, the fraction of queries that have a first hit and the fraction that are complete."""
        return self._teller.plot(name)


@takes_options(OneRunOptions, corpus="The corpus for the labeller: a path, a frame or `{id: text}`.")
def depth(
    truth: Truth,
    run: OneRun,
    share: Annotated[float | Sequence[float], Doc("Share of queries that must be complete, or several shares.")] = 0.9,
    *,
    unit: Annotated[
        Literal["results", "tokens", "chars", "calls"],
        Doc("Unit of depth: `results`, `tokens`, `chars`, or `calls` (the searches that returned results)."),
    ] = "results",
    by: Sequence[str] | str = (),
    confidence: Annotated[float, Doc("Confidence level.")] = 0.95,
    lengths: Annotated[
        Any, Doc('Result lengths for `tokens` and `chars`: `Lengths`, or `{"tokens": {id: length}}`.')
    ] = None,
    **options: Unpack[OneRunOptions],
) -> Depths:
    """Find the smallest k, or budget, at which each share of queries is complete, with a CI.

    The depth is c_⌈share·n⌉ of the sorted completion depths c_1 ≤ … ≤ c_n of the evaluated queries (infinite if a group
    is never covered). The interval from c_l to c_u is based on the binomial distribution of the number of queries below
    the true quantile; its coverage is at least `confidence` for any distribution. Source: Conover 1999, § 3.2. Raises
    `DataError` or `ConfigError`.

    >>> truth = {"q1": [["a"], ["b"]], "q2": [["c"]], "q3": [["d"]]}
    >>> run = {"q1": ["a", "x", "b"], "q2": ["c"], "q3": ["x", "d"]}
    >>> [each.depth for each in depth(truth, run, [0.5, 1.0])]
    [2, 3]
    """
    shares: list[Any] = list(share) if isinstance(share, (list, tuple)) else [share]
    check_depth(shares, unit, confidence)
    request = Request.of(METRIC, by=by, lengths=lengths, **options)
    evaluation = evaluate_given(request, truth, run)
    return depths_of([evaluation], shares, unit=unit, confidence=confidence, lengths=request.lengths)


def depths_of(
    evaluations: Sequence[Evaluated], shares: Sequence[float], *, unit: str, confidence: float, lengths: Lengths
) -> Depths:
    """Compute depths for runs that are already labelled."""
    depths = [depth for evaluation in evaluations for depth in _of_run(evaluation, shares, unit, confidence, lengths)]
    sliced = bool(evaluations[0].slicer.by)
    return Depths(tuple(depths), confidence, evaluations[0].policy, sliced, tuple(evaluations))


def _of_run(
    evaluation: Evaluated, shares: Sequence[float], unit: str, confidence: float, lengths: Lengths
) -> Iterator[Depth]:
    """Yield a `Depth` for each share, first over all queries, then for each slice."""
    truth, populations = evaluation.truth, evaluation.populations
    needed = np.stack([_needed(each, unit, lengths) for each in evaluation.each])
    counting = np.stack([each.counting for each in evaluation.each])
    # All trials of a query have the weight of one query.
    weights = counting / np.maximum(counting.sum(axis=0), 1)
    all_queries = np.ones(len(truth), dtype=np.bool_)
    for column, value, mask in [("", "", all_queries), *evaluation.slicer]:
        counted, inside = populations.counting & mask, counting & mask
        order = np.argsort(needed[inside], kind="stable")
        ordered, below = needed[inside][order], np.cumsum(weights[inside][order])
        reached = float(weights[inside & (needed < NEVER)].sum() / counted.sum()) if len(ordered) else math.nan
        queries = int(counted.sum())
        for share in shares:
            quantile, interval = _quantile(ordered, below, queries, share, confidence)
            yield Depth(
                run=evaluation.name,
                share=share,
                unit=unit,
                depth=quantile,
                interval=interval,
                queries=queries,
                reached=reached,
                undefined=int((populations.undefined & mask).sum()),
                missing=int((populations.missing & mask).sum()),
                unanswerable=int((populations.unanswerable & mask).sum()),
                by=column,
                value=value,
            )


def _needed(evaluation: Evaluation, unit: str, lengths: Lengths) -> Ints:
    """Return the depth at which each query of a single run is complete, shape (Q,)."""
    ranks = spent = evaluation.labelled.hits.completion_ranks
    if unit != "results":
        spent = cumulative_lengths(evaluation.truth, evaluation.run, evaluation.policy, lengths, unit).spent(ranks)
    return np.where(ranks > 0, spent, NEVER)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.floating)) and not isinstance(value, bool)


def check_depth(shares: Sequence[float], unit: str, confidence: float) -> None:
    """Raise a `ConfigError` that lists all invalid options."""
    faults = Faults()
    for share in shares:
        if not _is_number(share) or not 0 < share <= 1:
            faults.add("share", f"expected a number above 0, at most 1, found {display(share)}")
    if unit == SCORE:
        faults.add("unit", "use groupgt.thresholds for score thresholds")
    elif unit not in ("results", *UNITS):
        faults.add("unit", f"expected {listed(('results', *UNITS))}, found {display(unit)}")
    if not _is_number(confidence) or not 0 < confidence < 1:
        faults.add("confidence", f"expected a number above 0 and below 1, found {display(confidence)}")
    faults.stop(ConfigError)


def _quantile(
    ordered: Ints, below: Floats, count: int, share: float, confidence: float
) -> tuple[int | None, tuple[int | None, int | None]]:
    """Return a quantile of the sorted depths and its interval; `below` is the number of queries up to each depth."""
    if not count:
        return None, (None, None)

    def at(queries: float) -> int | None:
        # 0.9 · 10 is 9, but the product of doubles may be slightly above.
        place = int(np.searchsorted(below, queries - 1e-9))
        value = int(ordered[place]) if queries > 0 and place < len(ordered) else NEVER
        return None if value == NEVER else value

    low, high = _ranks(count, share, confidence)
    return at(share * count), (at(low - 1 + 2e-9) if low else None, at(high))


def _ranks(count: int, share: float, confidence: float) -> tuple[int, int]:
    """Return l and u with P(B < l) and P(B ≥ u) each at most (1 − confidence) ÷ 2, where B ~ Binomial(n, share)."""
    if share == 1:
        return count, count + 1
    tail = (1 - confidence) / 2
    ways = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(count + 1)]
    inside, outside = math.log(share), math.log1p(-share)
    below = np.cumsum([math.exp(way + k * inside + (count - k) * outside) for k, way in enumerate(ways)])
    return int(np.searchsorted(below, tail, side="right")), int(np.searchsorted(below, 1 - tail)) + 1
