"""Every format by name, and which of them a file is: by what it holds, not by what it is called."""

from __future__ import annotations

import glob
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from groupgt.errors import ConfigError, DataError, Faults, listed, near_names
from groupgt.formats import beir, csv, frames, jsonl, trec
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run

__all__ = ["RUNS", "TRUTHS", "all_there", "kind_of", "read_ground_truth", "read_run", "run_paths"]

Path_ = str | os.PathLike[str]

TRUTHS: dict[str, Callable[[Source, Policy], GroundTruth]] = {
    "autorag": frames.read_ground_truth,
    "parquet": frames.read_ground_truth,
    "jsonl": jsonl.read_ground_truth,
    "trec": trec.read_qrels,
    "trec-subtopics": trec.read_subtopics,
    "beir": beir.read_ground_truth,
    "csv": csv.read_ground_truth,
}
RUNS: dict[str, Callable[[Source], Run]] = {
    "trec": trec.read_run,
    "jsonl": jsonl.read_run,
    "csv": csv.read_run,
    "parquet": frames.read_run,
    "autorag": frames.read_run,
}


def read_ground_truth(path: Path_, format: str | None = None, policy: Policy | str | None = None) -> GroundTruth:
    """Reads ground truth from a file, a BEIR folder or a frame; `format` None detects it.

    Formats: autorag (parquet), jsonl, trec (qrels), trec-subtopics, beir, csv; gzip or zstd compressed too.
    Raises `DataError` with file, line, what was expected and what was found.
    """
    if frames.is_frame(path):
        return frames.truth_of(path, Policy.of(policy))
    source = Source.at(path)
    chosen = _chosen(format, TRUTHS) or _detect(source, "ground truth")
    _refuse_folder(source, chosen)
    return TRUTHS[chosen](source, Policy.of(policy))


def read_run(path: Path_, format: str | None = None, *, qids: list[str] | None = None) -> Run:
    """Reads the results of one system; `format` None detects it.

    Formats: trec, jsonl, csv, parquet (long or nested), autorag (node output, which takes its queries from `qids`).
    Large files are not read yet: the evaluation streams them.
    """
    if frames.is_frame(path):
        return frames.run_of(path, qids=qids)
    source = Source.at(path)
    chosen = _chosen(format, RUNS) or _detect(source, "results")
    _refuse_folder(source, chosen)
    if RUNS[chosen] is frames.read_run:
        return frames.read_run(source, qids)
    return RUNS[chosen](source)


def run_paths(path: Path_) -> list[Path]:
    """The files a path names: itself, the files of a folder, or what a glob finds; each is one system."""
    text = os.fspath(path)
    found = Path(text)
    if found.is_dir():
        files = sorted(each for each in found.iterdir() if each.is_file() and not each.name.startswith("."))
        if not files:
            raise DataError(f"{found}: the folder holds no files")
        return files
    if not found.exists() and glob.has_magic(text):
        files = sorted(Path(each) for each in glob.glob(text, recursive=True) if Path(each).is_file())
        if not files:
            raise DataError(f"{text}: no file matches")
        return files
    return [found]


def all_there(truth: Path_, runs: Iterable[Path_]) -> list[Path]:
    """The files of all runs; raises `DataError` with every path that leads nowhere."""
    faults = Faults()
    found: list[Path] = []
    for path, is_run in ((truth, False), *((run, True) for run in runs)):
        try:
            for each in run_paths(path) if is_run else [path]:
                Source.at(each)
                if is_run:
                    found.append(Path(each))
        except DataError as error:
            faults.merge(error)
    faults.stop()
    return found


def kind_of(path: Path_) -> str:
    """`truth` or `run`: what a file holds."""
    source = Source.at(path)
    if source.is_folder:
        return "truth"
    name = _look(source)
    return "truth" if name in ("beir", "qrels") or name.endswith("truth") else "run"


def _chosen(format: str | None, known: dict[str, Any]) -> str | None:
    if format is not None and format not in known:
        raise ConfigError(f"format: expected {listed(known)}, found {format!r}{near_names(format, known)}")
    return format


def _refuse_folder(source: Source, format: str) -> None:
    if source.is_folder and not (format == "beir" and beir.is_folder(source.path)):
        raise DataError(
            f"{source.path}: expected a file or a BEIR folder (queries.jsonl, qrels/), found another folder"
        )


def _detect(source: Source, wanted: str) -> str:
    if source.is_folder:
        return "beir"
    found = _look(source)
    truth = wanted == "ground truth"
    formats = {
        "parquet truth": "autorag" if truth else None,
        "parquet run": None if truth else "parquet",
        "jsonl truth": "jsonl" if truth else None,
        "jsonl run": None if truth else "jsonl",
        "csv truth": "csv" if truth else None,
        "csv run": None if truth else "csv",
        "beir": "beir" if truth else None,
        "qrels": "trec" if truth else None,
        "trec run": None if truth else "trec",
        "empty": "trec",
    }
    chosen = formats.get(found)
    if chosen is None and found not in formats and not truth:
        # Text of no known shape: the reader of TREC runs says what is wrong with each line.
        return "trec"
    if chosen is None:
        other = {"ground truth": "a file of results", "results": "a file of ground truth"}[wanted]
        looks = f"this looks like {other} ({found})" if found in formats else f"its first line is {found}"
        raise DataError(
            f"{source.path}: expected {wanted}, but {looks}; "
            f"known formats are {listed(TRUTHS if truth else RUNS)}: name one "
            f"(--{'truth' if truth else 'run'}-format) if it was not recognized"
        )
    return chosen


def _look(source: Source) -> str:
    """What the first line of a file says it is."""
    if source.is_parquet:
        names = frames.names_of(source)
        return "parquet truth" if "retrieval_gt" in names or "group" in names else "parquet run"
    head = source.head()
    lines = [line for line in head.split(b"\n") if line.strip() and not line.startswith(b"#")]
    if not lines:
        return "empty" if not head.strip() or not source.data.strip() else "only comments"
    first = lines[0]
    if first.lstrip()[:1] == b"{":
        return _look_json(source, first)
    names = csv.header_of(source)
    if set(beir.HEADER) <= set(names):
        return "beir"
    if "qid" in names or "doc_id" in names:
        return "csv truth" if "group" in names else "csv run"
    # Most lines decide: one that is shorter or longer is a fault to be named, not another format.
    usual = Counter(min(len(line.split()), 6) for line in lines[:50]).most_common(1)[0][0]
    if usual >= 5:
        return "trec run"
    if usual in (3, 4):
        return "qrels"
    shown = first[:60].decode("utf-8", "replace")
    return f"{shown!r}"


def _look_json(source: Source, first: bytes) -> str:
    try:
        keys = set(json.loads(first))
    except (ValueError, RecursionError):
        # Whichever reader gets it names the line; a long first line may only have been cut.
        keys = {key for key in ("retrieval_gt", "retrieved_ids", "doc_id") if f'"{key}"'.encode() in source.head()}
    return (
        "jsonl truth"
        if "retrieval_gt" in keys or not keys & {"retrieved_ids", "doc_id", *jsonl.NESTED}
        else "jsonl run"
    )
