"""Data model of the report page: plain tables that callers fill in and `page.write` turns into a single file.

Systems and metrics are identified by their index in `Dataset.systems` and `Dataset.metrics`; groups by their index
within a query, from 0. None means undefined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NotRequired, TypedDict

Interval = tuple[float, float] | None


class Sentence(TypedDict):
    """A sentence whose `parts` alternate between plain text and names, starting with text; `kind` selects its icon.

    Kinds: best, gain, loss, same, gate, failed, doubt, note.
    """

    kind: str
    parts: list[str]


class Metric(TypedDict):
    """A metric with its `name` as requested, its `label` for tables, and its `full` form."""

    name: str
    label: str
    full: str
    higher: bool
    bounded: bool
    summary: str
    formula: str


class System(TypedDict):
    """A system with a mean, CI and number of queries for each metric; `about` lists its components and options."""

    name: str
    about: str
    means: list[float | None]
    intervals: list[Interval]
    queries: list[int]


class Contrast(TypedDict):
    """A comparison of two systems by one metric; `p` is corrected and `raw` is not (None if not computed).

    `confidence` is the level of the CI.
    """

    first: int
    second: int
    metric: int
    delta: float | None
    interval: Interval
    pairs: int
    wins: int
    ties: int
    losses: int
    raw: float | None
    p: float | None
    effect: float | None
    confidence: float | None
    significant: bool
    # The slice it is for, as a position in `Dataset.slices`; absent for all queries.
    within: NotRequired[int]


class Slice(TypedDict):
    """A slice of the queries whose column `by` has `value`, with the means of each system by metric."""

    by: str
    value: str
    queries: int
    means: list[list[float | None]]


class Gate(TypedDict):
    """The result of one gate for one system."""

    number: int
    system: str
    passed: bool
    reason: str


class Drawing(TypedDict):
    """A figure as a Vega-Lite template; rows are included unless they depend on user choices on the page.

    `still` is an SVG picture of it, shown until the figure is drawn.
    """

    still: NotRequired[str]
    template: dict[str, Any]
    text: NotRequired[str]
    headers: NotRequired[list[str]]
    rows: NotRequired[list[list[Any]]]


class Questions(TypedDict):
    """Parallel lists with one entry per query: id, text, number of groups, slices, and systems that complete it.

    `values[metric][system][question]` are metric values; `solved[question]` lists the systems that cover all groups.
    `slices[by]` has the value of each query.
    """

    qids: list[str]
    texts: list[str | None]
    groups: list[int]
    slices: dict[str, list[str]]
    solved: list[list[int]]
    counted: list[bool]
    values: list[list[list[float | None]]]


class Group(TypedDict):
    """A group with its graded alternatives; `cannot` explains why no result can cover it (empty if one can)."""

    name: str
    weight: float
    alternatives: list[tuple[str, float]]
    cannot: str


# (rank, kind, groups): first (covers groups that no result above covers), again (covers only groups covered above),
# irrelevant (judged non-relevant).
Mark = tuple[int, str, list[int]]


class Ranking(TypedDict):
    """The results of one system for one query: their number, the top results, and marks for hits.

    `far` contains marked results below the top results.
    """

    results: int
    ids: list[str]
    scores: list[float] | None
    marks: list[Mark]
    far: dict[int, str]


class Detail(TypedDict):
    """Full details of one query; `worked[system][metric]` shows how a value was computed (None if omitted)."""

    question: int
    groups: list[Group]
    rankings: list[Ranking | None]
    worked: list[list[str | None]] | None


class Dataset(TypedDict):
    """A data set with its verdict, all systems and comparisons, and all queries.

    `details` starts with the most informative queries and is iterated only once. `passages` maps ids to texts.
    """

    name: str
    verdict: list[Sentence]
    primary: int
    baseline: int | None
    metrics: list[Metric]
    systems: list[System]
    failed: list[tuple[str, str]]
    gates: list[Gate]
    contrasts: list[Contrast]
    slices: list[Slice]
    tests: list[str]
    headroom: list[list[Any]]
    cutoff: str
    unsolved: int | None
    facts: list[tuple[str, str]]
    drawings: dict[str, Drawing]
    questions: Questions
    details: Iterable[Detail]
    passages: Mapping[str, str]
    left_out: list[str]


class Times(TypedDict):
    """All timings: when and where the page was generated, how long systems took, and latency gates."""

    made: str
    machine: str
    columns: list[str]
    systems: dict[str, dict[str, list[float | None]]]
    gates: dict[str, list[Gate]]
    drawings: dict[str, dict[str, Drawing]]
    verdict: dict[str, list[Sentence]]


class Page(TypedDict):
    """The complete page; `across` compares data sets if there are several."""

    title: str
    datasets: list[Dataset]
    facts: list[tuple[str, str]]
    across: list[Sentence]
    times: Times
