"""What each reader of ground truth makes of an absent key, another key in its place, an empty list, a contradiction."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.formats.known import RUNS, TRUTHS
from tests.formats.test_otlp import span

# Outcomes that are no error: read as a query of its own; read as a query that is undefined.
READ, UNDEFINED = "read", "undefined"
# What a format has no way to say.
NO_WAY = None
Record = dict[str, Any]


def lines(path: Path, records: list[Record]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def parquet(path: Path, records: list[Record]) -> None:
    pl.DataFrame(records, infer_schema_length=None).write_parquet(path)


def text(path: Path, parts: list[str]) -> None:
    path.write_text("".join(parts))


def mapping(path: Path, parts: list[Record]) -> None:
    path.write_text("{" + ", ".join(json.dumps(part)[1:-1] for part in parts) + "}")


def last(path: Path, parts: list[Record]) -> None:
    path.write_text(json.dumps(parts[-1]))


@dataclass(frozen=True)
class Row:
    """What is in a sound file, and what comes after it (a list: in its place) in four cases, each with its outcome.

    The outcome of an error is words of it; `{path}` stands for the file.
    """

    sound: Any
    absent: tuple[Any, str] | None
    wrong: tuple[Any, str] | None
    empty: tuple[Any, str] | None
    contradictory: tuple[Any, str] | None
    write: Callable[[Path, Any], None] = lines


def without(record: Record, key: str) -> Record:
    return {name: value for name, value in record.items() if name != key}


def renamed(record: Record, key: str, other: str) -> Record:
    return {(other if name == key else name): value for name, value in record.items()}


def of_records(sound: Record, key: str, other: str, contradictory: tuple[Any, str], qid: str = "id") -> Row:
    """A format of records with a list at a key."""
    second = {**sound, qid: "2"}
    found = ", ".join(second if key not in second else without(second, key))
    return Row(
        [sound],
        (without(second, key), f"{{path}}:2: expected the key {key}, found {found}"),
        (renamed(second, key, other), f"{{path}}:2: expected the key {key}, found "),
        ({**second, key: []}, UNDEFINED),
        contradictory,
    )


def of_texts(sound: Record, text: str, key: str, other: str) -> Row:
    """A format of records that are identified by a text."""
    name = sound[text]
    again = f"{{path}}:2: query {name!r}: duplicate query (first at {{path}}:1)"
    row = of_records({**sound, text: "2"}, key, other, (sound, again), text)
    return replace(row, sound=[sound])


NUGGET = {"text": "N", "relevant_corpus_ids": ["a"], "non_relevant_corpus_ids": []}
FRESHSTACK = {"query_id": "1", "query_text": "?", "nuggets": [NUGGET]}
ASSIGNED = {"text": "N", "importance": "vital", "assignment": "support"}
NUGGETIZER = {"qid": "1", "docid": "a", "nuggets": [ASSIGNED]}
MULTIHOP = {"query": "?", "evidence_list": [{"fact": "F", "url": "u"}]}
HOTPOTQA = {"_id": "1", "question": "?", "supporting_facts": [["A", 0], ["A", 1]]}
MUSIQUE = {"id": "1", "question": "?", "paragraphs": [{"title": "A", "is_supporting": True}]}
DEEPEVAL = {"input": "?", "context": ["A"]}
ANSWER = {"answer_text": "A", "aliases": [], "proof": [{"found_in_url": "u"}]}
QAMPARI = {"qid": "1", "question_text": "?", "answer_list": [ANSWER]}
OFFSETS = {"start_offset": 3, "end_offset": 9}
BANK: dict[str, Any] = {
    "query_id": "1",
    "nugget_bank": {"Q": {"question": "Q", "importance": "vital", "references": [{"doc_id": "a", "offsets": OFFSETS}]}},
}
OKAY = {"question": "Q", "importance": "okay", "references": [{"doc_id": "b", "offsets": OFFSETS}]}
BRIGHT = {"query": "?", "id": "1", "excluded_ids": ["N/A"], "gold_ids": ["a"], "gold_ids_long": ["a"]}
ASPECT = {"id": "1-a1", "content": "C", "weight": 1, "supporting_docs": ["a"]}
CRUX = {"id": "1", "docid": "a", "rating": [5]}
AMBIGQA = {"id": "1", "question": "?", "annotations": [{"type": "singleAnswer", "answer": ["A"]}]}
MEMORY = {"question_id": "1", "question_type": "t", "haystack_session_ids": ["a"], "answer_session_ids": ["a"]}
TURNS = {"question": "?", "evidence": ["D1:1"], "category": 1}
LOCOMO: dict[str, Any] = {"sample_id": "1", "conversation": {}, "qa": [TURNS]}
FANOUTQA = {"id": "1", "question": "?", "decomposition": [{"decomposition": [], "evidence": {"pageid": 1}}]}
DOUBLE_BENCH = {"uid": "1", "question": "?", "reference_page": [1], "doc_path": "d"}
JSONL = {"qid": "1", "retrieval_gt": [["a"]]}
BEIR = {"query-id": "1", "corpus-id": "a", "score": 1}
RAGAS = {"user_input": "?", "reference_context_ids": ["a"], "reference_contexts": ["A"]}
LLAMA_INDEX: dict[str, Any] = {
    "queries": {"1": "?"},
    "corpus": {"a": "A"},
    "relevant_docs": {"1": ["a"]},
    "mode": "text",
}
BOTH = {"1": "?", "2": "?"}
JUDGED = {"qid": "1", "group": "g", "doc_id": "a", "grade": 1}

OPENED = {
    **{"at": "", "by": "a", "seq": 1, "qid": "1", "act": "open", "query": "?", "pool": [], "nonrelevant": []},
    "groups": [{"docs": {"a": 1}}],
}
FINISHED = {"at": "", "by": "a", "seq": 2, "qid": "1", "act": "done", "rest": "unjudged"}
SKIP = {"at": "", "by": "a", "seq": 3, "qid": "2", "act": "skip", "reason": None}
TWICE = "{path}:2: query '1': duplicate query (first at {path}:1)"
TWO_JUDGMENTS = "{path}:2: query '1': 'a' is judged twice (first at {path}:1); remove one"
OF_BANKS = Row(
    [BANK],
    ({"query_id": "2"}, "{path}:2: expected nuggets as nugget_bank or claim_bank, found the keys query_id"),
    (
        {"query_id": "2", "nuggets_bank": {}},
        "{path}:2: expected nuggets as nugget_bank or claim_bank, found the keys query_id, nuggets_bank",
    ),
    ({"query_id": "2", "nugget_bank": []}, UNDEFINED),
    (
        {"query_id": "2", "nugget_bank": [*BANK["nugget_bank"].values(), OKAY]},
        "{path}:2, nugget 2: query '2': the nugget 'Q' is okay, but vital at {path}:2, nugget 1; keep one",
    ),
)
OF_PARQUET = Row(
    [{**JSONL, "query": "?"}],
    (
        [{"qid": "1"}],
        "{path}: the 'retrieval_gt' column is missing: expected qid and retrieval_gt (a row per query), or",
    ),
    (
        [{"qid": "1", "facts": [["a"]]}],
        "{path}: the 'retrieval_gt' column is missing: expected qid and retrieval_gt (a row per query), or qid, doc_id "
        "and grade or group (a row per judgment), found qid, facts",
    ),
    ({"qid": "2", "query": "?", "retrieval_gt": []}, UNDEFINED),
    ({"qid": "1", "query": "?", "retrieval_gt": [["b"]]}, "query '1': duplicate query (first at {path}: row 1)"),
    parquet,
)

OUTCOMES: dict[str, Row] = {
    "freshstack": of_records(FRESHSTACK, "nuggets", "nugget", (FRESHSTACK, TWICE), "query_id"),
    "nuggetizer": of_records(
        NUGGETIZER,
        "nuggets",
        "nugget",
        (
            {**NUGGETIZER, "nuggets": [{**ASSIGNED, "assignment": "not_support"}]},
            "{path}:2: query '1': 'a' is assigned twice (first at {path}:1); remove one",
        ),
        "qid",
    ),
    "multihop-rag": of_texts(MULTIHOP, "query", "evidence_list", "evidence"),
    "multihop-rag-documents": of_texts(MULTIHOP, "query", "evidence_list", "evidence"),
    "hotpotqa": of_records(HOTPOTQA, "supporting_facts", "facts", (HOTPOTQA, TWICE), "_id"),
    "musique": of_records(MUSIQUE, "paragraphs", "passages", (MUSIQUE, TWICE)),
    "qampari": of_records(QAMPARI, "answer_list", "answers", (QAMPARI, TWICE), "qid"),
    "qampari-documents": of_records(QAMPARI, "answer_list", "answers", (QAMPARI, TWICE), "qid"),
    "nuggetbank": OF_BANKS,
    "nuggetbank-spans": OF_BANKS,
    "bright": of_records(BRIGHT, "gold_ids", "gold", (BRIGHT, TWICE)),
    "bright-long": of_records(BRIGHT, "gold_ids_long", "gold_long", (BRIGHT, TWICE)),
    "bright-pro": Row(
        [ASPECT],
        (without({**ASPECT, "id": "2-a1"}, "supporting_docs"), "{path}:2: expected the key supporting_docs, found id,"),
        (
            renamed({**ASPECT, "id": "2-a1"}, "supporting_docs", "supporting_doc"),
            "{path}:2: expected the key supporting_docs, found id, content, weight, supporting_doc (is supporting_docs",
        ),
        ({**ASPECT, "id": "2-a1", "supporting_docs": []}, UNDEFINED),
        (
            {**ASPECT, "supporting_docs": ["b"]},
            "{path}:2: the aspect '1-a1' is described twice (first at {path}:1); remove one",
        ),
    ),
    "longmemeval": of_records(MEMORY, "answer_session_ids", "sessions", (MEMORY, TWICE), "question_id"),
    "locomo": Row(
        [LOCOMO],
        (
            {**LOCOMO, "sample_id": "2", "qa": [without(TURNS, "evidence")]},
            "{path}:2: qa 0: expected the key evidence,",
        ),
        ({**LOCOMO, "sample_id": "2", "qa": {}}, "{path}:2: expected a list as qa, found {{}}"),
        ({**LOCOMO, "sample_id": "2", "qa": [{**TURNS, "evidence": []}]}, UNDEFINED),
        (LOCOMO, "{path}:2: qa 0: query '1:0': duplicate query (first at {path}:1: qa 0)"),
    ),
    "fanoutqa": of_records(FANOUTQA, "decomposition", "parts", (FANOUTQA, TWICE)),
    "double-bench": of_records(DOUBLE_BENCH, "reference_page", "pages", (DOUBLE_BENCH, TWICE), "uid"),
    "crux": of_records(
        CRUX, "rating", "ratings", (CRUX, "{path}:2: query '1': 'a' is rated twice (first at {path}:1); remove one")
    ),
    "ambigqa": of_records(AMBIGQA, "annotations", "annotation", (AMBIGQA, TWICE)),
    "ragelo": Row(
        ["1 g a 1\n"],
        ("2 g b\n", "{path}:2: expected 4 columns (topic subtopic doc rel), found 3"),
        ("2 g 1 b\n", "{path}:2: query '2': expected a number within ±2^31 as the relevance of '1', found 'b'"),
        ("2 g __ragelo_unaddressed__g 1\n", UNDEFINED),
        ("1 g a 0\n", TWO_JUDGMENTS),
        text,
    ),
    "beir": Row(
        [BEIR],
        (
            {"query-id": "2", "score": 1},
            "{path}:2: expected the key corpus-id, found query-id, score",
        ),
        (
            {"query-id": "2", "corpus-id": "b", "relevance": 0},
            "{path}:1: expected the key relevance, found query-id, corpus-id, score",
        ),
        NO_WAY,
        ({**BEIR, "score": 0}, "{path}:2: query '1': 'a' has grade 0, but 1 at {path}:1; remove one"),
    ),
    "ragas": of_texts(RAGAS, "user_input", "reference_context_ids", "reference_ids"),
    "deepeval": of_texts(DEEPEVAL, "input", "context", "contexts"),
    "ragas-texts": of_texts(RAGAS, "user_input", "reference_contexts", "references"),
    "llama-index": Row(
        [LLAMA_INDEX],
        (without(LLAMA_INDEX, "relevant_docs"), "{path}: expected an object as relevant_docs, found None"),
        (renamed(LLAMA_INDEX, "relevant_docs", "relevant"), "{path}: expected an object as relevant_docs, found None"),
        ({**LLAMA_INDEX, "queries": BOTH}, UNDEFINED),
        ({**LLAMA_INDEX, "relevant_docs": {"1": "a"}}, "{path}: query '1': expected a list as 1, found 'a'"),
        last,
    ),
    "autorag": OF_PARQUET,
    "parquet": OF_PARQUET,
    "json": Row(
        [{"1": {"a": 1}}],
        ({"2": None}, "{path}: query '2': expected {{id: grade}}, as for other queries, found None"),
        ({"2": [["b"]]}, "{path}: query '2': expected {{id: grade}}, as for other queries, found [['b']]"),
        ({"2": {}}, UNDEFINED),
        ({"1": {"a": 0}}, "duplicate key '1'"),
        mapping,
    ),
    "journal": Row(
        [OPENED, FINISHED],
        (without(SKIP, "reason"), '{path}:3: action "skip": expected text or null as reason, found nothing'),
        (renamed(SKIP, "act", "acts"), "{path}:3: expected an action (begin, open, "),
        (SKIP, UNDEFINED),
        (
            {**SKIP, "seq": 2},
            "{path}:3: 'a' has two different actions with seq 2; give each annotator a different name",
        ),
    ),
    "jsonl": Row(
        [JSONL],
        ({"qid": "2"}, "{path}:2: expected the key retrieval_gt, found qid"),
        ({"qid": "2", "gt": [["a"]]}, "{path}:2: expected the key retrieval_gt, found qid, gt; rename gt to"),
        ({"qid": "2", "retrieval_gt": []}, UNDEFINED),
        ({"qid": "1", "retrieval_gt": [["b"]]}, TWICE),
    ),
    "csv": Row(
        ["qid,group,doc_id,grade\n1,g,a,1\n"],
        ("2,g\n", "{path}:3: expected 4 columns (qid, group, doc_id, grade), found 2"),
        (
            ["qid,group,passage,relevance\n1,g,a,0\n"],
            "{path}:1: the 'doc_id' column is missing: expected qid and retrieval_gt (a row per query), or qid, doc_id "
            "and grade or group (a row per judgment), found qid, group, passage, relevance; rename passage to doc_id",
        ),
        NO_WAY,
        (
            "1,g,a,0\n",
            "{path}:3: query '1': 'a' has grade 0 in the group 'g', but 1 at {path}:2; remove one",
        ),
        text,
    ),
    "trec": Row(
        ["1 0 a 1\n"],
        ("2 0 b\n", "{path}:2: expected 4 columns (qid iter doc rel), found 3"),
        ("2 0 1 b\n", "{path}:2: query '2': expected a number within ±2^31 as the relevance of '1', found 'b'"),
        NO_WAY,
        ("1 0 a 0\n", TWO_JUDGMENTS),
        text,
    ),
    "trec-no-iter": Row(
        ["1 a 1\n"],
        ("2 b\n", "{path}:2: expected 3 columns (qid doc rel), found 2"),
        ("2 1 b\n", "{path}:2: query '2': expected a number within ±2^31 as the relevance of '1', found 'b'"),
        NO_WAY,
        ("1 a 0\n", TWO_JUDGMENTS),
        text,
    ),
    "trec-subtopics": Row(
        ["1 1 a 1\n"],
        ("2 1 b\n", "{path}:2: expected 4 columns (topic subtopic doc rel), found 3"),
        ("2 1 1 b\n", "{path}:2: query '2': expected a number within ±2^31 as the relevance of '1', found 'b'"),
        NO_WAY,
        ("1 1 a 0\n", TWO_JUDGMENTS),
        text,
    ),
}


def test_every_format_has_a_row() -> None:
    assert set(OUTCOMES) == set(TRUTHS)


@pytest.mark.parametrize("case", ["absent", "wrong", "empty", "contradictory"])
@pytest.mark.parametrize("name", TRUTHS)
def test_absent_is_not_empty(tmp_path: Path, name: str, case: str) -> None:
    row, path = OUTCOMES[name], tmp_path / "truth"
    row.write(path, row.sound)
    assert len(groupgt.read_ground_truth(path, name)) == 1
    if getattr(row, case) is NO_WAY:
        return
    content, outcome = getattr(row, case)
    row.write(path, content if isinstance(content, list) else [*row.sound, content])
    if outcome in (READ, UNDEFINED):
        truth = groupgt.read_ground_truth(path, name)
        assert truth.judgments.defined.tolist() == [True, outcome == READ]
        return
    with pytest.raises(groupgt.DataError) as error:
        groupgt.read_ground_truth(path, name)
    assert outcome.format(path=path) in str(error.value)


@pytest.mark.parametrize("carrier", [pl.DataFrame, pytest.importorskip("pandas").DataFrame])
def test_frames_of_judgments(carrier: Callable[[Any], Any]) -> None:
    """They have the rules of CSV."""
    judged = {"qid": ["1", "1"], "group": ["g", "g"], "doc_id": ["a", "a"], "grade": [1, 0]}
    with pytest.raises(
        groupgt.DataError, match="row 2: query '1': 'a' has grade 0 in the group 'g', but 1 at ground truth: row"
    ):
        groupgt.read_ground_truth(carrier(judged))
    with pytest.raises(groupgt.DataError, match="'a' has grade 0 in the group 'g'"):
        groupgt.read_ground_truth(carrier(renamed(judged, "grade", "relevancy")))
    assert groupgt.read_ground_truth(carrier({**judged, "grade": [2, 2]})).repeated_ids == 1


def test_equal_rows_contradict_nothing(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    text(path, ["qid,group,doc_id,grade\n1,g,a,2\n", "1,g,a,2\n", "1,h,a,1\n"])
    assert groupgt.read_ground_truth(path).repeated_ids == 1


SEARCH = span("1", text="?", ids=["a"], attributes={"session.id": "1", "groupgt.query.id": "1"})
TRACE: Record = {"resourceSpans": [{"scopeSpans": [{"spans": [SEARCH]}]}]}
NESTED_RUN: Record = {"qid": "1", "retrieved_ids": ["a"]}
SAMPLE = {"user_input": "1", "retrieved_context_ids": ["a"]}
ANSWERED = {"topic_id": "1", "references": ["a"], "answer": [{"text": "A", "citations": [0]}]}
NO_SPAN: Record = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "2"}]}]}]}
# Of each format of results: a query, another one that is wrong, words of the error, and how the file is written.
RUN_OUTCOMES: dict[str, tuple[Any, Any, str, Callable[[Path, Any], None]]] = {
    "multihop-rag": (
        {"query": "1", "retrieval_list": [{"text": "A"}]},
        {"query": "2", "retrieval_list": "A"},
        "{path}:2: expected a list as retrieval_list",
        lines,
    ),
    "longmemeval": (
        {"question_id": "1", "retrieval_results": {"ranked_items": [{"corpus_id": "a"}]}},
        {"question_id": "2", "retrieval_results": {"ranked_items": [{"corpus": "a"}]}},
        "{path}:2: expected the key corpus_id, found corpus (at retrieval_results.ranked_items[0])",
        lines,
    ),
    "mtrag": (
        {"task_id": "1", "contexts": [{"document_id": "a"}]},
        {"task_id": "2", "contexts": {}},
        "{path}:2: expected a list as contexts, found {{}}",
        lines,
    ),
    "ragas": (SAMPLE, {**SAMPLE, "user_input": "2", "retrieved_context_ids": "a"}, "{path}:2: expected", lines),
    "deepeval": (
        {"input": "1", "retrieval_context": ["A"]},
        {"input": "2", "retrieval_context": [1]},
        "{path}:2",
        lines,
    ),
    "autorag": (NESTED_RUN, {"qid": "1", "retrieved_ids": ["b"]}, "query '1'", parquet),
    "parquet": (NESTED_RUN, {"qid": "1", "retrieved_ids": ["b"]}, "query '1'", parquet),
    "trec-rag": (ANSWERED, {**ANSWERED, "topic_id": "2", "answer": ""}, "{path}:2: expected topic_id,", lines),
    "otlp": (TRACE, NO_SPAN, "{path}:2: expected a span", lines),
    "otlp-sessions": (TRACE, NO_SPAN, "{path}:2: expected a span", lines),
    "otlp-searches": (TRACE, NO_SPAN, "{path}:2: expected a span", lines),
    "json": ({"1": {"a": 1}}, {"2": {"b": "x"}}, "query '2'", mapping),
    "jsonl": (NESTED_RUN, {"qid": "2"}, "{path}:2: expected", lines),
    "csv": ("qid,doc_id,score\n1,a,1\n", "2,b,x\n", "{path}:3: query '2'", text),
    "trec": ("1 Q0 a 1 1 t\n", "2 Q0 b 1 x t\n", "{path}:2: query '2'", text),
}


def test_every_format_of_results_has_a_row() -> None:
    assert set(RUN_OUTCOMES) == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_wrong_and_empty_results_are_said(tmp_path: Path, name: str) -> None:
    sound, wrong, words, write = RUN_OUTCOMES[name]
    path = tmp_path / "run"
    write(path, [sound])
    run = groupgt.read_run(path, name)
    truth, labeller = ({"1": [["a"]]}, "id") if run.has_ids else ({"1": [[{"text": "A"}]]}, "text")
    assert groupgt.evaluate(truth, run, ["num_ret"], labeller=labeller)["num_ret"] == 1
    write(path, [sound, wrong])
    with pytest.raises(groupgt.DataError) as error:
        groupgt.read_run(path, name)
    assert words.format(path=path) in str(error.value)
    path.write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error", groupgt.GroupgtWarning)
        with pytest.raises((groupgt.DataError, groupgt.GroupgtWarning), match=str(path)):
            groupgt.read_run(path, name)
