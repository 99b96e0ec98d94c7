"""The data sets of an experiment: reading, checks against the experiment file, and digests.

`runner` and `plan` read all of them before retrieving anything; each worker reads its own copy.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from groupgt.comparison.across import Measured, shared_queries
from groupgt.comparison.beside import texts_of
from groupgt.errors import ConfigError, DataError, Faults, GroupgtError, GroupgtWarning, MetricError
from groupgt.evaluation.evaluate import check_audit
from groupgt.evaluation.inputs import as_ground_truth
from groupgt.evaluation.request import Audit, Request
from groupgt.evaluation.slices import Slicer
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.evaluation.stages import cut_of
from groupgt.evaluation.unknown_ids import warn_of_blank
from groupgt.experiment.builds import Build
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.gates import check_slice
from groupgt.experiment.systems import combined, matching, some_of
from groupgt.formats.corpus import corpus_file, read_lengths
from groupgt.formats.parts import files_of, is_url
from groupgt.formats.queries import queries_file, read_queries
from groupgt.formats.tokenizers import check_tokenizer, tokenizer_named
from groupgt.labellers.base import Labeller
from groupgt.metrics.base import OF_SHAPE
from groupgt.metrics.language import check_sets
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.validity import shown
from groupgt.model.values import CALLS, SCORE, Lengths
from groupgt.options import paths_of
from groupgt.plugins import find
from groupgt.render.tables import counted
from groupgt.retrievers.base import Corpus, Queries
from groupgt.store.files import sha256
from groupgt.store.verdicts import VerdictStore


@dataclass(frozen=True, eq=False, kw_only=True)
class RetrievalInputs:
    """The part of a data set that determines results: ground truth selected by `where`, the corpus and its digest.

    `qids` are the ids of all its queries, in order.
    """

    truth: GroundTruth
    qids: list[str]
    corpus_digest: str
    corpus: Corpus | None = None

    @cached_property
    def left_out(self) -> int:
        """The maximum number of ids that the ground truth excludes from the results of one query."""
        return max(map(len, self.truth.excluded or ()), default=0)

    @cached_property
    def queries(self) -> Queries:
        """The queries, in the order of the ground truth."""
        return Queries([text or "" for text in self.truth.texts or [""] * len(self.truth)], self.truth.qids)


@dataclass(frozen=True, eq=False, kw_only=True)
class Data(RetrievalInputs):
    """One data set: its queries, and the `request` that defines how results on it are measured."""

    request: Request

    @cached_property
    def corpus_ids(self) -> frozenset[str] | None:
        """The ids of the corpus, or None without a corpus."""
        return None if self.corpus is None else frozenset(self.corpus.ids)

    @cached_property
    def absent(self) -> list[str]:
        """The ids of the ground truth that are not in the corpus, if results are matched by id."""
        if self.corpus_ids is None or self.request.labeller.name != "id":
            return []
        return sorted({name for name in self.truth.ids if name not in self.corpus_ids})


def read_all(experiment: Experiment, judged: VerdictStore | None = None, *, refresh: bool = False) -> dict[str, Data]:
    """Reads every data set; errors of all data sets are reported together.

    `judged` caches verdicts of labellers; with `refresh`, files made by a script are made again. Data sets that must be
    made first are skipped if no code may run.
    """
    unmade = make_files(experiment, refresh=refresh)
    faults = Faults()
    datasets: dict[str, Data] = {}
    for name in (name for name in experiment.config.datasets if name not in unmade):
        try:
            datasets[name] = _read(experiment, name, judged)
        except GroupgtError as error:
            faults.merge(error)
    kind = DataError if faults else ConfigError
    for name, data in datasets.items():
        _check(experiment, name, data, faults)
    _check_shared(experiment, datasets, faults)
    faults.stop(kind)
    _warn_of_depth(experiment)
    for name, data in datasets.items():
        if data.absent and len(data.absent) == len(set(data.truth.ids)):
            faults.add(experiment.document.place(("datasets", name, "corpus")), _all_absent(name, data))
        elif data.absent:
            warnings.warn(absent_ids(name, data.absent), GroupgtWarning, stacklevel=2)
        warn_of_blank(data.truth, data.request.lengths.texts, f"dataset {name!r}: ")
    faults.stop(DataError)
    return datasets


# --- Reading.


def _read(experiment: Experiment, name: str, judged: VerdictStore | None) -> Data:
    dataset = experiment.config.datasets[name]
    inputs = read_retrieval_inputs(experiment, name)
    tokenizer = experiment.config.evaluate.tokenizer
    count: Any = None
    if tokenizer is not None:
        is_skipped = experiment.unchecked is not None and check_tokenizer(tokenizer, allow_code=True)[0].runs_code
        count = (
            _not_run
            if is_skipped
            else tokenizer_named(tokenizer, allow_code=experiment.allow_code, folder=experiment.path.parent)
        )
    labeller = _labeller(experiment, name, judged)
    labeller.read(inputs.truth)  # reports invalid ground truth before anything is retrieved
    lengths = Lengths(count=count) if dataset.corpus is None else read_lengths(experiment.at(dataset.corpus), count)
    return Data(
        truth=inputs.truth,
        qids=inputs.qids,
        corpus_digest=inputs.corpus_digest,
        corpus=None if dataset.corpus is None else Corpus.of(dict(lengths.texts)),
        request=Request(
            metrics={str(metric): metric for metric in experiment.metrics.values()},
            convention=experiment.convention,
            is_auto=experiment.config.convention == "auto",
            by=tuple(experiment.config.evaluate.by),
            policy=experiment.policy,
            labeller=labeller,
            sources=Sources(lengths.texts or None),
            lengths=lengths,
            engine=experiment.engine,
            audit=_audit(experiment, name, inputs.truth),
        ),
    )


def _audit(experiment: Experiment, name: str, truth: GroundTruth) -> Audit | None:
    """The audit of a data set, checked."""
    dataset = experiment.config.datasets[name]
    if dataset.audit is None:
        return None
    audit = Audit(as_ground_truth(experiment.at(dataset.audit), experiment.policy), dataset.assume_random)
    try:
        check_audit(audit, truth)
    except GroupgtError as error:
        place = experiment.document.place(("datasets", name, "audit"))
        raise type(error)(f"{place}: datasets.{name}.{error}") from None
    return audit


def read_retrieval_inputs(experiment: Experiment, name: str) -> RetrievalInputs:
    """The queries of a data set and the digest of its corpus; no user code is run."""
    dataset = experiment.config.datasets[name]
    truth = as_ground_truth(experiment.at(dataset.ground_truth), experiment.policy, dataset.format)
    if dataset.queries is not None:
        truth = _with_texts(truth, experiment.at(dataset.queries))
    digest = "" if dataset.corpus is None else sha256(corpus_file(experiment.at(dataset.corpus)))
    return RetrievalInputs(truth=_where(experiment, truth, name), qids=truth.qids, corpus_digest=digest)


def _with_texts(truth: GroundTruth, path: Path) -> GroundTruth:
    """The ground truth with query texts from a separate file, if that file has them."""
    texts = read_queries(path)
    if not any(qid in texts for qid in truth.qids):
        there, here = (shown(next(iter(qids), "")) for qids in (texts, truth.qids))
        what = "none of its query ids is in the ground truth"
        raise DataError(f"{path}: {what}: it has ids such as {there}, the ground truth such as {here}")
    before = truth.texts or [None] * len(truth)
    return replace(truth, texts=[texts.get(qid, text) for qid, text in zip(truth.qids, before)])


def _labeller(experiment: Experiment, name: str, judged: VerdictStore | None) -> Labeller:
    """The labeller of a data set; what its options do not name comes from the corpus of the data set."""
    section, dataset = experiment.config.evaluate.labeller, experiment.config.datasets[name]
    options = {
        key: value.replace("{dataset}", name) if isinstance(value, str) else value
        for key, value in section.with_.items()
    }
    if section.version:
        options["version"] = section.version
    if experiment.unchecked is not None and find("labeller", section.use).runs_code:
        options["target"] = _not_run
    corpus = None if dataset.corpus is None else experiment.at(dataset.corpus)
    sources = Sources(corpus, experiment.path.parent.resolve(), allow_code=experiment.allow_code, judged=judged)
    return labeller_of({"use": section.use, "with": options}, sources)


def _not_run(*_: Any) -> NoReturn:
    """Replaces user code that may not run."""
    raise ConfigError("code of yours runs only with --allow-code")


def make_files(experiment: Experiment, *, refresh: bool) -> set[str]:
    """Runs the scripts that make files, each script once for all data sets that name it.

    Returns the data sets that are skipped.
    """
    faults = Faults()
    unmade: set[str] = set()
    scripts: dict[str, list[str]] = {}
    for name, dataset in experiment.config.datasets.items():
        if dataset.build is not None:
            scripts.setdefault(dataset.build, []).append(name)
    for script, names in scripts.items():
        configs = [experiment.config.datasets[name] for name in names]
        written = [path for config in configs for path in (config.ground_truth, config.corpus, config.queries)]
        files = [experiment.at(path) for path in dict.fromkeys(written) if path is not None]
        place = f"{experiment.document.place(('datasets', names[0], 'build'))}: datasets.{names[0]}.build"
        try:
            build = Build(experiment.at(script), files)
            why = build.why(refresh=refresh)
            if why and experiment.unchecked is not None:
                experiment.unchecked.append(f"datasets.{names[0]}.build: {build.script} must run: {why}")
                unmade.update(names)
            elif why and not experiment.allow_code:
                faults.add(place, f"{build.script} must run: {why}; allow it with --allow-code")
            elif why:
                build.run(experiment.path.parent)
        except DataError as error:
            for text in error.faults:
                faults.add(place, text)
    faults.stop(DataError)
    return unmade


def _where(experiment: Experiment, truth: GroundTruth, dataset: str) -> GroundTruth:
    """The rows whose columns have one of the values in `where`."""
    where = experiment.config.datasets[dataset].where
    faults = Faults()
    keep = np.ones(len(truth), dtype=np.bool_)
    for column, values in where.items():
        place = experiment.document.place(("datasets", dataset, "where", column), key=True)
        if column not in truth.columns:
            columns = ", ".join(truth.columns) or "none"
            faults.add(place, f"datasets.{dataset}.where: the ground truth has no column {column!r}; it has {columns}")
            continue
        cells = truth.columns[column]
        keep &= np.array([any(_same(cell, value) for value in values) for cell in cells], dtype=np.bool_)
        if not keep.any() and not faults:
            values_there = ", ".join(dict.fromkeys(shown(cell) for cell in cells))
            what = f"no query is left; the column holds {shown(values_there, 200)[1:-1]}"
            faults.add(place, f"datasets.{dataset}.where.{column}: {what}")
            break
    faults.stop(ConfigError)
    return truth.select(np.flatnonzero(keep).tolist()) if where else truth


def _same(cell: Any, value: Any) -> bool:
    """Whether a cell equals a value; true does not equal 1."""
    return isinstance(cell, bool) == isinstance(value, bool) and bool(cell == value)


# --- Checks that need the data.


def _check(experiment: Experiment, name: str, data: Data, faults: Faults) -> None:
    """Checks the shape, slice columns, query texts, slices of gates, and lengths for budgets."""
    document = experiment.document
    if experiment.config.convention == "auto" and OF_SHAPE[data.truth.shape] != experiment.convention:
        what = f"the ground truth of {name}, which was built just now, is of the shape {data.truth.shape}"
        hint = f"name its convention: convention: {OF_SHAPE[data.truth.shape]}"
        faults.add(document.place(("convention",)), f"convention: {what}; {hint}")
    try:
        check_sets(data.request.metrics.values(), data.truth.set_of is not None)
    except MetricError as error:
        faults.add(document.place(("evaluate", "metrics")), f"evaluate.metrics: dataset {name!r}: {error}")
    for position, column in enumerate(experiment.config.evaluate.by):
        try:
            Slicer(data.truth, [column])
        except GroupgtError as error:
            faults.add(document.place(("evaluate", "by", position)), f"evaluate.by: dataset {name!r}: {error}")
    if _needs_texts(experiment, name):
        absent = [qid for qid, text in zip(data.truth.qids, data.queries) if not text]
        if absent:
            what = f"{len(absent):,} queries have no text (query): {', '.join(absent[:3])}"
            hint = "" if experiment.config.datasets[name].queries else "; name a file that has them (queries)"
            faults.add(document.place(("datasets", name, "ground_truth")), f"dataset {name!r}: {what}{hint}")
    for number, gate in enumerate(experiment.config.gate):
        if gate.slice and name in matching(gate.dataset, experiment.config.datasets):
            try:
                check_slice(number, gate, Slicer(data.truth, list(gate.slice)), name, document)
            except GroupgtError as error:
                place = document.place(("gate", number, "slice"))
                faults.add(place, f"gate.{number}.slice: dataset {name!r}: {error}")
    for text in document.faults.texts:
        faults.add("", text)
    _check_budgets(experiment, name, data, faults)


def _check_shared(experiment: Experiment, datasets: dict[str, Data], faults: Faults) -> None:
    """Checks that data sets that are compared with one another have the same queries."""
    baseline = experiment.across
    if baseline is not None and baseline in datasets:
        inputs = {name: Measured(data.truth.qids, texts_of(data.truth)) for name, data in datasets.items()}
        try:
            shared_queries(inputs, baseline)
        except GroupgtError as error:
            for text in error.faults:
                faults.add(experiment.document.place(("compare", "across")), f"compare.across: {text}")


def _check_budgets(experiment: Experiment, name: str, data: Data, faults: Faults) -> None:
    """Checks that budgets have the lengths they need; stored results may include their own lengths, or calls."""
    if all(experiment.systems[system].is_stored for dataset, system in experiment.pairs() if dataset == name):
        return
    needs = {
        "chars": "a corpus",
        "tokens": "a corpus with a column tokens, or with evaluate.tokenizer",
        CALLS: "results that carry the number of the search call that found them, read with use: results alone",
    }
    for unit in dict.fromkeys(metric.budget.unit for metric in experiment.metrics.values() if metric.budget):
        if unit != SCORE and not data.request.lengths.has(unit):
            place = experiment.document.place(("evaluate", "metrics"))
            faults.add(place, f"evaluate.metrics: dataset {name!r}: a budget in {unit} needs {needs[unit]}")


def _needs_texts(experiment: Experiment, dataset: str) -> bool:
    """Whether a system of a data set, or one of its inputs, searches with the texts of the queries."""
    reported = [system for served, system in experiment.pairs() if served == dataset]
    names = {name for system in reported for name in combined(experiment.systems, system)}
    return any(experiment.systems[name].options.searches_texts() for name in names)


def _warn_of_depth(experiment: Experiment) -> None:
    """Warns of metrics whose cutoff is above the retrieval depth."""
    depth = experiment.config.evaluate.depth
    deeper = [
        text for text, metric in experiment.metrics.items() if isinstance(metric.cutoff, int) and metric.cutoff > depth
    ]
    if deeper and not all(system.is_stored for system in experiment.systems.values()):
        text = f"evaluate.depth: {depth:,} results are retrieved, but the cutoff is higher in {', '.join(deeper)}"
        warnings.warn(text, GroupgtWarning, stacklevel=3)


def absent_ids(dataset: str, absent: Sequence[str]) -> str:
    """The warning that ids of the ground truth are not in the corpus and so are never retrieved."""
    count = counted(len(absent), "id of the ground truth is", "ids of the ground truth are")
    return f"dataset {dataset!r}: {count} not in the corpus, so never retrieved: {some_of(absent, 3)}"


def _all_absent(dataset: str, data: Data) -> str:
    count, there = counted(len(data.absent), "id"), shown(min(data.corpus_ids or ("",)))
    return (
        f"dataset {dataset!r}: none of the {count} of the ground truth is in the corpus: {some_of(data.absent, 3)}; "
        f"the corpus has ids such as {there}. If it is another chunking, carry the ground truth over with "
        "groupgt rechunk, or match by places, texts or parents (evaluate.labeller)"
    )


# --- Digests.


def digests(experiment: Experiment, datasets: dict[str, Data]) -> dict[str, str]:
    """SHA-256 of the experiment file and of every data file that it names."""
    by_name = {experiment.path.name: sha256(experiment.path)}

    def add(name: str | None) -> None:
        if name is not None and experiment.at(name).is_file():
            by_name[name] = sha256(experiment.at(name))

    for dataset, config in experiment.config.datasets.items():
        add(config.ground_truth)
        add(config.audit)
        if config.queries is not None:
            by_name[config.queries] = sha256(queries_file(experiment.at(config.queries)))
        if config.corpus is not None:
            by_name[config.corpus] = datasets[dataset].corpus_digest
    kind, _, tokenizer_file = (experiment.config.evaluate.tokenizer or "").partition(":")
    if kind == "tokenizers":
        add(tokenizer_file)
    labeller = experiment.config.evaluate.labeller
    for key in paths_of(find("labeller", labeller.use).options, labeller.with_):
        for dataset in experiment.config.datasets:
            add(labeller.with_[key].replace("{dataset}", dataset))
    for dataset, system in experiment.pairs():
        for text in experiment.systems[system].config.stages.values():
            add(cut_of(text.replace("{dataset}", dataset))[0])
        options = experiment.options(system, dataset)
        for option in experiment.paths_of(system):
            written: str = getattr(experiment.systems[system].options, option)
            path, name = Path(getattr(options, option)), written.replace("{dataset}", dataset)
            if path.is_file():
                by_name[name] = sha256(path)
            elif experiment.systems[system].is_stored and not is_url(written):
                for part in files_of(path) or ():
                    by_name[f"{name}: {part.name}"] = sha256(part)
    return dict(sorted(by_name.items()))
