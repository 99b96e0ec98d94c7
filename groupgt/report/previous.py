"""Reads the previous run from a result folder and compares each system with its previous version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from groupgt.comparison.systems import finite
from groupgt.errors import DataError
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.outcome import Outcome
from groupgt.experiment.previous import Against, Former, FormerSystem, Previous
from groupgt.model.hits import Floats
from groupgt.render.document import Detail, Item
from groupgt.render.page import data
from groupgt.render.tables import counted, listed
from groupgt.report.contrasts import beside_grid, beside_rows
from groupgt.report.folder import Manifest, ResultFolder, folders_of, order_of
from groupgt.report.sentences import doubt, grouped, sentence_of
from groupgt.report.shapes import plain
from groupgt.report.verdict import Other, changes
from groupgt.store.stamped import LATEST

# Names the first queries or systems in a line.
_listed = partial(listed, most=10, more=", and {:,} more")


# --- Reading.


def read_previous(path: Path, experiment: Experiment) -> Previous:
    """Reads the newest run of an experiment in a folder, or the folder itself if it is a result folder.

    Raises `DataError` if the run cannot be read.
    """
    name = path.name or path
    if not path.exists():
        return Previous("", f"{name}: no such folder")
    if path.is_dir() and all(inside.name.startswith(".") for inside in path.iterdir()):
        return Previous("", f"{name}: is empty")
    for candidate in reversed(folders_of([path])):
        # Files are searched for next to the current experiment file, wherever the folder comes from.
        folder = ResultFolder(candidate, Manifest.at(candidate), home=experiment.path.parent.resolve())
        if folder.name == experiment.hide(experiment.title) or path in (candidate, candidate.parent / LATEST):
            datasets = {dataset: _former(folder, dataset, experiment) for dataset in folder.manifest.counts}
            return Previous(folder.stamp, "", datasets, folder.manifest.files)
    return Previous("", f"{name}: has no run of {experiment.title}")


def _former(folder: ResultFolder, dataset: str, experiment: Experiment) -> Former:
    names = list(folder.manifest.counts[dataset])
    one = replace(folder, dataset=dataset, chosen=names)
    truth = one.truth(one.policy)
    systems = {}
    for name in names:
        kept = one.kept_run(name)
        # If the format had to be named, the file is not read again with a guessed one.
        is_named = folder.manifest.systems[name]["options"].get("format") is not None
        systems[name] = FormerSystem(kept or (None if is_named else one.original_run(name)), bare=kept is not None)
    corpus = folder.config["datasets"][dataset].get("corpus")
    digest = "" if corpus is None else folder.manifest.files.get(corpus, "unknown")
    values = partial(_values, one, truth.qids, _other_rules(folder, experiment))
    return Former(truth, systems, digest, values)


def _other_rules(folder: ResultFolder, experiment: Experiment) -> str:
    """Explains how the previous policy, labeller or tokenizer differs from the current one; empty if they match."""
    evaluate = experiment.as_written["evaluate"]
    for what, now, then in (
        ("policy", str(experiment.policy), folder.manifest.policy),
        ("labeller", evaluate["labeller"], folder.config["evaluate"].get("labeller")),
        ("tokenizer", evaluate["tokenizer"], folder.tokenizer),
    ):
        if now != then:
            return f"its values were measured with another {what}"
    return ""


def _values(folder: ResultFolder, qids: Sequence[str], other: str) -> Mapping[str, Mapping[str, Floats]]:
    if other:
        raise DataError(other)
    if not any((folder.path / f"per_query{ending}").is_file() for ending in (".parquet", ".csv")):
        raise DataError("its values were not saved (output.formats has neither csv nor parquet)")
    values: dict[str, dict[str, Floats]] = {}
    for name, scored in folder.systems[folder.dataset].items():
        order = order_of(scored.qids, qids, "its stored values belong to other queries")
        values[name] = {str(metric): scored.values[text][order] for text, metric in folder.metrics.items()}
    return values


def will_compare(path: Path, experiment: Experiment) -> str:
    """Describes in one line which run a comparison would use."""
    previous = read_previous(path, experiment)
    if not previous.name:
        return f"no previous run ({previous.missing}): nothing to compare with; gates against it pass"
    parts = []
    for dataset in experiment.config.datasets:
        former = previous.datasets.get(dataset)
        then = list(former.systems) if former is not None else []
        now = [name for served, name in experiment.pairs() if served == dataset]
        parts.append(f"{dataset}: {_listed([name for name in now if name in then] or ['no system'])}")
        gone = [name for name in then if name not in experiment.systems]
        parts += _others([name for name in now if name not in then], gone)
    return f"compared with the previous run {previous.name}: {'; '.join(parts)}"


def _others(added: Sequence[str], gone: Sequence[str]) -> Iterator[str]:
    if added:
        yield f"not in the previous run: {_listed(added)}"
    if gone:
        yield f"only in the previous run: {_listed(gone)}"


# --- Sentences.


def sentences(outcome: Outcome, dataset: str) -> Iterator[data.Sentence]:
    """Describes changes in the primary metric since the previous run, and systems that cannot be compared."""
    if outcome.previous == "":
        yield sentence_of("note", "No previous run to compare with.")
    against = outcome.against.get(dataset)
    if against is None:
        return
    label = _label(outcome, against)
    other = Other("than in the previous run", "the previous run")
    yield from changes(against.contrasts(), other, label, against.settings)
    for why, names in _by_reason(against, against.refused):
        yield doubt(f"{_listed(names)}: not compared with the previous run in {label}: {why}")


def _by_reason(against: Against, reasons: Mapping[tuple[str, str], str]) -> Iterable[tuple[str, list[str]]]:
    return grouped((why, name) for (name, text), why in reasons.items() if text == against.primary).items()


def _label(outcome: Outcome, against: Against) -> str:
    return against.metrics[against.primary].label(against.primary, outcome.experiment.convention)


# --- Tables.


def blocks(outcome: Outcome, dataset: str) -> Iterator[Item]:
    """Compares every system with its previous version on the primary metric, over queries evaluated in both runs."""
    against = outcome.against.get(dataset)
    if against is None:
        return
    if against.contrasts():
        headers = ["against the previous run", "queries", f"{_label(outcome, against)} before", "now"]
        yield beside_grid(against, against.primary, headers)
    if notes := list(_notes(against)):
        yield "\n".join(notes)
    yield Detail(f"previous run: {outcome.previous}")


def _notes(against: Against) -> Iterator[str]:
    """Notes queries and systems that occur in only one run, changed ground truth, and any use of stored values."""
    if others := list(_others(against.added, against.gone)):
        yield "; ".join(others)
    if against.changed:
        count = counted(len(against.changed), "query has", "queries have")
        yield f"{count} changed ground truth; today's is used for both runs: {_listed(against.changed)}"
    if against.reworded:
        yield f"excluded because their text has changed: {_listed(against.reworded)}"
    alone = [(against.queries_only_now, "new"), (against.queries_only_then, "no longer queried")]
    if any(count for count, _ in alone):
        yield "excluded: " + ", ".join(f"{counted(n, 'query')} {what}" for n, what in alone if n)
    for why, names in _by_reason(against, against.stored):
        left = ", except for queries with changed ground truth" if against.changed else ""
        yield f"stored values are used for {_listed(names)}{left}: {why}"


# --- JSON.


def results(outcome: Outcome, dataset: str) -> dict[str, Any]:
    """Builds the section of results.json that compares a data set with the previous run."""
    against = outcome.against[dataset]
    rows = [
        {
            "system": name,
            "metric": text,
            "before": finite(then),
            "now": finite(now),
            "measured_again": (name, text) not in against.stored,
            "significant": contrast.significant,
            "against": plain(contrast),
        }
        for name, text, then, now, contrast in beside_rows(against)
    ]
    return {
        "run": outcome.previous,
        "rows": rows,
        "refused": [{"system": name, "metric": text, "why": why} for (name, text), why in against.refused.items()],
        "added": list(against.added),
        "gone": list(against.gone),
        "changed_queries": list(against.changed),
        "reworded_queries": list(against.reworded),
        "new_queries": against.queries_only_now,
        "gone_queries": against.queries_only_then,
    }
