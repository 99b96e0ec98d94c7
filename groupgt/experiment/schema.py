"""The schema of experiment files: what each key may hold, for us and for editors, and its faults in our words."""

from __future__ import annotations

import inspect
import json
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

from groupgt.engines.choice import ENGINES
from groupgt.errors import near_names
from groupgt.experiment.yaml import Document, Path_
from groupgt.labellers.registry import LABELLERS, kind_named
from groupgt.metrics.base import CONVENTIONS
from groupgt.model.policy import CHOICES, PRESETS
from groupgt.model.validity import shown as shown_value
from groupgt.retrievers.registry import RETRIEVERS


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


def schema_text() -> str:
    """The schema: what `groupgt schema` prints."""
    return json.dumps(_schema(), ensure_ascii=False, indent=2) + "\n"


def _schema() -> dict[str, Any]:
    whole = Config.model_json_schema(by_alias=True)
    definitions = whole["$defs"]
    system = definitions["SystemConfig"]
    # Plugins may add names: the known ones are examples, and what `with` holds depends on `use`.
    system["properties"]["use"]["anyOf"] = [{"enum": list(RETRIEVERS)}, {"type": "string"}]
    system["allOf"] = []
    for name, kind in RETRIEVERS.items():
        options = model_of(kind.options).model_json_schema(by_alias=True)
        options["description"] = inspect.getdoc(kind.options) or ""
        # What is swept stands under `matrix`, so that nothing is required here.
        options.pop("required", None)
        definitions[f"with {name}"] = options
        system["allOf"].append(
            {
                "if": {"properties": {"use": {"const": name}}, "required": ["use"]},
                "then": {"properties": {"with": {"$ref": f"#/$defs/with {name}"}, "matrix": _swept(name, options)}},
            }
        )
    labeller = definitions["Use"]
    labeller["properties"]["use"]["enum"] = list(LABELLERS)
    labeller["allOf"] = []
    for name in LABELLERS:
        made = kind_named(name)
        options = model_of(made.options).model_json_schema(by_alias=True)
        options["description"] = inspect.getdoc(made.options) or ""
        definitions[f"labeller with {name}"] = options
        then = {"properties": {"with": {"$ref": f"#/$defs/labeller with {name}"}}}
        labeller["allOf"].append({"if": {"properties": {"use": {"const": name}}, "required": ["use"]}, "then": then})
    engine = definitions["EngineConfig"]
    engine["properties"]["use"]["enum"] = list(ENGINES)
    fields = {name: {"enum": list(choices)} for name, choices in CHOICES.items()}
    presets = {"enum": list(PRESETS)}
    definitions["Evaluate"]["properties"]["policy"] = {
        "anyOf": [presets, {"properties": {"preset": presets, **fields}, "additionalProperties": False}]
    }
    whole["properties"]["convention"]["enum"] = list(CONVENTIONS)
    whole["properties"]["version"]["const"] = 1
    for model in [whole, *definitions.values()]:
        model.pop("title", None)
        for each in model.get("properties", {}).values():
            each.pop("title", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "groupgt experiment", **whole}


def _swept(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """What `matrix` may hold for a retriever: of each option a list of values."""
    properties = {
        key: {"type": "array", "minItems": 1, "items": {"$ref": f"#/$defs/with {name}/properties/{key}"}}
        for key in options.get("properties", {})
    }
    return {"properties": properties, "additionalProperties": False}


def explain(fault: Any, document: Document, places: dict[str, Path_] | None = None) -> None:
    """Adds one fault of pydantic; `places` are the paths of a system's options, which may stand in its matrix."""
    path: Path_ = tuple(part for part in fault["loc"] if part != "[key]")
    is_key = "[key]" in fault["loc"]
    for length in range(len(path), 0, -1) if places else ():
        known = (places or {}).get(str(path[length - 1]))
        if known is not None and path[: length - 1] == (*known[:2], "with"):
            path = (*known, *path[length:])
            break
    kind, found, context = fault["type"], fault["input"], fault.get("ctx", {})
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        keys = known_keys(path[:-1])
        what = f"unknown key; known are {', '.join(keys)}{near_names(str(path[-1]), keys)}"
        if _is_option(path, document):
            what = "an option stands under `with`, or with a list of values under `matrix`"
        document.fault(path, what, key=True)
        return
    if kind == "missing":
        document.fault(path, "this key is needed and missing")
        return
    expected = {
        "string_type": "text",
        "int_type": "a whole number",
        "float_type": "a number",
        "bool_type": "true or false",
        "list_type": "a list",
        "dict_type": "a mapping",
        "model_type": "a mapping",
        "model_attributes_type": "a mapping",
        "string_pattern_mismatch": "a name of letters, digits, blanks, '.', '_', '+' and '-'",
        "greater_than_equal": f"a number of at least {_number(context.get('ge'))}",
        "less_than_equal": f"a number of at most {_number(context.get('le'))}",
        "greater_than": f"a number above {_number(context.get('gt'))}",
        "less_than": f"a number below {_number(context.get('lt'))}",
        "too_short": "at least one",
        "string_too_long": f"at most {context.get('max_length')} characters",
        "finite_number": "a finite number",
        "literal_error": str(context.get("expected", "")).replace("'", ""),
    }.get(kind, fault["msg"])
    shown = _shown(found)
    near = ""
    if kind == "literal_error" and isinstance(found, str):
        near = near_names(found, expected.replace(" or ", ", ").split(", "))
    document.fault(path, f"expected {expected}, found {shown}{near}", key=is_key)


def _is_option(path: Path_, document: Document) -> bool:
    """Whether a key of a system is one of its retriever's."""
    if len(path) != 3 or path[0] != "systems":
        return False
    use = document.value["systems"][path[1]].get("use")
    return use in RETRIEVERS and path[2] in {each.name for each in fields(RETRIEVERS[use].options)}


def _shown(found: Any) -> str:
    """A value as YAML would have it, roughly."""
    if found is None or found in ({}, []):
        return "nothing"
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, (dict, list)):
        return "a mapping" if isinstance(found, dict) else "a list"
    return shown_value(found)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value or 0:g}"
