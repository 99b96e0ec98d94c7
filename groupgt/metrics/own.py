"""A metric of one's own: a function over `Hits`, made known under a name by `groupgt.metric`."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

import numpy as np

from groupgt.errors import ConfigError, GroupgtError, MetricError, display
from groupgt.metrics.base import Cut, Definition, Formula, Parameter
from groupgt.metrics.catalogue import ALIASES
from groupgt.metrics.language import IN_TREC_EVAL, Metric
from groupgt.model.hits import Floats, Hits, Judgments
from groupgt.model.validity import finite_number
from groupgt.options import choices, limits, words
from groupgt.plugins import register, registered
from groupgt.runtime import raised, users_code

# What tables call their own columns.
TAKEN = ("qid", "run", "system", "dataset", "metric")
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
    """Registers a function over `Hits` as a metric, which then works wherever a metric's name is written.

    The function is given `Hits` and returns a number for each query, shape (Q,); NaN if there is none. It sees the
    results within the cutoff alone: `hits.length` is how many were looked at. `groupgt.metrics.views` has the tables
    that metrics are made of: `met_groups`, `relevant_results`, `novel_results`, `group_hits`, `judged_results`;
    `hits.judgments` has what was wanted. A function that takes `cut` as well is told k (`cut.k`, a number a query) and
    where ideals are cut (`cut.ideal`). Further parameters are the metric's, as in `half_life(h=3)`: each has a default,
    its annotation says what it may be, and numbers come as floats.

    >>> import numpy as np
    >>> import groupgt
    >>> from groupgt.metrics.views import met_groups
    >>> @groupgt.metric("half_life", formula="Σ over groups met of 2^((1 − rank) ÷ h) ÷ m")
    ... def half_life(hits, h: float = 5.0):
    ...     '''How early each group is covered: its gain halves every h results.'''
    ...     rows = met_groups(hits)
    ...     worth = np.bincount(rows.query, 2.0 ** ((1 - rows.rank) / h), minlength=hits.size)
    ...     return worth / np.maximum(hits.judgments.groups, 1)
    >>> groupgt.evaluate({"q": [["a"], ["b"]]}, {"q": ["a", "x", "b"]}, ["half_life(h=2)", "half_life@2"]).means
    {'half_life(h=2)': 0.75, 'half_life@2': 0.5}

    Raises `MetricError` for a name that is taken or is none. The same function may be registered again.

    Args:
        name: What the metric is called: lower case, none of ours, no alias.
        formula: What it computes, as a line of text: `explain` and `groupgt list metrics` show it.
        summary: One sentence (default: the first line of the function's docstring).
        worked: A function of a `Sheet` of `groupgt.metrics.worksheet` and the parameters that returns the arithmetic
            of one query as an expression, for `explain`. Without it the formula and the value are shown.
        parameters: The parameters, where annotations do not say enough.
        higher_is_better: Its direction: gates, tables, the best and comparisons follow it.
        bounded: Whether values lie in [0, 1].
        takes_cutoff: Whether `@k` and budgets may follow its name.
        source: Where it is from.
        replace: Takes the place of another that was registered under the name, as in a notebook.
    """
    _check_name(name)

    def known_as_metric(function: Callable[..., Any]) -> Metric:
        checked = Own(name, function, "cut" in inspect.signature(function).parameters)
        described = tuple(_parameters(name, function) if parameters is None else parameters)
        definition = Definition(
            name,
            summary or (inspect.getdoc(function) or formula).partition("\n")[0],
            {None: Formula(checked, formula, worked, source)},
            {None: described},
            higher_is_better=higher_is_better,
            bounded=bounded,
            takes_cutoff=takes_cutoff,
        )
        if replace or not _is_same(registered("metric").get(name), definition):
            try:
                register("metric", name, definition, replacing=replace)
            except ConfigError as error:
                raise MetricError(str(error)) from None
        return Metric(name)

    return known_as_metric


def _check_name(name: str) -> None:
    """Raises `MetricError` for what cannot be the name of a metric."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        what = "expected a name of lower-case letters, digits and _, which begins with a letter"
        raise MetricError(f"metric {display(name)}: {what}")
    if name in ALIASES or IN_TREC_EVAL.fullmatch(name) or name.startswith("retrieval_"):
        raise MetricError(f"metric {name!r}: this is an alias of a built-in metric; choose another name")
    if name in TAKEN or name.startswith("latency"):
        raise MetricError(f"metric {name!r}: tables and gates use this name for something else; choose another")


def _parameters(name: str, function: Callable[..., Any]) -> Iterator[Parameter]:
    """What a function takes besides hits and cut, with the default and, by its annotation, the range of each."""
    hints = get_type_hints(function, include_extras=True)
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.name == "cut":
            continue
        default, hint = parameter.default, hints.get(parameter.name, float)
        where = f"metric {name!r}: the parameter {parameter.name}"
        if default is parameter.empty:  # so it is of *args and **kwargs as well
            raise MetricError(f"{where} needs a name and a default, such as {parameter.name}=0.5")
        if choices(hint):
            yield Parameter(parameter.name, default, words(hint), choices=tuple(map(str, choices(hint))))
            continue
        number = finite_number(default)
        if number is None:
            raise MetricError(f"{where}: expected a number as its default, or choices (Literal[…]), found {default!r}")
        made = Parameter(parameter.name, number, words(hint), _Within(**limits(hint)))
        if not made.holds(number):
            raise MetricError(f"{where}: expected {made.expected} as its default, found {default!r}")
        yield made


@dataclass(frozen=True)
class _Within:
    """Whether a number lies within bounds."""

    ge: float = -np.inf
    gt: float = -np.inf
    le: float = np.inf
    lt: float = np.inf

    def __call__(self, value: float) -> bool:
        return self.ge <= value <= self.le and self.gt < value < self.lt


@dataclass(frozen=True, eq=False)
class Own:
    """A function of the user's, as metrics are called: what it sees cannot be changed, what it returns is checked."""

    name: str
    function: Callable[..., Any]
    takes_cut: bool

    def __call__(self, hits: Hits, cut: Cut, **parameters: float | str) -> Floats:
        """Its values, shape (Q,); raises `MetricError` for what it raises, and for what are no values."""
        keywords: dict[str, Any] = {**parameters, "cut": _fixed_cut(cut)} if self.takes_cut else parameters
        try:
            with users_code():
                returned = self.function(_looked_at(hits, cut), **keywords)
            values = np.array(returned, dtype=np.float64)
        except GroupgtError:
            raise
        except (Exception, SystemExit) as error:  # whatever the function raises
            raise MetricError(f"metric {self.name!r}: {raised(error)}") from error
        if values.shape != (hits.size,):
            what = f"expected a number for each of {hits.size:,} queries, found an array of shape {values.shape}"
            raise MetricError(f"metric {self.name!r}: {what}")
        if np.isinf(values).any():
            qid = hits.judgments.qid(int(np.flatnonzero(np.isinf(values))[0]))
            what = f"query {qid!r}: expected a finite number, or NaN where there is none, found infinity"
            raise MetricError(f"metric {self.name!r}: {what}")
        return values


def _looked_at(hits: Hits, cut: Cut) -> Hits:
    """Hits within the cutoff, as a copy: what one metric made of its input is nothing to the others."""

    def make() -> Hits:
        within = hits.rank <= cut.top[hits.query]
        return Hits(
            judgments=_fixed_judgments(hits.judgments),
            query=_fixed(hits.query[within]),
            rank=_fixed(hits.rank[within]),
            alternative=_fixed(hits.alternative[within]),
            repeat=_fixed(hits.repeat[within]),
            length=_fixed(cut.top),
            keep=hits.keep,
        )

    is_whole = cut.top is hits.length
    return hits.once(("own", cut.key), make) if is_whole or cut.key is not None else make()


def _fixed_judgments(judgments: Judgments) -> Judgments:
    def make() -> Judgments:
        columns = {each.name: getattr(judgments, each.name) for each in dataclasses.fields(judgments)}
        arrays = {name: _fixed(column) for name, column in columns.items() if isinstance(column, np.ndarray)}
        return dataclasses.replace(judgments, **arrays)

    return judgments.once("own", make)


def _fixed_cut(cut: Cut) -> Cut:
    return Cut(_fixed(cut.top), _fixed(cut.k), None if cut.ideal is None else _fixed(cut.ideal), cut.key, cut.whole)


def _fixed(column: Any) -> Any:
    """The same array, which cannot be written to."""
    fixed = column.view()
    fixed.flags.writeable = False
    return fixed


def _is_same(before: Definition | None, now: Definition) -> bool:
    """Whether a metric is registered once more as it was: the same words, and the same function or one of its code."""
    return before is not None and _facts(before) == _facts(now)


def _facts(definition: Definition) -> tuple[Any, ...]:
    formula = definition.formulas[None]
    parameters = [(each.name, each.default, each.expected, each.choices) for each in definition.parameters_of(None)]
    fields = dataclasses.replace(definition, formulas={}, parameters={})
    return fields, formula.text, formula.source, parameters, _code_of(formula.function), _code_of(formula.explanation)


def _code_of(function: Any) -> Any:
    """What a function does, as far as it can be told: its code, its defaults and what it closes over; else itself."""
    function = function.function if isinstance(function, Own) else function
    code = getattr(function, "__code__", None)
    if code is None:
        return function
    closed = [id(cell.cell_contents) for cell in function.__closure__ or ()]
    return function.__module__, code, function.__defaults__, function.__kwdefaults__, closed
