"""The same ground truth through every format gives the same arrays, and the same fault the same words."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import groupgt
from tests.bad_input import Cli, fails, put

Rows = list[tuple[str, str, str, Any]]
FLAT, GROUPED = ("qid", "doc_id", "grade"), ("qid", "group", "doc_id", "grade")


def table(names: tuple[str, ...], rows: Rows, delimiter: str = ",") -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([row[0], row[2], row[3]] if len(names) == 3 else row for row in rows)
    return text.getvalue()


def records(names: tuple[str, ...], rows: Rows) -> list[dict[str, Any]]:
    return [dict(zip(names, (row[0], row[2], row[3]) if len(names) == 3 else row)) for row in rows]


def lines(names: tuple[str, ...], rows: Rows) -> str:
    return "".join(json.dumps(record) + "\n" for record in records(names, rows))


def by_query(rows: Rows) -> dict[str, dict[str, Any]]:
    grades: dict[str, dict[str, Any]] = {}
    for qid, _, document, grade in rows:
        grades.setdefault(qid, {})[document] = grade
    return grades


def parquet(path: Path, names: tuple[str, ...], rows: Rows) -> Path:
    pl.DataFrame(records(names, rows)).write_parquet(path)
    return path


def pandas(names: tuple[str, ...], rows: Rows) -> Any:
    return pytest.importorskip("pandas").DataFrame(records(names, rows))


# What reads judgments of single documents, with names of their columns from other tools.
Door = Callable[[Path, Rows], Any]
BEIR, TERRIER, MARCO = ("query-id", "corpus-id", "score"), ("qid", "docno", "label"), ("query_id", "pid", "relevance")
FLAT_DOORS: dict[str, Door] = {
    "qrels": lambda path, rows: put(path, "".join(f"{q} 0 {d} {g}\n" for q, _, d, g in rows)),
    "qrels with tabs": lambda path, rows: put(path, "".join(f"{q}\t0\t{d}\t{g}\r\n" for q, _, d, g in rows)),
    "blanks": lambda path, rows: put(
        path, "query_id   doc_id rating\n" + "".join(f"{q}  {d} {g}\n" for q, _, d, g in rows)
    ),
    "csv": lambda path, rows: put(path, table(FLAT, rows)),
    "tsv": lambda path, rows: put(path, table(BEIR, rows, "\t")),
    "csv of another tool": lambda path, rows: put(path, table(MARCO, rows)),
    "json lines": lambda path, rows: put(path, lines(TERRIER, rows)),
    "json array": lambda path, rows: put(path, json.dumps(records(FLAT, rows), indent=2)),
    "json by query": lambda path, rows: put(path, json.dumps(by_query(rows))),
    "indented json by query": lambda path, rows: put(path, json.dumps(by_query(rows), indent=2)),
    "parquet": lambda path, rows: parquet(path, MARCO, rows),
    "polars": lambda _, rows: pl.DataFrame(records(TERRIER, rows)),
    "pandas": lambda _, rows: pandas(BEIR, rows),
    "python": lambda _, rows: by_query(rows),
}
GROUP_DOORS: dict[str, Door] = {
    "subtopics": lambda path, rows: put(path, "".join(f"{q} {s} {d} {g}\n" for q, s, d, g in rows)),
    "csv": lambda path, rows: put(path, table(GROUPED, rows)),
    "csv of another tool": lambda path, rows: put(path, table(("topic", "subtopic", "docno", "rel"), rows)),
    "json lines": lambda path, rows: put(path, lines(GROUPED, rows)),
    "parquet": lambda path, rows: parquet(path, GROUPED, rows),
    "polars": lambda _, rows: pl.DataFrame(records(GROUPED, rows)),
    "pandas": lambda _, rows: pandas(GROUPED, rows),
}


def read(door: Door, path: Path, rows: Rows, name: str) -> groupgt.GroundTruth:
    value = door(path, rows)
    if isinstance(value, dict):
        return groupgt.GroundTruth.of(value)
    return groupgt.read_ground_truth(value, "trec-subtopics" if name == "subtopics" else None)


def arrays(truth: groupgt.GroundTruth) -> tuple[Any, ...]:
    columns = (truth.group_of, truth.group_query, truth.grade, truth.group_weight)
    return truth.qids, truth.ids, *(column.tolist() for column in columns), truth.group_name, truth.shape, truth.digest


# Words that no reader takes for anything else; a query's id has a letter, so that no row looks like numbers alone.
words = st.text("abc123#-.é", min_size=1, max_size=4)
judgments = st.lists(
    st.tuples(words.map("q{}".format), st.sampled_from(["1", "2", "x"]), words.map("d{}".format), st.integers(-1, 3)),
    min_size=1,
    max_size=12,
    unique_by=lambda row: (row[0], row[2]),
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("doors")


@given(judgments)
@settings(max_examples=25, deadline=None)
@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
def test_flat_truth_is_the_same_through_every_door(folder: Path, rows: Rows) -> None:
    named = {name: arrays(read(door, folder / "truth", rows, name)) for name, door in FLAT_DOORS.items()}
    assert all(found == named["qrels"] for found in named.values()), named
    assert named["qrels"][7] == "flat"


@given(judgments)
@settings(max_examples=25, deadline=None)
def test_groups_are_the_same_through_every_door(folder: Path, rows: Rows) -> None:
    named = {name: arrays(read(door, folder / "truth", rows, name)) for name, door in GROUP_DOORS.items()}
    assert all(found == named["csv"] for found in named.values()), named


SOUND: Rows = [("q1", "1", "d1", 1), ("q1", "1", "d2", 1)]
FAULTS: dict[str, tuple[str, str, str, Any]] = {
    "grade beyond the limit": ("q2", "1", "d3", 2**31 + 1),
    "two grades": ("q1", "1", "d2", 2),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("doors", [FLAT_DOORS, GROUP_DOORS], ids=["flat", "groups"])
def test_a_fault_has_the_same_words_but_for_its_place(tmp_path: Path, doors: dict[str, Door], fault: str) -> None:
    said = set()
    for name, door in doors.items():
        # A mapping has no place for a second grade, and qrels refuse any repeat.
        if fault == "two grades" and (
            "by query" in name or name in ("python", "qrels", "qrels with tabs", "subtopics")
        ):
            continue
        if name == "python":
            continue
        with pytest.raises(groupgt.DataError) as error:
            read(door, tmp_path / "truth", [*SOUND, FAULTS[fault]], name)
        words = str(error.value).partition(": query ")[2].replace("as the relevance of", "as the grade of")
        said.add(re.sub(r"at (ground truth: row \d+|\S+( row \d+)?);", "at PLACE;", re.sub(r"'(\d+)'", r"\1", words)))
    assert len(said) == 1, said


PAIRS = [
    {"q": [["17", 2], ["40", 1]]},
    {"q": [[17, "x"]]},
    {"q": [["a", 0.9]]},
    {"q": [[("a", 0.9)]]},
    {"q": [[["Danube", 0], ["Vienna", 2]]]},
    {"q": [["leave.md", 120, 480]]},
]


@pytest.mark.parametrize("groups", PAIRS)
def test_a_group_holds_ids_and_nothing_else(tmp_path: Path, cli: Cli, groups: dict[str, Any]) -> None:
    with pytest.raises(groupgt.DataError, match="expected only ids in a group"):
        groupgt.evaluate(groups, {"q": ["17"]}, ["recall"])
    with pytest.raises(groupgt.DataError, match="expected only ids in a group"):
        groupgt.score(groups["q"], ["17"])
    run = put(tmp_path / "run.json", '{"q": ["17"]}')
    for text in (json.dumps(groups), json.dumps({"qid": "q", "retrieval_gt": groups["q"]})):
        fails(
            cli("evaluate", put(tmp_path / "truth.json", text), run, "-m", "recall"),
            "expected only ids in a group, found",
            "write",
        )


def test_the_way_out_of_pairs_is_a_grade() -> None:
    # 17 has grade 2 and is found, 40 has grade 1 and is not: one of two documents.
    assert groupgt.evaluate({"q": {"17": 2, "40": 1}}, {"q": ["17"]}, ["recall"])["recall"] == 0.5


def test_small_integers_are_ids_and_a_question() -> None:
    with pytest.warns(groupgt.GroupgtWarning, match="every group consists of two integers, the second at most 5"):
        assert groupgt.GroundTruth.of({"q": [[17, 2], [40, 1]]})["q"] == [["17", "2"], ["40", "1"]]
    assert groupgt.GroundTruth.of({"q": [[17, 20], [40, 1]]})["q"] == [["17", "20"], ["40", "1"]]


def test_a_set_in_place_of_groups_is_a_flat_list() -> None:
    with pytest.raises(groupgt.DataError, match="flat_gt=and"):
        groupgt.GroundTruth.of({"q": {"a", "b"}})
    assert groupgt.GroundTruth.of({"q": {"b", "a"}}, "flat_gt=and")["q"] == [["a"], ["b"]]
    assert groupgt.GroundTruth.of({"q": [{"b", "a"}]})["q"] == [["a", "b"]]
    assert groupgt.GroundTruth.of({"q": ["a"]})["q"] == [["a"]]
    assert groupgt.GroundTruth.of({"q": ["a", "b"]}, "autorag")["q"] == [["a", "b"]]


def test_query_ids_that_begin_with_a_hash_are_rows(tmp_path: Path, cli: Cli) -> None:
    """Of three queries one is answered: 1/3."""
    rows = "".join(f"{qid} {{}} 1\n" for qid in ("#1", "#2", "3"))
    truth = put(tmp_path / "qrels", f"# ticket numbers, as of May\n{rows.replace('{}', '0 a')}")
    run = put(tmp_path / "run", "#1 Q0 x 1 1 r\n#2 Q0 x 1 1 r\n# tuned on dev\n3 Q0 a 1 1 r\n")
    assert groupgt.read_ground_truth(truth).qids == ["#1", "#2", "3"]
    assert (groupgt.read_ground_truth(truth).comments, groupgt.read_run(run).comments) == (1, 1)
    assert groupgt.evaluate(truth, run, ["recall"])["recall"] == pytest.approx(1 / 3)
    subtopics = put(tmp_path / "subtopics", "# a comment\n#1 1 a 1\n#1 2 b 1\n")
    assert groupgt.read_ground_truth(subtopics, "trec-subtopics").qids == ["#1"]


@pytest.mark.parametrize(
    "above", ["# topic\tQ0\tdoc\trank\tsim\trun", "# bm25, k1=0.9, score", "#qid\tpid\trank", "# ours"]
)
@pytest.mark.parametrize(
    "rows",
    [
        "q1 Q0 a 1 1 x\nq2 Q0 c 1 1 x\n",
        "q1\tQ0\ta\t1\t1\tx\nq2\tQ0\tc\t1\t1\tx\n",
        "q1\ta\t1\nq2\tc\t1\n",
        "qid,doc_id,score\nq1,a,1\nq2,c,1\n",
        "qid\tdoc_id\tscore\tnote\tmore\nq1\ta\t1\t\t\nq2\tc\t1\t\t\n",
    ],
)
@pytest.mark.parametrize("size", ["small", "large"])
def test_a_comment_above_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: str, rows: str, size: str
) -> None:
    """A line with `#` above a run is no header, whatever its tabs and commas: a is relevant, c is not."""
    monkeypatch.setattr("groupgt.formats.source.SMALL", 0 if size == "large" else 1 << 20)
    found = groupgt.evaluate({"q1": [["a"]], "q2": [["b"]]}, put(tmp_path / "run", f"{above}\n\n{rows}"), ["mrr"])
    assert (found["mrr"], found.counts["comments"]) == (0.5, 1)


@pytest.mark.parametrize("mark", ["\t", ","])
def test_comments_above_ground_truth_and_a_column_named_with_a_number_sign(tmp_path: Path, mark: str) -> None:
    truth = groupgt.read_ground_truth(
        put(tmp_path / "t", f"# ours\n# v2\nqid{mark}doc_id{mark}grade\nq1{mark}a{mark}1\n")
    )
    assert (dict(truth.items()), truth.comments) == ({"q1": [["a"]]}, 2)
    run = put(tmp_path / "run", f"#{mark}qid{mark}doc_id{mark}score\n1{mark}q1{mark}a{mark}0.5\n")
    assert groupgt.evaluate(truth, run, ["mrr"])["mrr"] == 1


@pytest.mark.parametrize(
    "above", ["# topic iter docno rel\n", "# made by us\ntopic iter docno rel\n", "#qid\n# doc_id rel\n"]
)
def test_a_hash_line_above_qrels_names_no_columns(tmp_path: Path, above: str) -> None:
    """A header line may follow the comments, and an id that begins with a hash stays an id."""
    truth = groupgt.read_ground_truth(put(tmp_path / "qrels", f"{above}q1 0 a 1\n# ticket 7\n#7 0 b 1\n"))
    assert (truth.qids, truth.ids) == (["q1", "#7"], ["a", "b"])
    assert truth.comments == above.count("#") + 1


ASKED = ("Who built the mill?", "Who sold  the ferry?")
TEXTS = ("The guild built it in 1903.", "The council sold it in 1988.")


def paired(side: str, order: tuple[int, ...], key: str) -> str:
    """A record per query that has a text alone."""
    cells = {"truth": lambda text: [[{"text": text}]], "run": lambda text: [text]}[side]
    name = {"truth": "retrieval_gt", "run": "retrieved_ids"}[side]
    return "".join(
        json.dumps({key: ASKED[at], name: cells(f"d{at}") if side == "run" else [[f"d{at}"]]}) + "\n" for at in order
    )


def test_records_without_ids_are_paired_by_the_text_of_the_query(tmp_path: Path) -> None:
    truth = put(tmp_path / "truth.jsonl", paired("truth", (0, 1), "question"))
    run = put(tmp_path / "run.jsonl", paired("run", (1, 0), "user_input").replace("  ", " "))
    assert groupgt.evaluate(truth, run, ["mrr"])["mrr"] == 1
    # One side has ids: the other takes them.
    with_ids = put(tmp_path / "ids.jsonl", "".join(
        json.dumps({"qid": f"id{at}", "query": ASKED[at], "retrieval_gt": [[f"d{at}"]]}) + "\n" for at in (0, 1)
    ))  # fmt: skip
    result = groupgt.evaluate(with_ids, run, ["mrr"])
    assert (result["mrr"], list(result.truth)) == (1, ["id0", "id1"])
    run_with_ids = put(tmp_path / "run_ids.jsonl", "".join(
        json.dumps({"qid": f"id{at}", "query": ASKED[at], "retrieved_ids": [f"d{at}"]}) + "\n" for at in (1, 0)
    ))  # fmt: skip
    assert groupgt.evaluate(truth, run_with_ids, ["mrr"])["mrr"] == 1


def test_rows_of_results_by_question(tmp_path: Path) -> None:
    """The same in lists, as columns and from a frame; é is one character in one file and two in the other."""
    truth = put(tmp_path / "t.jsonl", '{"question": "Which caf\u00e9?", "retrieval_gt": [["a"]]}\n')
    rows = [("Which  cafe\u0301?", "x", 0.9), ("Which cafe\u0301? ", "a", 0.4)]
    run = put(tmp_path / "r.csv", "question,doc_id,score\n" + "".join(f"{q},{d},{s}\n" for q, d, s in rows))
    frame = pl.DataFrame(rows, schema=["question", "doc_id", "score"], orient="row")
    for results, engine in ((run, "auto"), (run, "streaming"), (frame, "auto")):
        assert groupgt.evaluate(truth, results, ["mrr"], engine=engine)["mrr"] == 0.5
    with_ids = put(tmp_path / "i.jsonl", '{"qid": "q1", "query": "Which caf\u00e9?", "retrieval_gt": [["a"]]}\n')
    assert groupgt.evaluate(with_ids, run, ["mrr"])["mrr"] == 0.5


def test_what_has_no_partner_is_named(tmp_path: Path) -> None:
    truth = put(tmp_path / "truth.jsonl", paired("truth", (0, 1), "question"))
    run = put(
        tmp_path / "run.jsonl", paired("run", (1,), "question") + '{"question": "Who?", "retrieved_ids": ["d0"]}\n'
    )
    with pytest.warns(groupgt.GroupgtWarning, match=r"1 of 2 queries .* no query text .*'Who\?'"):
        assert groupgt.evaluate(truth, run, ["mrr"])["mrr"] == 0.5
    twice = put(tmp_path / "twice.jsonl", paired("run", (1, 1), "question"))
    with pytest.raises(groupgt.DataError, match="duplicate query"):
        groupgt.evaluate(truth, twice, ["mrr"])


def test_equal_numbers_with_other_texts_are_an_error(tmp_path: Path) -> None:
    truth = put(tmp_path / "t.jsonl", '{"qid": 1, "query": "Who?", "retrieval_gt": [["a"]]}\n')
    run = put(tmp_path / "r.jsonl", '{"qid": 1, "query": "Where?", "retrieved_ids": ["a"]}\n')
    with pytest.raises(groupgt.DataError, match=r"query '1': its text is 'Where\?', but 'Who\?' in the ground truth"):
        groupgt.evaluate(truth, run, ["mrr"])


def test_two_queries_of_one_text_need_ids(tmp_path: Path) -> None:
    rows = "".join(f'{{"qid": "{qid}", "query": "Who?", "retrieval_gt": [["a"]]}}\n' for qid in "ab")
    run = put(tmp_path / "r.jsonl", '{"question": "Who?", "retrieved_ids": ["a"]}\n')
    with pytest.raises(groupgt.DataError, match="the queries a, b have the same text; add ids"):
        groupgt.evaluate(put(tmp_path / "t.jsonl", rows), run, ["mrr"])


SAMPLES = [
    {"user_input": ASKED[0], "reference_contexts": [TEXTS[0]], "retrieved_contexts": [TEXTS[0], "Noise."]},
    {"user_input": ASKED[1], "reference_contexts": [TEXTS[1]], "retrieved_contexts": ["Noise.", TEXTS[1]]},
]


def test_results_without_ids_match_by_their_texts_alone(tmp_path: Path) -> None:
    rows = [{**row, "reference_context_ids": [at]} for at, row in enumerate(SAMPLES, 1)]
    path = put(tmp_path / "s.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(
        groupgt.DataError, match="not all of these results have ids, and the id labeller needs ids; match them"
    ):
        groupgt.evaluate(path, path, ["recall@3"])
    # First at 1, second at 2: (1 + 1/2) / 2.
    result = groupgt.evaluate(path, path, ["mrr"], labeller="text", truth_format="ragas-texts")
    assert result["mrr"] == 0.75


def test_samples_as_csv(tmp_path: Path) -> None:
    path = tmp_path / "testset.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(SAMPLES[0]))
        writer.writeheader()
        writer.writerows({**row, "reference_contexts": repr(row["reference_contexts"])} for row in SAMPLES)
    truth = groupgt.read_ground_truth(path)
    assert [truth.relevant(qid) for qid in truth] == [[[{"text": text}]] for text in TEXTS]


DEEPEVAL = [{"input": ASKED[0], "expected_output": "the guild", "context": [TEXTS[0]], "retrieval_context": [TEXTS[0]]}]


@pytest.mark.parametrize("content", [DEEPEVAL, {"goldens": DEEPEVAL}, {"test_cases": DEEPEVAL}])
def test_deepeval(tmp_path: Path, content: Any) -> None:
    path = put(tmp_path / "cases.json", json.dumps(content, indent=2))
    assert groupgt.evaluate(path, path, ["recall"], labeller="text")["recall"] == 1


HOTPOTQA = [
    {
        "_id": f"{at}", "question": "Which river?", "answer": "x", "type": "bridge", "level": "hard", "context": [],
        "supporting_facts": [["Vienna", 0], ["Danube", 2], ["Vienna", 3]],
    }
    for at in (1, 2)
]  # fmt: skip
HUB = [{"id": "1", "question": "Which?", "supporting_facts": {"title": ["Vienna", "Danube"], "sent_id": [0, 2]}}]
MUSIQUE = [
    {"id": f"2hop__{at}", "question": "Which?", "answerable": True, "paragraphs": [
        {"idx": 0, "title": "Vienna", "paragraph_text": "…", "is_supporting": True},
        {"idx": 1, "title": "Graz", "paragraph_text": "…", "is_supporting": False},
        {"idx": 2, "title": "Danube", "paragraph_text": "…", "is_supporting": True},
    ]}
    for at in (1, 2)
]  # fmt: skip


@pytest.mark.parametrize("rows", [HOTPOTQA, HUB, MUSIQUE])
def test_each_supporting_title_is_a_group(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    path = put(tmp_path / "dev.json", json.dumps(rows))
    truth = groupgt.read_ground_truth(path)
    assert len(truth) == len(rows)
    assert (truth[truth.qids[0]], truth.shape) == ([["Vienna"], ["Danube"]], "subtopics")


FLAT_LISTS = [
    '{"q1": ["a", "b"], "q2": ["c"]}',
    '{"q1": {"relevant_ids": ["a", "b"]}, "q2": {"relevant_ids": ["c"]}}',
    '[{"id": "q1", "question": "?", "gold_docs": ["a", "b"]}, {"id": "q2", "question": "??", "gold_docs": ["c"]}]',
    'id,question,relevant_doc_ids\nq1,?,"[\'a\', \'b\']"\nq2,??,"[""c""]"\n',
]


@pytest.mark.parametrize("text", FLAT_LISTS)
def test_flat_lists_need_a_word_on_what_they_mean(tmp_path: Path, cli: Cli, text: str) -> None:
    truth, run = put(tmp_path / "truth", text), put(tmp_path / "run.json", '{"q1": ["a"], "q2": ["c"]}')
    fails(cli("evaluate", truth, run, "-m", "recall"), "flat_gt=and", "flat_gt=or")
    # q1: one of two ids; q2: its only one.
    assert groupgt.evaluate(truth, run, ["recall"], policy="flat_gt=and")["recall"] == 0.75
    assert groupgt.evaluate(truth, run, ["recall"], policy="autorag")["recall"] == 1


def test_lists_that_lost_their_commas_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "qa.csv", "qid,query,retrieval_gt\nq1,?,\"['a' 'b']\"\n")
    with pytest.raises(groupgt.DataError, match=r"qa\.csv:2: found a list without commas, as numpy prints it"):
        groupgt.read_ground_truth(path)
    put(path, "qid,query,retrieval_gt\nq1,?,\"[['a'], [open]]\"\n")
    with pytest.raises(groupgt.DataError, match="expected a list such as"):
        groupgt.read_ground_truth(path)


def test_rankings_in_csv_cells(tmp_path: Path) -> None:
    path = put(tmp_path / "run.csv", "question,retrieved_ids,retrieve_scores\n?,\"['x', 'a']\",\"[0.9, 0.4]\"\n")
    run = groupgt.read_run(path)
    assert (run.rankings, run.lists.fields["score"]()) == ({"?": ["x", "a"]}, {"?": [0.9, 0.4]})


def test_runs_of_query_passage_and_rank(tmp_path: Path, cli: Cli) -> None:
    truth = put(tmp_path / "qrels.tsv", "11\t0\t501\t1\n12\t0\t502\t1\n")
    run = put(tmp_path / "run.tsv", "11\t900\t1\n11\t501\t2\n12\t502\t1\n")
    # 501 stands second, 502 first: (1/2 + 1) / 2.
    assert groupgt.evaluate(truth, run, ["mrr"])["mrr"] == 0.75
    put(run, "11\t900\t1\n11\t501\t1\n12\t502\t1\n")
    fails(cli("evaluate", truth, run, "-m", "mrr"), f"{run}:1", "qid pid rank", "ranks start at 0 or 1")


def test_texts_alone_of_a_compressor(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    pl.DataFrame({"retrieved_contents": [[TEXTS[1], "Noise."], ["Noise.", TEXTS[0]]]}).write_parquet(path)
    truth = {"q1": [[{"text": TEXTS[1]}]], "q2": [[{"text": TEXTS[0]}]]}
    assert groupgt.evaluate(truth, path, ["mrr"], labeller="text")["mrr"] == 0.75


def test_numbers_that_cite_numbers_are_ids(tmp_path: Path) -> None:
    answer = {"topic_id": "1", "references": [11, 12], "answer": [{"text": "A", "citations": [12]}]}
    path = put(tmp_path / "rag.jsonl", json.dumps(answer) + "\n")
    assert groupgt.read_run(path).rankings == {"1": ["12"]}
    answer["answer"] = [{"text": "A", "citations": [0]}]
    with pytest.raises(groupgt.DataError, match="expected one of the ids in references, found 0"):
        groupgt.read_run(put(path, json.dumps(answer) + "\n"))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ('{"queries": {"q": "?"}, "corpus": {"a": "A", "b": "B"}, "relevant_docs": {"q": ["a"]}}', ["a", "b"]),
        ('{"Vienna": "A city.", "Danube": "A river."}', ["Vienna", "Danube"]),
        ('{"title": "Vienna", "text": "A city."}\n{"title": "Danube", "text": "A river."}\n', ["Vienna", "Danube"]),
        ("docno,passage\na,A\nb,B\n", ["a", "b"]),
    ],
)
def test_corpora_of_other_tools(tmp_path: Path, text: str, ids: list[str]) -> None:
    from groupgt.formats.corpus import read_corpus

    assert list(read_corpus(put(tmp_path / "corpus", text))) == ids


def test_passages_without_ids_are_numbered_as_no_id_is(tmp_path: Path) -> None:
    from groupgt.formats.corpus import read_corpus

    with pytest.warns(groupgt.GroupgtWarning, match="2 passages have no id; rename the id column"):
        texts = read_corpus(put(tmp_path / "corpus.jsonl", '{"text": "A"}\n{"text": "B"}\n'))
    assert texts == {"(passage 1)": "A", "(passage 2)": "B"}


def test_the_layout_of_the_hub(tmp_path: Path) -> None:
    for folder, frame in (
        ("queries", {"_id": ["q1"], "text": ["?"]}),
        ("data", {"query-id": ["q1"], "corpus-id": ["a"], "score": [1]}),
    ):
        (tmp_path / folder).mkdir()
        pl.DataFrame(frame).write_parquet(tmp_path / folder / "test-00000-of-00001.parquet")
    truth = groupgt.read_ground_truth(tmp_path)
    assert (truth["q1"], truth.texts, truth.shape) == ([["a"]], ["?"], "flat")


COLUMNS = {"qid": "ticket", "retrieval_gt": "wanted"}


def test_columns_are_what_the_user_says(tmp_path: Path, cli: Cli) -> None:
    truth = put(tmp_path / "t.jsonl", '{"ticket": "q1", "id": "x", "wanted": [["a"], ["b"]]}\n')
    run = put(tmp_path / "r.csv", "ticket,chunk,value\nq1,c,0.9\nq1,a,0.8\n")
    roles = {"qid": "ticket", "doc_id": "chunk", "score": "value"}
    assert groupgt.read_ground_truth(truth, columns=COLUMNS)["q1"] == [["a"], ["b"]]
    result = groupgt.evaluate(truth, run, ["mrr.trec"], truth_columns=COLUMNS, run_columns=roles)
    assert result["mrr.trec"] == 0.5
    assert groupgt.evaluate({"q1": [["a"]]}, pl.read_csv(run), ["mrr"], run_columns=roles)["mrr"] == 0.5
    options = [f"--columns={role}={name}" for role, name in (COLUMNS | roles).items()]
    found = cli("evaluate", truth, run, "-m", "mrr.trec", *options, "--format", "csv")
    assert found.out == "metric,mean,queries\nmrr.trec,0.5,1\n"
    fails(cli("evaluate", truth, run, *options, "--columns", "rank=place"), "there is no 'place' column", "ticket, ")
    fails(
        cli("evaluate", truth, run, "--columns", "document=chunk"), "columns: expected qid, query", "found 'document'"
    )
    with pytest.raises(groupgt.ConfigError, match="there is no 'place' column"):
        groupgt.read_run(run, columns={"rank": "place"})


def test_columns_of_one_side(tmp_path: Path, cli: Cli) -> None:
    truth = put(tmp_path / "t.jsonl", '{"qid": "q1", "a": "d1", "b": "d2", "grade": 1}\n')
    run = put(tmp_path / "r.jsonl", '{"qid": "q1", "a": "d2", "b": "d1", "rank": 1}\n')
    call = ("evaluate", truth, run, "-m", "recall", "--format", "csv")
    for ours, theirs, found in (("a", "b", "1.0"), ("b", "a", "1.0"), ("a", "a", "0.0")):
        sides = [f"--columns=truth.doc_id={ours}", f"--columns=run.doc_id={theirs}"]
        assert f"recall,{found}" in cli(*call, *sides).out
    # A side's own column takes precedence.
    assert "recall,1.0" in cli(*call, "--columns=doc_id=a", "--columns=run.doc_id=b").out
    for typed, found in (("truth.rank=a", "'rank'"), ("run.grade=a", "'grade'"), ("runs.rank=a", "'runs.rank'")):
        fails(cli(*call, "--columns", typed), "columns: expected qid, query", f"found {found}")
    for typed in ("rank=a", "run.rank=a"):
        assert cli("check", truth, "--columns", "doc_id=a", "--columns", typed).status == 2
    stages = cli("stages", truth, run, f"x={run}@1", "--columns=truth.doc_id=a", "--columns=run.doc_id=b")
    assert "covers 1 of 1 group" in stages.out
    cli("convert", run, tmp_path / "o.jsonl", "--to", "jsonl", "--columns=run.doc_id=b")
    assert groupgt.read_run(tmp_path / "o.jsonl").rankings == {"q1": ["d1"]}


def test_no_columns_may_be_none(tmp_path: Path) -> None:
    truth, run = {"q1": [["a"]]}, {"q1": ["a"]}
    assert groupgt.evaluate(truth, run, ["mrr"], truth_columns=None, run_columns=None)["mrr"] == 1
    file = put(tmp_path / "t.jsonl", '{"qid": "q1", "retrieval_gt": [["a"]]}\n')
    assert groupgt.read_ground_truth(file, columns=None)["q1"] == [["a"]]
    with pytest.raises(groupgt.ConfigError, match="found 'rank'"):
        groupgt.read_ground_truth(file, columns={"rank": "qid"})


@pytest.mark.parametrize("marks", [("True", "False"), ("1", "0"), ("2", "-1"), ("yes", "no"), ("PASS", "FAIL")])
@pytest.mark.parametrize("kind", ["csv", "frame", "jsonl"])
def test_relevant_beside_documents_is_a_grade(tmp_path: Path, kind: str, marks: tuple[str, str]) -> None:
    table = put(
        tmp_path / "t.csv", "query_id,doc_id,relevant\n" + "".join(f"q1,{d},{m}\n" for d, m in zip("ab", marks))
    )
    rows = [{"query_id": "q1", "doc_id": name, "relevant": mark} for name, mark in zip("ab", marks)]
    other = put(tmp_path / "t.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    truth = groupgt.read_ground_truth({"csv": table, "frame": pl.read_csv(table), "jsonl": other}[kind])
    assert (truth.ids, truth.is_relevant.tolist()) == (["a", "b"], [True, False])


@pytest.mark.parametrize(
    ("table", "asked"),
    [
        ("qid,chunk,relevant\nq1,a,1\nq2,c,1\n", ("--columns doc_id=chunk",)),
        ("qid,query,gold,passage\nq1,one,yes,a\nq2,two,no,c\n", ("--columns doc_id=passage",)),
        ("qid,doc_id,relevant\nq1,a,1\nq1,b,\nq2,c,2\n", (":3: query 'q1'", "of 'b'", "leave out unjudged")),
    ],
)
def test_flags_are_no_ids_of_passages(tmp_path: Path, table: str, asked: tuple[str, ...]) -> None:
    with pytest.raises(groupgt.DataError) as caught:
        groupgt.read_ground_truth(put(tmp_path / "t.csv", table))
    assert [part for part in asked if part not in str(caught.value)] == []


def test_numbers_as_ids_of_relevant_passages_stay_ids(tmp_path: Path) -> None:
    truth = groupgt.read_ground_truth(put(tmp_path / "t.csv", "qid,source,relevant\nq1,web,17\nq2,web,4\n"))
    assert truth.ids == ["17", "4"]


@pytest.mark.parametrize(
    ("column", "is_asked"),
    [
        *(("usefulness,1,0", True), ("position,1,0", False), ("pages,1,2", False), ("note,x,y", False)),
        *(("verdict,PASS,FAIL", True), ("is_relevant,yes,no", True), ("found_by,yes,no", True)),
        *(("verdict,1,2", False), ("relevance_model,x,y", False)),
    ],
)
def test_numbers_that_may_be_grades_are_asked_for(tmp_path: Path, column: str, is_asked: bool) -> None:
    name, *cells = column.split(",")
    table = put(
        tmp_path / "t.csv", f"qid,doc_id,{name}\n" + "".join(f"q1,{d},{cell}\n" for d, cell in zip("ab", cells))
    )
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        truth = groupgt.read_ground_truth(table)
    assert truth.is_relevant.tolist() == [True, True]
    texts = [str(each.message) for each in issued]
    assert [f"are grades, add --columns grade={name}" in text for text in texts] == [True] * is_asked
    declared = groupgt.read_ground_truth(table, columns={"grade": name}) if is_asked else None
    assert declared is None or declared.is_relevant.tolist() == [True, False]


@pytest.mark.parametrize(("cell", "way"), [("", "leave out unjudged"), ("N/A", "leave out unjudged"), ("x", "numbers")])
def test_a_judgment_that_is_no_grade_is_asked_about(tmp_path: Path, cell: str, way: str) -> None:
    with pytest.warns(UserWarning, match=f"is_relevant contains '{cell}': if these are grades, .*{way}"):
        groupgt.read_ground_truth(put(tmp_path / "t.csv", f"qid,doc_id,is_relevant\nq1,a,{cell}\nq1,b,1\n"))


def test_columns_in_an_experiment(tmp_path: Path) -> None:
    put(tmp_path / "t.jsonl", '{"ticket": "q1", "query": "?", "wanted": [["a"]]}\n')
    put(tmp_path / "r.csv", "qid,chunk,score\nq1,c,0.9\nq1,a,0.8\n")
    put(tmp_path / "e.yaml", "version: 1\nname: e\ndatasets:\n  d: {ground_truth: t.jsonl, columns: {qid: ticket, "
        "retrieval_gt: wanted}}\nsystems:\n  s: {use: results, with: {path: r.csv, columns: {doc_id: chunk}}}\n"
        "evaluate: {metrics: [mrr]}\n")  # fmt: skip
    outcome = groupgt.run_experiment(tmp_path / "e.yaml")
    assert outcome.evaluations["d"]["s"]["mrr"] == 0.5


@pytest.mark.parametrize(
    ("value", "declared"),
    [("no", True), ("False", True), (0.0, True), (0, True), (False, True), ("yes", False), (1.0, False), (None, False)],
)
def test_answerable_is_what_files_make_of_it(tmp_path: Path, value: Any, declared: bool) -> None:
    rows = [{"qid": "q1", "retrieval_gt": [["a"]]}, {"qid": "q2", "retrieval_gt": [], "answerable": value}]
    truth = groupgt.read_ground_truth(put(tmp_path / "t.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert truth.unanswerable.tolist() == [False, declared]


def test_answerable_that_is_neither_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "t.jsonl", '{"qid": "q1", "retrieval_gt": [], "answerable": "perhaps"}\n')
    with pytest.raises(groupgt.DataError, match="query 'q1': expected true or false as answerable, found 'perhaps'"):
        groupgt.evaluate(path, {"q1": ["a"]}, ["abstains"])


def test_swapped_arguments_are_told_in_one_line(tmp_path: Path, cli: Cli) -> None:
    truth, run = put(tmp_path / "qrels.txt", "q1 0 a 1\n"), put(tmp_path / "bm25.trec", "q1 Q0 a 1 0.5 r\n")
    found = cli("evaluate", run, truth, "-m", "mrr")
    fails(found, "bm25.trec: expected ground truth, but this looks like a run", "Did you swap TRUTH and RUN?")
    assert len(found.err.splitlines()) == 1


def test_standard_input(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"q1 0 a 1\n")))
    run = put(tmp_path / "run.trec", "q1 Q0 x 1 2 r\nq1 Q0 a 2 1 r\n")
    assert cli("evaluate", "-", run, "-m", "mrr", "--format", "csv").out == "metric,mean,queries\nmrr,0.5,1\n"


def test_many_qrels_are_read_as_few_are(tmp_path: Path) -> None:
    """Words of all lines at once, and line by line, where a comment makes them slow."""
    rows = [f"q{row % 7} 0 d{row} {row % 3}\n" for row in range(500)]
    fast = groupgt.read_ground_truth(put(tmp_path / "fast", "".join(rows)))
    slow = groupgt.read_ground_truth(put(tmp_path / "slow", "# a comment\n" + "".join(rows)))
    assert (fast.digest, fast.comments, slow.comments) == (slow.digest, 0, 1)
    assert np.array_equal(fast.group_query, np.sort(fast.group_query))


@pytest.mark.parametrize("name", ["rows", "results", "runs", "items"])
def test_an_object_that_lists_the_records_of_a_run(tmp_path: Path, name: str) -> None:
    """One object may list the records, unless it is the record of a query."""
    records = [{"query_id": "q1", "retrieved_docids": ["x", "a"]}, {"query_id": "q2", "retrieved_docids": ["b"]}]
    path = put(tmp_path / "run.json", json.dumps({name: records}))
    assert groupgt.evaluate({"q1": [["a"]], "q2": [["b"]]}, path, ["mrr"])["mrr"] == (1 / 2 + 1) / 2
    one = put(tmp_path / "one.json", json.dumps({"query_id": "q1", "results": [{"docid": "x"}, {"docid": "a"}]}))
    assert groupgt.evaluate({"q1": [["a"]]}, one, ["mrr"])["mrr"] == 1 / 2


@pytest.mark.parametrize("key", ["id", "docid", "doc_id", "chunk_id", "_id", "pid"])
def test_ids_of_result_objects_in_python(tmp_path: Path, key: str) -> None:
    """The names of ids are the same in Python and in files, and an unknown name is no ground truth."""
    results = {"q": [{key: "x", "score": 2.0}, {key: "a", "score": 1.0, "text": "t"}]}
    for run in (results, put(tmp_path / "run.json", json.dumps(results))):
        assert groupgt.evaluate({"q": [["a"]]}, run, ["mrr"])["mrr"] == 1 / 2
    unknown = put(tmp_path / "unknown.json", json.dumps({"q": [{"url": "x", "score": 2.0}]}))
    with pytest.raises(groupgt.DataError, match=r"the keys url, score \(at rank 1\)"):
        groupgt.evaluate({"q": [["a"]]}, unknown, ["mrr"])
