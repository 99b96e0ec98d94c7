"""BRIGHT: questions with gold documents; and BRIGHT-Pro, whose gold documents stand under aspects with weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from groupgt.errors import display
from groupgt.formats.records import Questions, holds, records
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.validity import id_text

# What stands in `excluded_ids` where nothing is excluded.
NONE = "N/A"
# An aspect is called after its question.
ASPECT = re.compile(r"-(?:a|aspect-)\d+$")
ENDINGS = (".json", ".jsonl", ".parquet")


def look(source: Source) -> str | None:
    """`truth` for the file `examples` of BRIGHT."""
    return "truth" if holds(source, "query", "id", "gold_ids") else None


def look_pro(source: Source) -> str | None:
    """`truth` for the file `aspects` of BRIGHT-Pro."""
    return "truth" if holds(source, "id", "weight", "supporting_docs") else None


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """Each gold document is a group; `excluded_ids` are left out of the question's results."""
    return _read(source, policy, "gold_ids")


def read_long(source: Source, policy: Policy) -> GroundTruth:
    """The same of whole pages."""
    return _read(source, policy, "gold_ids_long")


def _read(source: Source, policy: Policy, key: str) -> GroundTruth:
    questions = Questions()
    for where, record in records(source, questions.faults):
        groups = [[name] for name in dict.fromkeys(questions.ids_at(record, key, where))]
        left_out = _excluded(questions, record, where)
        questions.add(where, record.get("id"), groups, record.get("query"), excluded=left_out)
    return questions.truth(policy)


def _excluded(questions: Questions, record: dict[str, Any], where: str) -> list[str]:
    """The ids that a question leaves out of its results."""
    if record.get("excluded_ids") is None:
        return []
    return [name for name in questions.ids_at(record, "excluded_ids", where) if name != NONE]


def read_pro(source: Source, policy: Policy) -> GroundTruth:
    """Each aspect is a group of its supporting documents, with its weight.

    The questions stand in `../examples` beside the folder of aspects, where there is such a file.
    """
    questions = Questions()
    aspects: dict[str, list[dict[str, Any]]] = {}
    first: dict[str, str] = {}
    for where, record in records(source, questions.faults):
        name = id_text(record.get("id"))
        if name is None or not ASPECT.search(name):
            what = "expected the id of a question and -a1 or -aspect-1 as the id of an aspect"
            questions.faults.add(where, f"{what}, found {display(record.get('id'))}")
            continue
        if not questions.once(name, where, f"the aspect {name!r} is described"):
            continue
        qid = ASPECT.sub("", name)
        first.setdefault(qid, where)
        alternatives = list(dict.fromkeys(questions.ids_at(record, "supporting_docs", where)))
        group = {"alternatives": alternatives, "weight": record.get("weight"), "name": record.get("content") or name}
        aspects.setdefault(qid, []).append(group)
    examples = _examples(source.path)
    texts = (
        {}
        if examples is None
        else {id_text(record.get("id")): record for _, record in records(Source(examples), questions.faults)}
    )
    for qid, groups in aspects.items():
        record = texts.get(qid, {})
        left_out = _excluded(questions, record, first[qid])
        questions.add(first[qid], qid, groups, record.get("query"), excluded=left_out)
    return questions.truth(policy)


def _examples(aspects: Path) -> Path | None:
    """The file of questions that goes with a file of aspects."""
    folder = aspects.parent.parent / "examples"
    named = [folder / f"{aspects.name.split('.')[0].split('-0')[0]}{ending}" for ending in ENDINGS]
    return next((path for path in (folder / aspects.name, *named) if path.is_file()), None)
