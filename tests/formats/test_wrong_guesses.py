"""Files that are none of the formats, or nearly one: the message says what they look like, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.formats.roles import may_hold, roles_in
from tests.bad_input import QRELS, TREC, TRUTH, Cli, fails, put

Table = dict[str, list[Any]]
QUESTIONS = {"q1": ["What is the capital of France?", "Who founded the city?"], "q2": ["Why was it built there?"]}

# Where it is read, the file, and what the message says.
TABLES: list[tuple[str, Table | bytes, tuple[str, ...]]] = [
    (
        "truth",
        {"question": ["q1"], "gold": [["d1", "d2"]]},
        ("query 'q1': expected groups", "flat_gt"),
    ),
    ("truth", {"qid": ["q1"], "retrieval": [[["d1"]]]}, ("(is retrieval_gt called 'retrieval'?)",)),
    ("truth", {"qid": ["q1"], "chunk": ["d1"]}, ("is missing", "found qid, chunk")),
    # A label that has the name of an id.
    *(
        (
            "truth",
            {"topic": ["pay", "pay"], "question": ["When?", "How much?"], name: cells},
            ("topic was read as the query id, but has 'pay' for different queries", "--columns qid=question"),
        )
        for name, cells in (("retrieval_gt", [[["d1"]], [["d2"]]]), ("doc_id", ["d1", "d2"]))
    ),
    ("truth", {"qid": ["q1"], "answers": [["d1"]]}, ("answers contains an answer, not the ids of relevant documents",)),
    (
        "truth",
        {"qid": ["q1"], "doc_id": ["d1"], "score": [1]},
        ("Did you swap TRUTH and RUN?", "--columns grade=score"),
    ),
    ("truth", {"a": ["q1"], "b\rc": ["d1"]}, ("the columns qid, retrieval_gt are missing", "found a, b")),
    ("run", {"a": ["q1"], "b": ["d1"]}, ("the columns qid, retrieved_ids are missing", "found a, b")),
    (
        "run",
        {"qid": ["q1"], "chunk": ["d1"], "score": [1.0]},
        ("the 'doc_id' column is missing", "rename chunk to doc_id"),
    ),
    (
        "truth",
        b"question,passage_no,flag\nq1,d1,1\n",
        (":1: the 'retrieval_gt' column is missing", "found question, passage_no, flag"),
    ),
    ("run", b"question,passage_no,flag\r\nq1,d1,1\r\n", (":1: the columns doc_id, score are missing", "passage_no to")),
    (
        "truth",
        b"query\thit\trel\nq1\td1\t1\n",
        (":1: the 'doc_id' column is missing", "found query, hit, rel"),
    ),
    (
        "run",
        b"query\tgold\trel\nq1\td1\t1\n",
        ("expected a run, but this looks like ground truth", "swap TRUTH and RUN"),
    ),
    ("run", b"a,b c,d e,f g,h i,j k\nq,1,2,3,4,5\n", (":1: the columns qid, doc_id, score are missing",)),
    ("truth", b"q1,d1,1\nq2,d3,1\n", (":1: the columns qid, retrieval_gt are missing", "is the header line missing?")),
    ("run", b"q1,d1,1\nq2,d3,1\n", (":1: the columns qid, doc_id, score are missing", "is the header line missing?")),
    (
        "truth",
        b"701 GX000-00 0 1 1.0\n701 GX000-01 1 2 0.5\n",
        (":1: expected 4 columns (qid iter doc rel), found 5: these are prels (qid doc rel method probability); keep",),
    ),
    (
        "truth",
        QRELS.replace(b"\n", b" x\n"),
        (":1: expected 4 columns (qid iter doc rel), found 5; remove everything",),
    ),
    ("truth", TREC.replace(b" t\n", b"\n"), (":1: expected 4 columns (qid iter doc rel), found 5",)),
    ("run", TREC.replace(b" t\n", b"\n"), (":1: expected 6 columns (qid Q0 doc rank score tag), found 5",)),
    (
        "run",
        b"q1\td1\t1\t9.5\nq1\td2\t2\t8.25\n",
        (":1: expected 6 columns (qid Q0 doc rank score tag), found 4", "a header line, such as qid, doc_id, score"),
    ),
    ("truth", b"q1\td1\t1\t9.5\nq1\td2\t2\t8.25\n", ("this looks like a run (trec run)", "swap TRUTH and RUN?")),
    ("truth", TREC, ("expected ground truth, but this looks like a run (trec run). Did you swap TRUTH and RUN?",)),
    (
        "truth",
        json.dumps(QUESTIONS).encode(),
        ("its lists contain text, such as 'What is the capital of France?', not document ids",),
    ),
    (
        "truth",
        b'{"id": "q1", "question": "When?", "needs": [["d1"], ["d2"]]}\n',
        ("if a column with another name lists the relevant documents, add --columns retrieval_gt=NAME",),
    ),
    ("truth", b'{"q1": [{"id": "d1"}, {"id": "d2"}]}', ("expected a group", "put it into a group")),
    ("run", b'{"q1": [{"id": "d1", "grade": 2}]}', ("this looks like ground truth", "swap TRUTH and RUN?")),
    ("truth", b'{"q1": ["d1", "d2"]}', ("expected groups (a list of lists), found the flat list", "flat_gt=and")),
]


@pytest.mark.parametrize(("side", "content", "words"), TABLES, ids=[f"{side}-{words[0]}" for side, _, words in TABLES])
def test_what_is_missing_is_named(tmp_path: Path, cli: Cli, side: str, content: Table | bytes, words: Any) -> None:
    path = tmp_path / "file"
    if isinstance(content, bytes):
        put(path, content)
    else:
        pl.DataFrame(content).write_parquet(path)
    truth, run = put(tmp_path / "t.jsonl", TRUTH), put(tmp_path / "r.trec", TREC)
    given = (path, run) if side == "truth" else (truth, path)
    fails(cli("evaluate", *given, "-m", "recall"), *words)


def test_objects_without_a_score_are_a_ranking(tmp_path: Path) -> None:
    rows = {"q1": [{"id": "d2", "text": "two"}, {"id": "d1", "text": "one"}], "q2": [{"id": "d3"}]}
    run = groupgt.read_run(put(tmp_path / "r.json", json.dumps(rows).encode()))
    assert {qid: list(ranking) for qid, ranking in run.contents.rankings.items()} == {"q1": ["d2", "d1"], "q2": ["d3"]}


# Qrels without the column iter, as MS MARCO (tabs) and Cranfield have them.
MARCO = b"q1\td1\t1\nq2\td2\t1\n"
CRANFIELD = b"# cranqrel\n1 184 2\n1 29 2\n1 31 3\n2 12 3\n"


def test_qrels_of_three_columns(tmp_path: Path) -> None:
    assert dict(groupgt.read_ground_truth(put(tmp_path / "m", MARCO)).items()) == {"q1": [["d1"]], "q2": [["d2"]]}
    cranfield = groupgt.read_ground_truth(put(tmp_path / "c", CRANFIELD))
    assert cranfield["1"] == [[{"id": "184", "grade": 2}], [{"id": "29", "grade": 2}], [{"id": "31", "grade": 3}]]
    assert cranfield.shape == "flat"


@pytest.mark.parametrize("data", [b"1 184 2\n", b"q1 1 5\nq2 2 6\n", b"q1 d1 1\nq1 d2 2\n"])
def test_three_columns_that_may_be_others(tmp_path: Path, cli: Cli, data: bytes) -> None:
    """`q1 1 5` may be the document 1 with grade 5, or document 5 in the iteration 1."""
    path, run = put(tmp_path / "qrels", data), put(tmp_path / "r.trec", TREC)
    fails(cli("evaluate", path, run, "-m", "recall"), "which may be qid doc rel or qid iter doc", "trec-no-iter")
    assert len(groupgt.read_ground_truth(path, "trec-no-iter").ids) == data.count(b"\n")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"q1 0 d1\nq1 0 d2\n", ":1: expected 4 columns (qid iter doc rel), found 3"),  # no relevance
        (b"q1 0 17\nq1 0 18\n", ":1: expected 4 columns (qid iter doc rel), found 3"),  # the same with numbers
        (b"q1 d1 0.5\nq1 d2 0.5\n", ":1: expected 4 columns (qid iter doc rel), found 3"),  # scores
        (b"q1 d1 1\nq1 d2 1\nq1 0 d3 1\n", ":1: expected 4 columns (qid iter doc rel), found 3"),
    ],
)
def test_three_columns_that_are_none(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(groupgt.DataError) as error:
        groupgt.read_ground_truth(put(tmp_path / "qrels", data))
    assert words in str(error.value)


def test_texts_in_place_of_ids(cli: Cli, tmp_path: Path) -> None:
    """They are called so where nothing matches, however few queries there are."""
    text = "The capital of France is Paris."
    with pytest.warns(
        groupgt.GroupgtWarning, match=f"the results may contain text instead of ids, such as '{text}'; use"
    ):
        groupgt.evaluate({"q": [["a"]]}, {"q": [text]}, ["recall"])
    with pytest.warns(
        groupgt.GroupgtWarning, match="the ground truth may contain text instead of ids, such as 'The cap"
    ):
        groupgt.evaluate({"q": [[text]]}, {"q": ["a"]}, ["recall"])
    asked = cli(
        "evaluate", put(tmp_path / "t.jsonl", TRUTH), put(tmp_path / "r.json", json.dumps(QUESTIONS)), "-m", "mrr"
    )
    assert asked.status == 0
    assert "text instead of ids, such as 'What is the capital of France?'" in asked.err
    # Titles are ids where they match.
    assert groupgt.evaluate({"q": [[text]]}, {"q": [text]}, ["recall"])["recall"] == 1


def test_commas_in_trec_files_separate_nothing(tmp_path: Path, cli: Cli) -> None:
    truth, run = (
        put(tmp_path / "t", b"q1 0 d,1 1\nq2 0 d,3 1\n"),
        put(tmp_path / "r", b"q1 Q0 d,1 1 2.5 bm25[k1=1,b=0]\n"),
    )
    assert cli("evaluate", truth, run, "-m", "recall").status == 0


def test_the_path_to_ids_in_objects_is_advised_and_works(cli: Cli, tmp_path: Path) -> None:
    truth = put(tmp_path / "truth.jsonl", '{"question": "When?", "retrieval_gt": [["a b"]]}\n')
    run = put(tmp_path / "run.json", json.dumps([{"question": "When?", "hits": [{"rank": 1, "chunk": "a b"}]}]))
    fails(cli("evaluate", truth, run, "-m", "recall"), "with --columns 'doc_id=hits[].chunk'")
    assert groupgt.evaluate(truth, run, ["recall"], run_columns={"doc_id": "hits[].chunk"}).means == {"recall": 1.0}


def test_the_path_to_grades_is_advised_beside_that_to_ids(cli: Cli, tmp_path: Path) -> None:
    """Gains 4 and 2, the first found: ndcg is 4 / (4 + 2 / log2 3) = 0.7602."""
    rows = [{"document_id": "a", "query_relevance_label": 4}, {"document_id": "b", "query_relevance_label": 2}]
    truth = put(tmp_path / "truth.jsonl", json.dumps({"qid": "q", "retrieval_gt": rows}) + "\n")
    run = put(tmp_path / "run.jsonl", '{"qid": "q", "retrieved_ids": ["a"]}\n')
    columns = ["doc_id=retrieval_gt[].document_id", "grade=retrieval_gt[].query_relevance_label"]
    fails(cli("evaluate", truth, run, "-m", "ndcg"), " ".join(f"--columns '{column}'" for column in columns))
    worded = put(tmp_path / "words.jsonl", '{"qid": "q", "retrieval_gt": [{"document_id": "a", "label": "gold"}]}\n')
    assert "grade=" not in cli("evaluate", worded, run, "-m", "ndcg").err
    found = cli("evaluate", truth, run, "-m", "ndcg", *(word for column in columns for word in ("--columns", column)))
    assert "0.7602" in found.out


def test_a_folder_of_documents_is_no_corpus(cli: Cli, tmp_path: Path) -> None:
    truth = put(tmp_path / "truth.jsonl", TRUTH)
    (tmp_path / "kb").mkdir()
    put(tmp_path / "kb" / "a.md", "A")
    fails(
        cli("check", truth, "--corpus", tmp_path / "kb"),
        "found a folder without corpus.jsonl; save the passages in one file",
    )


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_query_texts_that_are_ids_remain_texts(tmp_path: Path, ending: str) -> None:
    frame = pl.DataFrame({"question": ["When?"], "gold": ["a"]})
    path = tmp_path / f"truth.{ending}"
    {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[ending](path)
    truth = groupgt.read_ground_truth(path, columns={"qid": "question"}, policy={"flat_gt": "and"})
    assert (truth.qids, truth.texts) == (["When?"], ["When?"])


def test_columns_have_the_roles_that_their_names_say() -> None:
    names = ["query_id", "docno", "relevance"]
    assert roles_in(names, "truth") == {"qid": "query_id", "doc_id": "docno", "grade": "relevance"}


def test_answers_texts_and_booleans_fill_no_role_of_ids_or_numbers() -> None:
    assert may_hold("retrieval_gt", "gt_evidence", ["a.md"])
    assert not may_hold("retrieval_gt", "gt_answer")
    assert not may_hold("doc_id", "passage", "The mill was built in 1903.")
    assert not may_hold("score", "value", True)
