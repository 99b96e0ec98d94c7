"""QAMPARI and AmbigQA: questions with a set of answers, each of which may be said in several ways."""

from __future__ import annotations

from typing import Any

from groupgt.errors import display, warn
from groupgt.formats.records import Questions, holds, records
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy


def look_qampari(source: Source) -> str | None:
    """`truth` for a file of QAMPARI's."""
    return "truth" if holds(source, "qid", "question_text", "answer_list") else None


def look_ambigqa(source: Source) -> str | None:
    """`truth` for a file of AmbigQA's."""
    return "truth" if holds(source, "id", "question", "annotations") else None


def read_qampari(source: Source, policy: Policy) -> GroundTruth:
    """Each answer is a group, met by a text that contains it or one of its aliases."""
    questions = Questions()
    for where, record in records(source, questions.faults):
        groups = []
        for answer in questions.list_at(record, "answer_list", where, dict):
            text = questions.text_at(answer, "answer_text", where)
            aliases = questions.list_at(answer, "aliases", where, str)
            groups.append({**_group([text or "", *aliases]), "name": text})
        questions.add(where, record.get("qid"), groups, record.get("question_text"))
    return questions.truth(policy)


def read_qampari_documents(source: Source, policy: Policy) -> GroundTruth:
    """Each answer is a group, met by a page that one of its proofs was found in, by the page's URL."""
    questions = Questions()
    for where, record in records(source, questions.faults):
        groups = []
        for answer in questions.list_at(record, "answer_list", where, dict):
            proofs = questions.list_at(answer, "proof", where, dict)
            found = [proof["found_in_url"] for proof in proofs if questions.has(proof, "found_in_url", where)]
            pages = dict.fromkeys(
                questions.list_at({"found_in_url": [*filter(None, found)]}, "found_in_url", where, str)
            )
            groups.append({"alternatives": list(pages), "name": answer.get("answer_text")})
        questions.add(where, record.get("qid"), groups, record.get("question_text"))
    return questions.truth(policy)


def read_ambigqa(source: Source, policy: Policy) -> GroundTruth:
    """Each answer of the first annotation is a group; the column `annotations` says how many there are."""
    questions = Questions()
    several = 0
    for where, record in records(source, questions.faults):
        annotations = questions.list_at(record, "annotations", where, dict)
        several += len(annotations) > 1
        groups = []
        for annotation in annotations[:1]:
            kind = annotation.get("type")
            if kind == "singleAnswer":
                groups.append(_group(questions.list_at(annotation, "answer", where, str)))
            elif kind == "multipleQAs":
                for pair in questions.list_at(annotation, "qaPairs", where, dict):
                    answers = questions.list_at(pair, "answer", where, str)
                    groups.append({**_group(answers), "name": pair.get("question")})
            else:
                what = "expected singleAnswer or multipleQAs as the type of an annotation"
                questions.faults.add(where, f"{what}, found {display(kind)}")
        columns = {"annotations": len(annotations)}
        questions.add(where, record.get("id"), groups, record.get("question"), columns)
    truth = questions.truth(policy)
    if several:
        many = (
            f"{several:,} question{'' if several == 1 else 's'} with several annotations, each a whole set of answers"
        )
        warn(f"{source.path}: {many}; the first is read (--where annotations=1 leaves these out)")
    return truth


def _group(texts: list[str]) -> dict[str, Any]:
    return {"alternatives": [{"text": text} for text in dict.fromkeys(texts) if text.strip()]}
