"""The building blocks of a metric: its definition, formula, parameters and cutoff."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from groupgt.errors import MetricError
from groupgt.model.hits import Floats, Hits, Ints
from groupgt.model.populations import Queries
from groupgt.model.values import Budget
from groupgt.model.written import Shape
from groupgt.records import record

ConventionName = Literal["autorag", "trec", "coverage"]
CONVENTIONS: tuple[ConventionName, ...] = get_args(ConventionName)
AUTO: Literal["auto"] = "auto"
# The choices: a convention, or the default of the shape of the ground truth.
ConventionChoice = Literal["auto", "autorag", "trec", "coverage"]
OF_SHAPE: Mapping[Shape, ConventionName] = {"flat": "trec", "subtopics": "coverage", "groups": "autorag"}


@record
class Cut:
    """A metric's cutoff as an array with one length per query, whichever notation was used.

    `top` is the number of results considered, shape (Q,), and `k` is the value of k in formulas, shape (Q,). `ideal` is
    the depth at which ideal rankings are cut, shape (Q,), or None if they are not cut. With a budget, ideal rankings
    are never cut, even if a formula cuts them at the length of the list (`no_cut`). If a budget cut ideal rankings, one
    long result would score like a full answer.
    """

    top: Ints
    k: Ints
    ideal: Ints | None = None
    key: object = None
    no_cut: bool = False

    @classmethod
    def at(cls, hits: Hits, cutoff: int | Budget | None) -> Cut:
        """Return the cut for @k, the full ranking (k is its length) or a budget (k is the number of results that fit).

        Ideal rankings are cut only for @k. Raises `MetricError` if labelling did not measure the budget.
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
class Parameter:
    """A metric parameter, with its default, its valid range as text and as a test, and `choices` if it takes a word.

    If a parameter `reads_all`, every value except the default uses the ground truth of all queries.
    """

    name: str
    default: float | str
    expected: str
    holds: Callable[[float], bool] = field(default=lambda value: True)
    choices: tuple[str, ...] = ()
    reads_all: bool = False


@dataclass(frozen=True)
class Formula:
    """One variant of a metric, with its function, its formula as text, and a function for worked examples.

    `explanation(sheet, **parameters)` returns the arithmetic for one query as an expression, such as `2 / 4`. All
    built-in metrics have a worked example. `takes_sets` is True if the metric supports sets of alternatives that are
    needed together. `takes_level` is True if the metric's value depends on the lowest relevant grade.
    """

    function: Function
    text: str
    explanation: Callable[..., str] | None = None
    source: str = ""
    parameters: tuple[Parameter, ...] = ()
    takes_sets: bool = False
    takes_level: bool = True

    @property
    def by_name(self) -> dict[str, Parameter]:
        """The parameters by name."""
        return {parameter.name: parameter for parameter in self.parameters}


@dataclass(frozen=True)
class Definition:
    """The complete definition of a metric, used by `list_metrics`, `groupgt list metrics` and the README.

    `formulas` has one entry per convention, or the single key None if the convention does not matter. A metric that
    `reads_texts` uses `Hits.contents`. An `aggregate` metric is computed from the mean over all queries and has no
    per-query values. `queries` says for which queries the metric is defined. A metric that `takes_passes` is 0 or 1 and
    can be counted over a system's trials.
    """

    name: str
    summary: str
    formulas: Mapping[str | None, Formula]
    higher_is_better: bool = True
    bounded: bool = True
    takes_cutoff: bool = True
    reads_texts: bool = False
    aggregate: Callable[[float], float] | None = None
    warning: str = ""
    queries: Queries = "answerable"
    takes_passes: bool = False


def one_meaning(
    name: str,
    summary: str,
    function: Function,
    text: str,
    explanation: Callable[..., str] | None,
    source: str = "",
    *parameters: Parameter,
    takes_sets: bool = False,
    takes_level: bool = True,
    **facts: Any,
) -> Definition:
    """Define a metric that is the same under every convention. `facts` sets other fields of the definition."""
    formula = Formula(function, text, explanation, source, parameters, takes_sets, takes_level)
    return Definition(name, summary, {None: formula}, **facts)


def ratio(numerator: Floats | Ints, denominator: Floats | Ints) -> Floats:
    """Return numerator ÷ denominator, with 0 ÷ 0 defined as 0."""
    # This is faster than a division with `where`.
    nothing = denominator == 0
    out: Floats = numerator / (denominator + nothing)
    out[nothing] = 0.0
    return out
