"""Writes ground truth and results in any format, and reports everything that this format cannot represent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from groupgt.errors import ConfigError, DataError, listed, near_names
from groupgt.formats import beir, csv, jsonl, nuggetbank, parquet, trec
from groupgt.formats.rows import NO_TRIALS, Calls, Judgment, Ranking, Trials, numbered, order_fault
from groupgt.formats.tables import named_ids
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.groups import ANSWERABLE
from groupgt.model.populations import Populations
from groupgt.model.validity import are_ids
from groupgt.model.written import Shape


@dataclass(frozen=True)
class _Writer:
    """A ground truth writer, with the parts that its format `keeps`."""

    write: Callable[[Path, GroundTruth], None]
    keeps: tuple[str, ...] = ("groups", "grades")
    names: Literal["any", "distinct", "distinct words", "none"] = "distinct"
    # The shape as which it is read back, for formats that do not represent every shape.
    shape: Shape | None = None
    # Why the format cannot represent the ids.
    fault: Callable[[Iterable[Judgment]], str | None] = lambda _: None


def _labels(truth: GroundTruth, *, blanks: bool = True) -> list[str]:
    """Return a distinct label for each group, which is its name (as one word without `blanks`) or its number."""
    first = np.searchsorted(truth.group_query, truth.group_query)
    numbers = [str(number) for number in (np.arange(len(first)) - first + 1).tolist()]
    names = truth.group_name or [None] * len(numbers)
    labels = [number if name is None else name for name, number in zip(names, numbers)]
    if not blanks:
        labels = ["_".join(label.split()) for label in labels]
    unreadable = not blanks and not are_ids(labels)
    return numbers if unreadable or len(set(zip(truth.group_query.tolist(), labels))) < len(labels) else labels


def _judgments(truth: GroundTruth, *, blanks: bool = True) -> Iterator[Judgment]:
    labels = _labels(truth, blanks=blanks)
    for alternative, name in enumerate(truth.ids):
        group = int(truth.group_of[alternative])
        yield truth.qids[int(truth.group_query[group])], labels[group], name, float(truth.grade[alternative])


def _flat(truth: GroundTruth) -> Iterator[Judgment]:
    """Yield the distinct documents with their highest grades, in ground truth order."""
    grades = truth.judgments.document_grade
    for alternative in np.flatnonzero(truth.document_of == np.arange(len(truth.ids))).tolist():
        qid = truth.qids[int(truth.query_of[alternative])]
        yield qid, "0", truth.ids[alternative], float(grades[alternative])


def flat_fault(truth: GroundTruth) -> str | None:
    """Explain why `write_flat` cannot write this ground truth, or return None if it can."""
    if truth.set_of is not None:
        return "qrels cannot store passages that are relevant only together"
    return trec.judgments_fault(_flat(truth))


def write_flat(path: Path, truth: GroundTruth) -> None:
    """Write flattened qrels under the `trec` convention, so that other tools compute the same values."""
    trec.write_qrels(path, _flat(truth))


# Besides groups and grades, a format may keep excluded and harmful ids (`named`), and spans, texts and sets (`forms`).
EVERYTHING = (
    *("groups", "grades", "weights", "named", "forms"),
    *("empty groups", "empty queries", "importance", "columns", "texts"),
)
TRUTH_WRITERS: dict[str, _Writer] = {
    "jsonl": _Writer(jsonl.write_ground_truth, EVERYTHING, "any"),
    "parquet": _Writer(parquet.write_ground_truth, ("groups", "named", "empty queries", "columns", "texts"), "none"),
    "csv": _Writer(lambda path, truth: csv.write_ground_truth(path, _judgments(truth), truth.shape)),
    "tsv": _Writer(lambda path, truth: csv.write_ground_truth(path, _judgments(truth), truth.shape, "\t")),
    "trec": _Writer(
        lambda path, truth: trec.write_qrels(path, _judgments(truth)), ("grades",), "none", "flat", trec.judgments_fault
    ),
    "trec-subtopics": _Writer(
        lambda path, truth: trec.write_qrels(path, _judgments(truth, blanks=False), grouped=True),
        names="distinct words",
        shape="subtopics",
        fault=trec.judgments_fault,
    ),
    "beir": _Writer(
        lambda path, truth: beir.write_ground_truth(path, truth, _judgments(truth)), ("grades", "texts"), "none", "flat"
    ),
    "nuggetbank": _Writer(
        nuggetbank.write_ground_truth,
        ("groups", "empty groups", "empty queries", "importance", "texts"),
        shape="subtopics",
    ),
}
# Written only for other tools: the losses are intended.
FLAT = "qrels-flat"
RUN_WRITERS: dict[str, Any] = {"trec": trec, "jsonl": jsonl, "csv": csv, "parquet": parquet}


def write_ground_truth(path: Path, truth: GroundTruth, format: str) -> list[str]:
    """Write ground truth and list what the format cannot represent. A loss that would change scores is an error."""
    if truth.forms and not (format in TRUTH_WRITERS and "forms" in TRUTH_WRITERS[format].keeps):
        raise DataError(f"{format} can only store ids, but this ground truth has spans or text; write jsonl")
    if format == FLAT:
        if fault := flat_fault(truth):
            raise DataError(fault)
        write_flat(path, truth)
        alternatives = "which documents are alternatives of one another"
        return [alternatives, *named_ids(truth), *_queries_lost(truth, ())]
    if format not in TRUTH_WRITERS:
        near = near_names(format, [*TRUTH_WRITERS, FLAT])
        raise ConfigError(f"format: expected {listed([*TRUTH_WRITERS, FLAT])} for ground truth, found {format!r}{near}")
    writer = TRUTH_WRITERS[format]
    # Readers judge the harmful ids again.
    truth = truth.of_groups(~truth.only_harmful) if truth.harmful else truth
    if fault := writer.fault(_judgments(truth)):
        raise DataError(fault)
    if lost := _scores_lost(truth, writer):
        raise DataError(f"{format} {lost}")
    writer.write(path, truth)
    return _lost(truth, writer)


def _scores_lost(truth: GroundTruth, writer: _Writer) -> str | None:
    """Describe a loss in this format that would change scores, or return None if there is none."""
    keeps = writer.keeps
    if "groups" not in keeps and (bool((truth.judgments.group_sizes > 1).any()) or not truth.judgments.one_to_one):
        way = "write jsonl or trec-subtopics, or qrels-flat, which flattens them"
        return f"has no groups, but this ground truth has alternatives; {way}"
    if "grades" not in keeps and bool((truth.grade != 1).any()):
        return "has no grades, but this ground truth does; write jsonl"
    if "weights" not in keeps and bool((truth.group_weight != 1).any()):
        return "has no group weights, but this ground truth does; write jsonl"
    if "empty groups" not in keeps and len(np.unique(truth.group_of)) < len(truth.group_query):
        return "cannot store groups without alternatives, which this ground truth has; write jsonl"
    if "named" not in keeps and (columns := named_ids(truth)):
        return f"cannot store {' and '.join(columns)}, which this ground truth has; write jsonl or parquet"
    if "forms" not in keeps and truth.set_of is not None:
        return "cannot store passages that are relevant only together, which this ground truth has; write jsonl"
    if writer.shape not in (None, truth.shape):
        what = f"is read back as {writer.shape}, but this ground truth is {truth.shape}"
        way = f"write jsonl, or set the shape with --shape {writer.shape}"
        return f"{what}, so its default convention would change; {way}"
    return None


def _lost(truth: GroundTruth, writer: _Writer) -> list[str]:
    """List the losses in this format that do not change scores by default."""
    columns = [name for name in truth.columns if name != ANSWERABLE]
    losses = {
        "the importance of groups": truth.importance and "importance" not in writer.keeps,
        f"the columns {', '.join(columns)}": columns and "columns" not in writer.keeps,
        "query texts": truth.texts and "texts" not in writer.keeps,
        _names_lost(truth, writer): True,
    }
    return [*(text for text, lost in losses.items() if text and lost), *_queries_lost(truth, writer.keeps)]


def _queries_lost(truth: GroundTruth, keeps: Sequence[str]) -> Iterator[str]:
    """Count the queries that a format with these features cannot represent, by population."""
    populations = Populations(truth.judgments)
    declared = int(populations.unanswerable.sum())
    empty = int((populations.undefined & (truth.per_query == 0)).sum())
    if declared and "columns" not in keeps:
        yield f"that {declared:,} {'query is' if declared == 1 else 'queries are'} declared unanswerable"
    if empty and "empty queries" not in keeps:
        yield f"{empty:,} {'query' if empty == 1 else 'queries'} without ground truth"


def _names_lost(truth: GroundTruth, writer: _Writer) -> str:
    """Describe the loss of group names, or return an empty string if all names can be read back."""
    if truth.group_name is None or writer.names == "any":
        return ""
    if writer.names == "none":
        return "the names of groups"
    labels = _labels(truth, blanks=writer.names != "distinct words")
    changed = [(name, label) for name, label in zip(truth.group_name, labels) if name is not None and name != label]
    if any("_".join(name.split()) != label for name, label in changed):
        return "the names of groups"
    return "blanks in group names (written as _)" if changed else ""


def write_run(
    path: Path, rows: list[Ranking], format: str, *, tag: str, calls: Calls | None = None, trials: Trials = NO_TRIALS
) -> list[str]:
    """Write results and list what the format cannot represent. If necessary, TREC scores become 1 ÷ rank."""
    if format not in RUN_WRITERS:
        near = near_names(format, RUN_WRITERS)
        raise ConfigError(f"format: expected {listed(RUN_WRITERS)} for results, found {format!r}{near}")
    if format == "trec" and trials:
        raise DataError("a TREC run cannot store trials; write jsonl, csv or parquet")
    if format != "trec":
        checked = numbered(rows, calls, trials) if format == "csv" else ()
        faults = (order_fault(qid, ids, scores, each) for (qid, ids, scores), each, _ in checked if scores)
        if fault := next(filter(None, faults), None):
            raise DataError(fault)
        RUN_WRITERS[format].write_run(path, rows, calls=calls, trials=trials)
        return []
    bare: list[Ranking] = [(qid, ids, None) for qid, ids, _ in rows]
    lost: list[str] = []
    if calls:
        rows, lost = bare, ["the calls that returned results"]
    elif trec.run_fault(rows) is not None and trec.run_fault(bare) is None:
        rows, lost = bare, ["these scores, which would sort the results differently"]
    if fault := trec.run_fault(rows):
        raise DataError(fault)
    # A tag is one word, so that every line has six columns.
    trec.write_run(path, rows, "_".join(tag.split()) or "groupgt")
    return lost
