"""The data of the page: plain tables, filled by the caller, which `page.write` turns into one file.

Positions in `Dataset.systems` and `Dataset.metrics` identify systems and metrics; numbers from 0 identify groups within
a query. None means undefined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NotRequired, TypedDict

Interval = tuple[float, float] | None


class Sentence(TypedDict):
    """One sentence: `parts` alternate between plain text and names, beginning with text; `kind` selects its mark.

    Kinds: best, gain, loss, same, gate, failed, doubt, note.
    """

    kind: str
    parts: list[str]


class Metric(TypedDict):
    """One metric: `name` as requested, `label` for tables, `full` for the full form."""

    name: str
    label: str
    full: str
    higher: bool
    bounded: bool
    summary: str
    formula: str


class System(TypedDict):
    """One system, with a mean, its CI and the number of queries for each metric; `about` lists what it uses."""

    name: str
    about: str
    means: list[float | None]
    intervals: list[Interval]
    queries: list[int]


class Contrast(TypedDict):
    """One system vs. another by one metric; `p` is corrected, `raw` is not; None if not computed.

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
    """One slice: the queries whose column `by` has `value`, and the means of each system by each metric."""

    by: str
    value: str
    queries: int
    means: list[list[float | None]]


class Gate(TypedDict):
    """The result of one gate for a system."""

    number: int
    system: str
    passed: bool
    reason: str


class Drawing(TypedDict):
    """A figure: its Vega-Lite template, with rows if these do not depend on choices on the page.

    `still` is its picture as SVG, shown until the figure is drawn.
    """

    still: NotRequired[str]
    template: dict[str, Any]
    text: NotRequired[str]
    headers: NotRequired[list[str]]
    rows: NotRequired[list[list[Any]]]


class Questions(TypedDict):
    """The queries, one position each: ids, texts, numbers of groups, slices per column, and systems that complete them.

    `values[metric][system][question]`; `solved[question]` lists the systems that cover all groups. `slices[by]` has the
    value of each query. `listed` are the positions among all queries, if not all are listed.
    """

    qids: list[str]
    texts: list[str | None]
    groups: list[int]
    slices: dict[str, list[str]]
    solved: list[list[int]]
    counted: list[bool]
    values: list[list[list[float | None]]]


class Group(TypedDict):
    """One group: its alternatives with their grades, and why no result can cover it; empty if one can."""

    name: str
    weight: float
    alternatives: list[tuple[str, float]]
    cannot: str


# (rank, kind, groups): first (covers groups that no result above covers), again (covers only groups covered above),
# irrelevant (judged non-relevant).
Mark = tuple[int, str, list[int]]


class Ranking(TypedDict):
    """The results of one system for one query: their number, the first results, and the hits of marked results.

    `far` has the marked results beyond the first ones.
    """

    results: int
    ids: list[str]
    scores: list[float] | None
    marks: list[Mark]
    far: dict[int, str]


class Detail(TypedDict):
    """One query in full. `worked[system][metric]` is a worked example of the formula; None if omitted."""

    question: int
    groups: list[Group]
    rankings: list[Ranking | None]
    worked: list[list[str | None]] | None


class Dataset(TypedDict):
    """One data set: the verdict, every system and comparison, every query.

    `details` begin with the most informative queries and are iterated once. `passages` maps ids to texts.
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
    """All times: when and on which machine the page was made, how long systems took, and gates on latency."""

    made: str
    machine: str
    columns: list[str]
    systems: dict[str, dict[str, list[float | None]]]
    gates: dict[str, list[Gate]]
    drawings: dict[str, dict[str, Drawing]]
    verdict: dict[str, list[Sentence]]


class Page(TypedDict):
    """A complete page; `across` compares data sets if there are several."""

    title: str
    datasets: list[Dataset]
    facts: list[tuple[str, str]]
    across: list[Sentence]
    times: Times
