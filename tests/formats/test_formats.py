"""Every format, both ways: what is written reads back, compressed too, whatever the file is called."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupgt
from groupgt.engines.calls import calls_of, in_call_order
from groupgt.engines.carriers import all_rankings
from groupgt.formats import write
from groupgt.formats.corpus import read_corpus
from groupgt.formats.detect import kind_of
from groupgt.model.policy import Policy
from groupgt.runtime import zstd

GROUPED = {"q1": [["a", "b"], ["c"]], "q2": [["d"]], "q3": [["e", "ü–漢字"], ["e"]]}
FLAT = {"q1": [["a"], ["b"]], "q2": [["d"]]}
GRADED = {
    "q1": [{"alternatives": [{"id": "a", "grade": 2}, {"id": "n", "grade": 0}]}, {"alternatives": ["c"]}],
    "q2": [["d", {"id": "f", "grade": 0.5}]],
}
BLANKS = ["a b", "c,d", "e\u00a0f"]
RUN = {"q1": ["a", "x", "c"], "q2": ["d"], "other": ["z"]}


def same_truth(first: groupgt.GroundTruth, second: groupgt.GroundTruth) -> None:
    assert dict(first.items()) == dict(second.items())


@pytest.mark.parametrize("format", [name for name, writer in write.TRUTH_WRITERS.items() if "groups" in writer.keeps])
def test_grouped_truth_reads_back(tmp_path: Path, format: str) -> None:
    truth = groupgt.GroundTruth.of(GROUPED, shape="subtopics")
    file = tmp_path / "truth.dat"
    assert write.write_ground_truth(file, truth, format) == []
    same_truth(groupgt.read_ground_truth(file, "trec-subtopics" if format == "trec-subtopics" else None), truth)


@pytest.mark.parametrize("format", ["jsonl", "csv", "trec-subtopics"])
def test_graded_truth_reads_back(tmp_path: Path, format: str) -> None:
    truth = groupgt.GroundTruth.of(GRADED, shape="subtopics")
    file = tmp_path / "truth.dat"
    write.write_ground_truth(file, truth, format)
    same_truth(groupgt.read_ground_truth(file, "trec-subtopics" if format == "trec-subtopics" else None), truth)


@pytest.mark.parametrize("format", ["trec", "beir"])
def test_flat_truth_reads_back(tmp_path: Path, format: str) -> None:
    truth = groupgt.GroundTruth.of(FLAT, shape="flat")
    target = tmp_path / "truth"
    write.write_ground_truth(target, truth, format)
    same_truth(groupgt.read_ground_truth(target), truth)


def test_jsonl_keeps_everything(tmp_path: Path) -> None:
    row = {
        "qid": "q1",
        "query": "who?",
        "retrieval_gt": [{"alternatives": ["a", {"id": "b", "grade": 2}], "weight": 2.5, "name": "capital"}, ["c"]],
        "type": "multi",
        "split": "test",
    }
    file, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    file.write_text(json.dumps(row) + "\n")
    truth = groupgt.read_ground_truth(file)
    assert truth.texts == ["who?"]
    assert truth.columns == {"type": ["multi"], "split": ["test"]}
    assert truth.group_label(0) == "group 1 (capital)"
    write.write_ground_truth(other, truth, "jsonl")
    assert json.loads(other.read_text()) == row


@pytest.mark.parametrize(
    ("format", "given", "words"),
    [
        ("trec", GROUPED, "has alternatives"),
        ("beir", GROUPED, "has alternatives"),
        ("parquet", GRADED, "has no grades"),
        ("csv", {"q": [{"alternatives": ["a"], "weight": 2}]}, "has no group weights"),
    ],
)
def test_a_format_that_would_change_a_score_is_refused(tmp_path: Path, format: str, given: Any, words: str) -> None:
    with pytest.raises(groupgt.DataError, match=words):
        write.write_ground_truth(tmp_path / "t", groupgt.GroundTruth.of(given), format)


def test_what_is_lost_without_changing_a_score_is_said(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(
        '{"qid": "1", "query": "?", "retrieval_gt": [["a"]], "type": "x"}\n{"qid": "2", "retrieval_gt": []}\n'
    )
    lost = write.write_ground_truth(tmp_path / "b.csv", groupgt.read_ground_truth(file), "csv")
    assert lost == ["the columns type", "query texts", "1 query without ground truth"]


def rankings(run: groupgt.Run) -> dict[str, list[str]]:
    return {qid: ids for qid, (ids, _) in all_rankings(run, Policy())}


@pytest.mark.parametrize("format", write.RUN_WRITERS)
@pytest.mark.parametrize("scored", [True, False])
def test_runs_read_back(tmp_path: Path, format: str, scored: bool) -> None:
    file = tmp_path / "system-a.v2.dat"
    rows = [(qid, ids, [9 / (n + 1) for n in range(len(ids))] if scored else None) for qid, ids in RUN.items()]
    write.write_run(file, rows, format, tag="t")
    run = groupgt.read_run(file)
    assert run.name == "system-a.v2.dat"
    assert rankings(run) == RUN
    if scored:
        assert [(qid, *ranking) for qid, ranking in all_rankings(run, Policy())] == rows


@pytest.mark.parametrize("format", write.TRUTH_WRITERS)
def test_ids_with_blanks_in_ground_truth_read_back_or_are_refused(tmp_path: Path, format: str) -> None:
    truth = groupgt.GroundTruth.of(
        {"q 1": [[name] for name in BLANKS]}, shape=write.TRUTH_WRITERS[format].shape or "groups"
    )
    file = tmp_path / "truth.dat"
    try:
        write.write_ground_truth(file, truth, format)
    except groupgt.DataError:
        return
    same_truth(groupgt.read_ground_truth(file, "csv" if format == "tsv" else format), truth)


@pytest.mark.parametrize("format", write.RUN_WRITERS)
def test_ids_with_blanks_in_runs_read_back_or_are_refused(tmp_path: Path, format: str) -> None:
    file = tmp_path / "run.dat"
    try:
        write.write_run(file, [("q 1", BLANKS, [3.0, 2.0, 1.0])], format, tag="t")
    except groupgt.DataError:
        return
    assert rankings(groupgt.read_run(file)) == {"q 1": BLANKS}


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
@pytest.mark.parametrize("name", ["run.trec", "run.gz", "run"])
def test_compressed_files_by_their_bytes_and_not_their_names(tmp_path: Path, pack: Any, name: str) -> None:
    plain = b"".join(b"q1 Q0 %s 1 %d t\n" % (doc, 9 - n) for n, doc in enumerate((b"a", b"x", b"c")))
    file = tmp_path / name
    file.write_bytes(pack(plain))
    assert rankings(groupgt.read_run(file)) == {"q1": ["a", "x", "c"]}
    truth = tmp_path / "truth"
    truth.write_bytes(pack(b'{"qid": "q1", "retrieval_gt": [["a"]]}\n'))
    assert dict(groupgt.read_ground_truth(truth).items()) == {"q1": [["a"]]}


def test_zstd_in_several_frames(tmp_path: Path) -> None:
    file = tmp_path / "run"
    file.write_bytes(zstd.compress(b"q1 Q0 a 1 2 t\n") + zstd.compress(b"q1 Q0 b 2 1 t\n"))
    assert rankings(groupgt.read_run(file)) == {"q1": ["a", "b"]}


@pytest.mark.parametrize(
    "content",
    [
        b"q1 Q0 a 1 2.0 t\nq1 Q0 b 2 1.0 t\n",
        b"q1\tQ0\ta\t1\t2.0\tt\r\nq1\tQ0\tb\t2\t1.0\tt\r\n",
        b"\xef\xbb\xbfq1 Q0 a 1 2.0 t more columns\n\nq1   Q0\tb 9 1.0 t",
        b"q1 Q0 b 1 1.0 t\nq1 Q0 a 2 2.0 t\n",
        b"  q1 Q0 a 1 +2 t  \n q1 Q0 b 1 1e-3 t \n",
    ],
)
@pytest.mark.parametrize("small", [0, 1 << 20])
def test_trec_runs_in_every_spacing(
    tmp_path: Path, content: bytes, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groupgt.formats.source.SMALL", small)
    file = tmp_path / "run"
    file.write_bytes(content)
    result = groupgt.evaluate({"q1": [["b"]]}, file, ["mrr"])
    assert result["mrr"] == 0.5
    assert result.labelled.hits.length.tolist() == [2]


def test_subtopics_are_groups_only_when_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "qrels"
    file.write_text("q1 1 a 1\nq1 1 b 1\nq1 2 c 2\nq1 2 d 0\n")
    with pytest.raises(
        groupgt.DataError, match=r"several values; add --truth-format trec-subtopics if .* --truth-format trec"
    ):
        groupgt.read_ground_truth(file)
    assert len(groupgt.read_ground_truth(file, "trec")["q1"]) == 4
    grouped = groupgt.read_ground_truth(file, "trec-subtopics")
    assert grouped["q1"] == [["a", "b"], [{"id": "c", "grade": 2}, {"id": "d", "grade": 0}]]


def test_beir_folders(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "who?"}\n')
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "title": "T", "text": "body"}\n')
    (tmp_path / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\t2\n1\td2\t0\n")
    for path in (tmp_path, tmp_path / "qrels" / "dev.tsv"):
        truth = groupgt.read_ground_truth(path)
        assert truth["1"] == [[{"id": "d1", "grade": 2}], [{"id": "d2", "grade": 0}]]
        assert truth.texts == ["who?"]
    assert read_corpus(tmp_path) == {"d1": "T\nbody"}
    (tmp_path / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n1\td3\t1\n")
    with pytest.raises(groupgt.DataError, match="pass one split's file"):
        groupgt.read_ground_truth(tmp_path)
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td4\t1\n")
    assert groupgt.read_ground_truth(tmp_path)["1"] == [["d4"]]


def test_autorag_files(tmp_path: Path) -> None:
    qa, node = tmp_path / "qa.parquet", tmp_path / "best_0.parquet"
    frame = pl.DataFrame(
        {
            "qid": ["q1", "q2", "q3"],
            "query": ["one?", "two?", "three?"],
            "retrieval_gt": [[["a", "b"], ["c"]], [["d"]], [[]]],
            "generation_gt": [["x"], ["y"], ["z"]],
        }
    )
    frame.write_parquet(qa)
    truth = groupgt.read_ground_truth(qa)
    assert dict(truth.items()) == {"q1": [["a", "b"], ["c"]], "q2": [["d"]], "q3": []}
    for key in ("retrieved_ids", "retrieved_ids_lexical"):
        pl.DataFrame({key: [["a"], ["x", "d"], ["z"]], "retrieve_scores": [[1.0], [2.0, 1.0], [1.0]]}).write_parquet(
            node
        )
        result = groupgt.evaluate(qa, node, ["recall", "mrr"])
        assert result.means == {"recall": 0.75, "mrr": 0.5}
        assert result.counts["undefined"] == 1
        # The rows of the node belong to all queries of the file, of which some are evaluated.
        assert groupgt.evaluate(qa, node, ["recall", "mrr"], where={"generation_gt": "['y']"}).means == {
            "recall": 1,
            "mrr": 0.5,
        }
        assert groupgt.evaluate(qa, node, ["recall"], limit=1).means == {"recall": 0.5}
    pl.DataFrame({"retrieved_ids": [["a"]]}).write_parquet(node)
    with pytest.raises(groupgt.DataError, match="expected 3 rows, found 1"):
        groupgt.evaluate(qa, node, ["recall"])


def test_keys_keep_their_order(tmp_path: Path) -> None:
    rows = [
        {"type": "x", "retrieval_gt": [["a"]], "query": "one?", "qid": "q1"},
        {"type": "y", "retrieval_gt": [["b"]], "query": "two?", "qid": "q2"},
    ]
    (tmp_path / "truth.jsonl").write_text("\n".join(map(json.dumps, rows)))
    truth = groupgt.read_ground_truth(tmp_path / "truth.jsonl")
    for name, written in (("all", truth), ("some", truth.select([1]))):
        write.write_ground_truth(tmp_path / f"{name}.jsonl", written, "jsonl")
        lines = (tmp_path / f"{name}.jsonl").read_text().splitlines()
        assert [list(json.loads(line).items()) for line in lines] == [list(row.items()) for row in rows[-len(lines) :]]


def test_autorag_empty_and_integer_truth(tmp_path: Path) -> None:
    qa = tmp_path / "qa.parquet"
    pl.DataFrame(
        {"qid": [1, 2], "retrieval_gt": [[], []]}, schema={"qid": pl.Int64, "retrieval_gt": pl.List(pl.List(pl.Null))}
    ).write_parquet(qa)
    assert dict(groupgt.read_ground_truth(qa).items()) == {"1": [], "2": []}
    pl.DataFrame({"qid": [1], "retrieval_gt": [[[7, 8]]]}).write_parquet(qa)
    assert dict(groupgt.read_ground_truth(qa).items()) == {"1": [["7", "8"]]}


def test_which_kind_a_file_is(tmp_path: Path) -> None:
    contents = {
        "truth": [
            '{"qid": "1", "retrieval_gt": [["a"]]}',
            "qid,group,doc_id\n1,1,a",
            "1 0 a 1",
            "query-id\tcorpus-id\tscore\n1\ta\t1",
        ],
        "run": [
            '{"qid": "1", "retrieved_ids": ["a"]}',
            '{"qid": "1", "doc_id": "a", "rank": 1}',
            "qid,doc_id,score\n1,a,1",
            "1 Q0 a 1 1 t",
        ],
    }
    file = tmp_path / "x"
    for kind, texts in contents.items():
        for text in texts:
            file.write_text(text + "\n")
            assert kind_of(file) == kind, text
            other = groupgt.read_run if kind == "truth" else groupgt.read_ground_truth
            with pytest.raises(groupgt.DataError, match=r"looks like|is missing|are missing"):
                other(file)


def test_corpora(tmp_path: Path) -> None:
    file = tmp_path / "corpus.jsonl"
    file.write_text('{"doc_id": 1, "contents": "Title\\nbody", "title": "Title"}\n{"doc_id": "b", "text": "t"}\n')
    assert read_corpus(file) == {"1": "Title\nbody", "b": "t"}
    frame = pl.DataFrame({"doc_id": ["a"], "contents": ["text"]})
    frame.write_parquet(tmp_path / "c.parquet")
    frame.write_csv(tmp_path / "c.csv")
    assert read_corpus(tmp_path / "c.parquet") == read_corpus(tmp_path / "c.csv") == {"a": "text"}
    file.write_text('{"doc_id": "a", "contents": "x"}\n{"doc_id": "a", "contents": "y"}\n{"doc_id": "c"}\n')
    with pytest.raises(groupgt.DataError) as caught:
        read_corpus(file)
    assert caught.value.total == 2
    assert "corpus.jsonl:2" in str(caught.value)


def test_polars_and_python_read_the_same_doubles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    texts = [repr(value) for value in (rng.random(2000) * 10.0 ** rng.integers(-30, 30, 2000)).tolist()]
    texts += [
        "5e-324",
        "2.2250738585072011e-308",
        "1.7976931348623157e308",
        "0.1",
        "1.",
        ".5",
        "-0.0",
        "9007199254740993",
    ]
    file = tmp_path / "run"
    file.write_text("".join(f"q Q0 d{number} 1 {text} t\n" for number, text in enumerate(texts)))
    monkeypatch.setattr("groupgt.formats.source.SMALL", 0)
    run = groupgt.read_run(file)
    assert run.as_columns.frame.collect()["score"].to_list() == [float(text) for text in texts]


def test_lists_of_a_fixed_size() -> None:
    kinds = {"qid": pl.String, "retrieved_ids": pl.Array(pl.String, 2), "retrieve_scores": pl.Array(pl.Float64, 2)}
    frame = pl.DataFrame({"qid": ["q"], "retrieved_ids": [["a", "b"]], "retrieve_scores": [[2.0, 1.0]]}, schema=kinds)
    assert groupgt.evaluate({"q": [["b"]]}, frame, ["mrr"])["mrr"] == 0.5


@pytest.mark.parametrize("format", [name for name in write.RUN_WRITERS if name != "trec"])
@pytest.mark.parametrize("scored", [True, False])
def test_runs_with_calls_read_back(tmp_path: Path, format: str, scored: bool) -> None:
    file = tmp_path / "agent.dat"
    rows: list[Any] = [("q1", ["a", "x", "c"], [2.0, 1.0, 9.0]), ("q2", [], []), ("q3", ["d"], [0.5])]
    rows = rows if scored else [(qid, ids, None) for qid, ids, _ in rows]
    calls = {"q1": [1, 1, 2], "q2": [], "q3": [7]}
    assert write.write_run(file, rows, format, tag="t", calls=calls) == []
    run = in_call_order(groupgt.read_run(file))
    assert {qid: ids for qid, ids in rankings(run).items() if ids} == {"q1": ["a", "x", "c"], "q3": ["d"]}
    found = {qid: own for qid, own in calls_of(run, Policy()).items() if own.calls}
    assert {qid: own.calls for qid, own in found.items()} == {"q1": [1, 1, 2], "q3": [7]}
    if scored or format == "csv":
        assert found["q1"].scores == ([2.0, 1.0, 9.0] if scored else [-1.0, -2.0, -3.0])


def test_rows_cannot_hold_scores_that_rise_within_a_call(tmp_path: Path) -> None:
    rows = [("q1", ["a", "x", "c"], [1.0, 2.0, 9.0])]
    with pytest.raises(groupgt.DataError, match="'a' is ranked before 'x'"):
        write.write_run(tmp_path / "a.csv", rows, "csv", tag="t", calls={"q1": [1, 1, 2]})
    assert not write.write_run(tmp_path / "a.csv", rows, "csv", tag="t", calls={"q1": [1, 2, 3]})
