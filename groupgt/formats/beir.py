"""Folders in the BEIR and MTEB layout: queries, a corpus, and a `qrels/` folder with one file per split.

Qrels in text files have three columns, with or without a header line, or the four columns of TREC qrels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from groupgt.errors import DataError, Faults
from groupgt.formats import csv, jsonl, parquet, trec
from groupgt.formats.endings import ending_of
from groupgt.formats.records import has_keys, records
from groupgt.formats.rows import Judgment, number_text, write_lines
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.validity import number_of

HEADER = ["query-id", "corpus-id", "score"]
# File name endings of splits, and of queries and corpora.
QRELS = (".tsv", ".txt", ".qrels", ".trec", ".jsonl", ".parquet")
TABLES = (".jsonl", ".parquet")


def is_folder(path: Path) -> bool:
    """Return whether a folder has the BEIR or MTEB layout."""
    return _qrels_folder(path) is not None and table_in(path, "queries") is not None


def _qrels_folder(path: Path) -> Path | None:
    """Return the folder with judgments: `qrels`, or the folder that data sets on the Hugging Face Hub use."""
    folders = (path / name for name in ("qrels", "data", "default"))
    return next((folder for folder in folders if folder.is_dir()), None)


def look(source: Source) -> str | None:
    """Return `truth` for a qrels file with a BEIR header line or BEIR keys."""
    is_beir = has_keys(source, *HEADER[:2]) or set(HEADER) <= set(csv.header_of(source))
    return "truth" if is_beir else None


def table_in(folder: Path, name: str) -> Path | None:
    """Return `NAME.jsonl` or a similar file in a folder, or the only file in subfolder `NAME`, or None if missing."""
    for ending in TABLES:
        if (path := folder / f"{name}{ending}").is_file():
            return path
    files = _files(folder / name, TABLES) if (folder / name).is_dir() else []
    return files[0] if len(files) == 1 else None


def _files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    files = (path for path in sorted(folder.iterdir()) if not path.name.startswith("."))
    return [path for path in files if ending_of(path.name) in endings]


def split_of(path: Path) -> str:
    """Return the split named in a file name: `test` for `test.tsv` and for `test-00000-of-00001.parquet`."""
    return path.name.split(".")[0].split("-0")[0]


def _qrels_of(source: Source) -> Source:
    """Return the `test` split of a folder, or its only split."""
    files = _files(_qrels_folder(source.path) or source.path / "qrels", QRELS)
    tests = [path for path in files if split_of(path) == "test"]
    if len(tests) != 1 and len(files) != 1:
        names = ", ".join(map(str, files)) or "none"
        raise DataError(f"{source.path}: expected one split or qrels/test.tsv, found {names}; pass one split's file")
    return Source(tests[0] if len(tests) == 1 else files[0], ceiling=source.ceiling)


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """Read a folder (its `test` or only split) or one file of judgments. Each document becomes its own group."""
    qrels = _qrels_of(source) if source.path.is_dir() else source
    faults, texts = Faults(), {}
    if queries := table_in(qrels.path.parent.parent, "queries"):
        rows_of_queries = records(Source(queries), faults)
        texts = {str(row.get("_id", row.get("id"))): str(row.get("text", "")) for _, row in rows_of_queries}
    faults.stop()
    if columns := _columns_of(qrels):
        truth = trec.judged(qrels, columns).truth(policy, "flat")
    elif qrels.is_parquet:
        truth = parquet.read_ground_truth(qrels, policy)
    else:
        truth = (jsonl if qrels.is_json else csv).read_ground_truth(qrels, policy)
    return replace(truth, texts=[texts.get(qid) for qid in truth.qids]) if texts else truth


def _columns_of(qrels: Source) -> str:
    """Return the columns of qrels that have no header line, or an empty string for other qrels."""
    if qrels.is_parquet or has_keys(qrels, *HEADER[:2]) or HEADER[0] in csv.header_of(qrels):
        return ""
    cells = qrels.first_line.decode("utf-8", "replace").split()
    columns = {3: trec.WITHOUT_ITER, 4: trec.QRELS}.get(len(cells), "")
    return "" if len(cells) == 3 and number_of(cells[-1]) is None else columns


def write_ground_truth(path: Path, truth: GroundTruth, rows: Iterator[Judgment]) -> None:
    """Write `queries.jsonl` and `qrels/test.tsv` into a folder."""
    (path / "qrels").mkdir(parents=True, exist_ok=True)
    texts = zip(truth.qids, truth.texts or [""] * len(truth))
    jsonl.write_objects(path / "queries.jsonl", ({"_id": qid, "text": text or ""} for qid, text in texts))
    write_lines(path / "qrels" / "test.tsv", _qrels_lines(rows))


def _qrels_lines(rows: Iterator[Judgment]) -> Iterator[str]:
    yield "\t".join(HEADER) + "\n"
    for qid, _, document, grade in rows:
        for name in (qid, document):
            if any(letter in name for letter in '\t\n\r"'):
                raise DataError(f"the id {name!r} contains a tab, line break or quote; write jsonl or parquet")
        yield f"{qid}\t{document}\t{number_text(grade)}\n"
