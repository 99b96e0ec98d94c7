"""What a metric is made of: its definition, its parameters, and the depth at which it looks."""

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
# What may be asked: a convention, or that of the shape of the ground truth.
ConventionChoice = Literal["auto", "autorag", "trec", "coverage"]
OF_SHAPE: Mapping[Shape, ConventionName] = {"flat": "trec", "subtopics": "coverage", "groups": "autorag"}


@dataclass(frozen=True, eq=False)
class Cut:
    """How deep a metric looks, one number per query: a cutoff is a length, whatever it was written as.

    `top` is the number of results looked at, shape (Q,); `k` what k is in formulas, shape (Q,); `ideal` the depth at
    which ideal rankings are cut, shape (Q,), or None if they are not, and `key` the cutoff that keeps them apart.
    Under a budget no ideal is cut, not even where a formula cuts it at the length of the list (`whole`): else one long
    result would score like a full answer.
    """

    top: Ints
    k: Ints
    ideal: Ints | None = None
    key: object = None
    whole: bool = False

    @classmethod
    def at(cls, hits: Hits, cutoff: int | Budget | None) -> Cut:
        """The cutoff @k; the whole ranking, where k is its length; or a budget, where k is the prefix that fits.

        Ideals are cut at k alone. Raises `MetricError` for a budget that labelling did not measure.
        """
        if cutoff is None:
            return cls(top=hits.length, k=hits.length)
        if isinstance(cutoff, Budget):
            if cutoff not in hits.prefixes:
                raise MetricError(f"@{cutoff} was not evaluated; evaluate a metric with this budget")
            prefix = hits.prefixes[cutoff]
            return cls(top=prefix, k=prefix, whole=True)
        every = np.full(hits.size, cutoff, dtype=np.int64)
        return cls(top=np.minimum(hits.length, cutoff), k=every, ideal=every, key=cutoff)


# (hits, cut, **parameters) → one value per query, shape (Q,); what is 0 ÷ 0 is 0.
Function = Callable[..., Floats]


@dataclass(frozen=True)
class Formula:
    """One reading of a metric: its function, the formula as text, and the hook that fills the formula in.

    `explanation(sheet, **parameters)` returns the arithmetic of one query as an expression, such as `2 / 4`; ours have
    one each. `takes_sets` says that it is defined where alternatives are sets needed together.
    """

    function: Function
    text: str
    explanation: Callable[..., str] | None = None
    source: str = ""
    takes_sets: bool = False


@dataclass(frozen=True)
class Parameter:
    """A parameter: its default, its range in words, and the test of that range. `choices` if it is a word."""

    name: str
    default: float | str
    expected: str
    holds: Callable[[float], bool] = field(default=lambda value: True)
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Definition:
    """Everything there is to know of one metric; `list_metrics`, `groupgt list metrics` and the README print from it.

    `formulas` has one entry per convention, or the single key None if conventions do not matter. A metric that
    `reads_texts` looks at `Hits.contents`. An `aggregate` is made of the mean of the column, which serves nothing else:
    the metric has no value per query.
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

    def parameters_of(self, convention: str | None) -> tuple[Parameter, ...]:
        """The parameters under one convention."""
        return tuple(self.parameters.get(convention, ()))


def one_meaning(name: str, summary: str, formula: Formula, *parameters: Parameter, **facts: Any) -> Definition:
    """A metric that is the same under every convention; `facts` are further fields of its definition."""
    return Definition(name, summary, {None: formula}, {None: parameters}, **facts)


def ratio(numerator: Floats | Ints, denominator: Floats | Ints) -> Floats:
    """numerator ÷ denominator, where 0 ÷ 0 is 0.

    >>> ratio(np.array([1.0, 0.0]), np.array([2, 0])).tolist()
    [0.5, 0.0]
    """
    # Faster than a division with `where`.
    nothing = denominator == 0
    out: Floats = numerator / (denominator + nothing)
    out[nothing] = 0.0
    return out
