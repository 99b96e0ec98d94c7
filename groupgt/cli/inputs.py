"""Command input: `input_options` adds input options to a command and pass their values as one `Inputs` object.

`Inputs` stores command-line values; ground truth, labeller and lengths are loaded when a command first needs them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from groupgt.cli.output import Decorator, Waiting, check_outputs, together
from groupgt.engines.choice import Engine, engine_of
from groupgt.engines.order import DIRECTIONS
from groupgt.errors import ConfigError, DataError, Faults
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.inputs import Scores, as_ground_truth
from groupgt.evaluation.names import expanded, named
from groupgt.evaluation.options import DEFAULTS
from groupgt.evaluation.request import Audit, Request
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.slices import where
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.formats.detect import column_names, require_columns, require_paths
from groupgt.formats.modules import import_plugin
from groupgt.formats.parts import is_url
from groupgt.formats.source import Source
from groupgt.formats.trec import tag_of
from groupgt.labellers.base import Labeller
from groupgt.metrics.base import AUTO, OF_SHAPE, ConventionChoice, ConventionName
from groupgt.metrics.language import Metric, metrics_in, split_names
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.validity import shown
from groupgt.model.values import Lengths
from groupgt.store.verdicts import VerdictStore

if TYPE_CHECKING:
    from groupgt.results.folder import ResultFolder

CACHE = Path(".groupgt/cache")
N = TypeVar("N", int, float)
DEFAULT_METRICS = ("precision", "recall", "f1", "mrr", "map", "ndcg")


@dataclass(frozen=True, eq=False)
class Inputs:
    """Values of the input options on the command line, with defaults for options that a command does not have."""

    truth_path: Path = Path()
    run_paths: tuple[Path, ...] = ()
    truth_format: str | None = None
    run_format: str | None = None
    column_texts: tuple[str, ...] = ()
    tool_texts: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    policy_texts: tuple[str, ...] = ()
    in_parts: bool = False
    score_texts: tuple[str, ...] = ()
    names: str = "file"
    in_trials: bool = False
    memory: str | None = None
    labeller_name: str = "id"
    labeller_options: tuple[str, ...] = ()
    corpus_path: Path | None = None
    allow_code: bool = False
    plugins: tuple[str, ...] = ()
    takes_budgets: bool = False
    tokenizer: str | None = None
    metric_texts: tuple[str, ...] = ()
    cutoff_texts: tuple[str, ...] = ()
    convention_text: str = AUTO
    by_texts: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    dataset_name: str | None = None
    takes_folder: bool = False
    audit_path: Path | None = None
    assume_random: bool = False
    waiting: Waiting = field(default_factory=Waiting)
    # Options that are passed on as they are.
    others: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def reopened(self) -> ResultFolder | None:
        """The result folder that replaces TRUTH and RUNS; it also provides values for options that were not typed."""
        if not (self.takes_folder and is_result_folder(self.truth_path)):
            return None
        from groupgt.results.folder import ResultFolder

        return ResultFolder.opened(self.truth_path, self.dataset_name, self.systems)

    def import_plugins(self) -> None:
        """Import the modules from --plugin, before anything that they register is named."""
        for name in self.plugins:
            if not self.allow_code:
                raise ConfigError(f"--plugin: {name} is your code; allow it with --allow-code")
            try:
                import_plugin(name, Path().resolve())
            except ConfigError as error:
                raise ConfigError(f"--plugin: {error}") from None

    def _check_folder(self) -> None:
        """Raise `ConfigError` if runs are missing, or if options do not apply to the type of input."""
        if self.reopened is not None and self.run_paths:
            raise ConfigError(f"{self.truth_path}: a result folder contains runs; select them with --system")
        if self.takes_folder and self.reopened is None:
            if not self.run_paths:
                require_paths(self.truth_path, ())
                raise ConfigError(
                    "RUNS: expected the runs to measure, or a result folder in place of TRUTH; found none"
                )
            for option, value in (("--system", self.systems), ("--dataset", self.dataset_name)):
                if value:
                    raise ConfigError(f"{option}: requires a result folder, but {self.truth_path} is not one")

    def check(self, also_read: Sequence[Path | None] = ()) -> None:
        """Check options and paths, including those in `also_read`, before any file is read or overwritten."""
        self._check_folder()
        _ = self.engine, self.policy, self.scores, self.tool_spans
        if self.assume_random and self.audit is None:
            raise ConfigError("--assume-random: needs --audit")
        others = [path for path in (*also_read, self.audit_path) if path is not None]
        faults = Faults()
        for look in (lambda: self.runs, lambda: require_paths(self.truth_path, others)):
            try:
                look()
            except DataError as error:
                faults.merge(error)
        faults.stop()
        require_columns(self.columns, [self.truth_path, *self.runs, *others])
        check_outputs(click.get_current_context(), [*self.runs, *others])

    @cached_property
    def policy(self) -> Policy:
        """The policy for invalid or ambiguous data, set by --policy."""
        if self.reopened is not None and not self.policy_texts:
            return self.reopened.policy
        return Policy.of(self.policy_texts)

    @cached_property
    def columns(self) -> dict[str, str]:
        """The columns from --columns, by role."""
        return dict(_pairs("--columns", "ROLE=NAME, such as doc_id=chunk", self.column_texts))

    @cached_property
    def tool_spans(self) -> dict[str, str]:
        """The tools from --tool-span, with the paths to the ids in their results."""
        return dict(_pairs("--tool-span", "NAME=PATH, such as search=hits.id", self.tool_texts))

    def columns_of(self, *paths: Any) -> dict[str, str]:
        """Return the columns from --columns that any of these files has."""
        names = {name for path in paths if self.columns for name in column_names(path) or ()}
        return {role: name for role, name in self.columns.items() if name in names}

    @cached_property
    def engine(self) -> Engine:
        """The engine, with the memory limit from --memory if it is set."""
        return Engine() if self.memory is None else engine_of({"use": "streaming", "with": {"memory": self.memory}})

    @property
    def scores(self) -> Scores:
        """Whether higher scores are better, set by --scores for all runs or by name, or by the result folder."""
        if self.reopened is not None and not self.score_texts:
            return self.reopened.scores
        typed_as = [text.rpartition("=") for text in self.score_texts]
        directions = {name: each for name, _, value in typed_as for each in DIRECTIONS if each == value}
        if len(directions) < len(typed_as) or (len(directions) > 1 and "" in directions):
            found = f"found {', '.join(self.score_texts)}"
            raise ConfigError(f"--scores: expected {' or '.join(DIRECTIONS)}, or NAME=ascending for each run, {found}")
        return directions.get("") or directions or "descending"

    @cached_property
    def runs(self) -> list[Any]:
        """The path of every run; each file in a folder or glob is a separate run, unless --parts is set."""
        if self.reopened is not None:
            return list(self.reopened.paths)
        for _, path in self._typed_runs:
            if is_result_folder(path):
                what = "expected a run, found a result folder; name one of the files in its folder `runs`"
                raise ConfigError(f"{path}: {what}{', or give it alone' if self.takes_folder else ''}")
        return list(require_paths(self.truth_path, [path for _, path in self._typed_runs], in_parts=self.in_parts))

    @property
    def _typed_runs(self) -> list[tuple[str, Any]]:
        """The name and path of each run as typed, either as `NAME=PATH` or just as a path."""
        return list(map(name_and_path, self.run_paths))

    @cached_property
    def named_runs(self) -> list[tuple[str, Any]]:
        """The (name, path) pairs of all runs, named by NAME=PATH, --names tag or their files."""
        if self.reopened is not None:
            return self.reopened.runs
        pairs: list[tuple[str, Any]] = []
        by_tag = self.names == "tag"
        for name, path in self._typed_runs:
            files = require_paths(self.truth_path, [path], in_parts=self.in_parts)
            if name and self.in_trials:
                pairs += [(name, file) for file in files]
                continue
            if name and (len(files) > 1 or str(files[0]) != str(path)):
                what = f"expected one file as the run {name!r}, found a folder or a pattern"
                raise ConfigError(f"{path}: {what}; name one file, or add --parts if all of it is one run")
            if name:
                pairs.append((name, files[0]))
            else:
                pairs += [(tag_of(Source.at(file)), file) for file in files] if by_tag else expanded(path, files)
        return named(pairs, trials=self.in_trials)

    @property
    def run(self) -> Any:
        """The path of the only run, for commands that take one; None if it is optional and omitted."""
        if self.reopened is not None and len(self.runs) > 1:
            there = ", ".join(self.reopened.chosen)
            raise ConfigError(f"{self.truth_path}: expected one system, found {there}; choose one with --system")
        if len(self.runs) > 1:
            text = f"expected one run, found {len(self.runs):,} files; if they are parts of one run, add --parts"
            raise ConfigError(f"{self.run_paths[0]}: {text}")
        return self.runs[0] if self.runs else None

    @cached_property
    def truth(self) -> GroundTruth:
        """The ground truth, filtered by --where."""
        if self.reopened is not None:
            return self._chosen(self.reopened.truth(self.policy))
        return self.truth_at(self.truth_path, self.truth_format)

    def truth_at(self, path: Any, format: str | None) -> GroundTruth:
        """Read ground truth from a path and apply --policy and --where."""
        return self._chosen(as_ground_truth(path, self.policy, format, self.engine, self.columns_of(path)))

    def _chosen(self, truth: GroundTruth) -> GroundTruth:
        """Filter ground truth by --where."""
        values: dict[str, list[str]] = {}
        for column, value in _pairs("--where", "COLUMN=VALUE, such as split=test", self.conditions):
            values.setdefault(column, []).append(value.strip())
        return where(truth, values)

    @cached_property
    def labeller(self) -> Labeller:
        """The labeller set by --labeller and --with."""
        if self.reopened is not None and not typed("labeller_name"):
            if self.labeller_options:
                raise ConfigError("--with: the labeller is that of the run; name one with --labeller")
            return self.reopened.labeller(allow_code=self.allow_code)
        return self.labeller_of(self.labeller_name, self.labeller_options)

    def labeller_of(self, name: str, options: Sequence[str] = ()) -> Labeller:
        """Create a labeller with the options of `--with`; its verdicts share the experiment cache."""
        chosen: dict[str, str] = {}
        for key, value in _pairs("--with", "OPTION=VALUE, such as min_overlap=0.5", options):
            if key in chosen:
                raise ConfigError(f"--with {key}: duplicate option; remove one")
            chosen[key] = value
        sources = Sources(self.corpus, allow_code=self.allow_code, judged=self.judged)
        return labeller_of({"use": name, "with": chosen}, sources, texts=True)

    @cached_property
    def judged(self) -> VerdictStore:
        """The labeller verdicts of this command, stored in the experiment cache."""
        return VerdictStore(CACHE / "verdicts")

    @cached_property
    def lengths(self) -> Lengths:
        """Lengths of results according to --corpus and --tokenizer, for commands that support budgets."""
        if not self.takes_budgets:
            return Lengths()
        name = self.tokenizer or (self.reopened.tokenizer if self.reopened is not None else None)
        if name is None and self.corpus is None:
            return Lengths()
        from groupgt.formats.corpus import read_lengths
        from groupgt.formats.tokenizers import tokenizer_named

        count = None if name is None else tokenizer_named(name, allow_code=self.allow_code)
        return Lengths(count=count) if self.corpus is None else read_lengths(self.corpus, count)

    @property
    def corpus(self) -> Path | None:
        """The path of the corpus, from --corpus or from the result folder."""
        return self.corpus_path or (self.reopened.corpus if self.reopened is not None else None)

    @cached_property
    def texts(self) -> dict[str, str]:
        """Passage texts from the corpus by id, for display or comparison."""
        from groupgt.formats.corpus import read_corpus

        return {} if self.corpus is None else read_corpus(self.corpus)

    @property
    def audit(self) -> Path | None:
        """The path of the audit, from --audit or from the result folder."""
        return self.audit_path or (self.reopened.audit if self.reopened is not None else None)

    @property
    def by(self) -> list[str]:
        """The columns from all --by options."""
        return _parts(self.by_texts)

    @property
    def conventions(self) -> list[ConventionName]:
        """The conventions from --convention, which define the metrics; `auto` depends on the ground truth."""
        if self.reopened is not None and not typed("convention_text"):
            return [self.reopened.convention]
        if self.is_auto:
            return [OF_SHAPE[self.truth.shape]]
        return cast("list[ConventionName]", list(dict.fromkeys(_parts([self.convention_text]))))

    @property
    def is_auto(self) -> bool:
        """Return True if no convention was named."""
        return self.reopened is None and _parts([self.convention_text]) in ([], [AUTO])

    @property
    def metrics(self) -> list[str]:
        """The metrics from all -m options (default: the six metrics that AutoRAG uses)."""
        if not self.metric_texts:
            return list(DEFAULT_METRICS) if self.reopened is None else self.reopened.manifest.metrics
        names = [name for text in self.metric_texts for name in split_names(text)]
        if not names:
            texts = ", ".join(map(repr, self.metric_texts))
            raise ConfigError(f"-m: expected metrics, such as recall@5,ndcg, found {texts}")
        return names

    @property
    def cutoffs(self) -> list[int]:
        """The cutoffs from all -k options."""

        def cutoff(text: str) -> int | None:
            is_valid = text.isascii() and text.isdigit() and len(text) <= 16 and 0 < int(text) <= 10**15
            return int(text) if is_valid else None

        expected = "expected whole numbers above 0 and up to 10^15, such as 1,5,10"
        return numbers_in("-k", self.cutoff_texts, cutoff, expected)

    @cached_property
    def request(self) -> Request:
        """The request defined by -m, -k, --convention and --audit."""
        convention: ConventionChoice = AUTO if self.is_auto else self.conventions[0]
        if not self.is_auto and len(self.conventions) > 1:
            request = self.request_for(metrics_in(self.metrics, self.conventions, self.cutoffs), convention)
        else:
            request = self.request_for(self.metrics, convention, self.cutoffs)
        if self.audit is None:
            return request
        # The run of a result folder has already checked its own audit.
        assumed = self.assume_random or self.audit_path is None
        return replace(request, audit=Audit(as_ground_truth(self.audit, self.policy), assumed))

    def request_for(
        self, metrics: Sequence[str | Metric] = (), convention: ConventionChoice = AUTO, k: Sequence[int] = ()
    ) -> Request:
        """Create a request with the given metrics and all other settings from the command line."""
        return Request.of(
            metrics,
            convention=convention,
            k=k,
            by=self.by,
            policy=self.policy,
            labeller=self.labeller,
            lengths=self.lengths,
            corpus=self.lengths.texts or None,
            truth_format=self.truth_format,
            run_format=self.run_format,
            truth_columns=self.columns_of(self.truth_path),
            run_columns=self.columns_of(*self.runs),
            parts=self.in_parts,
            scores=self.scores,
            tool_spans=self.tool_spans,
            engine=self.engine,
            **self.others,
        )

    def evaluations(self, request: Request) -> list[Evaluation]:
        """Evaluate every run according to a request."""
        runs = self.named_runs  # two runs of one name are reported before the ground truth is read
        self.waiting.doing("evaluating", len(runs))
        return evaluate_each(request, self.truth, runs, self.waiting.step)

    def evaluations_by_name(self, request: Request) -> dict[str, Evaluation]:
        """Evaluate every run according to a request; return evaluations by run name."""
        return {evaluation.name: evaluation for evaluation in self.evaluations(request)}


def typed(parameter: str) -> bool:
    """Return whether a parameter of the current command was set on the command line rather than by default."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE


def typed_parameters() -> list[click.Parameter]:
    """Return the parameters of the current command that were set on the command line."""
    return [parameter for parameter in click.get_current_context().command.params if typed(parameter.name or "")]


def numbers_in(option: str, texts: Iterable[str], read: Callable[[str], N | None], expected: str) -> list[N]:
    """Parse distinct, comma-separated numbers; raise `ConfigError` for each text that `read` cannot parse."""
    faults = Faults()
    numbers: dict[N, None] = {}
    for text in (part.strip() for parts in texts for part in parts.split(",")):
        number = read(text)
        if number is None:
            faults.add(option, f"{expected}, found {shown(text)}")
        else:
            numbers[number] = None
    faults.stop(ConfigError)
    return list(numbers)


def is_result_folder(path: Path) -> bool:
    """Return whether a path is a result folder, a folder of result folders, or the file `latest` in one."""
    from groupgt.store.stamped import LAST, LATEST

    # URLs are passed as text.
    path = Path(path)
    return (path.name == LATEST and path.is_file()) or any((path / name).is_file() for name in (LAST, LATEST))


def name_and_path(run: Path | str) -> tuple[str, Path | str]:
    """Split `NAME=PATH` into name and path; the name is empty if the text is itself a path or URL."""
    text = str(run)
    name, _, path = text.partition("=")
    if is_url(text) or not name or not path or {"/", os.sep} & set(name) or Path(text).exists():
        return "", run
    return name, path if is_url(path) else Path(path)


def _pairs(option: str, expected: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"{option}: expected {expected}, found {text!r}")
        yield key.strip(), value


def _parts(texts: Sequence[str]) -> list[str]:
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def input_options(*options: Decorator) -> Decorator:
    """Add options to a command and pass their values to it as an `Inputs` object, the first argument."""
    names = {each.name for each in fields(Inputs)}

    def decorate(command: Any) -> Any:
        taken = inspect.signature(command).parameters.keys()

        @wraps(command)
        def with_inputs(**values: Any) -> None:
            given = {name: values.pop(name) for name in names.intersection(values)}
            others = {name: values.pop(name) for name in DEFAULTS.keys() & values.keys() - taken}
            inputs = Inputs(**given, others=others, takes_budgets="tokenizer" in given, takes_folder="systems" in given)
            with inputs.waiting:
                inputs.import_plugins()
                command(inputs, **values)
            inputs.judged.finish()

        return together(*options)(with_inputs)

    return decorate
