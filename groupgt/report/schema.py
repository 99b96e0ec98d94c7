"""Describes results.json and comparisons once: functions return these types, and JSON Schema is derived from them.

`Of` stands for a dataclass as `plain` writes it: its keys and types are those of its fields. NaN means undefined and
becomes null; any float that is not `Defined` may be null. Integers are counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from functools import lru_cache, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, get_args, get_origin, get_type_hints

from annotated_types import Ge, Len
from typing_extensions import TypedDict

from groupgt.comparison.contrast import Contrast, Row
from groupgt.comparison.failures import Defined, Headroom
from groupgt.comparison.pairs import Pair
from groupgt.comparison.settings import Settings
from groupgt.comparison.slices import Slice
from groupgt.evaluation.by_call import Call
from groupgt.evaluation.estimates import Corrected
from groupgt.evaluation.outcomes import Outcomes
from groupgt.evaluation.stages import Stage
from groupgt.evaluation.trials import Noise
from groupgt.experiment.json_schema import heading, without_titles
from groupgt.render.columns import keys_of
from groupgt.schemas import schema_of

Count = Annotated[int, Ge(0)]
Rank = Annotated[int, Ge(1)]
Plain = dict[str, Any]


@dataclass(frozen=True)
class Of:
    """Annotates a mapping that `plain` has made of a dataclass."""

    kind: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return the schema of what `plain` writes; called by pydantic."""
        return handler.generate_schema(typed(self.kind))


@dataclass(frozen=True)
class FieldsOf:
    """Annotates a mapping that has every field of an options dataclass."""

    kind: type[Any]

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Return the JSON Schema of the fields; called by pydantic."""
        fields = schema_of(self.kind)
        return {**fields, "required": list(fields["properties"]), "additionalProperties": False}


def jsonable(value: Any) -> Any:
    """Convert a dataclass, or a list of dataclasses, to plain Python; NaN and intervals of NaN become None.

    >>> from groupgt.comparison.contrast import Row
    >>> jsonable(Row("bm25", "recall@5", 0.5, (math.nan, math.nan), 1, None))["interval"] is None
    True
    """
    if is_dataclass(value):
        return {key: jsonable(getattr(value, name)) for key, name in keys_of(type(value)).items()}
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, (list, tuple)):
        values = [jsonable(item) for item in value]
        return None if isinstance(value, tuple) and values and values[0] is None else values
    return value


@lru_cache
def typed(kind: Any) -> Any:
    """Return the type that `plain` produces for a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    types = {key: _of_hint(hints[name]) for key, name in keys_of(kind).items()}
    made: Any = TypedDict(kind.__name__, types)  # type: ignore[misc]  # mypy wants a class
    made.__doc__ = (kind.__doc__ or "").partition("\n")[0]
    return made


def _of_hint(hint: Any) -> Any:
    if hint is int:
        return Count
    if hint is Defined:
        return float
    if hint is float or get_origin(hint) is Annotated:
        return hint | None
    if get_origin(hint) is UnionType:
        return reduce(or_, map(_of_hint, get_args(hint)))
    if get_origin(hint) is Mapping:
        return dict[str, _of_hint(get_args(hint)[1])]  # type: ignore[misc]  # mypy wants a type
    if get_origin(hint) is tuple:
        first, last = get_args(hint)
        return _list_of(_of_hint(first)) if last is ... else Annotated[list[float], Len(2, 2)] | None
    return typed(hint) if isinstance(hint, type) and is_dataclass(hint) else hint


def _list_of(kind: Any) -> Any:
    made: Any = list
    return made[kind]


# --- What the files hold.


class Group(TypedDict):
    """A group that few systems cover, and the rank at which each covers it."""

    qid: str
    group: str
    alternatives: list[str]
    systems: Count
    ranks: dict[str, Rank | None]


class Failures(TypedDict):
    """Which queries are complete for which systems."""

    cutoff: str | None
    queries: Count
    solved: dict[str, Count]
    only: dict[str, list[str]]
    everybody: Count
    nobody: list[str]
    hardest: list[Group]


class Reversal(TypedDict):
    """A slice in which a system gains although it loses overall, or vice versa."""

    system: str
    metric: str
    by: str
    value: str


State = Literal[
    "no result", "gate failed", "gates failed", "system failed", "loss", "losses", "gain", "gains", "best", "passed",
    "same values", "nothing significant", "ties", "no baseline", "one system",
]  # fmt: skip
Badge = Literal["Blocked", "Worse", "Better", "Passed", "Inconclusive", ""]


class Decision(TypedDict):
    """What the results come to, in the words of the report, the terminal and the summary."""

    state: State
    badge: Badge
    sentence: str
    evidence: str
    note: str


class Comparison(TypedDict):
    """Systems compared with a baseline, query by query."""

    decision: NotRequired[Decision]
    baseline: str
    convention: str
    settings: Annotated[Plain, FieldsOf(Settings)]
    metrics: dict[str, str]
    comparisons: Count
    rows: list[Annotated[Plain, Of(Row)]]
    pairs: list[Annotated[Plain, Of(Pair)]]
    slices: list[Annotated[Plain, Of(Slice)]]
    reversals: list[Reversal]
    failures: Failures | None
    headroom: list[Annotated[Plain, Of(Headroom)]]
    warnings: list[str]
    population: list[str]


class Mean(TypedDict):
    """The mean of one metric over the queries that count."""

    metric: str
    mean: float | None
    queries: Count


class SliceMeans(TypedDict):
    """The means in one slice."""

    by: str
    value: str
    queries: Count
    means: dict[str, float | None]


class Evaluation(TypedDict):
    """One system on one data set: `Evaluation.to_dict`."""

    run: str
    convention: str
    labeller: str
    policy: dict[str, str | float | list[str] | None]
    counts: dict[str, Count]
    metrics: dict[str, Mean]
    corrected: NotRequired[dict[str, Annotated[Plain, Of(Corrected)]]]
    trials: NotRequired[dict[str, Annotated[Plain, Of(Noise)]]]
    slices: NotRequired[list[SliceMeans]]
    calls: NotRequired[list[Annotated[Plain, Of(Call)]]]


class Gate(TypedDict):
    """One gate on one system and data set."""

    gate: Rank
    system: str
    dataset: str
    metric: str
    passed: bool
    reason: str
    value: float | None
    skipped: bool
    timed: bool


class Former(TypedDict):
    """One system and its previous version by one metric, over the queries that count in both runs."""

    system: str
    metric: str
    before: float | None
    now: float | None
    measured_again: bool
    significant: bool
    against: Annotated[Plain, Of(Contrast)]


class Refused(TypedDict):
    """What cannot be compared with the previous run, and why."""

    system: str
    metric: str
    why: str


class Previous(TypedDict):
    """The systems of one data set and their previous versions in the run that --against names."""

    run: str
    rows: list[Former]
    refused: list[Refused]
    lost_queries: dict[str, list[str]]
    gained_queries: dict[str, list[str]]
    added: list[str]
    gone: list[str]
    changed_queries: list[str]
    reworded_queries: list[str]
    new_queries: Count
    gone_queries: Count


class OnDataset(TypedDict):
    """One system on one data set and on the baseline data set, over the queries that count on both."""

    system: str
    dataset: str
    metric: str
    mean: float | None
    baseline_mean: float | None
    significant: bool
    against: Annotated[Plain, Of(Contrast)]


class Shared(TypedDict):
    """How many queries a data set shares with the baseline, and how many only one of the two has."""

    qids: Count
    alone: Count
    absent: Count
    reworded: list[str]


class Across(TypedDict):
    """The same systems on several data sets, each against itself on the baseline."""

    baseline: str
    primary: str
    settings: Annotated[Plain, FieldsOf(Settings)]
    rows: list[OnDataset]
    queries: dict[str, Shared]


class Stages(TypedDict):
    """The stages of one system: the groups that each covers, loses and gains, and how many the last one keeps."""

    groups: Count
    kept: Count
    stages: list[Annotated[Plain, Of(Stage)]]


class Warning(TypedDict):  # noqa: A001
    """A warning that changes the meaning of the numbers."""

    kind: str
    text: str


class Dataset(TypedDict):
    """One data set: its systems, best first, and why others failed."""

    decision: NotRequired[Decision]
    best: NotRequired[str | None]
    systems: list[Evaluation]
    failed: NotRequired[dict[str, str]]
    warnings: NotRequired[list[Warning]]
    comparison: NotRequired[Comparison]
    stages: NotRequired[dict[str, Stages]]
    outcomes: NotRequired[dict[str, Annotated[Plain, Of(Outcomes)]]]
    previous: NotRequired[Previous]


class Results(TypedDict):
    """results.json: everything but times; keys that a file does not ask for are absent.

    Gates are all there, those about latency (`timed`) too; `idle_gates` are those that matched no system.
    """

    name: str
    datasets: dict[str, Dataset]
    best: NotRequired[str]
    previous: NotRequired[str | None]
    across: NotRequired[Across]
    gates: NotRequired[list[Gate]]
    idle_gates: NotRequired[list[int]]


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema of results.json; keys that an experiment does not request are absent."""
    return _written_schema(Results, "results")


def comparison_schema() -> dict[str, Any]:
    """Return the JSON Schema of a comparison."""
    return _written_schema(Comparison, "comparison")


def _written_schema(kind: Any, name: str) -> dict[str, Any]:
    from pydantic import TypeAdapter

    schema = TypeAdapter(kind).json_schema()
    definitions = schema.pop("$defs", {})
    without_titles(schema, definitions)
    for part in [schema, *definitions.values()]:
        part["additionalProperties"] = False
    return {**heading(name), **schema, "$defs": definitions}
