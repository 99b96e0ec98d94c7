"""FreshStack: questions whose nuggets name the documents that support them, and those judged not to.

The shape is that of the data set `freshstack/queries-oct-2024`: `query_id`, `query_title`, `query_text` and `nuggets`,
each with `text`, `relevant_corpus_ids` and `non_relevant_corpus_ids`; other keys are not read.
"""

from __future__ import annotations

from groupgt.formats.records import Questions, holds, records
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy


def look(source: Source) -> str | None:
    """`truth` for a file of this format."""
    return "truth" if holds(source, "query_id", "query_text", "nuggets") else None


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """Each nugget is a group; a nugget that no document supports is an empty one, for the policy `empty_groups`."""
    questions = Questions()
    for where, record in records(source, questions.faults):
        groups = []
        for nugget in questions.list_at(record, "nuggets", where, dict):
            # As FreshStack reads them: a document in both lists is not relevant.
            judged = dict.fromkeys(questions.ids_at(nugget, "relevant_corpus_ids", where), 1)
            judged |= dict.fromkeys(questions.ids_at(nugget, "non_relevant_corpus_ids", where), 0)
            alternatives = [{"id": name, "grade": grade} for name, grade in judged.items()]
            groups.append({"alternatives": alternatives, "name": nugget.get("text")})
        parts = [record.get(key) for key in ("query_title", "query_text")]
        text = " ".join(part for part in parts if isinstance(part, str) and part)
        questions.add(where, record.get("query_id"), groups, text)
    return questions.truth(policy)
