"""Answers of TREC RAG as runs: the documents that an answer cites, in the order of their first citation.

A record has `references`, a list of ids, and `answer`, a list of sentences with `citations`: positions in `references`
from 0, or ids. Its query is `topic_id` (or `narrative_id`, `qid`).
"""

from __future__ import annotations

from typing import Any

from groupgt.errors import Faults, display
from groupgt.formats.jsonl import objects
from groupgt.formats.rows import Gathered
from groupgt.formats.source import Source
from groupgt.model.run import Run
from groupgt.model.validity import id_text, is_integer

QUERIES = ("topic_id", "narrative_id", "qid")


def look(source: Source) -> str | None:
    """`run` for a file of answers with references."""
    head = source.head()
    return "run" if b'"references"' in head and b'"answer"' in head and head.lstrip()[:1] in b"[{" else None


def read_run(source: Source) -> Run:
    """Reads the cited documents of each answer; raises `DataError` with all errors."""
    gathered = Gathered()
    faults = gathered.faults
    seen: set[str] = set()
    for where, record in objects(source, faults):
        qid = next((id_text(record[key]) for key in QUERIES if key in record), None)
        references, answer = record.get("references"), record.get("answer")
        if qid is None or not isinstance(references, list) or not isinstance(answer, list):
            faults.add(where, f"expected topic_id, references (a list) and answer (a list), found {', '.join(record)}")
        elif qid in seen:
            faults.add(where, f"query {display(qid)}: duplicate query")
        else:
            seen.add(qid)
            gathered.add_ranking(qid, _cited(references, answer, f"{where}: query {display(qid)}", faults))
    return gathered.run(source)


def _cited(references: list[Any], answer: list[Any], where: str, faults: Faults) -> list[str]:
    """The distinct ids of all citations."""
    known = [id_text(each) for each in references]
    cited: dict[str, None] = {}
    for place, sentence in enumerate(answer, 1):
        citations = sentence.get("citations") if isinstance(sentence, dict) else None
        if not isinstance(citations, list):
            faults.add(f"{where}, sentence {place}", f"expected citations (a list), found {display(sentence)}")
            continue
        for each in citations:
            is_place = is_integer(each) and each not in references
            name = known[each] if is_place and 0 <= each < len(known) else id_text(each)
            if name is None or name not in known:
                what = f"expected a position in references (0 to {len(known) - 1}) or one of its ids"
                faults.add(f"{where}, sentence {place}", f"{what}, found {display(each)}")
            else:
                cited.setdefault(name)
    return list(cited)
