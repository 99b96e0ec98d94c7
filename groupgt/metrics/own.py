"""Custom metrics: functions over `Hits`, registered under a name with `groupgt.metric`."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar, get_type_hints

import numpy as np

from groupgt.errors import ConfigError, GroupgtError, MetricError, display, listed
from groupgt.metrics.base import Cut, Definition, Formula, Parameter
from groupgt.metrics.catalogue import ALIASES, definition_of
from groupgt.metrics.language import IN_TREC_EVAL, Metric, not_registered
from groupgt.model.hits import Floats, Hits, Judgments
from groupgt.model.validity import finite_number
from groupgt.options import choices, limits, words
from groupgt.plugins import register, registered
from groupgt.runtime import raised, users_code

# The names that tables use for other columns.
TAKEN = ("qid", "run", "system", "dataset", "metric", "cost_mean", "cost_p95")
Table = TypeVar("Table", Cut, Hits, Judgments)
NAME = re.compile(r"[a-z][a-z0-9_]*")


def metric(
    name: str,
    *,
    formula: str,
    summary: str = "",
    worked: Callable[..., str] | None = None,
    parameters: Sequence[Parameter] | None = None,
    higher_is_better: bool = True,
    bounded: bool = True,
    takes_cutoff: bool = True,
    source: str = "",
    replace: bool = False,
) -> Callable[[Callable[..., Any]], Metric]:
    """Register a function over `Hits` as a metric, which can then be used wherever a metric name is accepted.

    The function takes `Hits` and returns one number per query, shape (Q,), or NaN where it is undefined. It gets only
    the results within the cutoff, and `hits.length` counts them. `groupgt.metrics.views` provides the tables
    `covered_groups`, `relevant_results`, `novel_results`, `group_hits` and `judged_results`. `hits.judgments` is the
    ground truth. If the function also takes `cut`, it gets k (`cut.k`, one number per query) and the depth at which
    ideal rankings are cut (`cut.ideal`). Other parameters become parameters of the metric, as in `half_life(h=3)`. Each
    parameter needs a default, and its annotation defines the valid values. Numbers are passed as floats.

    >>> import numpy as np
    >>> import groupgt
    >>> from groupgt.metrics.views import covered_groups
    >>> @groupgt.metric("half_life", formula="(Σ over covered groups of 2^((1 − rank) ÷ h)) ÷ m")
    ... def half_life(hits, h: float = 5.0):
    ...     '''Gain of the covered groups, halved every h results.'''
    ...     rows = covered_groups(hits)
    ...     worth = np.bincount(rows.query, 2.0 ** ((1 - rows.rank) / h), minlength=hits.size)
    ...     return worth / np.maximum(hits.judgments.groups, 1)
    >>> groupgt.evaluate({"q": [["a"], ["b"]]}, {"q": ["a", "x", "b"]}, ["half_life(h=2)", "half_life@2"]).means
    {'half_life(h=2)': 0.75, 'half_life@2': 0.5}

    Raises `MetricError` if the name is taken or invalid. The same function may be registered again.

    Args:
        name: The name of the metric: lower case, not a built-in name or alias.
        formula: The formula as one line of text, for `explain` and `groupgt list metrics`.
        summary: A one-sentence description (default: the first line of the function's docstring).
        worked: A function that takes a `groupgt.metrics.worksheet.Sheet` and the parameters, and returns the arithmetic
            for one query as an expression, for `explain`. Without it, `explain` shows the formula and the value.
        parameters: The metric's parameters, if annotations cannot express them.
        higher_is_better: Whether higher values are better; used by gates, tables, leaders and comparisons.
        bounded: Whether all values are in [0, 1].
        takes_cutoff: Whether `@k` and budgets may follow the name.
        source: A reference for the metric, such as a paper.
        replace: Replace any metric already registered under this name, which is useful in notebooks.
    """
    _check_name(name)

    def decorated(function: Callable[..., Any]) -> Metric:
        checked = Custom(name, function, "cut" in inspect.signature(function).parameters)
        described = tuple(_parameters(name, function) if parameters is None else parameters)
        definition = Definition(
            name,
            summary or (inspect.getdoc(function) or formula).partition("\n")[0],
            {None: Formula(checked, formula, worked, source, described)},
            higher_is_better=higher_is_better,
            bounded=bounded,
            takes_cutoff=takes_cutoff,
        )
        before = registered("metric").get(name)
        is_stored = before is not None and isinstance(before.formulas[None].function, Stored)
        if replace or before is None or _facts(before) != _facts(definition):
            try:
                register("metric", name, definition, replacing=replace or is_stored)
            except ConfigError as error:
                raise MetricError(str(error)) from None
        return Metric(name)

    return decorated


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        what = "expected a name that begins with a letter and has only lower-case letters, digits and _"
        raise MetricError(f"metric {display(name)}: {what}")
    if name in ALIASES or IN_TREC_EVAL.fullmatch(name) or name.startswith("retrieval_"):
        raise MetricError(f"metric {name!r}: this is an alias of a built-in metric; choose another name")
    if name in TAKEN or name.startswith("latency"):
        raise MetricError(f"metric {name!r}: tables and gates use this name for something else; choose another name")


def _parameters(name: str, function: Callable[..., Any]) -> Iterator[Parameter]:
    """Yield the function's parameters except hits and cut, with defaults and with ranges from annotations."""
    hints = get_type_hints(function, include_extras=True)
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.name == "cut":
            continue
        default, hint = parameter.default, hints.get(parameter.name, float)
        where = f"metric {name!r}: the parameter {parameter.name}"
        if default is parameter.empty:  # also for *args and **kwargs
            raise MetricError(f"{where} needs a name and a default, such as {parameter.name}=0.5")
        if choices(hint):
            yield Parameter(parameter.name, default, words(hint), choices=tuple(map(str, choices(hint))))
            continue
        number = finite_number(default)
        if number is None:
            raise MetricError(f"{where}: expected a numeric default or a Literal[…] annotation, found {default!r}")
        made = Parameter(parameter.name, number, words(hint), _within(**limits(hint)))
        if not made.holds(number):
            raise MetricError(f"{where}: expected {made.expected} as its default, found {default!r}")
        yield made


def _within(
    *, ge: float = -np.inf, gt: float = -np.inf, le: float = np.inf, lt: float = np.inf
) -> Callable[[float], bool]:
    return lambda value: ge <= value <= le and gt < value < lt


@dataclass(frozen=True, eq=False)
class Custom:
    """A user-defined function as a metric, with read-only input and checked output."""

    name: str
    function: Callable[..., Any]
    takes_cut: bool

    def __call__(self, hits: Hits, cut: Cut, **parameters: float | str) -> Floats:
        """Return metric values, shape (Q,), or raise `MetricError` if the function fails or its values are invalid."""
        keywords: dict[str, Any] = {**parameters, "cut": _fixed(cut)} if self.takes_cut else parameters
        try:
            with users_code():
                returned = self.function(_looked_at(hits, cut), **keywords)
            values = np.array(returned, dtype=np.float64)
        except GroupgtError:
            raise
        except (Exception, SystemExit) as error:  # any exception of the function
            raise MetricError(f"metric {self.name!r}: {raised(error)}") from error
        if values.shape != (hits.size,):
            what = f"expected a number for each of {hits.size:,} queries, found an array of shape {values.shape}"
            raise MetricError(f"metric {self.name!r}: {what}")
        if np.isinf(values).any():
            qid = hits.judgments.qid(int(np.flatnonzero(np.isinf(values))[0]))
            what = f"query {qid!r}: expected a finite number, or NaN if undefined, found infinity"
            raise MetricError(f"metric {self.name!r}: {what}")
        return values


@dataclass(frozen=True)
class Stored:
    """The function of a metric that this process cannot compute, because its values were read from a result folder."""

    name: str

    def __call__(self, *_: Any, **__: Any) -> Floats:
        """Raise `MetricError`."""
        raise not_registered(self.name)


def facts_of(definition: Definition) -> dict[str, Any]:
    """Return the facts that a result folder records about a custom metric, so that values can be read without code."""
    formula = definition.formulas[None]
    parameters = [[each.name, each.default, list(each.choices)] for each in formula.parameters]
    facts = {key: getattr(definition, key) for key in ("summary", "higher_is_better", "bounded", "takes_cutoff")}
    return {**facts, "formula": formula.text, "parameters": parameters}


def restore(name: str, facts: Mapping[str, Any]) -> None:
    """Register a metric that a result folder describes, unless this process has one with the same name."""
    if definition_of(name) is None:
        rest = dict(facts)
        parameters = [
            Parameter(parameter, default, listed(choices) if choices else "a number", choices=tuple(choices))
            for parameter, default, choices in rest.pop("parameters")
        ]
        formula = Formula(Stored(name), rest.pop("formula"), parameters=tuple(parameters))
        register("metric", name, Definition(name, formulas={None: formula}, **rest))


def _looked_at(hits: Hits, cut: Cut) -> Hits:
    """Copy the hits within the cutoff, so that metrics cannot affect each other through their input."""

    def make() -> Hits:
        judgments = hits.judgments.once("own", lambda: _fixed(hits.judgments))
        within = hits.rank <= cut.top[hits.query]
        columns = hits.query[within], hits.rank[within], hits.alternative[within], hits.repeat[within]
        return _fixed(Hits(judgments, *columns, cut.top, hits.keep))

    is_uncut = cut.top is hits.length
    return hits.once(("own", cut.key), make) if is_uncut or cut.key is not None else make()


def _fixed(table: Table) -> Table:
    """Copy a dataclass with read-only views of its arrays."""
    columns = {each.name: getattr(table, each.name) for each in fields(table)}
    views: dict[str, Any] = {name: each.view() for name, each in columns.items() if isinstance(each, np.ndarray)}
    for view in views.values():
        view.flags.writeable = False
    return dataclasses.replace(table, **views)


def _facts(definition: Definition) -> tuple[Any, ...]:
    """Return the texts and the function or code of a metric, which must match if the metric is registered again."""
    formula = definition.formulas[None]
    parameters = [(each.name, each.default, each.expected, each.choices) for each in formula.parameters]
    rest = dataclasses.replace(definition, formulas={})
    return rest, formula.text, formula.source, parameters, _code_of(formula.function), _code_of(formula.explanation)


def _code_of(function: Any) -> Any:
    """Return a key for a function's behavior, made from its code, defaults and closure, or else the function itself."""
    function = function.function if isinstance(function, Custom) else function
    code = getattr(function, "__code__", None)
    if code is None:
        return function
    closed = [id(cell.cell_contents) for cell in function.__closure__ or ()]
    return function.__module__, code, function.__defaults__, function.__kwdefaults__, closed
