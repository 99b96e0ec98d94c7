"""Read the previous run of an experiment from its result folder, to compare systems with their earlier versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from groupgt.errors import ConfigError, DataError, near_names, warn
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.previous import Former, FormerSystem, Previous
from groupgt.model.hits import Floats
from groupgt.render.tables import counted, shortlist
from groupgt.results.folder import ResultFolder, folders_of, order_of
from groupgt.results.manifest import Manifest
from groupgt.store.stamped import LATEST


def read_previous(path: Path, experiment: Experiment, *, allow_none: bool = False) -> Previous:
    """Read the newest run that passed, or the run at `path`. With `allow_none`, a missing run is not an error."""
    if not path.exists():
        siblings = path.absolute().parent
        names = [each.name for each in siblings.iterdir() if each.is_dir()] if siblings.is_dir() else []
        missing = f"no such folder{near_names(path.name, names)}"
    elif path.is_dir() and all(inside.name.startswith(".") for inside in path.iterdir()):
        missing = "expected a result folder, found an empty folder"
    else:
        failed: list[ResultFolder] = []
        chosen: ResultFolder | None = None
        for folder in earlier_runs(path, experiment):
            if folder.has_passed or folder.path == path:
                chosen = folder
                break
            failed.append(folder)
        if failed and chosen is None:
            warn(f"--against {path}: no run in this folder passed, so groupgt compares with the newest")
            chosen = failed[0]
        elif failed:
            what = f"left out {counted(len(failed), 'newer run')} that did not pass; to accept that result, use"
            warn(f"--against {path}: {what} --against {failed[0].path}")
        if chosen is not None:
            datasets = {dataset: former_of(chosen, dataset, experiment) for dataset in chosen.manifest.counts}
            return Previous(chosen.stamp, datasets, chosen.manifest.files)
        there = dict.fromkeys(Manifest.at(folder).config["name"] for folder in folders_of([path]))
        missing = f"expected a run of {experiment.title}, found {shortlist(list(there), 3)}"
    if allow_none:
        return Previous()
    raise ConfigError(f"--against {path}: {missing}; for a first run, use --allow-no-previous")


def earlier_runs(path: Path, experiment: Experiment) -> Iterator[ResultFolder]:
    """Yield the runs of an experiment in a folder, newest first, or the folder itself if it is a result folder."""
    for each in reversed(folders_of([path])):
        # Files are searched for next to the current experiment file, wherever the folder comes from.
        folder = ResultFolder(each, Manifest.at(each), home=experiment.path.parent.resolve())
        if folder.name == experiment.hide(experiment.title) or path in (each, each.parent / LATEST):
            yield folder


def former_of(folder: ResultFolder, dataset: str, experiment: Experiment) -> Former:
    """Read one data set of a previous run."""
    names = list(folder.manifest.counts[dataset])
    one = replace(folder, dataset=dataset, chosen=names)
    truth = one.truth(one.policy)
    systems = {}
    for name in names:
        kept = one.kept_run(name)
        # If the format was named, the file is not read again with a guessed one.
        is_named = folder.manifest.systems[name]["options"].get("format") is not None
        run = one.run_of(name) if kept or (not is_named and one.original_run(name)) else None
        systems[name] = FormerSystem(run, bare=kept is not None, is_build=one.is_of_builds(name))
    corpus = folder.config["datasets"][dataset].get("corpus")
    digest = "" if corpus is None else folder.manifest.files.get(corpus, "unknown")
    values = partial(_values, one, truth.qids, _other_rules(folder, experiment))
    return Former(truth, systems, digest, values)


def _other_rules(folder: ResultFolder, experiment: Experiment) -> str:
    """Explain how the previous policy, labeller or tokenizer differs from the current one, if it does."""
    evaluate = experiment.as_written["evaluate"]
    for what, now, then in (
        ("policy", str(experiment.policy), folder.manifest.policy),
        ("labeller", evaluate["labeller"], folder.config["evaluate"].get("labeller")),
        ("tokenizer", evaluate["tokenizer"], folder.tokenizer),
    ):
        if now != then:
            return f"its values were measured with a different {what}"
    return ""


def _values(folder: ResultFolder, qids: Sequence[str], other: str) -> Mapping[str, Mapping[str, Floats]]:
    if other:
        raise DataError(other)
    if not any((folder.path / f"per_query{ending}").is_file() for ending in (".parquet", ".csv")):
        raise DataError("its values were not saved (output.formats has neither csv nor parquet)")
    values: dict[str, dict[str, Floats]] = {}
    for name, scored in folder.systems[folder.dataset].items():
        order = order_of(scored.qids, qids, "its stored values are for other queries")
        values[name] = {str(metric): scored.values[text][order] for text, metric in folder.metrics.items()}
    return values
