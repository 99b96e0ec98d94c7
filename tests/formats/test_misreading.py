"""Files of other tools are read as they were meant, or asked about, and no message advises what would be wrong."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

import groupgt
from groupgt.formats.roles import hint
from tests.bad_input import Cli, fails, put

RUN = [{"qid": "q1", "retrieved_ids": ["a", "x"]}, {"qid": "q2", "retrieved_ids": ["c", "y"]}]


def lines(path: Path, *rows: Mapping[str, Any]) -> Path:
    return put(path, "".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.mark.parametrize(
    ("record", "missing", "advised"),
    [
        ({"gt_answer": "Use the dump.", "gt_evidence": ["a.md"]}, "retrieval_gt", "gt_evidence"),
        ({"gold_text": "a", "gold_title": "b", "expected_output": "c", "expected_type": "d"}, "retrieval_gt", None),
        ({"expected_abstention": True, "gt_is_multihop": 1, "gold": 0.5}, "retrieval_gt", None),
        ({"gold_facts": ["The mill was built in 1903."]}, "retrieval_gt", None),
        ({"evidence": ["a"], "Retrieval GT": ["b"]}, "retrieval_gt", "Retrieval GT"),
        ({"passage": "The mill was built in 1903.", "Doc ID": 7}, "doc_id", "Doc ID"),
        ({"title": "Mills", "source": "a.md"}, "doc_id", "source"),
        ({"passage": ["a", "b"]}, "doc_id", None),
        ({"value": True, "confidence": "0.5"}, "score", "confidence"),
        ({"value": "high"}, "grade", None),
    ],
)
def test_advice_about_columns_names_none_that_cannot_be_meant(
    record: dict[str, Any], missing: str, advised: str | None
) -> None:
    words = hint(record, [missing], "run" if missing == "score" else "truth")
    assert (f"rename {advised} to {missing}" in words) if advised else ("rename" not in words and "called" not in words)


def test_contexts_of_a_run_are_told_as_results(tmp_path: Path, cli: Cli) -> None:
    truth = put(tmp_path / "q.txt", "q1 0 d1 1\n")
    run = lines(tmp_path / "r.jsonl", {"case_id": "q1", "contexts": [{"document_id": "d1", "score": 2.0}]})
    told = cli("evaluate", truth, run, "-m", "recall@5")
    fails(told, "rename case_id to qid", "contexts lists objects", "--columns 'doc_id=contexts[].document_id'")
    assert "ground truth" not in told.err


NEEDS = [{"piece": "x", "docs": ["a", "b"]}, {"piece": "y", "docs": ["c"]}]


@pytest.mark.parametrize("columns", [(), ("retrieval_gt=needs",)])
def test_advice_about_ids_within_objects_works(tmp_path: Path, cli: Cli, columns: tuple[str, ...]) -> None:
    """The advice, followed to the letter in the shell and in Python, gives a group for each need: recall is 1 of 2."""
    truth = lines(tmp_path / "t.jsonl", {"id": "q1", "question": "what?", "answer": "forty two", "needs": NEEDS})
    run = lines(tmp_path / "r.jsonl", {"qid": "q1", "retrieved_ids": ["b", "x"]})
    command = ["evaluate", truth, run, "-m", "recall", "--format", "csv"]
    told = cli(*command, *(word for column in columns for word in ("--columns", column)))
    assert told.status == 2
    advised = re.findall(r"--columns '([^']*)'", told.err)
    assert (
        cli(*command, *(word for column in advised for word in ("--columns", column))).out
        == "metric,mean,queries\nrecall,0.5,1\n"
    )
    declared = dict(column.split("=") for column in advised)
    assert groupgt.evaluate(truth, run, ["recall"], truth_columns=declared).means == {"recall": 0.5}


@pytest.mark.parametrize(
    "objects",
    [{"text": "a b", "title": "t"}, {"doc_id": "a", "is_selected": False}, {"docs": ["a text with several words"]}],
)
def test_advice_about_objects_names_no_text_and_no_results(objects: dict[str, Any]) -> None:
    assert "doc_id=" not in hint({"id": "q1", "needs": [objects], "answers": [{"doc_id": "a"}]}, ["retrieval_gt"])
    assert "doc_id=" not in hint({"id": "q1", "hits": [{"doc_id": "a"}]}, ["retrieval_gt"])


@pytest.mark.parametrize(
    "judgment",
    [{"corpus_item_id": "a", "grade": 3}, {"doc_uri": "a"}, {"document_id": "a", "query_relevance_label": 4}],
)
def test_a_judgment_of_another_tool_says_how_its_id_is_written(judgment: dict[str, Any]) -> None:
    for groups in ([judgment], [[judgment]]):
        with pytest.raises(groupgt.DataError, match=f'if {next(iter(judgment))} is the id, write {{"id": …'):
            groupgt.GroundTruth.of({"q": groups})
    with pytest.raises(groupgt.DataError, match="put it into a group"):
        groupgt.GroundTruth.of({"q": [{"id": "a", "grade": 1}]})


def test_trials_have_one_name(tmp_path: Path, cli: Cli) -> None:
    truth = put(tmp_path / "q.txt", "q1 0 a 1\n")
    one, two = (lines(tmp_path / name, RUN[0]) for name in ("a.jsonl", "b.jsonl"))
    fails(
        cli("evaluate", truth, one, two, "--trials", "-m", "recall"), "--trials: all runs have different names (a, b)"
    )
    assert cli("evaluate", truth, f"s={one}", f"s={two}", "--trials", "-m", "recall").status == 0
    told = "--trials: expected several runs of one system, found one (a); remove --trials"
    fails(cli("evaluate", truth, one, "--trials", "-m", "recall"), told)


# What a cell holds, and the same list as a list.
MARKS = [("p1,p2", ","), ("p1; p2", ";"), ("p1|p2", "|")]
WRITERS = ("csv", "tsv", "jsonl", "parquet", "polars", "pandas")


def table(path: Path, form: str, **columns: list[Any]) -> Any:
    """Write a table of texts as a file, or return it as a frame."""
    rows = [dict(zip(columns, row)) for row in zip(*columns.values())]
    frame = pl.DataFrame(columns)
    if form == "jsonl":
        return lines(path, *rows)
    if form in ("csv", "tsv"):
        frame.write_csv(path, separator="," if form == "csv" else "\t")
    elif form == "parquet":
        frame.write_parquet(path)
    if form == "pandas":
        pandas = pytest.importorskip("pandas", reason="the extra groupgt[frames] is not installed")
        return pandas.DataFrame(columns)
    return frame if form == "polars" else path


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize(("text", "mark"), MARKS)
def test_ids_joined_in_a_cell_are_asked_about_and_split(tmp_path: Path, form: str, text: str, mark: str) -> None:
    """q1 needs p1 and p2 and has p1, first once x1 is left out; q2 has all: (1/2 + 1)/2. h1 must not come back."""
    run = {"q1": ["x1", "p1", "h1"], "q2": ["p3", "y"]}
    of_q1 = {name: text.replace("p", name[0]) for name in ("xs", "hs")}
    columns = {"retrieval_gt": "relevant_ids", "excluded_ids": "xs", "harmful_ids": "hs"}
    truth = table(
        tmp_path / "t", form, qid=["q1", "q2"], relevant_ids=[text, "p3"], xs=[of_q1["xs"], ""], hs=[of_q1["hs"], ""]
    )
    declared = {role: f"{name}[{mark}]" for role, name in columns.items()}
    for role, column in columns.items():
        others = declared | {role: column}
        with pytest.raises(groupgt.DataError, match=re.escape(f"{role}={column}[{mark}]")):
            groupgt.evaluate(truth, run, ["recall"], policy="flat_gt=and", truth_columns=others)
    means = groupgt.evaluate(truth, run, ["recall", "mrr", "clean"], policy="flat_gt=and", truth_columns=declared).means
    assert means == {"recall": 0.75, "mrr": 0.75, "clean": 0.0}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize(("text", "mark"), MARKS)
def test_results_joined_in_a_cell_are_asked_about_and_split(tmp_path: Path, form: str, text: str, mark: str) -> None:
    """p1 is at rank 1, p2 at rank 2."""
    run = table(tmp_path / "r", form, qid=["q1", "q2"], retrieved_ids=[text, "p3"])
    truth = {"q1": [["p2"]], "q2": [["p3"]]}
    with pytest.raises(groupgt.DataError, match=re.escape(f"retrieved_ids=retrieved_ids[{mark}]")):
        groupgt.evaluate(truth, run, ["mrr"])
    assert groupgt.evaluate(truth, run, ["mrr"], run_columns={"retrieved_ids": f"retrieved_ids[{mark}]"})["mrr"] == 0.75


def test_texts_within_a_list_are_not_left_unsplit(tmp_path: Path) -> None:
    """The advice gives a, z and b, of which a and b are found: 2/3."""
    truth = lines(tmp_path / "t.jsonl", {"qid": "q1", "retrieval_gt": ["a;z", "b"]})
    run = {"q1": ["a", "b"]}
    with pytest.raises(groupgt.DataError, match=re.escape("use --columns 'retrieval_gt=retrieval_gt[][;]'")):
        groupgt.evaluate(truth, run, ["recall"], truth_columns={"retrieval_gt": "retrieval_gt[;]"})
    declared = {"retrieval_gt": "retrieval_gt[][;]"}
    found = groupgt.evaluate(truth, run, ["recall"], policy="flat_gt=and", truth_columns=declared)
    assert found["recall"] == pytest.approx(2 / 3)
    run_file = lines(tmp_path / "r.jsonl", {"qid": "q1", "retrieved_ids": ["a|b", "z"]})
    with pytest.raises(groupgt.DataError, match=re.escape("retrieved_ids=retrieved_ids[][|]")):
        groupgt.read_run(run_file, columns={"retrieved_ids": "retrieved_ids[|]"})


@pytest.mark.filterwarnings("ignore:.* not in the corpus")
@pytest.mark.parametrize("form", WRITERS)
def test_ids_with_separators_and_blanks_are_ids(tmp_path: Path, form: str) -> None:
    """They match as a whole; what matches nothing is told once if it has a separator, and blanks alone are not told."""
    names = ["Terms and Conditions.pdf", "a,b", "v|1", "Q&A; part 2"]
    qids = [f"q{place}" for place in range(len(names))]
    truth = table(tmp_path / "t", form, qid=qids, retrieval_gt=names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert groupgt.evaluate(truth, dict(zip(qids, map(list, zip(names)))), ["recall"])["recall"] == 1
    with pytest.warns(
        groupgt.GroupgtWarning, match="3 values are each read as one id where a list of ids is expected, such as 'a,b'"
    ):
        groupgt.evaluate(truth, {qid: ["Terms", "other"] for qid in qids}, ["recall"])
    # A part that the corpus knows counts as well as one in the results.
    with pytest.raises(groupgt.DataError, match="although 'a' is"):
        groupgt.evaluate(truth, {qid: ["other"] for qid in qids}, ["recall"], corpus={"a": "text", "other": "text"})


def test_checks_ask_about_joined_ids(tmp_path: Path, cli: Cli) -> None:
    truth = lines(tmp_path / "t.jsonl", {"qid": "q1", "retrieval_gt": "p1;p2"})
    corpus = lines(tmp_path / "c.jsonl", {"doc_id": "p1", "text": "one"}, {"doc_id": "p2", "text": "two"})
    run = lines(tmp_path / "r.jsonl", {"qid": "q1", "retrieved_ids": ["p1"]})
    for more in (["--corpus", corpus], [run]):
        told = cli("check", truth, *more)
        assert "--columns 'retrieval_gt=retrieval_gt[;]'" in told.err
        assert (told.status, "errors that stop an evaluation: 1" in told.out) == (1, True)
    fails(cli("agree", truth, run, "--annotator", truth), "although 'p1' is")
    other = lines(tmp_path / "o.jsonl", {"qid": "q1", "retrieval_gt": [["p1"]]})
    fails(cli("agree", other, "--annotator", truth), "although 'p1' is")
    assert "1 value is read as one id" in cli("convert", truth, tmp_path / "out", "--to", "jsonl").err
    joined = lines(tmp_path / "j.jsonl", {"qid": "q1", "retrieved_ids": "p1;p2"})
    assert "1 value is read as one id" in cli("convert", joined, tmp_path / "out", "--to", "jsonl").err
    fails(cli("convert", joined, tmp_path / "out", "--to", "jsonl", "--truth", other), "although 'p1' is")
    assert "2 alternatives" not in cli("check", truth).out
    split = ["--columns", "retrieval_gt=retrieval_gt[;]", "--policy", "flat_gt=or"]
    assert "p1" not in cli("check", truth, "--corpus", corpus, *split).err


def test_what_is_split_holds_lists(tmp_path: Path, cli: Cli) -> None:
    """A column that is literally called so is not split, and no list of scores is lost."""
    truth, run = put(tmp_path / "q.txt", "q1 0 b 1\n"), put(tmp_path / "r.csv", "qid,found,scores\nq1,a;b,2.5;1\n")
    several = put(tmp_path / "s.csv", "qid,doc_id,score\nq1;q2,b,1\n")
    fails(cli("evaluate", truth, several, "-m", "mrr", "--columns", "run.qid=qid[;]"), "expected one qid, found 2")
    for place in ("found[;]", "m.found[;]"):
        nested = lines(tmp_path / "n.jsonl", {"qid": "q1", "found": "a;b", "m": {"found": "a;b"}})
        assert groupgt.read_ground_truth(nested, columns={"doc_id": place})["q1"] == [["a"], ["b"]]
    split = ["--columns", "retrieved_ids=found[;]", "--columns", "retrieve_scores=scores[;]"]
    assert "0.5000" in cli("evaluate", truth, run, "-m", "mrr", *split).out
    literal = put(tmp_path / "l.csv", "qid,found[;]\nq1,a;b\n")
    assert groupgt.read_run(literal, columns={"retrieved_ids": "found[;]"}).rankings == {"q1": ["a;b"]}


def test_harmful_ids_in_rows_of_judgments() -> None:
    """h1 came back for q1, and q2 has no harmful id, so that clean is 0 over one query."""
    rows = pl.DataFrame(
        {"qid": ["q1", "q1", "q2"], "doc_id": ["a", "b", "c"], "grade": [1, 1, 1], "bad": [["h1"], None, []]}
    )
    run = {"q1": ["h1", "a"], "q2": ["c"]}
    found = groupgt.evaluate(rows, run, ["clean", "recall"], truth_columns={"harmful_ids": "bad"})
    assert (found["clean"], found["recall"]) == (0.0, 0.75)
    left_out = groupgt.evaluate(rows, run, ["mrr"], truth_columns={"excluded_ids": "bad"})
    assert left_out["mrr"] == 1.0


class Qrel(NamedTuple):
    """A judgment as ir_measures has them."""

    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


QRELS = [Qrel("q0", "d0", 1, "0"), Qrel("q0", "d0", 1, "1"), Qrel("q0", "d1", 1, "0")]


@pytest.mark.parametrize("form", ["list", "iterator", "csv", "jsonl", "parquet", "polars", "pandas"])
def test_iterations_that_may_be_subtopics_are_asked_about(tmp_path: Path, form: str) -> None:
    """d1 covers one of two subtopics at rank 1: of the ideal (2 + 0.5/log2(3)), it has 1."""
    columns = {name: [getattr(row, name) for row in QRELS] for name in QRELS[0]._fields}
    truth = QRELS if form in ("list", "iterator") else table(tmp_path / "t", form, **columns)
    run = {"q0": ["d1"]}
    with pytest.raises(groupgt.DataError, match="--columns group=iteration"):
        groupgt.evaluate(iter(QRELS) if form == "iterator" else truth, run, ["alpha_ndcg@10"])
    declared = {"group": "iteration"}
    means = groupgt.evaluate(truth, run, ["alpha_ndcg@10"], truth_columns=declared).means
    assert means["alpha_ndcg@10"] == pytest.approx(1 / (2 + 0.5 / math.log2(3)))
    # One value means nothing.
    assert len(groupgt.evaluate(QRELS[::2], run, ["recall"]).truth.ids) == 2


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "polars", "pandas"])
@pytest.mark.parametrize("name", ["aspect_id", "Nugget", "intent"])
def test_documents_judged_for_several_aspects_are_asked_about(tmp_path: Path, form: str, name: str) -> None:
    """One document for two groups: recall of the first is 1, and of the second too, as of the one of another query."""
    columns: dict[str, list[Any]] = {"qid": ["q0", "q0", "q0"], "doc_id": ["d1", "d1", "d2"], name: [1, 2, 2]}
    truth = table(tmp_path / "t", form, **columns, grade=[1, 1, 1])
    with pytest.raises(groupgt.DataError, match=f"'d1' is judged again.*--columns group={name}"):
        groupgt.evaluate(truth, {"q0": ["d1"]}, ["recall"])
    declared = {"group": name}
    evaluation = groupgt.evaluate(truth, {"q0": ["d1"]}, ["recall.coverage"], truth_columns=declared)
    assert evaluation["recall.coverage"] == 1
    # Two documents that share a value, as alternatives do. Of two groups, d1 covers one.
    shared = table(tmp_path / "s", form, **{**columns, "doc_id": ["d1", "d3", "d2"]}, grade=[1, 1, 1])
    with pytest.raises(groupgt.DataError, match=f"'d2' and 'd3' have the same {name}.*--columns group={name}"):
        groupgt.evaluate(shared, {"q0": ["d1"]}, ["recall"])
    assert (
        groupgt.evaluate(shared, {"q0": ["d1"]}, ["recall.coverage"], truth_columns=declared)["recall.coverage"] == 0.5
    )
    # A value for each document, or one for all of them, is only a column.
    for values in ([1, 2, 3], [1, 1, 1]):
        plain = table(tmp_path / "p", form, **{**columns, "doc_id": ["d1", "d3", "d2"], name: values}, grade=[1, 1, 1])
        assert groupgt.evaluate(plain, {"q0": ["d1"]}, ["recall"])["recall"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "polars", "pandas"])
def test_a_row_without_a_document_may_declare_its_query_unanswerable(tmp_path: Path, form: str) -> None:
    """q1 has one group of two alternatives; q2 has no answer, and its row names no document."""
    columns: dict[str, list[Any]] = {
        "qid": ["q1", "q2", "q1"],
        "doc_id": ["a", None, "b"],
        "fact": ["x", None, "x"],
        "answerable": [True, False, True],
        "query": ["one", "two", "one"],
    }
    truth = groupgt.read_ground_truth(table(tmp_path / "t", form, **columns), columns={"group": "fact"})
    assert (sorted(truth.qids), truth.texts[truth.qids.index("q2")]) == (["q1", "q2"], "two")
    found = groupgt.evaluate(truth, {"q1": ["b"], "q2": ["b"]}, ["recall", "abstains"])
    assert found.counts["unanswerable"] == 1
    assert (found["recall"], found["abstains"]) == (1.0, 0.0)
    columns["answerable"] = [True, True, True]
    with pytest.raises(groupgt.DataError, match=r"query 'q2': .*answerable"):
        groupgt.read_ground_truth(table(tmp_path / "w", form, **columns), columns={"group": "fact"})


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_rows_of_one_query_are_asked_about(tmp_path: Path, form: str) -> None:
    truth = table(tmp_path / "t", form, qid=["q1", "q1"], page=["a", "b"])
    with pytest.raises(groupgt.DataError, match=r"the 'doc_id' column is missing.*doc_id=page"):
        groupgt.read_ground_truth(truth)
    with pytest.raises(groupgt.DataError, match=r"one row per query.*found several; .*doc_id=page"):
        groupgt.read_ground_truth(truth, columns={"retrieval_gt": "page"})


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet", "polars", "pandas", "streamed"])
@pytest.mark.parametrize("shape", ["lists", "rows"])
@pytest.mark.parametrize("name", ["epoch", "Attempt", "seed", "run_id", "trial_no", "rep", "model"])
def test_repeated_queries_of_epochs_are_asked_about(tmp_path: Path, form: str, shape: str, name: str) -> None:
    """The second of two trials finds nothing: (1 + 0)/2."""
    columns: dict[str, list[Any]] = {"qid": ["q1", "q1"], name: [1, 2]}
    columns |= {"retrieved_ids": ["a", "z"]} if shape == "lists" else {"doc_id": ["a", "z"], "score": [2.0, 1.0]}
    run = table(tmp_path / "r", "csv" if form == "streamed" else form, **columns)
    with pytest.raises(groupgt.DataError, match=f"{name} 2|{name} '2'") as error:
        groupgt.evaluate({"q1": [["a"]]}, run, ["recall"], engine="streaming" if form == "streamed" else "auto")
    assert f"--columns trial={name}" in str(error.value)
    declared = {"trial": name}
    assert groupgt.evaluate({"q1": [["a"]]}, run, ["recall"], run_columns=declared)["recall"] == 0.5
    # One value for each query is no repetition, and names of runs are no numbers of trials.
    of_each = table(tmp_path / "o", "csv", **{**columns, "qid": ["q1", "q2"]})
    assert groupgt.evaluate({"q1": [["a"]]}, of_each, ["recall"])["recall"] == 1
    named = table(tmp_path / "n", "csv", **{**columns, name: ["bm25", "dense"]})
    with pytest.raises(groupgt.DataError, match="number them from 1 in a trial column"):
        groupgt.evaluate({"q1": [["a"]]}, named, ["recall"])


@pytest.mark.parametrize("form", ["python", "jsonl", "parquet", "polars"])
def test_results_that_are_objects_keep_their_fields(tmp_path: Path, form: str) -> None:
    """The id is `id`, whatever document, call and span stand beside it."""
    results = [
        {"id": "c1", "doc": "D", "start": 0, "end": 9, "call": 1, "parent": "P", "tokens": 4},
        {"id": "c2", "doc": "D", "start": 9, "end": 20, "call": 2, "parent": "Q", "tokens": 4},
    ]
    run: Any = {"q": results}
    if form != "python":
        run = table(tmp_path / "r", form, qid=["q"], retrieved_ids=[results])
    truth = {"q": [["c1"], ["c2"]]}
    means = groupgt.evaluate(truth, run, ["recall@1", "recall@1calls"]).means
    assert list(means.values()) == [0.5, 0.5]
    assert groupgt.evaluate({"q": [["P"], ["Q"]]}, run, ["recall@2"], labeller="parents")["recall@2"] == 1
    spans = {"q": [[{"doc": "D", "start": 10, "end": 15}]]}
    assert groupgt.evaluate(spans, run, ["recip_rank"], labeller="spans")["recip_rank"] == 0.5


def test_costs_beside_lists_in_a_csv_file(tmp_path: Path) -> None:
    run = tmp_path / "r.csv"
    run.write_text('qid,retrieved_ids,cost\nq,"[""a""]",0.25\n', encoding="utf-8")
    assert groupgt.read_run(run).costs == {"q": 0.25}


@pytest.mark.parametrize("keys", [("id", "score"), ("docid", "score"), ("document_id", "similarity"), ("_id", "rank")])
def test_results_as_objects(tmp_path: Path, cli: Cli, keys: tuple[str, str]) -> None:
    """A file by query, lines, and Python read the same objects: (1 + 1/2)/2."""
    results = {"q1": [("100", 1), ("5", 2)], "q2": [("9", 3), ("7", 4)]}
    run = {qid: [dict(zip(keys, pair), title="t") for pair in pairs] for qid, pairs in results.items()}
    truth = {"q1": {"100": 1}, "q2": {"7": 1}}
    by_query = put(tmp_path / "r.json", json.dumps(run))
    per_line = lines(tmp_path / "r.jsonl", *({"qid": qid, "results": row} for qid, row in run.items()))
    for path in (by_query, per_line):
        assert groupgt.evaluate(truth, path, ["mrr"])["mrr"] == 0.75
    assert groupgt.read_run(by_query).rankings == {"q1": ["100", "5"], "q2": ["9", "7"]}
    fails(cli("evaluate", by_query, by_query, "-m", "mrr"), "expected ground truth, but this looks like a run")
    strange = put(tmp_path / "s.json", json.dumps({"q1": [{"ref": "a", "score": 1}], "q2": ["a"]}))
    with pytest.raises(groupgt.DataError, match=r"the keys ref, score \(at rank 1\)"):
        groupgt.read_run(strange, "json")


def test_results_as_pairs(tmp_path: Path) -> None:
    """A file by query, lines, and Python read the same pairs: (1/2 + 1)/2."""
    run = {"q1": [["x", 0.9], ["a", 0.5]], "q2": [["c", 1]]}
    truth = {"q1": {"a": 1}, "q2": {"c": 1}}
    by_query = put(tmp_path / "r.json", json.dumps(run))
    per_line = lines(tmp_path / "r.jsonl", *({"qid": qid, "retrieved_ids": row} for qid, row in run.items()))
    in_python = {qid: [tuple(pair) for pair in row] for qid, row in run.items()}
    for each in (by_query, per_line, in_python):
        assert groupgt.evaluate(truth, each, ["mrr"])["mrr"] == 0.75
    with pytest.raises(groupgt.DataError, match="finite number"):
        groupgt.read_run(put(tmp_path / "s.json", json.dumps({"q1": [["x", 0.9], ["a", True]]})))


def test_a_file_for_each_query(tmp_path: Path, cli: Cli) -> None:
    """A folder of one object for each query, beside keys that hold objects themselves."""
    (tmp_path / "runs").mkdir()
    for n in (1, 2):
        record = {"metadata": {"model": "m"}, "query_id": f"q{n}", "retrieved_docids": [f"d{n}"], "result": [{"a": 1}]}
        put(tmp_path / "runs" / f"{n}.json", json.dumps(record))
        put(tmp_path / "runs" / f"{n}.json", json.dumps(record, indent=2 if n == 1 else None))
    truth = put(tmp_path / "q.txt", "q1 0 d1 1\nq2 0 d2 1\n")
    for more in ([], ["--columns", "retrieved_ids=retrieved_docids"]):
        told = cli("evaluate", truth, tmp_path / "runs", "--parts", "-m", "recall", *more)
        assert "1.0000" in told.out, told
    missing = cli("evaluate", truth, tmp_path / "runs", "--parts", "-m", "recall", "--columns", "retrieved_ids=docs")
    fails(missing, "there is no 'docs' column; found metadata, query_id, retrieved_docids, result")


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_column_may_be_absent_from_the_first_record(tmp_path: Path, wrapped: bool) -> None:
    records: list[dict[str, Any]] = [{"id": "q0", "answerable": False}, {"id": "q1", "must_have": [["a"]]}]
    truth = lines(tmp_path / "t.jsonl", *([{"about": "golden", "queries": records}] if wrapped else records))
    columns = {"retrieval_gt": "must_have"}
    assert groupgt.evaluate(truth, {"q1": ["a"]}, ["recall"], truth_columns=columns)["recall"] == 1
    unanswered = lines(tmp_path / "u.jsonl", {"id": "q0"}, records[1])
    with pytest.raises(groupgt.DataError, match=r"u.jsonl:1: expected the key must_have, found id"):
        groupgt.read_ground_truth(unanswered, columns=columns)


def test_a_query_with_two_texts_is_asked_about(tmp_path: Path) -> None:
    """One text per query id, apart from blanks; in files and in frames."""
    rows = [("q1", "what is  x", "a"), ("q1", "what is x ", "b"), ("q1", "", "c"), ("q2", "what is y", "a")]
    other = [*rows, ("q2", "what is z", "b")]

    def written(name: str, rows: list[tuple[str, str, str]]) -> Path:
        return put(tmp_path / name, "qid,query,doc_id\n" + "".join(",".join(row) + "\n" for row in rows))

    truth = groupgt.read_ground_truth(written("good.csv", rows))
    assert truth.texts == ["what is  x", "what is y"]
    with pytest.raises(groupgt.DataError, match=r"bad\.csv:6: query 'q2': .*'what is z', but 'what is y' at .*:5"):
        groupgt.read_ground_truth(written("bad.csv", other))
    frame = pl.DataFrame(other, schema=["qid", "query", "doc_id"], orient="row")
    with pytest.raises(groupgt.DataError, match=r"row 5: query 'q2': .*'what is y' at .*row 4; keep one"):
        groupgt.read_ground_truth(frame)


RANKED = {"q1": [{"id": "b", "rank": 2}, {"id": "a", "rank": 1}], "q2": [{"id": "c", "rank": 1}]}


def test_ranks_order_results_by_query(tmp_path: Path) -> None:
    truth = {"q1": [["a"]], "q2": [["c"]]}
    in_lists = lines(tmp_path / "r.jsonl", *({"qid": qid, "retrieved_ids": rows} for qid, rows in RANKED.items()))
    for run in (RANKED, put(tmp_path / "r.json", json.dumps(RANKED)), in_lists):
        assert groupgt.evaluate(truth, run, ["mrr"])["mrr"] == 1
    wrapped = put(tmp_path / "w.json", '{"q1": {"retrieved_ids": ["b", "a"]}, "q2": {"retrieved_ids": ["c"]}}')
    assert groupgt.evaluate(truth, wrapped, ["mrr"])["mrr"] == 0.75


@pytest.mark.parametrize(
    ("result", "parts"),
    [
        ({"id": "b", "distance": 0.9}, ("found distances", "rename distance to score", "--scores ascending")),
        ({"chunk": "b", "sim": 0.9}, ("the keys chunk, sim (at rank 1)", "rename the key that contains the ids to id")),
    ],
)
def test_keys_of_results_by_query_are_asked_about(tmp_path: Path, result: dict[str, Any], parts: tuple[str]) -> None:
    with pytest.raises(groupgt.DataError) as caught:
        groupgt.read_run(put(tmp_path / "r.json", json.dumps({"q1": [result]})))
    assert [part for part in parts if part not in str(caught.value)] == []


def test_a_table_of_prose_with_unknown_columns_is_no_run(tmp_path: Path) -> None:
    text = "ref,ask,page\nq1,How do I book a ferry to the island?,a\nq2,When does the last ferry leave the harbor?,b\n"
    (tmp_path / "gold.csv").write_text(text)
    with pytest.raises(groupgt.DataError, match=r"columns qid, retrieval_gt are missing.*found ref, ask, page"):
        groupgt.read_ground_truth(tmp_path / "gold.csv")
