"""BEIR folders: `queries.jsonl`, `corpus.jsonl` and `qrels/<split>.tsv` with a header line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from groupgt.errors import DataError, Faults
from groupgt.formats.csv import table
from groupgt.formats.jsonl import objects
from groupgt.formats.rows import Judgment, gather, number_text, one_by_one
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.validity import id_fault, is_grade, number_of

HEADER = ["query-id", "corpus-id", "score"]


def is_folder(path: Path) -> bool:
    """Whether a folder is laid out as BEIR's are."""
    return (path / "qrels").is_dir() and (path / "queries.jsonl").is_file()


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """A folder (its `test` split, or its only one), or one `qrels/<split>.tsv`; each document is a group of one."""
    qrels = source
    if source.is_folder:
        splits = sorted((source.path / "qrels").glob("*.tsv"))
        test = source.path / "qrels" / "test.tsv"
        if test not in splits and len(splits) != 1:
            names = ", ".join(str(split) for split in splits) or "none"
            raise DataError(
                f"{source.path}: expected one split or qrels/test.tsv, found {names}; name the file of a split"
            )
        qrels = Source(test if test in splits else splits[0])
    faults = Faults()
    rows: list[tuple[str, str, float]] = []
    seen: dict[tuple[str, str], str] = {}
    for where, row in table(qrels, HEADER, faults):
        qid, document, text = (row[name] for name in HEADER)
        grade = number_of(text)
        wrong = id_fault(qid) or id_fault(document)
        if wrong:
            faults.add(where, f"an id {wrong}")
        elif grade is None or not is_grade(grade):
            faults.add(where, f"query {qid!r}: expected a number within ±2^31 as the score, found {text!r}")
        elif (qid, document) in seen:
            faults.add(
                where, f"query {qid!r}: {document!r} is judged twice (first at {seen[qid, document]}); remove one"
            )
        else:
            seen[qid, document] = where
            rows.append((qid, document, grade))
    faults.stop()
    texts = _texts(qrels.path.parent.parent / "queries.jsonl")
    return gather(one_by_one(rows), policy, texts=texts, declared=False)


def _texts(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    faults = Faults()
    texts = {str(row.get("_id")): str(row.get("text", "")) for _, row in objects(Source(path), faults)}
    faults.stop()
    return texts


def write_ground_truth(path: Path, rows: Iterator[Judgment], texts: dict[str, str]) -> None:
    """Writes `queries.jsonl` and `qrels/test.tsv` into a folder."""
    (path / "qrels").mkdir(parents=True, exist_ok=True)
    with (path / "queries.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for qid, text in texts.items():
            file.write(json.dumps({"_id": qid, "text": text}, ensure_ascii=False) + "\n")
    with (path / "qrels" / "test.tsv").open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(HEADER) + "\n")
        for qid, _, document, grade in rows:
            for name in (qid, document):
                if any(letter in name for letter in '\t\n\r"'):
                    raise DataError(f"the id {name!r} contains a tab, line break or quote; write jsonl or parquet")
            file.write(f"{qid}\t{document}\t{number_text(grade)}\n")
