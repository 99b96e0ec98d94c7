"""The parts of a metric: its definition, its parameters and its cutoff."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from groupgt.errors import MetricError
from groupgt.model.ground_truth import Shape
from groupgt.model.hits import Floats, Hits, Ints
from groupgt.model.values import Budget

ConventionName = Literal["autorag", "trec", "coverage"]
CONVENTIONS: tuple[ConventionName, ...] = get_args(ConventionName)
AUTO: Literal["auto"] = "auto"
# The choices: a convention, or the default of the shape of the ground truth.
ConventionChoice = Literal["auto", "autorag", "trec", "coverage"]
OF_SHAPE: Mapping[Shape, ConventionName] = {"flat": "trec", "subtopics": "coverage", "groups": "autorag"}


@dataclass(frozen=True, eq=False)
class Cut:
    """The cutoff of a metric, as one length per query, however it was written.

    `top` is the number of results considered, shape (Q,); `k` the value of k in formulas, shape (Q,); `ideal` the depth
    at which ideal rankings are cut, shape (Q,), or None if they are not cut; `key` the cutoff under which they are
    cached. Under a budget no ideal is cut, not even if a formula cuts it at the length of the list (`no_cut`);
    otherwise one long result would score like a full answer.
    """

    top: Ints
    k: Ints
    ideal: Ints | None = None
    key: object = None
    no_cut: bool = False

    @classmethod
    def at(cls, hits: Hits, cutoff: int | Budget | None) -> Cut:
        """The cutoff @k, the whole ranking (k is its length), or a budget (k is the prefix that fits).

        Ideals are only cut at @k. Raises `MetricError` for a budget that labelling did not measure.
        """
        if cutoff is None:
            return cls(top=hits.length, k=hits.length)
        if isinstance(cutoff, Budget):
            if cutoff not in hits.prefixes:
                raise MetricError(f"@{cutoff} was not evaluated; evaluate a metric with this budget")
            prefix = hits.prefixes[cutoff]
            return cls(top=prefix, k=prefix, no_cut=True)
        every = np.full(hits.size, cutoff, dtype=np.int64)
        return cls(top=np.minimum(hits.length, cutoff), k=every, ideal=every, key=cutoff)


# (hits, cut, **parameters) → one value per query, shape (Q,); 0 ÷ 0 is 0.
Function = Callable[..., Floats]


@dataclass(frozen=True)
class Formula:
    """One version of a metric: its function, the formula as text, and the function for its worked example.

    `explanation(sheet, **parameters)` returns the arithmetic of one query as an expression, such as `2 / 4`; all
    built-in metrics have one. `takes_sets` means that the metric is defined for sets of alternatives needed together.
    """

    function: Function
    text: str
    explanation: Callable[..., str] | None = None
    source: str = ""
    takes_sets: bool = False


@dataclass(frozen=True)
class Parameter:
    """A parameter: its default, its range in words, the test of that range, and `choices` if it is a word."""

    name: str
    default: float | str
    expected: str
    holds: Callable[[float], bool] = field(default=lambda value: True)
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Definition:
    """The full definition of one metric, the source of `list_metrics`, `groupgt list metrics` and the README.

    `formulas` has one entry per convention, or the single key None if conventions do not matter. A metric that
    `reads_texts` uses `Hits.contents`. An `aggregate` is computed from the mean of the column and has no value per
    query. `of_unanswerable` metrics are defined only for queries declared unanswerable.
    """

    name: str
    summary: str
    formulas: Mapping[str | None, Formula]
    parameters: Mapping[str | None, tuple[Parameter, ...]] = field(default_factory=dict)
    higher_is_better: bool = True
    bounded: bool = True
    takes_cutoff: bool = True
    reads_texts: bool = False
    aggregate: Callable[[float], float] | None = None
    warning: str = ""
    of_unanswerable: bool = False

    def parameters_of(self, convention: str | None) -> tuple[Parameter, ...]:
        """The parameters under one convention."""
        return tuple(self.parameters.get(convention, ()))


def one_meaning(name: str, summary: str, formula: Formula, *parameters: Parameter, **facts: Any) -> Definition:
    """Defines a metric that is the same under every convention; `facts` are further fields of its definition."""
    return Definition(name, summary, {None: formula}, {None: parameters}, **facts)


def ratio(numerator: Floats | Ints, denominator: Floats | Ints) -> Floats:
    """numerator ÷ denominator, where 0 ÷ 0 is 0.

    >>> ratio(np.array([1.0, 0.0]), np.array([2, 0])).tolist()
    [0.5, 0.0]
    """
    # This is faster than a division with `where`.
    nothing = denominator == 0
    out: Floats = numerator / (denominator + nothing)
    out[nothing] = 0.0
    return out
