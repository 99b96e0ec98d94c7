"""An experiment file as models: every section, its keys, their types and what they are for.

`experiment` validates files with `Config`; gates, the best and systems have their sections beside what is made of them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema, create_model
from pydantic_core import PydanticCustomError

from groupgt.comparison.settings import Settings
from groupgt.engines.choice import size_of
from groupgt.errors import ConfigError
from groupgt.experiment.best import Best
from groupgt.experiment.gates import Gate
from groupgt.experiment.schema import LISTED, Name, Positive, Scalar, Section, Short, Texts
from groupgt.experiment.systems import SystemConfig
from groupgt.metrics.language import split_names
from groupgt.options import options_of
from groupgt.render.page.page import MAX_SIZE

S = TypeVar("S", bound=Section)


class Dataset(Section):
    """One data set: questions with grouped ground truth, and the corpus that retrievers search."""

    ground_truth: str = Field(description="Queries with their grouped ground truth.")
    queries: str | None = Field(
        default=None,
        description="The texts of the queries, where the ground truth has none: TREC topics, TSV, JSONL or BEIR.",
    )
    corpus: str | None = Field(default=None, description="The passages that retrievers search.")
    format: str | None = Field(default=None, description="Format of the ground truth (default: auto-detect).")
    where: dict[str, Annotated[list[Scalar], LISTED]] = Field(
        default={}, description="Keep only rows whose column has one of these values."
    )
    fetch: str | None = Field(default=None, description="Where missing files come from: the error for them says it.")
    build: str | None = Field(default=None, description="A Python script that makes missing files; needs --allow-code.")


class EngineConfig(Section):
    """What labels stored results: auto (by what they are), streaming, or spark."""

    use: str = Field(description="The engine.")
    with_: dict[str, Any] = Field(default={}, alias="with", description="The options of the engine.")


class LabellerConfig(Section):
    """How results are matched to alternatives."""

    use: str = Field(description="The labeller.")
    with_: dict[str, Any] = Field(default={}, alias="with", description="The options of the labeller.")
    version: str = Field(
        default="",
        description="What version of your code judges: with it, verdicts are kept from run to run; without it, each "
        "run asks again.",
    )


def _split(texts: list[str]) -> list[str]:
    """Metrics one by one, though a line may name several: `metrics: recall, mrr`."""
    return [name for text in texts for name in split_names(text) or [text]]


class Evaluate(Section):
    """What is measured."""

    depth: Positive = Field(default=100, description="Number of results to retrieve per query.")
    k: Annotated[list[Positive], LISTED] = Field(default=[], description="Cutoffs for metrics written without one.")
    metrics: Annotated[list[str], LISTED, AfterValidator(_split), Field(min_length=1)] = Field(
        description="The metrics, such as [recall, ndcg@10]."
    )
    primary: str | None = Field(default=None, description="The metric that sorts tables and picks the best.")
    best: Annotated[Best, Short("strategy")] = Best()
    by: Texts = Field(default=[], description="Columns of the ground truth, or n_groups, to slice by.")
    labeller: Annotated[LabellerConfig, Short("use")] = LabellerConfig(use="id")
    policy: Annotated[dict[str, str | float | list[str]], Short("preset")] = Field(
        default={}, description="What is done with doubtful data: a preset, or fields with their choices."
    )
    tokenizer: str | None = Field(
        default=None,
        description="Tokenizer for budgets: whitespace, tiktoken:ENCODING, tokenizers:FILE_OR_NAME, "
        "or python:module:function.",
    )
    timed: Annotated[int, Field(ge=0, le=10**6)] | None = Field(
        default=None,
        description="Number of queries asked a second time, one by one, for latencies; 0 for none (default: 30 of "
        "cheap retrievers in this process, none of others).",
    )


def _with_settings(section: type[S]) -> type[S]:
    """The section with a key for each setting of a comparison, but for the seed, which is the file's."""
    keys: dict[str, Any] = {
        option.name: (Annotated[option.hint, Field(description=option.description)], option.default)
        for option in options_of(Settings).values()
        if option.name != "seed"
    }
    return create_model(section.__name__, __base__=section, __doc__=section.__doc__, **keys)


@_with_settings
class Compare(Section):
    """What systems are compared with, and how surely."""

    baseline: str = Field(description="The system that the others are compared with.")
    metrics: Texts = Field(default=[], description="The metrics to compare (default: all).")

    def settings(self, seed: int) -> Settings:
        """How systems are compared."""
        return Settings(**self.model_dump(exclude={"baseline", "metrics"}), seed=seed)


class Output(Section):
    """Where results go, and as what."""

    folder: str = Field(default="results", description="The folder that result folders are written into.")
    formats: Annotated[
        list[Literal["report", "table", "markdown", "csv", "json", "latex", "parquet", "runs"]], LISTED
    ] = Field(default=["report", "table", "json", "csv"], description="What is written into a result folder.")


def _bytes(value: Any) -> int:
    try:
        return size_of(value)
    except ConfigError:
        raise PydanticCustomError("size", "a size such as 25MB, or a number of bytes") from None


class Report(Section):
    """What report.html holds."""

    max_size: Annotated[
        int, PlainValidator(_bytes), WithJsonSchema({"type": ["integer", "string"], "default": MAX_SIZE})
    ] = Field(
        default=MAX_SIZE,
        description="How large the file may be, such as 5MB. What does not fit is left out and counted on the page: "
        "first the texts of results that hit nothing, then the ends of long texts, then the queries that say least.",
    )


class Config(Section):
    """An experiment file."""

    version: int = Field(description="The version of the file's format: 1.")
    groupgt: str | None = Field(default=None, description='The minimum version of groupgt, such as ">=0.1".')
    name: Annotated[Name, Field(description="The name of the experiment, and of its folder of results.")]
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        default=0, description="The random seed; the same seed gives identical results."
    )
    convention: str = Field(default="autorag", description="How metrics read groups.")
    datasets: Annotated[dict[Name, Dataset], Field(min_length=1)] = Field(description="The data sets by name.")
    systems: Annotated[dict[Name, Annotated[SystemConfig, Short("use")]], Field(min_length=1)] = Field(
        description="The systems by name."
    )
    evaluate: Evaluate
    engine: Annotated[EngineConfig, Short("use")] = EngineConfig(use="auto")
    compare: Compare | None = None
    gate: list[Gate] = Field(default=[], description="What must hold for the build to pass.")
    output: Output = Output()
    report: Report = Report()
    cache: str | None = Field(default=".groupgt/cache", description="Folder of the cache; null for no cache.")
