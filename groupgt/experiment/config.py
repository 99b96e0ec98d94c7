"""Defines the sections and keys of an experiment file, with the type and meaning of each key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, make_dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Gt, Le, Lt, MinLen

from groupgt.comparison.settings import Settings
from groupgt.engines.choice import is_size, size_of
from groupgt.engines.order import Direction
from groupgt.evaluation.options import CutoffOptions, EvaluateOptions, InFile
from groupgt.experiment.yaml import LISTED, Texts
from groupgt.metrics.base import ConventionChoice
from groupgt.metrics.language import split_names
from groupgt.options import Doc, Option, Rule, Scalar, Short, note_in, options_of
from groupgt.render.page.page import MAX_SIZE
from groupgt.retrievers.base import RetrieverPlugin

S = TypeVar("S")
NAME = r"^[A-Za-z0-9][A-Za-z0-9 _.+-]*$"
MOST_CHARS = 100
Name = Annotated[
    str,
    Rule(
        f"a name made up of letters, digits, spaces, '.', '_', '+' and '-', at most {MOST_CHARS} characters",
        lambda value: len(value) <= MOST_CHARS and re.fullmatch(NAME[1:-1], value) is not None,
        {"maxLength": MOST_CHARS, "pattern": NAME, "type": "string"},
    ),
]
Positive = Annotated[int, Ge(1), Le(10**15)]
# Number of queries that cheap retrievers run a second time, one by one.
TIMED = 30
# The comparison settings that are keys of `compare`; the seed is set for the entire file.
SETTINGS = {name: option for name, option in options_of(Settings).items() if name != "seed"}
# The options of all metrics are keys of `evaluate`, and those of ground truth are keys of a data set.
MEASURING = options_of(CutoffOptions)
OF_TRUTH = {
    in_file.key or name: replace(option, hint=Annotated[in_file.hint or option.hint, Doc(option.description)])
    for name, option in options_of(EvaluateOptions).items()
    if (in_file := note_in(option.notes, InFile))
}


def _with_keys(options: Mapping[str, Option]) -> Callable[[type[S]], type[S]]:
    """Add a key for each of the `options` that a section does not have yet."""

    def extended(section: type[S]) -> type[S]:
        added = {key: each for key, each in options.items() if key not in options_of(section)}
        keys: list[Any] = [
            (key, each.hint, field(default_factory=dict) if each.default == {} else each.default)
            for key, each in added.items()
        ]
        namespace = {"__doc__": section.__doc__}
        return make_dataclass(section.__name__, keys, bases=(section,), namespace=namespace, frozen=True, kw_only=True)

    return extended


@_with_keys(OF_TRUTH)
@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One data set: queries with grouped ground truth, and the corpus that retrievers search."""

    ground_truth: Annotated[str, Doc("Queries with their grouped ground truth.")]
    queries: Annotated[
        str | None, Doc("Queries with their text (TREC topics, TSV, JSONL or BEIR), if the ground truth has no text.")
    ] = None
    corpus: Annotated[str | None, Doc("The passages that retrievers search.")] = None
    fetch: Annotated[str | None, Doc("Advice on how to get missing files, shown in the error message.")] = None

    @property
    def reading(self) -> dict[str, Any]:
        """The options for reading the ground truth, by name."""
        return {option.name: getattr(self, key) for key, option in OF_TRUTH.items()}


@dataclass(frozen=True)
class AnswersConfig:
    """Judged answers that were generated from a system's results."""

    file: Annotated[
        str, Doc("JSONL, CSV or parquet file with one row per answer: qid, and correct (0, 1 or a score in between).")
    ]
    oracle: Annotated[str | None, Doc("Judged answers to the same queries, generated from gold context.")] = None
    columns: Annotated[dict[str, str], Doc("Column name for each role, such as {correct: score}.")] = field(
        default_factory=dict
    )

    def paths(self, dataset: str) -> dict[str, str]:
        """Return the files of a data set, by key."""
        files = {"file": self.file, "oracle": self.oracle}
        return {key: text.replace("{dataset}", dataset) for key, text in files.items() if text is not None}


@dataclass(frozen=True)
class TrialsConfig:
    """How often to query a system whose results change each time."""

    n: Annotated[int, Ge(1), Le(1000), Doc("Number of times to run each query, bypassing the cache.")] = 1
    of: Annotated[
        Literal["runs", "builds"],
        Doc("`runs` queries one build several times. `builds` rebuilds the system with the next seed for each trial."),
    ] = "runs"


@dataclass(frozen=True)
class SystemConfig:
    """One system, with its retriever, options and data sets (with `matrix`, one system for each combination)."""

    use: Annotated[str, Doc("The retriever.")]
    with_: Annotated[dict[str, Any], Doc("The options of the retriever.")] = field(default_factory=dict)
    matrix: Annotated[
        dict[str, Annotated[list[Any], MinLen(1)]],
        Doc("Options with lists of values. Each combination of values is one system."),
    ] = field(default_factory=dict)
    version: Annotated[
        str,
        Doc(
            "Version of your code or of the service. With a version, groupgt caches answers between runs. Without "
            "a version, it requests them again on every run."
        ),
    ] = ""
    scores: Annotated[
        Direction, Doc("Use descending if higher scores are better, ascending if scores are distances.")
    ] = "descending"
    inputs: Annotated[Texts, Doc("The systems that a fusion combines, by name or pattern.")] = field(
        default_factory=list
    )
    only: Annotated[Texts, Doc("The data sets to run on (default: all).")] = field(default_factory=list)
    trials: Annotated[TrialsConfig, Short("n", int), Doc("Number of times to query a system whose results vary.")] = (
        field(default_factory=TrialsConfig)
    )
    stages: Annotated[
        dict[str, str],
        Doc(
            "The system's pipeline stages by name, in order, such as {reranked: reranked.trec@10}. A stage is a "
            "file or a system of this experiment. The report shows at which stage each group is lost. The system "
            "itself is the first stage, unless the stages include it."
        ),
    ] = field(default_factory=dict)
    answers: Annotated[
        AnswersConfig | None,
        Short("file"),
        Doc(
            "Judged answers generated from the system's results. The report shows how often answers are correct when "
            "retrieval is complete."
        ),
    ] = None
    on_error: Annotated[
        Literal["fail", "skip"],
        Doc("If the system fails, stop the run (fail), or report the system without a score (skip)."),
    ] = "fail"

    def serves(self, dataset: str) -> bool:
        """Return whether the systems of this entry run on a data set."""
        return not self.only or dataset in self.only


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """Engine that labels stored results: auto (depends on the input), streaming or spark."""

    use: Annotated[str, Doc("The engine.")]
    with_: Annotated[dict[str, Any], Doc("The options of the engine.")] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LabellerConfig:
    """How results are matched to alternatives."""

    use: Annotated[str, Doc("The labeller.")]
    with_: Annotated[dict[str, Any], Doc("The options of the labeller.")] = field(default_factory=dict)
    version: Annotated[
        str,
        Doc(
            "Version of your labeller code. With a version, groupgt caches verdicts between runs. Without a "
            "version, it recomputes them."
        ),
    ] = ""


@dataclass(frozen=True)
class Best:
    """How the best system is chosen, by one or several metrics, optionally within a latency limit."""

    strategy: Annotated[
        Literal["primary", "mean", "rank", "normalized_mean"],
        Doc("`primary` decides by one metric. The other strategies, from AutoRAG, combine several."),
    ] = "primary"
    metrics: Annotated[Texts, Doc("The metrics that the strategy uses (default: all).")] = field(default_factory=list)
    max_latency_ms: Annotated[
        Annotated[float, Gt(0)] | None,
        Doc("Ignore systems whose median latency per query exceeds this number of milliseconds."),
    ] = None


@_with_keys(MEASURING)
@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Metrics, and how they are computed."""

    depth: Annotated[Positive, Doc("Number of results to retrieve per query.")] = 100
    k: Annotated[list[Positive], LISTED, Doc("Cutoffs for metrics written without @k.")] = field(default_factory=list)
    metrics: Annotated[list[str], LISTED, MinLen(1), Doc("The metrics, such as [recall, ndcg@10].")]
    primary: Annotated[
        str | None,
        Doc("The metric that decides the verdict, sorts tables and selects the best system (default: the first)."),
    ] = None
    best: Annotated[Best, Short("strategy"), Doc("How the best system is selected.")] = field(default_factory=Best)
    by: Annotated[Texts, Doc("Ground-truth columns to slice by, or n_groups.")] = field(default_factory=list)
    labeller: Annotated[LabellerConfig, Short("use"), Doc("How results are matched to alternatives.")] = field(
        default_factory=lambda: LabellerConfig(use="id")
    )
    policy: Annotated[
        dict[str, Any],
        Short("preset"),
        Doc("How to handle invalid or ambiguous data: a preset, or a choice for each field."),
    ] = field(default_factory=dict)
    tokenizer: Annotated[
        str | None,
        Doc(
            "Tokenizer for budgets: whitespace, tiktoken:ENCODING, tokenizers:FILE_OR_NAME, or python:module:function."
        ),
    ] = None
    timed: Annotated[
        Annotated[int, Ge(0), Le(10**6)] | None,
        Doc(
            "Number of queries rerun one by one to measure latency; 0 for none (default: 30 for cheap retrievers in "
            "groupgt's own process, 0 for others)."
        ),
    ] = None

    @property
    def options(self) -> dict[str, Any]:
        """The options of all metrics by name, except `k`, which each metric already includes."""
        return {name: getattr(self, name) for name in MEASURING if name != "k"}

    def repeats(self, kind: RetrieverPlugin) -> int:
        """Return how many queries are run a second time, one by one, if the retriever takes batches."""
        return self.timed if self.timed is not None else TIMED if kind.cheap else 0

    def __post_init__(self) -> None:
        """Split metrics that are written on one line, such as `metrics: recall, mrr`."""
        names = [name for text in self.metrics for name in split_names(text) or [text]]
        object.__setattr__(self, "metrics", names)


@_with_keys(SETTINGS)
@dataclass(frozen=True, kw_only=True)
class Compare:
    """Comparison of systems or data sets."""

    baseline: Annotated[str, Doc("The baseline for all comparisons: a system or, with `across: datasets`, a data set.")]
    across: Annotated[
        Literal["systems", "datasets"],
        Doc("Compare systems, or compare each system with itself on data sets that have the same queries."),
    ] = "systems"
    metrics: Annotated[Texts, Doc("The metrics to compare (default: all).")] = field(default_factory=list)

    def settings(self, seed: int) -> Settings:
        """Return the comparison settings with the given seed."""
        return Settings(**{name: getattr(self, name) for name in SETTINGS}, seed=seed)


# The keys for the bound of a gate, which has exactly one of them.
BOUNDS = ("min", "max", "max_drop", "min_gain")


@dataclass(frozen=True)
class Gate:
    """A quality gate with one of min, max, max_drop and min_gain."""

    system: Annotated[str, Doc("A system, or a pattern.")]
    metric: Annotated[str, Doc("The metric, latency or cost to check.")]
    dataset: Annotated[str, Doc("A data set, or a pattern.")] = "*"
    slice: Annotated[dict[str, Scalar], Doc("Select queries by column, such as {type: multi}.")] = field(
        default_factory=dict
    )
    min: Annotated[float | None, Doc("The lowest value that passes.")] = None
    max: Annotated[float | None, Doc("The highest value that passes.")] = None
    max_drop: Annotated[Annotated[float, Ge(0)] | None, Doc("The largest drop from the baseline that passes.")] = None
    min_gain: Annotated[Annotated[float, Ge(0)] | None, Doc("The smallest gain over the baseline that passes.")] = None
    against: Annotated[
        Literal["baseline", "previous"],
        Doc(
            "Compare with the baseline, or with the same system in the previous run (`groupgt run --against`). Without "
            "a previous result, groupgt skips the gate."
        ),
    ] = "baseline"
    unless: Annotated[
        Literal["not_significant", "within_noise"] | None,
        Doc(
            "With not_significant, a drop passes unless compare.test finds it significant (without correction). "
            "With within_noise, a drop passes unless it exceeds the noise between trials of one system on the same "
            "queries."
        ),
    ] = None
    must: Annotated[
        Literal["significant"] | None,
        Doc("With significant, a gain passes only if compare.test finds it significant, corrected over all systems."),
    ] = None

    @property
    def bound(self) -> str:
        """The metric, slice and bound as text: `recall@10, type multi, min 0.8`."""
        slices = [f"{column} {value}" for column, value in self.slice.items()]
        bounds = [f"{key} {value:g}" for key in BOUNDS if (value := getattr(self, key)) is not None]
        conditions = [f"{key} {value}" for key in ("unless", "must") if (value := getattr(self, key))]
        since = ["against previous"] if self.against == "previous" else []
        return ", ".join([self.metric, *slices, *bounds, *since, *conditions])

    @property
    def is_relative(self) -> bool:
        """Return True if the bound applies to a drop or a gain."""
        return self.max_drop is not None or self.min_gain is not None

    def reads_test(self, *, is_beyond: bool) -> bool:
        """Return True if the significance test affects the verdict, for gains within the bound or drops beyond it."""
        return is_beyond if self.unless == "not_significant" else bool(self.must) and not is_beyond


Format = Literal["report", "table", "markdown", "csv", "json", "latex", "parquet", "runs"]


@dataclass(frozen=True, kw_only=True)
class Output:
    """Result folder and formats."""

    folder: Annotated[str, Doc("The folder in which to write result folders.")] = "results"
    formats: Annotated[list[Format], LISTED, Doc("Formats of the files in a result folder.")] = field(
        default_factory=lambda: ["report", "table", "json", "csv"]
    )


@dataclass(frozen=True, kw_only=True)
class Report:
    """Content of report.html."""

    max_size: Annotated[
        Any,
        Rule("a size such as 25MB, or a number of bytes", is_size, {"type": ["integer", "string"]}, size_of),
        Doc(
            "Maximum size of the file, such as 5MB. To fit, groupgt omits the text of results without a hit, then "
            "the ends of long passages, then the least informative queries. The page lists what it omits."
        ),
    ] = MAX_SIZE


@dataclass(frozen=True, kw_only=True)
class Config:
    """An experiment file."""

    version: Annotated[
        int,
        Rule("1", lambda value: value == 1, {"const": 1, "type": "integer"}),
        Doc("Version of the file format (always 1)."),
    ]
    groupgt: Annotated[str | None, Doc('The minimum version of groupgt, such as ">=0.1".')] = None
    name: Annotated[Name, Doc("The name of the experiment and of its results folder.")]
    plugins: Annotated[
        Texts,
        Doc(
            "Modules that register metrics, labellers or retrievers, either next to the file or installed. groupgt "
            "imports them first and requires --allow-code."
        ),
    ] = field(default_factory=list)
    seed: Annotated[int, Ge(0), Lt(2**32), Doc("Random seed; the same seed gives identical results.")] = 0
    convention: Annotated[
        ConventionChoice, Doc("How metrics treat groups. With auto, the shape of the ground truth decides.")
    ] = "auto"
    datasets: Annotated[dict[Name, Dataset], MinLen(1), Doc("The data sets by name.")]
    systems: Annotated[dict[Name, Annotated[SystemConfig, Short("use")]], MinLen(1), Doc("The systems by name.")]
    evaluate: Annotated[Evaluate, Doc("Metrics, and how they are computed.")]
    engine: Annotated[EngineConfig, Short("use"), Doc("The engine that labels stored results.")] = field(
        default_factory=lambda: EngineConfig(use="auto")
    )
    compare: Annotated[Compare | None, Doc("Comparison of systems or data sets.")] = None
    gate: Annotated[list[Gate], Doc("Quality gates.")] = field(default_factory=list)
    output: Annotated[Output, Doc("Result folder and formats.")] = field(default_factory=Output)
    report: Annotated[Report, Doc("Content of report.html.")] = field(default_factory=Report)
    cache: Annotated[str | None, Doc("Cache folder; null for no cache.")] = ".groupgt/cache"

    @property
    def baseline(self) -> str | None:
        """The system that all others are compared with, or None."""
        return None if self.compare is None or self.compare.across == "datasets" else self.compare.baseline
