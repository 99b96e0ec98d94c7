"""JSON Schemas for results and comparisons, as printed by `groupgt schema`.

`shapes.typed` derives types from dataclasses; the other types describe data that is assembled when it is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NotRequired

from annotated_types import Ge
from pydantic import TypeAdapter

from groupgt.comparison.contrast import Contrast, Row
from groupgt.comparison.failures import Headroom
from groupgt.comparison.pairs import Pair
from groupgt.comparison.settings import Settings
from groupgt.comparison.slices import Slice
from groupgt.evaluation.estimates import Corrected
from groupgt.evaluation.stages import Stage
from groupgt.experiment.json_schema import DRAFT, without_titles
from groupgt.report.shapes import Count, of, shape, typed
from groupgt.schemas import schema_of

Rank = Annotated[int, Ge(1)]


@dataclass(frozen=True)
class FieldsOf:
    """Annotates a mapping that has every field of an options dataclass."""

    kind: type[Any]

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Returns the JSON Schema of the fields; called by pydantic."""
        fields = schema_of(self.kind)
        return {**fields, "required": list(fields["properties"]), "additionalProperties": False}


SETTINGS = Annotated[dict[str, Any], FieldsOf(Settings)]
GROUP = shape(
    "Group",
    "A group that few systems cover, and the rank at which each covers it.",
    qid=str,
    group=str,
    alternatives=list[str],
    systems=Count,
    ranks=dict[str, Rank | None],
)
FAILURES = shape(
    "Failures",
    "Which queries are complete for which systems.",
    cutoff=str | None,
    queries=Count,
    solved=dict[str, Count],
    only=dict[str, list[str]],
    everybody=Count,
    nobody=list[str],
    hardest=of(list, GROUP),
)
REVERSAL = shape(
    "Reversal",
    "A slice in which a system gains although it loses overall, or vice versa.",
    system=str,
    metric=str,
    by=str,
    value=str,
)
COMPARISON = shape(
    "Comparison",
    "Systems compared with a baseline, query by query.",
    baseline=str,
    convention=str,
    settings=SETTINGS,
    metrics=dict[str, str],
    comparisons=Count,
    rows=of(list, typed(Row)),
    pairs=of(list, typed(Pair)),
    slices=of(list, typed(Slice)),
    reversals=of(list, REVERSAL),
    failures=FAILURES | None,
    headroom=of(list, typed(Headroom)),
    warnings=list[str],
    population=list[str],
)
MEAN = shape(
    "Mean", "The mean of one metric over the queries that count.", metric=str, mean=float | None, queries=Count
)
SLICE_MEANS = shape(
    "SliceMeans", "The means in one slice.", by=str, value=str, queries=Count, means=dict[str, float | None]
)
EVALUATION = shape(
    "Evaluation",
    "One system on one data set: `Evaluation.to_dict`.",
    run=str,
    convention=str,
    labeller=str,
    policy=dict[str, str | float | list[str] | None],
    counts=dict[str, Count],
    metrics=of(dict, str, MEAN),
    corrected=of(NotRequired, of(dict, str, typed(Corrected))),
    slices=of(NotRequired, of(list, SLICE_MEANS)),
)
GATE = shape(
    "Gate",
    "One gate on one system and data set.",
    gate=Rank,
    system=str,
    dataset=str,
    metric=str,
    passed=bool,
    reason=str,
    value=float | None,
    skipped=bool,
    timed=bool,
)
FORMER = shape(
    "Former",
    "One system and its previous version by one metric, over the queries that count in both runs.",
    system=str,
    metric=str,
    before=float | None,
    now=float | None,
    measured_again=bool,
    significant=bool,
    against=typed(Contrast),
)
REFUSED = shape("Refused", "What cannot be compared with the previous run, and why.", system=str, metric=str, why=str)
PREVIOUS = shape(
    "Previous",
    "The systems of one data set and their previous versions in the run that --against names.",
    run=str,
    rows=of(list, FORMER),
    refused=of(list, REFUSED),
    lost_queries=dict[str, list[str]],
    gained_queries=dict[str, list[str]],
    added=list[str],
    gone=list[str],
    changed_queries=list[str],
    reworded_queries=list[str],
    new_queries=Count,
    gone_queries=Count,
)
ON_DATASET = shape(
    "OnDataset",
    "One system on one data set and on the baseline data set, over the queries that count on both.",
    system=str,
    dataset=str,
    metric=str,
    mean=float | None,
    baseline_mean=float | None,
    significant=bool,
    against=typed(Contrast),
)
SHARED = shape(
    "Shared",
    "How many queries a data set shares with the baseline, and how many only one of the two has.",
    qids=Count,
    alone=Count,
    absent=Count,
    reworded=list[str],
)
ACROSS = shape(
    "Across",
    "The same systems on several data sets, each against itself on the baseline.",
    baseline=str,
    primary=str,
    settings=SETTINGS,
    rows=of(list, ON_DATASET),
    queries=of(dict, str, SHARED),
)
STAGES = shape(
    "Stages",
    "The stages of one system: the groups that each covers, loses and gains, and how many the last one keeps.",
    groups=Count,
    kept=Count,
    stages=of(list, typed(Stage)),
)
WARNING = shape("Warning", "A warning that changes the meaning of the numbers.", kind=str, text=str)
DATASET = shape(
    "Dataset",
    "One data set: its systems, best first, and why others failed.",
    best=NotRequired[str | None],
    systems=of(list, EVALUATION),
    failed=NotRequired[dict[str, str]],
    warnings=of(NotRequired, of(list, WARNING)),
    comparison=of(NotRequired, COMPARISON),
    stages=of(NotRequired, of(dict, str, STAGES)),
    previous=of(NotRequired, PREVIOUS),
)
RESULTS = shape(
    "Results",
    "results.json: everything but times; keys that a file does not ask for are absent.\n\n"
    "Gates are all there, those about latency (`timed`) too; `idle_gates` are those that matched no system.",
    name=str,
    datasets=of(dict, str, DATASET),
    best=NotRequired[str],
    previous=NotRequired[str | None],
    across=of(NotRequired, ACROSS),
    gates=of(NotRequired, of(list, GATE)),
    idle_gates=NotRequired[list[int]],
)


def results_schema() -> dict[str, Any]:
    """Returns the JSON Schema of results.json; keys that an experiment does not request are absent."""
    return _written_schema(RESULTS, "groupgt results")


def comparison_schema() -> dict[str, Any]:
    """Returns the JSON Schema of a comparison."""
    return _written_schema(COMPARISON, "groupgt comparison")


def _written_schema(kind: Any, title: str) -> dict[str, Any]:
    schema = TypeAdapter(kind).json_schema()
    definitions = schema.pop("$defs", {})
    without_titles(schema, definitions)
    for part in [schema, *definitions.values()]:
        part["additionalProperties"] = False
    return {"$schema": DRAFT, "title": title, **schema, "$defs": definitions}
