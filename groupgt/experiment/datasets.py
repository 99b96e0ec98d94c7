"""Reads the data sets of an experiment, checks them against the experiment file, and computes digests."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from groupgt.comparison.across import Measured, shared_queries, texts_of
from groupgt.errors import ConfigError, DataError, Faults, GroupgtError, KeptWarning, collecting, warn
from groupgt.evaluation.evaluate import check_audit
from groupgt.evaluation.joined_ids import fault_of_joined
from groupgt.evaluation.reading import Reading
from groupgt.evaluation.request import Audit, Request
from groupgt.evaluation.slices import Slicer
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.evaluation.unknown_ids import absent_ids, warn_of_corpus
from groupgt.experiment.config import Gate
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.systems import combined, matching, some_of
from groupgt.experiment.yaml import Document
from groupgt.formats.corpus import corpus_file, queries_file, read_lengths, read_queries
from groupgt.formats.parts import files_of, is_url
from groupgt.formats.tokenizers import check_tokenizer, tokenizer_named
from groupgt.labellers.base import Labeller
from groupgt.metrics.base import OF_SHAPE
from groupgt.metrics.language import check_sets
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.validity import shown
from groupgt.model.values import CALLS, SCORE, Lengths, as_json, normal_text
from groupgt.options import paths_of
from groupgt.plugins import find
from groupgt.render.tables import counted
from groupgt.retrievers.base import Corpus, Queries
from groupgt.store.cache import key_of
from groupgt.store.files import sha256
from groupgt.store.verdicts import VerdictStore


@dataclass(frozen=True, eq=False, kw_only=True)
class RetrievalInputs:
    """The part of a data set that affects retrieval."""

    truth: GroundTruth
    corpus_digest: str
    corpus: Corpus | None = None

    @cached_property
    def left_out(self) -> int:
        """The maximum number of ids that the ground truth excludes for any query."""
        return max(map(len, self.truth.excluded or ()), default=0)

    @cached_property
    def queries(self) -> Queries:
        """The queries in ground truth order, with all columns."""
        texts = [text or "" for text in self.truth.texts or [""] * len(self.truth)]
        return Queries(texts, self.truth.qids, self.truth.columns)

    @cached_property
    def column_digests(self) -> dict[str, str]:
        """A hash of each column's values."""
        return {name: key_of({"values": as_json(values)}) for name, values in self.queries.columns.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class Data(RetrievalInputs):
    """One data set, the `request` that measures results, and `warnings` that change the meaning of its scores."""

    request: Request
    warnings: list[KeptWarning] = field(default_factory=list)

    @cached_property
    def corpus_ids(self) -> frozenset[str] | None:
        """The passage ids in the corpus, or None if there is no corpus."""
        return None if self.corpus is None else frozenset(self.corpus.ids)

    @cached_property
    def absent(self) -> list[str]:
        """The ground truth ids that are missing from the corpus, if results are matched by id."""
        return absent_ids(self.truth, self.request)


def read_all(experiment: Experiment, judged: VerdictStore | None = None) -> dict[str, Data]:
    """Read every data set, compare its ground truth with its corpus, and report all errors together."""
    faults, document, datasets = Faults(), experiment.document, read_each(experiment, judged)
    _warn_of_depth(experiment)
    for name, data in datasets.items():
        with collecting(data.warnings):
            is_asked = not all(experiment.systems[system].is_stored for of, system in experiment.pairs() if of == name)
            # Retrieved ids are those of the corpus.
            if is_asked and (fault := fault_of_joined(data.truth.unsplit, data.request.passages)):
                faults.add(document.place(("datasets", name, "ground_truth")), f"dataset {name!r}: {fault}")
                continue
            if data.absent and len(data.absent) == len(set(data.truth.ids)):
                faults.add(document.place(("datasets", name, "corpus")), _all_absent(name, data))
                continue
            try:
                warn_of_corpus(data.truth, data.request, f"dataset {name!r}: ")
            except DataError as error:
                faults.add(document.place(("datasets", name, "corpus")), str(error))
    faults.stop(DataError)
    return datasets


def read_each(experiment: Experiment, judged: VerdictStore | None = None) -> dict[str, Data]:
    """Read every data set, and check that it has everything the experiment file needs."""
    faults = Faults()
    document = replace(experiment.document, faults=faults)
    datasets: dict[str, Data] = {}
    for name in experiment.config.datasets:
        with faults.merging():
            datasets[name] = _read(experiment, name, judged)
    kind = DataError if faults else ConfigError
    for name, data in datasets.items():
        _check(experiment, name, data, document)
    if experiment.across in datasets:
        inputs = {name: Measured(data.truth.qids, texts_of(data.truth)) for name, data in datasets.items()}
        try:
            shared_queries(inputs, experiment.across)
        except GroupgtError as error:
            for text in error.faults:
                document.fault(("compare", "across"), text)
    faults.stop(kind)
    return datasets


# --- Reading.


def _read(experiment: Experiment, name: str, judged: VerdictStore | None) -> Data:
    dataset = experiment.config.datasets[name]
    inputs = read_retrieval_inputs(experiment, name)
    truth = inputs.truth
    tokenizer = experiment.config.evaluate.tokenizer
    count: Any = None
    if tokenizer is not None:
        is_skipped = experiment.unchecked is not None and check_tokenizer(tokenizer, allow_code=True)[0].runs_code
        folder = experiment.path.parent
        count = _not_run if is_skipped else tokenizer_named(tokenizer, allow_code=experiment.allow_code, folder=folder)
    labeller = _labeller(experiment, name, judged)
    labeller.read(truth)  # reports invalid ground truth before anything is retrieved
    lengths = Lengths(count=count) if dataset.corpus is None else read_lengths(experiment.at(dataset.corpus), count)
    request = Request.of(
        list(experiment.metrics.values()),
        convention=experiment.convention,
        by=experiment.config.evaluate.by,
        policy=experiment.policy,
        labeller=labeller,
        corpus=lengths.texts or None,
        lengths=lengths,
        engine=experiment.engine,
        scores={name: system.config.scores for name, system in experiment.systems.items()},
        **experiment.config.evaluate.options,
    )
    is_auto, audit = experiment.config.convention == "auto", _audit(experiment, name, truth)
    request = replace(request, is_auto=is_auto, audit=audit)
    corpus = None if dataset.corpus is None else Corpus.of(dict(lengths.texts))
    return Data(truth=truth, corpus_digest=inputs.corpus_digest, corpus=corpus, request=request)


def _audit(experiment: Experiment, name: str, truth: GroundTruth) -> Audit | None:
    options = experiment.config.datasets[name].reading
    if options["audit"] is None:
        return None
    reading = Reading.of(policy=experiment.policy, **options)
    audit = Audit(reading.annotation(experiment.at(options["audit"])), options["assume_random"])
    try:
        check_audit(audit, truth)
    except GroupgtError as error:
        place = experiment.document.place(("datasets", name, "audit"))
        raise type(error)(f"{place}: datasets.{name}.{error}") from None
    return audit


def read_retrieval_inputs(experiment: Experiment, name: str) -> RetrievalInputs:
    """Read the queries and corpus digest of a data set without running user code."""
    dataset = experiment.config.datasets[name]
    path = experiment.at(dataset.ground_truth)
    reading = Reading.of(policy=experiment.policy, **dataset.reading)
    truth = reading.whole_truth(path)
    if dataset.queries is not None:
        truth = _with_texts(truth, experiment.at(dataset.queries))
    digest = "" if dataset.corpus is None else sha256(corpus_file(experiment.at(dataset.corpus)))
    return RetrievalInputs(truth=_selected(experiment, reading, truth, name), corpus_digest=digest)


def _with_texts(truth: GroundTruth, path: Path) -> GroundTruth:
    """Fill in query texts from a separate file, or raise `DataError` if no query id matches."""
    texts = read_queries(path)
    if not any(qid in texts for qid in truth.qids):
        there, here = (shown(next(iter(qids), "")) for qids in (texts, truth.qids))
        what = "none of its query ids is in the ground truth"
        raise DataError(f"{path}: {what}; ids look like {there} in this file, but like {here} in the ground truth")
    before = truth.texts or [None] * len(truth)
    pairs = ((qid, text, texts.get(qid)) for qid, text in zip(truth.qids, before))
    others = [qid for qid, text, other in pairs if text and other and normal_text(text) != normal_text(other)]
    if others:
        count = counted(len(others), "query has", "queries have")
        example = shown(others[0])
        warn(f"{path}: {count} different text in the ground truth, such as {example}; groupgt uses this file's text")
    return replace(truth, texts=[texts.get(qid, text) for qid, text in zip(truth.qids, before)])


def _labeller(experiment: Experiment, name: str, judged: VerdictStore | None) -> Labeller:
    """Build the labeller for a data set. Missing sources default to the data set's corpus."""
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
    """Raise an error in place of user code that must not run."""
    raise ConfigError("your code runs only with --allow-code")


def _selected(experiment: Experiment, reading: Reading, truth: GroundTruth, dataset: str) -> GroundTruth:
    try:
        return reading.selected(truth)
    except ConfigError as error:
        key, _, what = str(error).partition(": ")
        place = experiment.document.place(("datasets", dataset, *key.split(".", 1)), key=True)
        raise ConfigError(f"{place}: datasets.{dataset}.{key}: {what}") from None


# --- Checks that need the data.

# What a budget needs, by its unit.
NEEDS = {
    "chars": "a corpus",
    "tokens": "a corpus with a `tokens` column, or with evaluate.tokenizer",
    CALLS: "the call number of every result, which only `use: results` reads",
}


def _check(experiment: Experiment, name: str, data: Data, document: Document) -> None:
    """Check shape, slice columns, query texts, gate slices, and lengths for budgets."""
    faults, systems, title = document.faults, experiment.systems, f"dataset {name!r}: "
    if experiment.config.convention == "auto" and OF_SHAPE[data.truth.shape] != experiment.convention:
        what = f"the ground truth of {name}, which was just built, has the shape {data.truth.shape}"
        document.fault(("convention",), f"{what}; set `convention: {OF_SHAPE[data.truth.shape]}`")
    with document.faulting(("evaluate", "metrics"), title):
        check_sets(data.request.metrics.values(), data.truth.set_of is not None)
    for position, column in enumerate(experiment.config.evaluate.by):
        try:
            Slicer(data.truth, [column])
        except GroupgtError as error:
            faults.add(document.place(("evaluate", "by", position)), f"evaluate.by: {title}{error}")
    reported = [system for dataset, system in experiment.pairs() if dataset == name]
    if any(systems[below].options.searches_texts() for system in reported for below in combined(systems, system)):
        absent = [qid for qid, text in zip(data.truth.qids, data.queries) if not text]
        if absent:
            what = f"{counted(len(absent), 'query has', 'queries have')} no text (query): {', '.join(absent[:3])}"
            hint = "" if experiment.config.datasets[name].queries else "; add a file with query text under `queries`"
            faults.add(document.place(("datasets", name, "ground_truth")), f"{title}{what}{hint}")
    for system in systems.values():
        for position, column in enumerate(system.options.sends() if system.config.serves(name) else ()):
            with document.faulting((*system.paths["send"], position), title):
                data.queries.sending([column])
    for number, gate in enumerate(experiment.config.gate):
        if gate.slice and name in matching(gate.dataset, experiment.config.datasets):
            with document.faulting(("gate", number, "slice"), title):
                _check_slice(number, gate, Slicer(data.truth, list(gate.slice)), name, document)
    # Stored results may bring their own lengths.
    budgets = [] if all(systems[system].is_stored for system in reported) else experiment.metrics.values()
    for unit in dict.fromkeys(metric.budget.unit for metric in budgets if metric.budget):
        if unit != SCORE and not data.request.lengths.has(unit):
            document.fault(("evaluate", "metrics"), f"{title}a budget in {unit} needs {NEEDS[unit]}")


def _check_slice(number: int, gate: Gate, slicer: Slicer, dataset: str, document: Document) -> None:
    """Add an error for each value in a gate's slice that no query has."""
    for column, value in gate.slice.items():
        values = [text for name, text, _ in slicer if name == column]
        if str(value) not in values:
            what = f"no query in dataset {dataset!r} has {str(value)!r}; known values: {', '.join(values[:20])}"
            document.fault(("gate", number, "slice", column), what)


def _warn_of_depth(experiment: Experiment) -> None:
    """Warn about metrics whose cutoff exceeds the retrieval depth."""
    depth = experiment.config.evaluate.depth
    cutoffs = {text: metric.cutoff for text, metric in experiment.metrics.items()}
    deeper = [text for text, cutoff in cutoffs.items() if isinstance(cutoff, int) and cutoff > depth]
    if deeper and not all(system.is_stored for system in experiment.systems.values()):
        warn(f"evaluate.depth: only {depth:,} results are retrieved, fewer than the cutoff of {', '.join(deeper)}")


def _all_absent(dataset: str, data: Data) -> str:
    count, there = counted(len(data.absent), "id"), shown(min(data.corpus_ids or ("",)))
    return (
        f"dataset {dataset!r}: none of the {count} in the ground truth is in the corpus: "
        f"{some_of(data.absent, most=3)}; the corpus has ids such as {there}. If the corpus is chunked "
        "differently, map the ground truth to it with groupgt rechunk, or match by spans, text or parents "
        "(evaluate.labeller)"
    )


# --- Digests.


def digests(experiment: Experiment, datasets: dict[str, Data]) -> dict[str, str]:
    """Compute SHA-256 digests of the experiment file and of every data file it refers to."""
    by_name = {experiment.path.name: sha256(experiment.path)}

    def add(name: str | None) -> None:
        if name is not None and experiment.at(name).is_file():
            by_name[name] = sha256(experiment.at(name))

    for module in experiment.config.plugins:
        add(f"{module.replace('.', '/')}.py")
    for dataset, config in experiment.config.datasets.items():
        add(config.ground_truth)
        add(config.reading["audit"])
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
        for stage in experiment.stages(system, dataset):
            add(None if stage.is_system else stage.source)
        if (answers := experiment.systems[system].config.answers) is not None:
            for file in answers.paths(dataset).values():
                add(file)
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
