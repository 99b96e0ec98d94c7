"""Reads TREC RAG answers as runs: the documents that an answer cites, in the order of their first citation.

A record has `references`, a list of ids, and `answer`, a list of sentences with `citations`, which are ids or indexes
into `references` from 0. Its query id is `topic_id` (or `narrative_id`, `qid`).
"""

from __future__ import annotations

from typing import Any

from groupgt.errors import Faults, display
from groupgt.formats.jsonl import objects
from groupgt.formats.rows import RunBuilder
from groupgt.formats.source import Source
from groupgt.model.run import Run
from groupgt.model.validity import id_text, is_integer

QUERIES = ("topic_id", "narrative_id", "qid")


def look(source: Source) -> str | None:
    """Return `run` for a file of answers with references."""
    head = source.head()
    return "run" if b'"references"' in head and b'"answer"' in head and head.lstrip()[:1] in b"[{" else None


def read_run(source: Source) -> Run:
    """Read the cited documents of each answer; raises `DataError` with all errors."""
    builder = RunBuilder()
    faults = builder.faults
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
            builder.add_ranking(qid, _cited(references, answer, f"{where}: query {display(qid)}", faults))
    return builder.run(source)


def _cited(references: list[Any], answer: list[Any], where: str, faults: Faults) -> list[str]:
    """Return the distinct ids of all citations."""
    names = [id_text(reference) for reference in references]
    cited: dict[str, None] = {}
    for number, sentence in enumerate(answer, 1):
        citations = sentence.get("citations") if isinstance(sentence, dict) else None
        if not isinstance(citations, list):
            faults.add(f"{where}, sentence {number}", f"expected citations (a list), found {display(sentence)}")
            continue
        for citation in citations:
            is_position = is_integer(citation) and citation not in references
            name = names[citation] if is_position and 0 <= citation < len(names) else id_text(citation)
            if name is None or name not in names:
                what = f"expected a position in references (0 to {len(names) - 1}) or one of its ids"
                faults.add(f"{where}, sentence {number}", f"{what}, found {display(citation)}")
            else:
                cited.setdefault(name)
    return list(cited)
