"""Adds input options to commands, and passes their values as an `Inputs` object, which loads data on first use."""

from __future__ import annotations

import inspect
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from functools import cached_property, wraps
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from groupgt.cli.needs import refuse, typed
from groupgt.cli.output import Decorator, Waiting, check_outputs, together
from groupgt.engines.choice import Engine, engine_of
from groupgt.errors import ConfigError, DataError, Faults
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.names import expanded, named
from groupgt.evaluation.options import EvaluateOptions, RunOptions, shell_of
from groupgt.evaluation.reading import Reading
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluated
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.evaluation.texts import pairs_in, parts
from groupgt.formats.detect import declared_in, require_columns, require_paths
from groupgt.formats.modules import import_plugin
from groupgt.formats.parts import is_url
from groupgt.formats.roles import ROLES, Kind
from groupgt.formats.source import Source
from groupgt.formats.trec import tag_of
from groupgt.labellers.base import Labeller
from groupgt.metrics.base import AUTO, OF_SHAPE, ConventionChoice, ConventionName
from groupgt.metrics.language import Metric, metrics_in, split_names
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.values import Lengths
from groupgt.options import options_of
from groupgt.records import record

if TYPE_CHECKING:
    from groupgt.results.folder import ResultFolder
    from groupgt.store.verdicts import VerdictStore

CACHE = Path(".groupgt/cache")
DECLARED = options_of(EvaluateOptions)
# Declared options whose value also depends on files, on a result folder, or on what is measured.
DERIVED = {"policy", "scores", "truth_columns", "labeller", "corpus", "audit", "assume_random", "convention", "k"}
# Options that apply to runs alone.
OF_RUNS = {*options_of(RunOptions), "parts", "names"}
DEFAULT_METRICS = ("precision", "recall", "f1", "mrr", "map", "ndcg")


@record
class Inputs:
    """Values of the input options on the command line, with defaults for options that a command does not have."""

    truth_path: Path = Path()
    run_paths: tuple[Path, ...] = ()
    names: str = "file"
    in_trials: bool = False
    memory: str | None = None
    labeller_options: tuple[str, ...] = ()
    allow_code: bool = False
    plugins: tuple[str, ...] = ()
    takes_budgets: bool = False
    tokenizer: str | None = None
    metric_texts: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    dataset_name: str | None = None
    takes_folder: bool = False
    waiting: Waiting = field(default_factory=Waiting)
    # The declared options of the command, as they are typed.
    given: dict[str, Any] = field(default_factory=dict)

    def value(self, name: str) -> Any:
        """Return the value of a declared option, or its default if the command does not have this option."""
        option = DECLARED[name]
        shell = shell_of(option)
        return shell.read(shell.flag, self.given[name]) if name in self.given else option.default

    def setting(self, name: str) -> Any:
        """Return a declared option's value as typed, or else the value in the result folder."""
        if self.given.get(name) or self.reopened is None:
            return self.value(name)
        return getattr(self.reopened, name)

    @cached_property
    def reopened(self) -> ResultFolder | None:
        """The result folder that replaces TRUTH and RUNS, and provides values for options that were not typed."""
        if not (self.takes_folder and is_result_folder(self.truth_path)):
            return None
        from groupgt.results.folder import ResultFolder

        return ResultFolder.opened(self.truth_path, self.dataset_name, self.systems)

    @property
    def shown(self) -> str:
        """The arguments that select the same system again, for use in hints."""
        if self.reopened is None:
            return "…"
        options = {"--dataset": self.dataset_name, "--system": next(iter(self.reopened.chosen))}
        typed = [part for option, value in options.items() if value for part in (option, value)]
        return shlex.join([str(self.truth_path), *typed])

    def import_plugins(self) -> None:
        """Import the modules from --plugin, so that their plug-ins are available."""
        for name in self.plugins:
            if not self.allow_code:
                raise ConfigError(f"--plugin: {name} runs your code; allow it with --allow-code")
            try:
                import_plugin(name, Path().resolve())
            except ConfigError as error:
                raise ConfigError(f"--plugin: {error}") from None

    def _check_folder(self) -> None:
        """Raise `ConfigError` if runs are missing, or if options do not apply to the type of input."""
        if self.reopened is not None and self.run_paths:
            (truth, run), (_, other) = files_in(self.truth_path), self._typed_runs[0]
            other = files_in(other)[1] if is_result_folder(other) else other
            files = shlex.join([str(truth), f"before={run}", f"after={other}"])
            what = "a result folder already contains runs; select them with --system"
            raise ConfigError(f"{self.truth_path}: {what}, or pass files instead of folders, such as {files}")
        if self.takes_folder and self.reopened is None:
            if not self.run_paths:
                require_paths(self.truth_path, ())
                raise ConfigError(NO_RUNS)
            for option, value in (("--system", self.systems), ("--dataset", self.dataset_name)):
                if value:
                    raise ConfigError(f"{option}: requires a result folder, but {self.truth_path} is not one")

    def check(self, also_read: Sequence[Path | None] = ()) -> None:
        """Check options and paths, including those in `also_read`, before any file is read or overwritten."""
        self._check_folder()
        _ = self.engine, self.policy, self.setting("scores"), self.value("tool_spans")
        if self.value("assume_random") and self.setting("audit") is None:
            raise ConfigError("--assume-random: needs --audit")
        others = [path for path in (*also_read, self.value("audit")) if path is not None]
        faults = Faults()
        with faults.merging(DataError):
            _ = self.runs
        with faults.merging(DataError):
            require_paths(self.truth_path, others)
        faults.stop()
        self.require_columns([self.truth_path], self.runs, others)
        if not self.runs:
            refuse(OF_RUNS, "applies to runs, but no runs were given; remove this option")
        check_outputs(click.get_current_context(), [*self.runs, *others])

    @cached_property
    def policy(self) -> Policy:
        """The policy for invalid or ambiguous data, set by --policy or by the result folder."""
        return Policy.of(self.setting("policy"))

    @cached_property
    def _columns(self) -> dict[str, dict[str, str]]:
        """The columns from --columns, by kind of file (`truth` or `run`). An empty name stands for all files."""
        columns: dict[str, dict[str, str]] = {"": {}, "truth": {}, "run": {}}
        for text, name in self.value("truth_columns").items():
            side, _, role = text.rpartition(".")
            columns.get(side, columns[""])[role if side in columns else text] = name
        return columns

    def require_columns(self, truths: Sequence[Any], runs: Sequence[Any], others: Sequence[Any] = ()) -> None:
        """Raise `ConfigError` if a role or column in --columns does not apply to these files."""
        kinds: tuple[Kind, ...] = ("truth", "run", "answers") if runs else ("truth",)
        require_columns(self._columns[""], [*truths, *runs, *others], *kinds)
        require_columns(self._columns["truth"], [*truths, *others], "truth")
        if self._columns["run"] and not runs:
            raise ConfigError(f"--columns run.{next(iter(self._columns['run']))}: no runs were given; remove this role")
        require_columns(self._columns["run"], runs, "run")

    def columns_of(self, kind: Kind, *paths: Any) -> dict[str, str]:
        """Return the columns from --columns that this kind of file may have and at least one of these files has."""
        every = {**self._columns[""], **self._columns.get(kind, {})}
        return declared_in({role: name for role, name in every.items() if role in ROLES[kind]}, paths)

    @cached_property
    def engine(self) -> Engine:
        """The engine, with the memory limit from --memory if it is set."""
        return Engine() if self.memory is None else engine_of({"use": "streaming", "with": {"memory": self.memory}})

    @cached_property
    def runs(self) -> list[Any]:
        """The path of every run. Each file in a folder or glob is a separate run, unless --parts is set."""
        if self.reopened is not None:
            return list(self.reopened.paths)
        for _, path in self._typed_runs:
            if is_result_folder(path):
                what = f"expected a run, found a result folder; choose a run in it, such as {files_in(path)[1]}"
                raise ConfigError(f"{path}: {what}{', or pass the folder alone' if self.takes_folder else ''}")
        return list(chain.from_iterable(self._files))

    @cached_property
    def _files(self) -> list[list[Any]]:
        """The files of each run as typed, or its path if --parts is set."""
        paths = [path for _, path in self._typed_runs]
        columns = {**self._columns[""], **self._columns["run"]}
        return require_paths(self.truth_path, paths, in_parts=self.value("parts"), columns=columns)

    @property
    def _typed_runs(self) -> list[tuple[str, Any]]:
        """The name and path of each run as typed, either as `NAME=PATH` or just as a path."""
        return list(map(name_and_path, self.run_paths))

    @cached_property
    def named_runs(self) -> list[tuple[str, Any]]:
        """The (name, path) pairs of all runs, named by NAME=PATH, by --names tag, or after their files."""
        if self.reopened is not None:
            return self.reopened.runs
        pairs: list[tuple[str, Any]] = []
        by_tag = self.names == "tag"
        for (name, path), files in zip(self._typed_runs, self._files):
            if name and self.in_trials:
                pairs += [(name, file) for file in files]
                continue
            if name and (len(files) > 1 or str(files[0]) != str(path)):
                what = f"expected one file for the run {name!r}, found a folder or a pattern"
                raise ConfigError(f"{path}: {what}; choose one file, or add --parts if the files are parts of one run")
            if name:
                pairs.append((name, files[0]))
            else:
                pairs += [(tag_of(Source.at(file)), file) for file in files] if by_tag else expanded(path, files)
        return named(pairs, trials=self.in_trials)

    @property
    def run(self) -> Any:
        """The path of the run, for commands that take only one, or None if the run is optional and omitted."""
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
            return self.reading.selected(self.reopened.truth(self.policy))
        return self.reading.truth(self.truth_path)

    @cached_property
    def reading(self) -> Reading:
        """The settings for reading ground truth and runs."""
        return Reading.of(**self.options)

    @cached_property
    def options(self) -> EvaluateOptions:
        """The declared data options, some of which also depend on files or on a result folder."""
        others = cast("EvaluateOptions", {name: self.value(name) for name in self.given if name not in DERIVED})
        return {
            **others,
            "policy": self.policy,
            "truth_columns": self.columns_of("truth", self.truth_path),
            "run_columns": self.columns_of("run", *self.runs) if self.value("truth_columns") else {},
            "scores": self.setting("scores"),
            "engine": self.engine,
        }

    @cached_property
    def labeller(self) -> Labeller:
        """The labeller set by --labeller and --with."""
        if self.reopened is not None and not typed("labeller"):
            if self.labeller_options:
                raise ConfigError("--with: the result folder already sets the labeller; choose another with --labeller")
            return self.reopened.labeller(allow_code=self.allow_code)
        return self.labeller_of(self.value("labeller"), self.labeller_options)

    def labeller_of(self, name: str, options: Sequence[str] = ()) -> Labeller:
        """Create a labeller with the options from `--with`, and store its verdicts in the experiment cache."""
        chosen: dict[str, str] = {}
        for key, value in pairs_in("--with", "OPTION=VALUE, such as min_overlap=0.5", options):
            if key in chosen:
                raise ConfigError(f"--with {key}: duplicate option; remove one")
            chosen[key] = value
        return labeller_of({"use": name, "with": chosen}, self.sources, texts=True)

    @cached_property
    def judged(self) -> VerdictStore:
        """The labeller verdicts of this command, stored in the experiment cache."""
        from groupgt.store.verdicts import VerdictStore

        return VerdictStore(CACHE / "verdicts")

    @cached_property
    def lengths(self) -> Lengths:
        """Lengths of results according to --corpus and --tokenizer, for commands that support budgets."""
        if not self.takes_budgets:
            return Lengths()
        name = self.tokenizer or (self.reopened.tokenizer if self.reopened is not None else None)
        corpus = self.setting("corpus")
        if name is None and corpus is None:
            return Lengths()
        from groupgt.formats.corpus import read_lengths
        from groupgt.formats.tokenizers import tokenizer_named

        count = None if name is None else tokenizer_named(name, allow_code=self.allow_code)
        return Lengths(count=count) if corpus is None else read_lengths(corpus, count)

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Passage text from the corpus by id, for display or comparison."""
        return self.lengths.texts if self.takes_budgets else self.sources.texts(None, "corpus")

    @cached_property
    def sources(self) -> Sources:
        """The corpus and everything else that labellers read."""
        return Sources(self.setting("corpus"), allow_code=self.allow_code, judged=self.judged)

    @property
    def conventions(self) -> list[ConventionName]:
        """The conventions from --convention, which define the metrics. `auto` depends on the ground truth."""
        if self.reopened is not None and not typed("convention"):
            return [self.reopened.convention]
        if self.is_auto:
            return [OF_SHAPE[self.truth.shape]]
        return cast("list[ConventionName]", list(dict.fromkeys(self._convention_names)))

    @property
    def _convention_names(self) -> list[str]:
        return parts("--convention", [self.value("convention")])

    @property
    def is_auto(self) -> bool:
        """Return True if no convention was named."""
        return self.reopened is None and self._convention_names in ([], [AUTO])

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

    @cached_property
    def request(self) -> Request:
        """The request defined by -m, -k and --convention."""
        convention: ConventionChoice = AUTO if self.is_auto else self.conventions[0]
        k = self.value("k")
        if not self.is_auto and len(self.conventions) > 1:
            return self.request_for(metrics_in(self.metrics, self.conventions, k), convention)
        return self.request_for(self.metrics, convention, k)

    def request_for(
        self, metrics: Sequence[str | Metric] = (), convention: ConventionChoice = AUTO, k: Sequence[int] = ()
    ) -> Request:
        """Create a request with the given metrics and all other settings from the command line."""
        options: EvaluateOptions = {
            **self.options,
            "convention": convention,
            "k": k,
            "labeller": self.labeller,
            "lengths": self.lengths,
            "corpus": self.texts or None,
        }
        if metrics and (audit := self.setting("audit")) is not None:
            # The run of a result folder has already checked its own audit.
            assumed = self.value("assume_random") or self.value("audit") is None
            options |= {"audit": audit, "assume_random": assumed}
        return Request.of(metrics, **options)

    def check_budgets(self, request: Request) -> None:
        """Raise `ConfigError` if a tokenizer was typed, but no metric counts tokens."""
        if "tokens" not in {budget.unit for budget in request.budgets}:
            refuse(["tokenizer"], "applies to budgets such as recall@2000tokens, but no metric has a budget; remove it")

    def evaluations(self, request: Request) -> list[Evaluated]:
        """Evaluate every run according to a request."""
        runs = self.named_runs  # two runs of one name are reported before the ground truth is read
        self.waiting.doing("evaluating", len(runs))
        return evaluate_each(request, self.truth, runs, self.waiting.step)

    def evaluations_by_name(self, request: Request) -> dict[str, Evaluated]:
        """Evaluate every run according to a request, and return evaluations by run name."""
        return {evaluation.name: evaluation for evaluation in self.evaluations(request)}


# Where runs are optional because a result folder has them.
NO_RUNS = "RUNS: expected the runs to measure, or a result folder in place of TRUTH, found neither"


def refuse_reading(*accepted: str) -> None:
    """Raise `ConfigError` for input and metric options (except -m and --plugin), which a result folder replaces."""
    chosen = {"truth_path", "run_paths", "metric_texts", "plugins", "allow_code"}
    reading = {*Inputs.__dataclass_fields__, *DECLARED} - chosen - {*accepted}
    refuse(reading, "a result folder is already evaluated; remove input and metric options")


def is_result_folder(path: Path) -> bool:
    """Return whether a path is a result folder, a folder of result folders, or such a folder's `latest` file."""
    from groupgt.store.stamped import LAST, LATEST

    # URLs are passed as text.
    path = Path(path)
    if path.name == LATEST and path.is_file():
        return True
    return any((path / name).is_file() or any(path.glob(f"*/{name}")) for name in (LAST, LATEST))


def files_in(path: Path) -> tuple[Path, Path]:
    """Return the ground truth and the first run in the newest result folder at a path, to name them in errors."""
    from groupgt.results.folder import folders_of

    folder = folders_of([Path(path)])[-1]
    run = next(iter(sorted(folder.glob("runs/*/*"))), folder / "runs")
    return folder / "truth" / f"{run.parent.name}.jsonl", run


def name_and_path(run: Path | str) -> tuple[str, Path | str]:
    """Split `NAME=PATH` into name and path. The name is empty if the text is itself a path or URL."""
    text = str(run)
    # A name may have options, such as `bm25[k1=0.9,b=0.4]`.
    named = re.match(r"([^=\[]+(?:\[[^\]]*\])?)=(.+)", text, re.DOTALL)
    name, path = named.groups() if named else ("", "")
    if is_url(text) or not name or not path or {"/", os.sep} & set(name) or Path(text).exists():
        return "", run
    return name, path if is_url(path) else Path(path)


def input_options(*options: Decorator) -> Decorator:
    """Add options to a command, and pass their values in an `Inputs` object as its first argument."""
    names = {each.name for each in fields(Inputs)}

    def decorate(command: Any) -> Any:
        taken = inspect.signature(command).parameters.keys()

        @wraps(command)
        def with_inputs(**values: Any) -> None:
            given = {name: values.pop(name) for name in names.intersection(values)}
            options = {name: values.pop(name) for name in DECLARED.keys() & values.keys() - taken}
            inputs = Inputs(**given, given=options, takes_budgets="tokenizer" in given, takes_folder="systems" in given)
            with inputs.waiting:
                inputs.import_plugins()
                command(inputs, **values)
            inputs.judged.finish()

        return together(*options)(with_inputs)

    return decorate
