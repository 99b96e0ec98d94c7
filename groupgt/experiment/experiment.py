"""Reads and checks experiment files, reports every error with its line and column, and builds an `Experiment`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from groupgt.comparison.settings import Settings
from groupgt.engines.choice import Engine, engine_of
from groupgt.errors import ConfigError, listed, near_names
from groupgt.evaluation.trials import check_trials
from groupgt.experiment.best import BestRule
from groupgt.experiment.checks import Checks
from groupgt.experiment.config import Compare, Config, Dataset, Evaluate, Output, Report
from groupgt.experiment.systems import Families, Stage, System, matching, some_of, stages_of, trials_of
from groupgt.experiment.yaml import Document, as_yaml, change, plain_text, read_yaml
from groupgt.formats.modules import import_plugin
from groupgt.formats.parts import is_url
from groupgt.metrics.base import ConventionName
from groupgt.metrics.language import Metric
from groupgt.model.policy import Policy
from groupgt.options import KeyPath, as_dict, options_of, read_section
from groupgt.plugins import find, ours
from groupgt.private import Hide


@dataclass(frozen=True, eq=False)
class Experiment:
    """A checked experiment file. `unchecked` lists checks that would run user code (None if none are skipped)."""

    path: Path
    document: Document
    config: Config
    systems: dict[str, System]
    chosen: list[str]
    metrics: dict[str, Metric]
    convention: ConventionName
    policy: Policy
    allow_code: bool = False
    unchecked: list[str] | None = None

    @cached_property
    def engine(self) -> Engine:
        """The engine that labels stored results."""
        section = self.config.engine
        return engine_of({"use": section.use, "with": section.with_})

    @cached_property
    def rule(self) -> BestRule:
        """The rule for choosing the best system."""
        return BestRule.of(self.config.evaluate, self.metrics, self.convention)

    @property
    def primary(self) -> str:
        """The primary metric: `evaluate.primary` if set, otherwise the first metric in the file."""
        return self.config.evaluate.primary or next(iter(self.metrics))

    @cached_property
    def settings(self) -> Settings:
        """The comparison settings. Without a `compare` section, the settings only affect deltas."""
        section, seed = self.config.compare, self.config.seed
        return Settings(seed=seed) if section is None else section.settings(seed)

    @property
    def across(self) -> str | None:
        """The data set that all others are compared with, or None."""
        compare = self.config.compare
        return None if compare is None or compare.across == "systems" else compare.baseline

    @cached_property
    def hide(self) -> Hide:
        """A function that removes secrets and this file's folder from displayed text."""
        return Hide(self.document.secrets, self.path.parent.resolve())

    @property
    def title(self) -> str:
        """The experiment name as written in the file."""
        return str(self.document.as_written(self.config.name, ("name",)))

    @property
    def as_written(self) -> dict[str, Any]:
        """The resolved configuration, with environment variable names in place of their values."""
        written: dict[str, Any] = self.hide(self.document.as_written(as_dict(self.config), ()))
        return written

    def at(self, path: str) -> Path:
        """Resolve a path from the file. Relative paths start from the file's folder."""
        return self.document.resolved(path)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield every (data set, system) pair to evaluate."""
        for dataset in self.config.datasets:
            for name in self.chosen:
                if self.systems[name].config.serves(dataset):
                    yield dataset, name

    def stages(self, system: str, dataset: str) -> list[Stage]:
        """Return the stages that are listed under a system."""
        return list(stages_of(self.systems[system].config, self.systems, dataset))

    def options(self, system: str, dataset: str) -> Any:
        """Return the options of a system for one data set, with absolute paths and `{dataset}` filled in."""
        options = self.systems[system].options
        paths = {name: getattr(options, name).replace("{dataset}", dataset) for name in self.paths_of(system)}
        # A URL does not change.
        return replace(options, **{name: path if is_url(path) else str(self.at(path)) for name, path in paths.items()})

    def shown_options(self, system: str) -> dict[str, Any]:
        """Return the options of a system with defaults but without secrets."""
        options, paths = self.systems[system].options, self.systems[system].paths
        written = {
            field.name: self.document.as_written(getattr(options, field.name), paths.get(field.name, ()))
            for field in fields(options)
        }
        shown: dict[str, Any] = self.hide(written)
        return shown

    def paths_of(self, system: str) -> list[str]:
        """Return the names of options that are set to file paths or to existing folders."""
        options = self.systems[system].options
        named = [(option, getattr(options, option.name)) for option in options_of(type(options)).values()]
        folders = {option.name for option, value in named if value and option.is_folder and self.at(value).is_dir()}
        return [option.name for option, value in named if value and (option.is_path or option.name in folders)]


def load(
    path: Path,
    *,
    changes: Sequence[str] = (),
    only: Sequence[str] = (),
    allow_code: bool = False,
    dry: bool = False,
    files_only: bool = False,
    allow_plugins: bool | None = None,
    secrets: dict[str, str] | None = None,
) -> Experiment:
    """Read and check an experiment file, or raise `ConfigError` with the line and column of every error.

    `changes` contains settings such as `evaluate.k=[5]`, and `only` patterns for the systems to report. Without
    `allow_code`, user code is an error, or is skipped with `dry`. Plug-ins are never skipped, because the file may use
    what they register (`allow_plugins` defaults to `allow_code`). `files_only` ignores errors in systems that retrieve,
    since their modules and programs may be elsewhere. Values of environment variables are added to `secrets`.
    """
    document = read_yaml(path, secrets)
    for setting in changes:
        change(document, setting)
    _import_plugins(document, allowed=allow_code if allow_plugins is None else allow_plugins)
    config = _validated(document)
    if config is None:
        document.faults.fail(ConfigError)
    checks = Checks(document, config, allow_code=allow_code, unchecked=[] if dry and not allow_code else None)
    checks.walk()
    systems = checks.families.systems
    chosen = _chosen(document, checks.families, only, config.baseline)
    for name in [] if document.faults.total else chosen:
        _check_trials(document, checks, name)
    if files_only:
        live = {("systems", name) for name, system in config.systems.items() if system.use != "results"}
        document.drop({("compare", "test"), *live})
    document.sort()
    document.faults.stop(ConfigError)
    return Experiment(
        path=path,
        document=document,
        config=config,
        systems=systems,
        chosen=chosen,
        metrics=checks.metrics,
        convention=checks.convention,
        policy=checks.policy,
        allow_code=allow_code,
        unchecked=checks.code.unchecked,
    )


def _import_plugins(document: Document, *, allowed: bool) -> None:
    """Import the modules under `plugins`. Values that are not text are reported with the other keys."""
    named = document.value.get("plugins") if isinstance(document.value, dict) else None
    faults_before = document.faults.total
    for position, name in enumerate(named if isinstance(named, list) else [named]):
        path: KeyPath = ("plugins", position) if isinstance(named, list) else ("plugins",)
        if not isinstance(name, str):
            continue
        if not allowed:
            document.fault(path, f"{name} runs your code; allow it with --allow-code")
            continue
        with document.faulting(path):
            import_plugin(name, document.folder.resolve())
    if document.faults.total > faults_before:
        document.faults.fail(ConfigError)


def _chosen(document: Document, families: Families, only: Sequence[str], baseline: str | None) -> list[str]:
    """Select the systems to report, including the baseline that they are compared with."""
    names = list(families.systems)
    if not only:
        return names
    selected = {baseline}
    for pattern in only:
        matched = matching(pattern, names)
        if not matched and not families.may_be(pattern):
            what = f"no system has this name{families.near(pattern, names)}; known systems: {some_of(names)}"
            document.faults.add(f"--only {plain_text(pattern)}", what)
        selected.update(matched)
    return [name for name in names if name in selected]


def _check_trials(document: Document, checks: Checks, name: str) -> None:
    """Report metrics that need more trials than a system has. Trials of stored results are counted later."""
    system, times = checks.families.systems[name], trials_of(checks.families.systems, name)
    hint = "; give it `trials`, or leave it out with --only"
    with document.faulting(("systems", system.family), after=hint):
        check_trials(() if system.is_stored else checks.metrics.values(), times if times > 1 else 0)


# What is left of required keys whose value is invalid.
EMPTY = {"version": 1, "name": "", "datasets": {}, "systems": {}, "evaluate": Evaluate(metrics=[])}
# The keys of each section, by the beginning of their full names.
SECTIONS = {"": options_of(Config), "datasets.NAME.": options_of(Dataset), "evaluate.": options_of(Evaluate)}
SECTIONS |= {"compare.": options_of(Compare), "output.": options_of(Output), "report.": options_of(Report)}


def _validated(document: Document) -> Config | None:
    """Read the configuration and report invalid values. Other values are still checked."""
    config: Config | None
    config, faults = read_section(Config, document.value, as_yaml, EMPTY)
    for fault in faults:
        if fault.path not in document.partial:
            what = (_misplaced(fault.path, document) if fault.kind == "unknown" else "") or fault.what
            document.fault(fault.path, what, key=fault.is_of_key)
    document.partial.update(fault.path for fault in faults)
    return config


def _misplaced(path: KeyPath, document: Document) -> str:
    """Return where an unknown key belongs, or nothing if no section has the key or if its own has a similar one."""
    use = document.value["systems"][path[1]].get("use") if len(path) == 3 and path[0] == "systems" else None
    if use in ours("retriever") and path[-1] in options_of(find("retriever", use).options):
        return "options go under `with`, or under `matrix` with a list of values"
    *above, key = map(str, path)
    similar = near_names(key, SECTIONS.get("".join(f"{part}." for part in above), ()))
    holding = [section for section, keys in SECTIONS.items() if key in keys]
    places = [f"in {section}{key}" if section else "at the top level" for section in holding]
    return f"unknown key; it belongs {listed(places)}" if places and not similar else ""
