"""What `groupgt compare --format json` prints: the types that `Comparison.to_dict` builds.

`groupgt schema comparison` makes its JSON Schema of them; null stands for what cannot be said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge, Le, Len
from typing_extensions import TypedDict

from groupgt.comparison.settings import Settings
from groupgt.options import schema_of

Count = Annotated[int, Ge(0)]
Share = Annotated[float, Ge(0), Le(1)]
Interval = Annotated[list[float], Len(2, 2)]


@dataclass(frozen=True)
class FieldsOf:
    """An annotation: a mapping that holds every field of a dataclass."""

    kind: type[Any]

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Called by pydantic."""
        fields = schema_of(self.kind)
        return {**fields, "required": list(fields["properties"]), "additionalProperties": False}


class ContrastDict(TypedDict):
    """One system against another: system − other, over the queries that count for both."""

    delta: float | None
    delta_interval: Interval | None
    pairs: Count
    unpaired: Count
    wins: Count
    ties: Count
    losses: Count
    spread: float | None
    effect_size: float | None
    raw_p_value: Share | None
    p_value: Share | None
    differ: Count


class RowDict(TypedDict):
    """One system by one metric; null stands for the baseline's contrast with itself."""

    system: str
    metric: str
    mean: float | None
    interval: Interval | None
    queries: Count
    significant: bool
    against_baseline: ContrastDict | None


class PairDict(TypedDict):
    """Two systems by one metric, with the p-value of Tukey's HSD."""

    first: str
    second: str
    metric: str
    tukey: Share | None
    against: ContrastDict


class SliceDict(TypedDict):
    """The rows of one slice."""

    by: str
    value: str
    queries: Count
    rows: list[RowDict]


class ReversalDict(TypedDict):
    """A slice in which a system gains where it loses over all, or the other way round."""

    system: str
    metric: str
    by: str
    value: str


class GroupDict(TypedDict):
    """One group that few systems meet, and the rank at which each meets it."""

    qid: str
    group: str
    alternatives: list[str]
    systems: Count
    ranks: dict[str, Annotated[int, Ge(1)] | None]


class FailuresDict(TypedDict):
    """Who solves what within the cutoff."""

    cutoff: str | None
    queries: Count
    solved: dict[str, Count]
    only: dict[str, list[str]]
    everybody: Count
    nobody: list[str]
    hardest: list[GroupDict]


class HeadroomDict(TypedDict):
    """What a perfect choice among systems, or all of their results together, would reach."""

    metric: str
    best: str
    mean: float
    per_query: float
    queries: Count
    union_recall: float | None
    union_complete: float | None
    union_size: float | None
    single_recall: float | None


class ComparisonDict(TypedDict):
    """Systems side by side, held against a baseline query by query."""

    baseline: str
    convention: str
    settings: Annotated[dict[str, Any], FieldsOf(Settings)]
    metrics: dict[str, str]
    comparisons: Count
    rows: list[RowDict]
    pairs: list[PairDict]
    slices: list[SliceDict]
    reversals: list[ReversalDict]
    failures: FailuresDict | None
    headroom: list[HeadroomDict]
    warnings: list[str]
    population: list[str]
