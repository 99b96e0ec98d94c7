"""Data sets of RAG frameworks, whose ground truth is flat: each reference is a group of its own.

- ragas: the samples of an `EvaluationDataset` or a `Testset`, as JSON Lines or parquet; queries are numbered from 1 in
  file order. References are `reference_context_ids`, or if no sample has them, the texts of `reference_contexts`, for
  the labeller `text`. Results are `retrieved_context_ids` with the texts of `retrieved_contexts`; texts without ids are
  numbered by rank;
- ragas-texts: the same, but always by text;
- llama-index: an `EmbeddingQAFinetuneDataset`.
"""

from __future__ import annotations

import re
from typing import Any

from groupgt.errors import display
from groupgt.formats.jsonl import object_of
from groupgt.formats.records import Questions, keys_of, records
from groupgt.formats.rows import Gathered
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run

REFERENCES = ("reference_context_ids", "reference_contexts")
RESULTS = ("retrieved_context_ids", "retrieved_contexts")
# A data set of LlamaIndex begins with the texts of its queries.
LLAMA_INDEX = re.compile(rb'\s*\{\s*"queries"\s*:\s*\{\s*"[^"]*"\s*:\s*"')


def look(source: Source) -> str | None:
    """`truth` for references of ragas, `run` for results, `either` for both."""
    keys = keys_of(source)
    truth, run = (bool(keys.keys() & set(names)) for names in (REFERENCES, RESULTS))
    if not keys.get("user_input"):
        return None
    return "either" if truth and run else "truth" if truth else "run" if run else None


def look_llama_index(source: Source) -> str | None:
    """`truth` for a data set of LlamaIndex."""
    head = b"" if source.is_folder or source.is_parquet else source.head()
    return "truth" if LLAMA_INDEX.match(head) else None


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """Each reference is a group: an id, or a text if no sample has ids."""
    return _ground_truth(source, policy, REFERENCES)


def read_texts(source: Source, policy: Policy) -> GroundTruth:
    """Each reference is a group: a text."""
    return _ground_truth(source, policy, REFERENCES[1:])


def _ground_truth(source: Source, policy: Policy, names: tuple[str, ...]) -> GroundTruth:
    questions = Questions()
    rows = list(records(source, questions.faults))
    name = _first_filled(rows, names)
    for number, (where, record) in enumerate(rows, 1):
        by_id = name == REFERENCES[0]
        each = questions.ids_at(record, name, where) if by_id else questions.list_at(record, name, where, str)
        groups = [[one if by_id else {"text": one}] for one in dict.fromkeys(each)]
        questions.add(where, number, groups, record.get("user_input"))
    return questions.truth(policy)


def read_run(source: Source) -> Run:
    """The retrieved contexts of each sample, best first."""
    questions, gathered = Questions(), Gathered()
    rows = list(records(source, questions.faults))
    by_id = _first_filled(rows, RESULTS) == RESULTS[0]
    for number, (where, record) in enumerate(rows, 1):
        texts = None if by_id and record.get(RESULTS[1]) is None else questions.list_at(record, RESULTS[1], where, str)
        ids = questions.ids_at(record, RESULTS[0], where) if by_id else list(map(str, range(1, len(texts or ()) + 1)))
        if texts is not None and len(texts) != len(ids):
            what = f"expected as many {RESULTS[1]} as {RESULTS[0]} ({len(ids)}), found {len(texts)}"
            questions.faults.add(where, what)
        gathered.add_ranking(str(number), ids, {}, {} if texts is None else {"text": texts})
    questions.faults.stop()
    return gathered.run(source)


def _first_filled(rows: list[tuple[str, dict[str, Any]]], names: tuple[str, ...]) -> str:
    """The first key that has a value in some record; the last one if none has."""
    return next((name for name in names if any(record.get(name) is not None for _, record in rows)), names[-1])


def read_llama_index(source: Source, policy: Policy) -> GroundTruth:
    """Each relevant document is a group."""
    data, questions = object_of(source), Questions()
    for name in ("queries", "relevant_docs"):
        if not isinstance(data.get(name), dict):
            questions.faults.add(str(source.path), f"expected an object as {name}, found {display(data.get(name))}")
    questions.faults.stop()
    texts, relevant = data["queries"], data["relevant_docs"]
    for qid in {**texts, **relevant}:
        where = f"{source.path}: query {qid!r}"
        ids = questions.ids_at({qid: [], **relevant}, qid, where)
        questions.add(where, qid, [[name] for name in dict.fromkeys(ids)], texts.get(qid))
    return questions.truth(policy)
