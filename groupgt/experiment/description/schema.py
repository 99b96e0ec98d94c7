"""The schema of experiment files: what each key may hold. Short forms are widened, so that no key has two types."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    WithJsonSchema,
    create_model,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

__all__ = ["Compare", "Config", "Dataset", "Gate", "SystemConfig", "Use", "known_keys", "model_of"]


class Short:
    """A short form, widened before validation: a value where a list or `{key: value}` is meant.

    Editors learn of it from the JSON Schema; validation has no unions, so that every fault has one place.
    """

    def __init__(self, key: str = "") -> None:
        self.key = key

    def widened(self, value: Any) -> Any:
        """The long form."""
        if not self.key:
            return value if isinstance(value, list) or value is None else [value]
        return {self.key: value} if isinstance(value, str) else value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.widened, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        long = handler(schema)
        brief = {"type": "string"} if self.key else dict(handler.resolve_ref_schema(long).get("items", {}))
        return {"anyOf": [long, brief]}


LISTED = Short()


class _Strict(BaseModel):
    # Built when it is first used: the parts of a model are built with the whole.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True, allow_inf_nan=False)


def _scalar(value: Any) -> Any:
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise PydanticCustomError("scalar", "text, a number, true or false")


# What a column may hold; one type, so that a fault has one place.
Scalar = Annotated[Any, PlainValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Texts = Annotated[list[str], LISTED]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.+-]*$", max_length=100)]
Positive = Annotated[int, Field(ge=1, le=10**15)]


class Dataset(_Strict):
    """One data set: questions with grouped ground truth, and the corpus that retrievers search."""

    ground_truth: str = Field(description="Questions with their grouped ground truth.")
    corpus: str | None = Field(default=None, description="The passages that retrievers search.")
    format: str | None = Field(default=None, description="The format of the ground truth, where it is not recognized.")
    where: dict[str, Annotated[list[Scalar], LISTED]] = Field(
        default={}, description="Keep only rows whose column has one of these values."
    )
    build: str | None = Field(
        default=None, description="A Python script that makes files that are missing; run with --allow-code."
    )


class SystemConfig(_Strict):
    """One system, or with `matrix` one for each combination: what it uses, with which options, on which data sets."""

    use: str = Field(description="The retriever.")
    with_: dict[str, Any] = Field(default={}, alias="with", description="The options of the retriever.")
    matrix: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(
        default={}, description="Options with a list of values each: one system for each combination."
    )
    inputs: Texts = Field(default=[], description="The systems that a fusion combines, by name or pattern.")
    only: Texts = Field(default=[], description="The data sets it is run on; all where none is named.")
    on_error: Literal["fail", "skip"] = Field(
        default="fail", description="fail: the run stops; skip: the system is reported as failed, never scored as 0."
    )


class Use(_Strict):
    """A part chosen by name, with options."""

    use: str
    with_: dict[str, Any] = Field(default={}, alias="with")


class EngineConfig(_Strict):
    """What labels stored results: auto (by what they are), streaming, or spark."""

    use: str
    with_: dict[str, Any] = Field(default={}, alias="with", description="The options of the engine.")


class Best(_Strict):
    """How the best system is chosen: by the primary metric, or over several metrics; under a latency ceiling."""

    strategy: Literal["primary", "mean", "rank", "normalized_mean"] = "primary"
    metrics: Texts = Field(default=[], description="The metrics a strategy looks at; all where none is named.")
    max_latency_ms: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="Systems whose median latency of one question is above this are passed over."
    )


class Evaluate(_Strict):
    """What is measured."""

    depth: Positive = Field(default=100, description="Results asked of each retriever.")
    k: Annotated[list[Positive], LISTED] = Field(default=[], description="Cutoffs of metrics that have none.")
    metrics: Annotated[list[str], LISTED, Field(min_length=1)]
    primary: str | None = Field(default=None, description="The metric that sorts tables and picks the best.")
    best: Annotated[Best, Short("strategy")] = Best()
    by: Texts = Field(default=[], description="Columns of the ground truth, or n_groups, to slice by.")
    labeller: Annotated[Use, Short("use")] = Use(use="id")
    policy: Annotated[dict[str, str], Short("preset")] = {}
    tokenizer: str | None = Field(
        default=None,
        description="What counts tokens, for budgets: whitespace, tiktoken:ENCODING, tokenizers:FILE_OR_NAME, "
        "or python:module:function.",
    )
    timed: Annotated[int, Field(ge=0, le=10**6)] = Field(
        default=30, description="Questions asked one by one once more, to time them; 0 for none."
    )


class Compare(_Strict):
    """What systems are compared with, and how surely."""

    baseline: str
    metrics: Texts = Field(default=[], description="The metrics to compare by; all where none is named.")
    test: Literal["randomization", "t", "wilcoxon", "bootstrap"] = "randomization"
    correction: Literal["holm", "bonferroni", "none"] = Field(
        default="holm", description="Of p-values, over all comparisons of a data set."
    )
    alpha: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.05, description="A p-value of at most this is significant."
    )
    intervals: Annotated[float, Field(gt=0, le=0.9999)] = Field(
        default=0.95, description="The level of bootstrap intervals of means and deltas."
    )
    resamples: Annotated[int, Field(ge=1, le=10**6)] = Field(
        default=10_000, description="How many are drawn for intervals and tests, from the file's seed."
    )
    pairs: bool = Field(default=False, description="Compare every two systems as well, with Tukey's HSD.")


class Gate(_Strict):
    """What must hold for the build to pass: one of min, max and max_drop."""

    system: str = Field(description="A system, or a pattern.")
    metric: str = Field(description="A metric that is evaluated, or a latency.")
    dataset: str = Field(default="*", description="A data set, or a pattern.")
    slice: dict[str, Scalar] = Field(default={}, description="Columns and the value of each.")
    min: float | None = None
    max: float | None = None
    max_drop: Annotated[float, Field(ge=0)] | None = Field(default=None, description="Against the baseline.")
    unless: Literal["not_significant"] | None = Field(
        default=None, description="not_significant: a drop that compare.test does not show at alpha passes."
    )


class Output(_Strict):
    """Where results go, and as what."""

    folder: str = "results"
    formats: Annotated[
        list[Literal["table", "markdown", "csv", "json", "latex", "html", "parquet", "runs"]], LISTED
    ] = [
        "table",
        "json",
        "csv",
    ]


class Config(_Strict):
    """An experiment file."""

    version: int = Field(description="The version of the file's format: 1.")
    groupgt: str | None = Field(default=None, description='The least version of groupgt, such as ">=0.1".')
    name: Name
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    convention: str = "autorag"
    datasets: Annotated[dict[Name, Dataset], Field(min_length=1)]
    systems: Annotated[dict[Name, Annotated[SystemConfig, Short("use")]], Field(min_length=1)]
    evaluate: Evaluate
    engine: Annotated[EngineConfig, Short("use")] = EngineConfig(use="auto")
    compare: Compare | None = None
    gate: list[Gate] = []
    output: Output = Output()
    cache: str | None = Field(default=".groupgt/cache", description="Where runs are kept; null for nowhere.")


def known_keys(path: tuple[str | int, ...]) -> list[str]:
    """The keys of the model at a path."""
    model: Any = Config
    for part in path:
        field = next((f for n, f in model.model_fields.items() if (f.alias or n) == part), None) if model else None
        if field is not None:
            models = [each for each in _models_in(field.annotation) if each is not None]
            model = models[0] if models else model
        # The name of a dataset or a system leaves the model of its values.
    return [field.alias or name for name, field in model.model_fields.items()]


def _models_in(annotation: Any) -> Iterator[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models_in(argument)


_MODELS: dict[type[Any], type[BaseModel]] = {}


def model_of(kind: type[Any]) -> type[BaseModel]:
    """A strict model with the fields of a dataclass."""
    if kind not in _MODELS:
        hints = get_type_hints(kind)
        wanted: dict[str, Any] = {}
        for each in fields(kind):
            default = ... if each.default is MISSING else each.default
            default = each.default_factory() if each.default_factory is not MISSING else default
            wanted[each.name] = (hints[each.name], default)
        _MODELS[kind] = create_model(kind.__name__, __base__=_Strict, **wanted)
    return _MODELS[kind]
