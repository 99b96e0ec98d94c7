"""Reads data sets and answers from RAG frameworks. The ground truth is flat: each reference is its own group.

- ragas: samples identified by `user_input`. References are `reference_context_ids` or, if no sample has them, texts;
- ragas-texts: the same samples, but references are always texts;
- deepeval: the texts in `context` are references, those in `retrieval_context` results;
- trec-rag: the documents that an answer cites, in the order of their first citation. `citations` are ids or indexes
  into `references` from 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from groupgt.errors import Faults, display, refuse
from groupgt.formats.columns import Column
from groupgt.formats.jsonl import object_of, objects
from groupgt.formats.records import Queries, keys_of, singles
from groupgt.formats.rows import RunBuilder
from groupgt.formats.source import Record, Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.validity import id_text, is_integer
from groupgt.model.values import normal_text, unnamed

# A data set of LlamaIndex begins with the texts of its queries.
LLAMA_INDEX = re.compile(rb'\s*\{\s*"queries"\s*:\s*\{\s*"[^"]*"\s*:\s*"')
TOPICS = ("topic_id", "narrative_id", "qid")


@dataclass(frozen=True)
class Samples:
    """Records with a question, references and results. A `separator` splits a cell with several texts."""

    question: str
    references: tuple[str, ...]
    results: tuple[str, ...]
    separator: str = ""

    @property
    def readers(self) -> tuple[Any, Any, Any]:
        """The functions that recognize such records, and read ground truth and results."""
        return self.look, self.read_ground_truth, self.read_run

    def look(self, source: Source) -> str | None:
        """Return `truth` if samples have references, `run` if they have results, or `either` if they have both."""
        keys = keys_of(source)
        truth, run = (bool(keys.keys() & set(names)) for names in (self.references, self.results))
        if not keys.get(self.question):
            return None
        return "either" if truth and run else "truth" if truth else "run" if run else None

    def read_ground_truth(self, source: Source, policy: Policy) -> GroundTruth:
        """Make a group from each reference id, or from each reference text if no sample has ids."""
        queries = Queries()
        rows, name = self._rows(queries, source, self.references)
        by_id = name.endswith("_ids")
        for queries.where, record in rows:
            references = queries.ids_at(record, name) if by_id else queries.list_at(record, name, str)
            groups = singles(references) if by_id else [[{"text": text}] for text in dict.fromkeys(references)]
            text = queries.text_at(record, self.question)
            queries.add(normal_text(text or ""), groups, text)
        return queries.truth(policy)

    def read_run(self, source: Source) -> Run:
        """Read the results of each sample, best first. Results without ids can only be matched by text."""
        queries = Queries()
        builder = RunBuilder(queries.faults)
        rows, name = self._rows(queries, source, self.results)
        by_id, (*_, texts_at) = name.endswith("_ids"), self.results
        for queries.where, record in rows:
            qid = normal_text(queries.text_at(record, self.question) or "")
            if qid in builder.ids:
                queries.fault(f"query {display(qid)}: duplicate query")
            texts = None if by_id and record.get(texts_at) is None else queries.list_at(record, texts_at, str)
            ids = queries.ids_at(record, name) if by_id else unnamed(len(texts or ()))
            if texts is not None and len(texts) != len(ids):
                queries.fault(f"expected as many {texts_at} as {name} ({len(ids)}), found {len(texts)}")
            builder.add_ranking(qid, ids, fields={} if texts is None else {"text": texts})
        return builder.run(source, by_text=True, has_ids=by_id)

    def _rows(self, queries: Queries, source: Source, names: tuple[str, ...]) -> tuple[list[tuple[str, Record]], str]:
        """Return located records, and the first key that has a value in any record (or else the last key)."""
        rows = [(queries.where, record) for record in queries.records(source)]
        name = next((name for name in names if any(record.get(name) is not None for _, record in rows)), names[-1])
        parts = Column(name, self.separator).parts
        return [(where, {**row, name: parts(row[name])} if name in row else row) for where, row in rows], name


RAGAS_TEXTS = Samples("user_input", ("reference_contexts",), ("retrieved_context_ids", "retrieved_contexts"))
RAGAS = replace(RAGAS_TEXTS, references=("reference_context_ids", *RAGAS_TEXTS.references))
# DeepEval's own CSV and JSON Lines join the texts of a list.
DEEPEVAL = Samples("input", ("context",), ("retrieval_context",), "|")


def look_llama_index(source: Source) -> str | None:
    """Return `truth` for a LlamaIndex data set."""
    return "truth" if LLAMA_INDEX.match(source.head()) else None


def read_llama_index(source: Source, policy: Policy) -> GroundTruth:
    """Make a group from each relevant document."""
    data, queries = object_of(source), Queries()
    strange = [name for name in ("queries", "relevant_docs") if not isinstance(data.get(name), dict)]
    refuse((str(source.path), f"expected an object as {name}, found {display(data.get(name))}") for name in strange)
    texts, relevant = data["queries"], data["relevant_docs"]
    for qid in {**texts, **relevant}:
        queries.where = f"{source.path}: query {qid!r}"
        queries.add(qid, singles(queries.ids_at({qid: [], **relevant}, qid)), texts.get(qid))
    return queries.truth(policy)


def look_trec_rag(source: Source) -> str | None:
    """Return `"run"` if the file contains answers with references."""
    head = source.head()
    return "run" if b'"references"' in head and b'"answer"' in head and head.lstrip()[:1] in b"[{" else None


def read_trec_rag(source: Source) -> Run:
    """Read the cited documents of each answer, or raise `DataError` with all errors."""
    builder = RunBuilder()
    faults = builder.faults
    for where, record in objects(source, faults):
        qid = next((id_text(record[key]) for key in TOPICS if key in record), None)
        references, answer = record.get("references"), record.get("answer")
        if qid is None or not isinstance(references, list) or not isinstance(answer, list):
            faults.add(where, f"expected topic_id, references (a list) and answer (a list), found {', '.join(record)}")
        elif qid in builder.ids:
            faults.add(where, f"query {display(qid)}: duplicate query")
        else:
            builder.add_ranking(qid, _cited(references, answer, f"{where}: query {display(qid)}", faults))
    return builder.run(source)


def _cited(references: list[Any], answer: list[Any], where: str, faults: Faults) -> list[str]:
    names = [id_text(reference) for reference in references]
    # Integers among the references are ids, and so are those that cite them.
    has_integers = any(map(is_integer, references))
    cited: dict[str, None] = {}
    for number, sentence in enumerate(answer, 1):
        citations = sentence.get("citations") if isinstance(sentence, dict) else None
        if not isinstance(citations, list):
            faults.add(f"{where}, sentence {number}", f"expected citations (a list), found {display(sentence)}")
            continue
        for citation in citations:
            is_position = is_integer(citation) and not has_integers
            name = names[citation] if is_position and 0 <= citation < len(names) else id_text(citation)
            if name is None or name not in names:
                position = "" if has_integers else f"a position in references (0 to {len(names) - 1}) or "
                what = f"expected {position}one of the ids in references"
                faults.add(f"{where}, sentence {number}", f"{what}, found {display(citation)}")
            else:
                cited.setdefault(name)
    return list(cited)
