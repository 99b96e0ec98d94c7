"""What labellers are built from: corpora, tables, vectors and functions, read from where options say.

`labeller_of` makes a labeller of a name and options; labellers themselves know no files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from groupgt.engines.calls import in_call_order
from groupgt.engines.choice import Engine, engine_of
from groupgt.engines.excluded import without_excluded
from groupgt.errors import ConfigError, DataError, display
from groupgt.formats import detect, frames
from groupgt.formats.corpus import read_chunks, read_corpus, read_parents
from groupgt.formats.parts import refuse_many
from groupgt.labellers.base import Labeller
from groupgt.metrics.language import Metric, parse_metrics, split_names, warn_of_idle_cutoffs
from groupgt.metrics.values import check_policy
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.validity import id_text
from groupgt.model.values import Budget, Chunks, Lengths, as_lengths
from groupgt.options import chosen
from groupgt.store.verdicts import Verdicts


def labeller_of(spec: Any, sources: Sources | None = None, *, texts: bool = False) -> Labeller:
    """A `Labeller`, a name, or `{"use": name, "with": {option: value}}`; raises `ConfigError` with every fault.

    With `texts`, as a shell has them, numbers and truth values are read from text.
    """
    if isinstance(spec, Labeller):
        return spec
    plugin, options = chosen("labeller", spec, texts=texts, also="a Labeller")
    labeller: Labeller = plugin.built(options, sources or Sources())
    return labeller


@dataclass(frozen=True, eq=False)
class Sources:
    """What labellers are built from: the `corpus` at hand, and files relative to `folder`.

    `cache` is the folder in which verdicts are kept; code of the user's runs only with `allow_code`.
    """

    corpus: Any = None
    folder: Path = field(default_factory=Path)
    allow_code: bool = True
    cache: Path | None = None
    _read: dict[Path, dict[str, str]] = field(default_factory=dict, repr=False)

    def texts(self, given: Any, option: str) -> Mapping[str, str]:
        """{id: text} of a corpus: a path, a mapping, or (where nothing is given) the corpus at hand."""
        chosen = self.corpus if _is_absent(given) else given
        if chosen is None:
            return {}
        if isinstance(chosen, Mapping):
            return _texts(chosen, option)
        if not isinstance(chosen, (str, os.PathLike)):
            raise ConfigError(f"{option}: expected a path or {{id: text}}, found {display(chosen)}")
        path = Path(chosen) if _is_absent(given) else self._path(chosen, option)
        if path not in self._read:
            self._read[path] = read_corpus(path)
        return self._read[path]

    def chunks(self, given: Any, option: str) -> Chunks | None:
        """The places of chunks of a table; of the corpus at hand, where nothing is given and it holds some."""
        if not _is_absent(given):
            if isinstance(given, Chunks):
                return given
            return Chunks.of(given) if isinstance(given, Mapping) else read_chunks(self._path(given, option))
        if isinstance(self.corpus, (str, os.PathLike)):
            return read_chunks(self.corpus, optional=True)
        return None

    def parents(self, given: Any, column: str) -> Mapping[str, str]:
        """{id: its parent} of a file or a mapping."""
        if isinstance(given, Mapping):
            return _texts(given, "mapping", numbers=True)
        return read_parents(self._path(given, "mapping"), column)

    def vectors(self, given: Any, option: str) -> Mapping[str, Any]:
        """{id: its vector} of a file or a mapping."""
        if isinstance(given, Mapping):
            return given
        from groupgt.formats.vectors import table_of

        return table_of(self._path(given, option))

    def encoder(self, model: str) -> Callable[[list[str]], Any]:
        """What makes vectors of texts: a sentence-transformers model."""
        from groupgt.formats.vectors import encoder_of

        if find_spec("sentence_transformers") is None:
            raise ConfigError("labeller model: a model needs sentence-transformers: pip install 'groupgt[dense]'")
        local = self.folder / model
        return encoder_of(str(local) if local.is_dir() else model)

    def function(self, target: Any) -> tuple[Callable[..., Any], str]:
        """A function, and the SHA-256 of what it was read from."""
        from groupgt.formats.modules import imported, source_of

        if not callable(target):
            if not self.allow_code:
                raise ConfigError(f"labeller target: {target} is your code, which runs only with --allow-code")
            name = target
            target = imported(target, self.folder.resolve())
            if not callable(target):
                raise ConfigError(f"labeller target: expected a function, found {display(target)}")
            path = source_of(name)
            return target, "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()
        return target, hashlib.sha256(_source_of(target).encode()).hexdigest()

    def verdicts(self, key: str) -> Verdicts:
        """What was judged under a key before."""
        return Verdicts(None if self.cache is None else self.cache / "verdicts" / f"{key}.jsonl")

    def _path(self, given: Any, option: str) -> Path:
        if not isinstance(given, (str, os.PathLike)):
            raise ConfigError(f"labeller {option}: expected a path or a mapping, found {display(given)}")
        return self.folder / given


def _source_of(target: Any) -> str:
    """What a function, or the class of what is called, was written as; its name where that is not to be had."""
    import inspect

    for written in (target, type(target)):
        try:
            return inspect.getsource(written)
        except (OSError, TypeError):
            continue
    return f"{type(target).__module__}.{type(target).__qualname__}"


def _is_absent(given: Any) -> bool:
    return given is None or (isinstance(given, str) and not given)


def _texts(given: Mapping[Any, Any], option: str, *, numbers: bool = False) -> dict[str, str]:
    """{id: text} of a mapping; with `numbers`, whole numbers are texts as well."""
    texts: dict[str, str] = {}
    for key, value in given.items():
        name, text = id_text(key), id_text(value) if numbers else value
        if name is None or not isinstance(text, str):
            raise DataError(f"labeller {option}: expected {{id: text}}, found {display(key)}: {display(value)}")
        texts[name] = text
    return texts


@dataclass(frozen=True, eq=False)
class Request:
    """How results are to be measured: `metrics` by the text asked, under a `convention`, in slices `by` columns.

    `labeller` decides what hits what, `policy` what is done with doubtful data, `lengths` how much of a run fits a
    budget, `engine` where labelling happens; the corpus at hand is among the `sources`. `parts` says that
    many files are one run.
    """

    metrics: dict[str, Metric]
    convention: str
    by: tuple[str, ...]
    policy: Policy
    labeller: Labeller
    sources: Sources
    lengths: Lengths
    engine: Engine
    truth_format: str | None = None
    run_format: str | None = None
    parts: bool = False

    @classmethod
    def of(
        cls,
        metrics: str | Metric | Sequence[str | Metric] = (),
        *,
        convention: str = "autorag",
        k: int | Sequence[int] = (),
        by: Sequence[str] | str = (),
        policy: Policy | str | Sequence[str] | Mapping[str, str] | None = None,
        labeller: Any = "id",
        lengths: Any = None,
        corpus: Any = None,
        truth_format: str | None = None,
        run_format: str | None = None,
        parts: bool = False,
        engine: Any = "auto",
    ) -> Request:
        """Resolves the options of `evaluate`; raises `MetricError` or `ConfigError`."""
        rules, how = Policy.of(policy), engine_of(engine)
        if isinstance(metrics, str):
            metrics = split_names(metrics) or [metrics]
        texts, ks = [metrics] if isinstance(metrics, Metric) else metrics, [k] if isinstance(k, int) else k
        asked = parse_metrics(texts, convention, ks)
        warn_of_idle_cutoffs(texts, convention, ks)
        check_policy(rules, asked)
        sources = Sources(corpus)
        judge = labeller_of(labeller, sources)
        known = as_lengths(lengths)
        if lengths is None and corpus is not None and any(metric.budget is not None for metric in asked.values()):
            known = Lengths(texts=sources.texts(None, "corpus"))
        return cls(
            metrics=asked,
            convention=convention,
            by=(by,) if isinstance(by, str) else tuple(by),
            policy=rules,
            labeller=judge,
            sources=sources,
            lengths=known,
            engine=how,
            truth_format=truth_format,
            run_format=run_format,
            parts=parts,
        )

    @property
    def budgets(self) -> set[Budget]:
        """The cutoffs that are a length, such as 2000 tokens."""
        return {metric.budget for metric in self.metrics.values() if metric.budget is not None}

    @property
    def reads_texts(self) -> bool:
        """Whether a metric looks into the texts of results."""
        return any(metric.definition.reads_texts for metric in self.metrics.values())

    def truth_of(self, value: Any) -> GroundTruth:
        """Ground truth under this policy, from whatever the user has."""
        return as_ground_truth(value, self.policy, self.truth_format, self.engine.ceiling)

    def run_of(self, value: Any, truth: GroundTruth, name: str = "") -> Run:
        """The results of one system, from whatever the user has."""
        return as_run(value, truth, self.run_format, name, parts=self.parts, engine=self.engine)


def metrics_in(texts: Sequence[str], conventions: Sequence[str], ks: Sequence[int]) -> list[Metric]:
    """Each metric under each convention, what has only one meaning once; cutoffs as in `parse_metrics`."""
    metrics: dict[Metric, None] = {}
    for convention in conventions:
        metrics.update(dict.fromkeys(parse_metrics(texts, convention, ks).values()))
    warn_of_idle_cutoffs(texts, conventions[0], ks)
    return list(metrics)


def as_ground_truth(value: Any, policy: Policy, format: str | None = None, ceiling: int = 0) -> GroundTruth:
    """A mapping, a path, a frame, or what is a `GroundTruth` already; files under a `ceiling` of bytes."""
    if isinstance(value, (str, os.PathLike)):
        truth = detect.read_ground_truth(value, format, policy, ceiling=ceiling)
    elif isinstance(value, Mapping):
        truth = GroundTruth.of(value, policy)
    elif frames.is_frame(value):
        truth = frames.truth_of(value, policy)
    elif isinstance(value, GroundTruth):
        truth = value
    else:
        kind = type(value).__name__
        raise DataError(f"ground truth: expected {{query id: groups}}, a path or a frame, found {kind}")
    # A mapping may be built query by query; a file or a frame without any is a mistake.
    if not len(truth) and not isinstance(value, (Mapping, GroundTruth)):
        title = value if isinstance(value, (str, os.PathLike)) else "ground truth"
        raise DataError(f"{title}: the ground truth is empty; expected at least one query")
    return truth.under(policy)


def _are_paths(value: Any) -> bool:
    """Whether a value is a list of paths: one run in parts."""
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(p, (str, os.PathLike)) for p in value)


def are_several(value: Any, truth: GroundTruth) -> bool:
    """Whether a value is `{name: run}`, which else would be taken for rankings of queries that nobody has judged."""
    if not isinstance(value, Mapping) or not value:
        return False
    first = next((run for run in value.values() if not isinstance(run, Mapping) or run), None)
    if isinstance(first, Mapping):  # a run, or a ranking {id: score}
        may_be = isinstance(next(iter(first.values())), (list, tuple, Mapping, np.ndarray))
    else:
        is_frame = frames.is_frame(first) and type(first).__name__ in ("DataFrame", "LazyFrame", "Table")
        may_be = is_frame or isinstance(first, (str, os.PathLike, Run))
    return may_be and str(next(iter(value))) not in truth.index


def as_run(
    value: Any,
    truth: GroundTruth,
    format: str | None = None,
    name: str = "",
    *,
    parts: bool = False,
    qids: list[str] | None = None,
    engine: Engine | None = None,
) -> Run:
    """A mapping, a path or several (`parts` of one run), a frame, or what is a `Run` already.

    Results without query ids follow `qids`, or the ground truth.
    """
    if isinstance(value, (str, os.PathLike)) or _are_paths(value):
        how = engine or Engine()
        if not parts:
            refuse_many(value)
        if how.name == "spark":
            from groupgt.engines.spark.steps import run_of_files, session_of

            value = run_of_files(session_of(how.options.master, how.options.config), value, format)
        else:
            streamed = how.name == "streaming"
            qids = truth.qids if qids is None else qids
            value = detect.read_run(value, format, parts=True, qids=qids, streamed=streamed, ceiling=how.ceiling)
    elif frames.is_frame(value):
        value = frames.run_of(value, qids=truth.qids)
    elif not isinstance(value, Run):
        if are_several(value, truth):
            raise ConfigError(
                f"expected one run, {{query id: ranking}}, found several by name ({', '.join(map(str, value))}); pass "
                "one of them, or all to groupgt.evaluate_runs(truth, runs, metrics) or groupgt.compare"
            )
        value = Run.of(value)
    run: Run = value
    return without_excluded(truth, in_call_order(replace(run, name=name or run.name)))
