"""Reads the previous run from a result folder and compares each system with its previous version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from groupgt.comparison.systems import finite
from groupgt.errors import ConfigError, DataError, near_names
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.outcome import Against, Outcome
from groupgt.experiment.previous import Former, FormerSystem, Previous
from groupgt.model.hits import Floats
from groupgt.render.document import Detail, Item
from groupgt.render.page import data
from groupgt.render.tables import counted, fixed, listed, small, span
from groupgt.report.contrasts import beside_grid, beside_rows, delta_text, p_header
from groupgt.report.headroom import NAMED_IN_CELL, first_of
from groupgt.report.sentences import at_cutoff, doubt, grouped, sentence_of
from groupgt.report.shapes import plain
from groupgt.report.verdict import Other, changes, too_few
from groupgt.results.folder import Manifest, ResultFolder, folders_of, order_of
from groupgt.store.stamped import LATEST

# Names the first queries or systems in a line.
_listed = partial(listed, most=10, more=", and {:,} more")


# --- Reading.


def read_previous(path: Path, experiment: Experiment, *, allow_none: bool = False) -> Previous:
    """Reads the newest run of an experiment in a folder, or the folder itself if it is a result folder.

    Raises `ConfigError` if there is none, unless it is allowed, and `DataError` if the run cannot be read.
    """
    if not path.exists():
        siblings = path.absolute().parent
        names = [each.name for each in siblings.iterdir() if each.is_dir()] if siblings.is_dir() else []
        missing = f"no such folder{near_names(path.name, names)}"
    elif path.is_dir() and all(inside.name.startswith(".") for inside in path.iterdir()):
        missing = "expected a result folder, found an empty folder"
    else:
        for folder in earlier_runs(path, experiment):
            datasets = {dataset: former_of(folder, dataset, experiment) for dataset in folder.manifest.counts}
            return Previous(folder.stamp, datasets, folder.manifest.files)
        there = dict.fromkeys(Manifest.at(folder).config["name"] for folder in folders_of([path]))
        missing = f"expected a run of {experiment.title}, found {listed(list(there), 3)}"
    if allow_none:
        return Previous()
    raise ConfigError(f"--against {path}: {missing}; a first run, which has no previous one, takes --allow-no-previous")


def earlier_runs(path: Path, experiment: Experiment) -> Iterator[ResultFolder]:
    """Yields the runs of an experiment in a folder, newest first, or the folder itself if it is a result folder."""
    for each in reversed(folders_of([path])):
        # Files are searched for next to the current experiment file, wherever the folder comes from.
        folder = ResultFolder(each, Manifest.at(each), home=experiment.path.parent.resolve())
        if folder.name == experiment.hide(experiment.title) or path in (each, each.parent / LATEST):
            yield folder


def former_of(folder: ResultFolder, dataset: str, experiment: Experiment) -> Former:
    """Reads one data set of a previous run."""
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


def will_compare(previous: Previous, experiment: Experiment) -> str:
    """Describes in one line which run a comparison would use."""
    if not previous.name:
        return "no previous run: nothing to compare with; gates against it are skipped"
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
    yield from map(doubt, too_few(against.contrasts(), label, against.settings))
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
    yield from changed_queries(outcome, against)
    if notes := list(_notes(against)):
        yield "\n".join(notes)
    yield Detail(f"previous run: {outcome.previous}")


def changed_queries(outcome: Outcome, against: Against) -> Iterator[Item]:
    """Lists, for each system, the queries that are complete only in the previous run, or only now."""
    rows = [
        [name, first_of(lost), first_of(against.gained[name])]
        for name, lost in against.lost.items()
        if lost or against.gained[name]
    ]
    if rows:
        cutoff = at_cutoff(against.metrics[against.primary].cutoff)
        yield ["since the previous run", "queries lost", "queries gained"], rows
        yield f"Lost: complete{cutoff} in the previous run and not in this one. Gained: the reverse."


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


# --- The page.


def page_part(outcome: Outcome, dataset: str) -> data.Row | None:
    """Returns each system beside its previous version for the page, as text; None without a previous run."""
    against = outcome.against.get(dataset)
    if against is None:
        return None
    convention, other = outcome.experiment.convention, Other("than in the previous run", "the previous run")
    rows = grouped(
        (
            name,
            [
                against.metrics[text].label(text, convention),
                f"{each.pairs:,}",
                *map(fixed, (then, now)),
                delta_text(each),
                span(each.delta_interval),
                small(each.p_value),
            ],
        )
        for name, text, then, now, each in beside_rows(against)
    )
    contrasts, label = against.contrasts(), _label(outcome, against)
    systems = []
    for name, cells in rows.items():
        alone = {name: contrasts[name]} if name in contrasts else {}
        part: dict[str, Any] = {"name": name, "rows": cells}
        part["verdict"] = list(changes(alone, other, label, against.settings))
        for key, queries in (("lost", against.lost.get(name, [])), ("gained", against.gained.get(name, []))):
            part |= {key: queries[:NAMED_IN_CELL], f"more{key.title()}": max(len(queries) - NAMED_IN_CELL, 0)}
        systems.append(part)
    heads = ["metric", "queries", "before", "now", "delta", "CI", p_header(against.settings)]
    return {"run": outcome.previous, "heads": heads, "systems": systems, "notes": list(_notes(against))}


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
        "lost_queries": {name: list(qids) for name, qids in against.lost.items()},
        "gained_queries": {name: list(qids) for name, qids in against.gained.items()},
        "added": list(against.added),
        "gone": list(against.gone),
        "changed_queries": list(against.changed),
        "reworded_queries": list(against.reworded),
        "new_queries": against.queries_only_now,
        "gone_queries": against.queries_only_then,
    }
