"""What the page is made of: plain tables, which whoever evaluates fills and `page.write` turns into one file.

Systems and metrics are referred to by their place in `Dataset.systems` and `Dataset.metrics`, groups by their number
within the question, from 0. None stands for what cannot be said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NotRequired, TypedDict

Interval = tuple[float, float] | None


class Sentence(TypedDict):
    """One sentence: `parts` are plain text and names by turns, beginning with text; `kind` chooses its mark.

    Kinds: best, gain, loss, same, gate, failed, doubt, note.
    """

    kind: str
    parts: list[str]


class Metric(TypedDict):
    """One metric: `name` as it was asked, `label` for tables, `full` as it is written in full."""

    name: str
    label: str
    full: str
    higher: bool
    bounded: bool
    summary: str
    formula: str


class System(TypedDict):
    """One system, with a mean, its interval and the questions behind it for each metric; `about` says what it uses."""

    name: str
    about: str
    means: list[float | None]
    intervals: list[Interval]
    queries: list[int]


class Contrast(TypedDict):
    """One system against another by one metric; `p` is corrected, `raw` is not, None where it was not computed.

    `confidence` is the level of the interval.
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
    # The slice it holds in, as a place in `Dataset.slices`; everywhere, where there is none.
    within: NotRequired[int]


class Slice(TypedDict):
    """One slice: the questions whose column `by` has `value`, and the means of each system by each metric."""

    by: str
    value: str
    queries: int
    means: list[list[float | None]]


class Gate(TypedDict):
    """One gate that was held against a system."""

    number: int
    system: str
    passed: bool
    reason: str


class Drawing(TypedDict):
    """A figure: its Vega-Lite template, with rows in it where these do not depend on what is chosen on the page.

    `still` is its picture as SVG, which is shown until the figure is drawn.
    """

    still: NotRequired[str]
    template: dict[str, Any]
    text: NotRequired[str]
    headers: NotRequired[list[str]]
    rows: NotRequired[list[list[Any]]]


class Questions(TypedDict):
    """The questions, a place each: ids, texts, numbers of groups, the slices of each column, and who solves them.

    `values[metric][system][question]`; `solved[question]` lists the systems that meet all groups. `slices[by]` holds
    the value of each question. `listed` are the places among all questions, where not all are listed.
    """

    qids: list[str]
    texts: list[str | None]
    groups: list[int]
    slices: dict[str, list[str]]
    solved: list[list[int]]
    counted: list[bool]
    values: list[list[list[float | None]]]


class Group(TypedDict):
    """One group: its alternatives with their grades, and why no result can meet it; empty where one can."""

    name: str
    weight: float
    alternatives: list[tuple[str, float]]
    cannot: str


# (rank, kind, groups): first (meets groups that no result above meets), again (meets only groups met above),
# irrelevant (judged, and not relevant).
Mark = tuple[int, str, list[int]]


class Ranking(TypedDict):
    """The results of one system for one question: how many, the first of them, and what those with a mark hit.

    `far` names marked results that lie beyond the first ones.
    """

    results: int
    ids: list[str]
    scores: list[float] | None
    marks: list[Mark]
    far: dict[int, str]


class Detail(TypedDict):
    """One question in full. `worked[system][metric]` is the formula with its figures; None where it was left out."""

    question: int
    groups: list[Group]
    rankings: list[Ranking | None]
    worked: list[list[str | None]] | None


class Dataset(TypedDict):
    """One data set: the verdict, every system and comparison, every question.

    `details` are those of the questions that say most first; they are asked for once. `passages` holds texts by id.
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
    """All that is time: when the page was made, on what, how long systems took, and gates on that."""

    made: str
    machine: str
    columns: list[str]
    systems: dict[str, dict[str, list[float | None]]]
    gates: dict[str, list[Gate]]
    drawings: dict[str, dict[str, Drawing]]
    verdict: dict[str, list[Sentence]]


class Page(TypedDict):
    """A whole page; `across` sets data sets side by side where there are several."""

    title: str
    datasets: list[Dataset]
    facts: list[tuple[str, str]]
    across: list[Sentence]
    times: Times
