"""Every format by name, and which of them a file is: by what it holds, not by what it is called."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from groupgt.errors import ConfigError, DataError, Faults, listed, near_names
from groupgt.formats import beir, csv, frames, jsonl, mappings, parquet, parts, trec
from groupgt.formats.rows import NESTED, OTHER_NAMES
from groupgt.formats.source import Source
from groupgt.formats.validity import guarded
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.runtime import no_garbage_collection, pl

Path_ = str | os.PathLike[str]

TRUTHS: dict[str, Callable[[Source, Policy], GroundTruth]] = {
    "autorag": parquet.read_ground_truth,
    "parquet": parquet.read_ground_truth,
    "jsonl": jsonl.read_ground_truth,
    "json": mappings.read_ground_truth,
    "trec": trec.read_qrels,
    "trec-subtopics": trec.read_subtopics,
    "beir": beir.read_ground_truth,
    "csv": csv.read_ground_truth,
}
RUNS: dict[str, Callable[[Source], Run]] = {
    "trec": trec.read_run,
    "jsonl": jsonl.read_run,
    "json": mappings.read_run,
    "csv": csv.read_run,
    "parquet": parquet.read_run,
    "autorag": parquet.read_run,
}


def read_ground_truth(
    path: Path_, format: str | None = None, policy: Policy | str | None = None, *, ceiling: int = 0
) -> GroundTruth:
    """Reads ground truth from a file, a BEIR folder or a frame.

    Raises `DataError` with file, line, what was expected and what was found.

    Args:
        path: A path, a URL or a frame; files may be compressed by gzip or zstd.
        format: autorag (parquet), jsonl, json (of ranx), trec (qrels), trec-subtopics, beir or csv (default: detected).
        policy: What is done with doubtful data: a `Policy` or a preset (`autorag`, `trec`).
        ceiling: How many bytes of content may be held; 0 is no limit.
    """
    if frames.is_frame(path):
        return frames.truth_of(path, Policy.of(policy))
    if isinstance(path, str) and parts.is_url(path):
        return _truth_at(path, format, Policy.of(policy))
    source = replace(Source.at(path), ceiling=ceiling)
    chosen = _chosen(format, TRUTHS) or _detect(source, "ground truth")
    _refuse_folder(source, chosen)
    with no_garbage_collection():
        return TRUTHS[chosen](source, Policy.of(policy))


def read_run(
    path: Path_ | Sequence[Path_],
    format: str | None = None,
    *,
    qids: list[str] | None = None,
    streamed: bool = False,
    ceiling: int = 0,
) -> Run:
    """Reads the results of one system. Large files are not read yet: the evaluation streams them.

    Args:
        path: A path, a URL (`s3://`, `gs://`, `hf://`, …) or a frame; a folder, a glob or a list of files is one run
            in parts, whose queries may span files.
        format: trec, jsonl, json (of ranx), csv, parquet (long or nested) or autorag (node output) (default: detected).
        qids: The queries that results without query ids follow, as those of a node of AutoRAG do.
        streamed: Whether small files are streamed too.
        ceiling: How many bytes of content may be held; 0 is no limit.
    """

    def read(source: Source) -> Run:
        return _read_one(replace(source, ceiling=ceiling), format, qids)

    if frames.is_frame(path):
        return frames.run_of(path, qids=qids)
    if not isinstance(path, (str, os.PathLike)):
        given = [Path(each) for each in path]
        title = os.path.commonpath([str(each.absolute().parent) for each in given] or ["results"])
        return parts.joined(given, read, title)
    if isinstance(path, str) and parts.is_url(path):
        return parts.at_url(path, format)
    files = parts.files_of(path)
    if files is not None:
        return parts.joined(files, read, os.fspath(path))
    return read(replace(Source.at(path), streamed=streamed))


def _read_one(source: Source, format: str | None, qids: list[str] | None) -> Run:
    chosen = _chosen(format, RUNS) or _detect(source, "results")
    _refuse_folder(source, chosen)
    if RUNS[chosen] is parquet.read_run:
        return parquet.read_run(source, qids)
    return RUNS[chosen](source)


def located(path: Path_ | Sequence[Path_], format: str | None = None) -> tuple[list[str], str, str]:
    """The files of one run that another program reads: their paths, their format, and what they are called together."""
    given: list[Path_] = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    paths: list[str] = []
    for each in given:
        if isinstance(each, str) and parts.is_url(each):
            paths.append(each)
        else:
            paths += [str(Source.at(one).path.resolve()) for one in parts.files_of(each) or [Path(each)]]
    title = os.fspath(given[0]) if len(given) == 1 else os.path.dirname(paths[0])
    chosen = _chosen(format, RUNS) or parts.kind_by_ending(paths[0])
    if chosen is None and not parts.is_url(paths[0]):
        chosen = _detect(Source.at(paths[0]), "results")
    if chosen is None:
        raise ConfigError(f"{title}: cannot tell the format from the file name; add --run-format")
    return paths, chosen, title


def _truth_at(url: str, format: str | None, policy: Policy) -> GroundTruth:
    """Ground truth at a URL."""
    if format in ("autorag", "parquet") or (format is None and url.endswith((".parquet", ".pq"))):
        frame = guarded(url, "cannot be read", pl.scan_parquet(url).collect)
        return frames.truth_of(frame, policy, url)
    truth: GroundTruth = parts.fetched(url, lambda copy: read_ground_truth(copy, format, policy))
    return truth


def run_paths(path: Path_) -> list[Path]:
    """The files a path names: itself, the files of a folder, or what a glob finds; each is one system."""
    text = os.fspath(path)
    found = Path(text)
    if found.is_dir():
        files = sorted(each for each in found.iterdir() if each.is_file() and not each.name.startswith("."))
        if not files:
            raise DataError(f"{found}: the folder contains no files")
        return _node_results(files) or files
    return parts.files_of(text) or [found]


def _node_results(files: Sequence[Path]) -> list[Path]:
    """Of the folder of an AutoRAG node its results, without the summary and the copy of the best; else nothing."""
    numbered = [path for path in files if path.suffix == ".parquet" and path.stem.isdecimal()]
    others = {path.name for path in files} - {path.name for path in numbered}
    copies = {f"best_{path.name}" for path in numbered}
    return numbered if numbered and "summary.csv" in others <= {"summary.csv", *copies} else []


def all_there(truth: Path_, runs: Iterable[Path_], *, in_parts: bool = False) -> list[Path_]:
    """What all runs are in; raises `DataError` with every path that leads nowhere.

    Each file is a run, and each URL; `in_parts` says that each path is one run, whatever it names.
    """
    faults = Faults()
    found: list[Path_] = []
    for path, is_run in ((truth, False), *((run, True) for run in runs)):
        if parts.is_url(path):
            found += [path] if is_run else []
            continue
        try:
            if is_run and in_parts:
                if parts.files_of(path) is None:
                    what = "expected a folder or a glob, found one file"
                    raise DataError(f"{path}: {what} (--parts); quote a glob so that the shell does not expand it")
                found.append(path)
                continue
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
    return "truth" if name in ("beir", "qrels", "jsonl") or name.endswith("truth") else "run"


def _chosen(format: str | None, known: dict[str, Any]) -> str | None:
    if format is not None and format not in known:
        raise ConfigError(f"format: expected {listed(known)}, found {format!r}{near_names(format, known)}")
    return format


def _refuse_folder(source: Source, format: str) -> None:
    if source.is_folder and not (format == "beir" and beir.is_folder(source.path)):
        raise DataError(
            f"{source.path}: expected a file or a BEIR folder (with queries.jsonl and qrels/), found another folder"
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
        "jsonl": "jsonl",
        "json truth": "json" if truth else None,
        "json run": None if truth else "json",
        "json": "json",
        "csv truth": "csv" if truth else None,
        "csv run": None if truth else "csv",
        "csv": "csv",
        "beir": "beir" if truth else None,
        "qrels": "trec" if truth else None,
        "trec run": None if truth else "trec",
        "empty": "trec",
    }
    chosen = formats.get(found)
    if chosen is None and found not in formats and not truth:
        # Text of no known shape: the reader of TREC runs says what is wrong with each line.
        return "trec"
    if chosen is None and b"\r" in source.first_line:
        raise DataError(f"{source.path}:1: {trec.BARE_RETURN}")
    if chosen is None:
        other = "a run" if truth else "ground truth"
        looks = f"this looks like {other} ({found})" if found in formats else f"its first line is {found}"
        raise DataError(
            f"{source.path}: expected {'ground truth' if truth else 'a run'}, but {looks}; if it was not recognized, "
            f"name its format with --{'truth' if truth else 'run'}-format: {listed(TRUTHS if truth else RUNS)}"
        )
    return chosen


def _look(source: Source) -> str:
    """What the first line of a file says it is."""
    if source.is_parquet:
        names = parquet.names_of(source)
        return "parquet truth" if "retrieval_gt" in names or "group" in names else "parquet run"
    head = source.head()
    lines = [line for line in head.split(b"\n") if line.strip() and not line.startswith(b"#")]
    if not lines:
        return "empty" if not head.strip() or not source.data.strip() else "only comments"
    first = lines[0]
    if kind := mappings.kind_of(source):
        return "json" if kind == "either" else f"json {kind}"
    if first.lstrip()[:1] == b"{" or jsonl.is_array(source):
        return _look_json(source, first)
    names = csv.header_of(source)
    if set(beir.HEADER) <= set(names):
        return "beir"
    if _is_header(names):
        return "csv truth" if "group" in names else "csv run" if {"score", "rank"} & set(names) else "csv"
    # Most lines decide: one that is shorter or longer is a fault to be named, not another format.
    usual = Counter(min(len(line.split()), 6) for line in lines[:50]).most_common(1)[0][0]
    if usual >= 5:
        return "trec run"
    if usual in (3, 4):
        return "qrels"
    shown = first[:60].decode("utf-8", "replace")
    return f"{shown!r}"


def _is_header(names: list[str]) -> bool:
    """Whether the first line of a table names columns: those that are needed, or what others call them."""
    known = {"qid", "doc_id"}.union(*(OTHER_NAMES[name] for name in ("qid", "doc_id")))
    return bool({"qid", "doc_id"} & set(names)) or len(known & {name.lower() for name in names}) > 1


def _look_json(source: Source, first: bytes) -> str:
    try:
        keys = set(json.loads(first)) if not jsonl.is_array(source) else set(jsonl.first_object(source))
    except (ValueError, RecursionError):
        # Whichever reader gets it names the line; a long first line may only have been cut.
        keys = {key for key in ("retrieval_gt", "retrieved_ids", "doc_id") if f'"{key}"'.encode() in source.head()}
    if "retrieval_gt" in keys:
        return "jsonl truth"
    return "jsonl run" if keys & {"doc_id", *NESTED} else "jsonl"
