"""MultiHop-RAG: questions with lists of evidence, and the results that its scripts save beside them.

Neither has ids: questions are numbered from 1 in the order of the file, as both files have it.
"""

from __future__ import annotations

from typing import Any

from groupgt.formats.records import Questions, holds, records
from groupgt.formats.rows import Gathered
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run

# What a question's evidence is called in the data set, and in what the scripts save.
EVIDENCE = ("evidence_list", "gold_list")
COLUMNS = ("question_type", "answer")


def look(source: Source) -> str | None:
    """`truth` for the data set, `either` for saved results, which hold the evidence as well."""
    if holds(source, "query", "retrieval_list"):
        return "either"
    return "truth" if holds(source, "query", "evidence_list") else None


def read_facts(source: Source, policy: Policy) -> GroundTruth:
    """Each piece of evidence is a group, met by a text that contains its fact."""
    return _read(source, policy, "fact")


def read_documents(source: Source, policy: Policy) -> GroundTruth:
    """Each article that evidence comes from is a group, by its URL."""
    return _read(source, policy, "url")


def _read(source: Source, policy: Policy, key: str) -> GroundTruth:
    questions = Questions()
    for number, (where, record) in enumerate(records(source, questions.faults), 1):
        listed = next((name for name in EVIDENCE if name in record), EVIDENCE[0])
        found = [questions.text_at(evidence, key, where) for evidence in questions.list_at(record, listed, where, dict)]
        wanted = dict.fromkeys(name for name in found if name is not None)
        groups: list[Any] = [[name] if key == "url" else [{"text": name}] for name in wanted]
        columns = {name: record[name] for name in COLUMNS if name in record}
        questions.add(where, number, groups, record.get("query"), columns)
    return questions.truth(policy)


def read_run(source: Source) -> Run:
    """The texts of `retrieval_list`, best first, called by their ranks."""
    questions = Questions()
    gathered = Gathered()
    for number, (where, record) in enumerate(records(source, questions.faults), 1):
        results = questions.list_at(record, "retrieval_list", where, dict)
        texts = [text for result in results if (text := questions.text_at(result, "text", where)) is not None]
        gathered.add_ranking(str(number), [str(rank) for rank in range(1, len(texts) + 1)], {}, {"text": texts})
    questions.faults.stop()
    return gathered.run(source)
