"""Define the data model of the report page. The types that check the scripts are derived from these classes.

Systems and metrics are identified by their index in `Dataset.systems` and `Dataset.metrics`. Groups are identified
by their index within a query, from 0. None means undefined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NotRequired, TypedDict


class Sentence(TypedDict):
    """A sentence whose `parts` alternate between plain text and names, starting with text. `kind` selects an icon."""

    kind: str  # best, gain, loss, same, gate, failed, doubt or note
    parts: list[str]


class Contrasts(TypedDict):
    """All differences between two systems. `names` and `heads` are the contrast fields that every row contains as text.

    A row is a system, the other system, a metric, a slice (-1 for all queries), the difference, its CI, the numbers of
    queries that are better, the same and worse, the texts, the decision of the test, whether the slice contradicts the
    overall difference, and a sentence (None in slices). Every pair has two rows, one in each order.
    """

    names: list[str]
    heads: list[str]
    rows: list[list[Any]]


class Drawing(TypedDict):
    """A figure as a Vega-Lite template. Rows are included unless they depend on the user's choices on the page."""

    template: dict[str, Any]
    text: NotRequired[str]
    headers: NotRequired[list[str]]
    rows: NotRequired[list[list[str]]]


class Values(TypedDict):
    """The values of one metric. Each of the metric's distinct `numbers` has a text, a level and a step.

    Of two levels, the larger is better. Values with the same level count as equal. Steps are color steps in heat maps,
    from 0 to 5 (None if the metric is unbounded). `cells[system][question]` is the index of a value among the numbers
    (-1: undefined). `spreads` are the ranges of each query's values, with their text, or empty for a single system.
    """

    numbers: list[float]
    texts: list[str]
    levels: list[int]
    steps: list[int | None]
    cells: list[list[int]]
    spreads: list[float | None]
    spread_texts: list[str]


class Queries(TypedDict):
    """Parallel lists with one entry per query: id, text, number of groups, slices, and whether systems complete it.

    `complete[question][system]` is the share of trials that cover all groups, or 0 if the query does not count.
    `slices[by]` contains the value for each query. `out` gives, by position, the reason why a query does not count.
    `by_labels` is True if values use a model's labels, while means are corrected.
    """

    qids: list[str]
    texts: list[str | None]
    groups: list[int]
    slices: dict[str, list[str]]
    complete: list[list[float]]
    out: dict[str, str]
    by_labels: bool


class Questions(Queries):
    """All queries with the values of each metric."""

    values: list[Values]


class Detail(NamedTuple):
    """Full details of one query, as rows of JSON that refer to ids by their index in `names`.

    A group is its name, weight, graded alternatives and, if no result can cover it, the reason. A ranking contains the
    number of results, the top results with their scores, the marks of hits (rank, kind, groups), the marked results
    below the top by rank and, with several trials, the number of trials that cover each group. The ranking is None if
    the system has no results. `important` contains the ids of alternatives, and the ids of results that are hits or
    were judged. `worked[system][metric]` shows how a value was computed (None if omitted).
    """

    question: int
    groups: list[list[Any]]
    names: list[str]
    important: set[str]
    rankings: list[list[Any] | None]
    worked: list[list[str | None]] | None


class Metric(TypedDict):
    """A metric. `order` puts the best values first, and `best` lists all systems with the best mean."""

    name: str
    label: str
    full: str
    order: str
    best: list[int]
    bounded: bool
    summary: str
    formula: str


class System(TypedDict):
    """A system with its options, and for each metric its mean and CI (as numbers and text), step and query count."""

    name: str
    about: str
    means: list[float | None]
    texts: list[str]
    steps: list[int | None]
    intervals: list[tuple[float, float] | None]
    spans: list[str]
    queries: list[int]


class SliceMeans(TypedDict):
    """A slice with the means of each system by metric, and their texts."""

    by: str
    value: str
    queries: int
    means: list[list[float | None]]
    texts: list[list[str]]


class Gate(TypedDict):
    """A gate with its result (passed, FAILED or skipped), the reason, and its row in the list of gates.

    `order` sorts the list by `kind`, failures first. `shares` are the percentages of a bar that the value and the limit
    take. If `over`, the part beyond the limit is drawn separately. `shown` contains the URL parameters that list
    the `queries` that fail the gate, worst first.
    """

    number: int
    system: str
    result: str
    reason: str
    order: int
    kind: str
    status: str
    measure: str
    rest: str
    note: str
    value: str
    shares: list[float] | None
    shown: dict[str, str] | None
    queries: list[str]
    over: bool


class Former(TypedDict):
    """A system and its version in the previous run, as text. Only the first of many queries are listed."""

    name: str
    rows: list[list[str]]
    verdict: list[Sentence]
    lost: list[str]
    more_lost: int
    gained: list[str]
    more_gained: int


class Previous(TypedDict):
    """The previous run. `heads` are the column headings for `systems`."""

    run: str
    heads: list[str]
    systems: list[Former]
    notes: list[str]


class OutcomeCell(TypedDict):
    """The queries in a cell: their number and outcome, where to look, the first queries, and the number of others."""

    count: str
    label: str
    look: str
    qids: list[str]
    more: int


class OutcomesOfSystem(TypedDict):
    """The answers of a system together with its results.

    The `cells` are, in order: complete and correct, complete and wrong, incomplete and correct, incomplete and wrong. A
    bar has a label, value, low and high in percent, and the value as text.
    """

    system: str
    heads: list[str]
    sides: list[str]
    cells: list[OutcomeCell]
    bars: list[tuple[str, float, float, float, str]]
    sentence: str
    interval: str
    shares: tuple[list[str], list[list[str]]]
    notes: list[str]
    drawing: Drawing


class Outcomes(TypedDict):
    """The answers of all systems. Queries in `first` and `more` are incomplete and wrong in every system."""

    sentences: list[Sentence]
    note: str
    why: str
    first: list[tuple[str, str, str]]
    more: list[str]
    systems: list[OutcomesOfSystem]


class Decided(TypedDict):
    """The decision, with the word on its badge, a sentence with names at odd positions, the evidence, and a note."""

    badge: str
    system: str
    sentence: list[str]
    evidence: list[str]
    note: str


class StandingRow(TypedDict):
    """A system in the table of systems: its `base` name and options, and how it compares with the baseline (`kind`).

    `cells`, `marks` and `sort` contain a text, a sign and a value for each column. `bar` is a position on the axis,
    followed by the ends of the interval if there is one. `limit` is the position of a gate's limit, and whether the
    gate failed. `label` describes the bar in words, and `details` contains terms with their texts.
    """

    name: str
    base: str
    options: str
    kind: str
    cells: dict[str, str]
    marks: dict[str, str]
    sort: dict[str, float | str | None]
    bar: list[float] | None
    limit: tuple[float, bool] | None
    label: str
    details: list[tuple[str, str]]
    lost: list[str]
    gained: list[str]


class Standings(TypedDict):
    """The table of systems: its title with the name of the baseline, columns by key, and a description of intervals.

    A tick is a position on the axis of bars (0 to 100), a label, and True for the tick at no change.
    """

    title: str
    baseline: str
    columns: list[tuple[str, str]]
    interval: str
    ticks: list[tuple[float, str, bool]]
    rows: list[StandingRow]
    legend: list[tuple[str, str]]
    note: str


class FirstQuery(TypedDict):
    """A query to look at first, its result, and the missing groups with their ranks."""

    qid: str
    text: str
    lost: bool
    became: str
    missing: list[tuple[str, str]]


class First(TypedDict):
    """Queries to look at first, the reason, and a link to all queries."""

    why: str
    queries: list[FirstQuery]
    all: str


class Shown(TypedDict):
    """A data set with its decision, all systems and comparisons. `subject` is the system that views show first."""

    name: str
    decision: Decided
    population: str
    notes: list[Sentence]
    standings: Standings
    first: First
    gates_title: str
    primary: int
    baseline: int | None
    subject: int | None
    metrics: list[Metric]
    systems: list[System]
    failed: list[tuple[str, str]]
    gates: list[Gate]
    contrasts: Contrasts
    slices: list[SliceMeans]
    tests: list[str]
    headroom: list[list[str]]
    previous: Previous | None
    outcomes: Outcomes | None
    trials_note: str
    cutoff: str
    facts: list[tuple[str, str]]
    drawings: dict[str, Drawing]
    left_out: list[str]


class Dataset(Shown):
    """A data set with all its queries. `details` starts with the most informative queries and is iterated once."""

    questions: Questions
    details: Iterable[Detail]
    passages: Mapping[str, str]


class DatasetOnPage(Shown):
    """A data set as shown in all views: the number of its queries, and the queries in each block of details."""

    count: int
    chunks: list[list[int]]


class TimesOfSystem(TypedDict):
    """The times of a system by column, as numbers and as text."""

    values: list[float | None]
    texts: list[str]


class Times(TypedDict):
    """All timings: when and where the page was generated, how long systems took, and latency gates."""

    made: str
    machine: str
    columns: list[str]
    systems: dict[str, dict[str, TimesOfSystem]]
    gates: dict[str, list[Gate]]
    drawings: dict[str, dict[str, Drawing]]
    verdict: dict[str, list[Sentence]]


class Frame(TypedDict):
    """Everything around data sets. `across` compares the data sets, and `overall` is the decision over all of them."""

    title: str
    facts: list[tuple[str, str]]
    across: list[Sentence]
    overall: tuple[str, list[str], list[str]] | None
    gates_title: str


class Page(Frame):
    """The complete page."""

    datasets: list[Dataset]
    times: Times


class Ranks(TypedDict):
    """Classes of ranks: their names, and the last rank of each class except the last two."""

    names: list[str]
    ends: list[int]


class Overview(Frame):
    """The data of all views, apart from queries and details. `left_out` lists everything that did not fit."""

    left_out: list[str]
    config: dict[str, Any]
    themes: dict[str, dict[str, str]]
    ranks: Ranks
    datasets: list[DatasetOnPage]
