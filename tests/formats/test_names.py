"""What runs are called, and which files of a folder are runs."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import groupgt
from groupgt.formats.detect import run_paths
from groupgt.formats.endings import name_of, without_endings
from tests.bad_input import Cli, fails, put

RESULT = "q Q0 a 1 1.0 t\n"
TRUTH = {"q": [["a"]]}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("input.bm25.gz", "input.bm25"),
        ("bm25-k1=0.9-b=0.4", "bm25-k1=0.9-b=0.4"),
        ("bm25-k1=0.9-b=0.4.trec", "bm25-k1=0.9-b=0.4"),
        ("bm25.V2.TREC.GZ", "bm25.V2"),
        ("v1.5.jsonl.zst", "v1.5"),
        ("run.v2.json", "run.v2"),
        ("a.res", "a"),
        (".trec", ".trec"),
        ("plain", "plain"),
    ],
)
def test_only_known_endings_are_lost(file: str, name: str) -> None:
    assert without_endings(file) == name


def test_the_name_of_a_run_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "bm25-k1=0.9-b=0.4").write_text(RESULT)
    assert groupgt.read_run(tmp_path / "bm25-k1=0.9-b=0.4").name == "bm25-k1=0.9-b=0.4"


def test_a_folder_or_a_pattern_names_many_runs(tmp_path: Path) -> None:
    for name in ("b.trec", "_a.trec", ".hidden"):
        (tmp_path / name).write_text("q Q0 a 1 1 t\n")
    assert [path.name for path in run_paths(tmp_path)] == ["_a.trec", "b.trec"]
    assert [path.name for path in run_paths(tmp_path / "*.trec")] == ["_a.trec", "b.trec"]
    with pytest.raises(groupgt.DataError, match="no file matches"):
        run_paths(tmp_path / "*.csv")


def test_what_is_no_run_in_a_folder_is_passed_over_and_told(tmp_path: Path) -> None:
    for name in ("bm25.trec", "input.bm25", "notes"):
        (tmp_path / name).write_text(RESULT)
    (tmp_path / "README.md").write_text("Runs of the first round, made on\nTuesday by somebody who left us.\n")
    (tmp_path / "plot.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (tmp_path / "qrels.txt").write_text("q 0 a 1\n")
    (tmp_path / "summary.csv").write_text("filename,module_name,module_params\n0.parquet,bm25,{}\n")
    with pytest.warns(groupgt.GroupgtWarning) as told:
        found = run_paths(tmp_path)
    assert [path.name for path in found] == ["bm25.trec", "input.bm25", "notes"]
    assert [str(each.message) for each in told] == [
        f"{tmp_path}: skipped README.md, plot.png, qrels.txt, summary.csv (not runs)"
    ]
    with pytest.warns(groupgt.GroupgtWarning, match=r"skipped plot\.png \(not a run\)$"):
        assert run_paths(tmp_path / "[bp]*") == [tmp_path / "bm25.trec"]


SUMMARIES = {
    "config.json": b'{"k": 5, "model": "x"}',
    "evaluation_summary.json": b'{"LLM": "x", "Recall (%)": 40.2, "per_query_metrics": [{"query_id": "q"}]}',
    "metrics.jsonl": b'{"metric": "ndcg", "value": 0.3}\n',
    "per_query.json": b'{"q": {"ndcg": 0.4, "P_10": 0.1, "recall@5": 1.0}, "r": {"ndcg": 0.1}}',
    "plot.png": b"\x89PNG\r\n\x1a\n\0\0",
    "results.json": b'[{"system": "bm25", "ndcg": 0.3}]',
}


def test_summaries_in_a_folder_are_passed_over_and_told_once(tmp_path: Path, cli: Cli) -> None:
    truth, folder = put(tmp_path / "q.txt", "q 0 a 1\nr 0 b 1\n"), tmp_path / "runs"
    folder.mkdir()
    for name, content in (("one.trec", RESULT.encode()), ("two.trec", b"r Q0 b 1 1 t\n"), *SUMMARIES.items()):
        put(folder / name, content)
    pl.DataFrame({"system": ["bm25"], "ndcg": [0.3]}).write_parquet(folder / "summary.parquet")
    for options, means in ((["--parts"], ["1.0000"]), ([], ["0.5000", "0.5000"])):
        told = cli("evaluate", truth, folder, "-m", "recall", *options)
        skipped = [line for line in told.err.splitlines() if "skipped" in line]
        assert [line.partition("skipped ")[2] for line in skipped] == [
            f"{', '.join([*SUMMARIES][:5])}, 2 more (not runs)"
        ]
        assert re.findall(r"\b[01]\.\d{4}\b", told.out) == means


def test_a_run_whose_columns_are_declared_is_no_summary(tmp_path: Path, cli: Cli) -> None:
    truth, folder = put(tmp_path / "q.txt", "q 0 a 1\n"), tmp_path / "runs"
    folder.mkdir()
    put(folder / "one.trec", RESULT)
    put(folder / "two.jsonl", '{"ask": "q", "chunk": "a", "sim": 1}\n')
    columns = {"qid": "ask", "doc_id": "chunk"}
    told = cli(
        "evaluate", truth, folder, "-m", "recall", *(f"--columns={role}={name}" for role, name in columns.items())
    )
    assert (told.out.count("1.0000"), told.err.count("skipped")) == (2, 0)
    assert list(groupgt.evaluate_runs(truth, folder, ["recall"], run_columns=columns)) == ["one", "two"]
    (folder / "one.trec").unlink()
    fails(cli("evaluate", truth, folder, "-m", "recall"), "expected the keys qid", "found ask, chunk, sim")


@pytest.mark.parametrize("name", ["bad.trec", "bad.run.gz", "bad.parquet", "bad.jsonl", "empty.csv"])
def test_a_damaged_run_in_a_folder_is_not_passed_over(name: str, tmp_path: Path) -> None:
    content = {"bad.parquet": b"PAR1 and nothing", "empty.csv": b"", "bad.jsonl": b'{"qid": "q", "results": ["a"]}\n'}
    (tmp_path / name).write_bytes(content.get(name, b"no result\n"))
    assert run_paths(tmp_path) == [tmp_path / name]


def test_a_folder_without_runs(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("nothing\n")
    with pytest.raises(groupgt.DataError, match=r"expected runs, found only notes\.md"):
        run_paths(tmp_path)


def test_the_best_results_of_autorag_are_a_run_where_a_run_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "best_0.parquet"
    rows = {
        "qid": ["q1", "q2"],
        "query": ["?", "?"],
        "retrieval_gt": [[["a"]], [["b"]]],
        "retrieved_ids": [["a"], ["x"]],
    }
    pl.DataFrame(rows).write_parquet(path)
    assert dict(groupgt.read_ground_truth(path).items()) == {"q1": [["a"]], "q2": [["b"]]}
    assert groupgt.evaluate(path, path, ["recall"]).means == {"recall": 0.5}
    pl.DataFrame({name: rows[name] for name in ("qid", "query", "retrieval_gt")}).write_parquet(path)
    with pytest.raises(groupgt.DataError, match="expected a run, but this looks like ground truth"):
        groupgt.read_run(path)


def test_the_folder_of_an_autorag_node_is_its_results(tmp_path: Path) -> None:
    for name in ("0.parquet", "10.parquet", "best_0.parquet"):
        pl.DataFrame({"retrieved_ids": [["a"]]}).write_parquet(tmp_path / name)
    assert [path.name for path in run_paths(tmp_path)] == ["0.parquet", "10.parquet", "best_0.parquet"]
    (tmp_path / "summary.csv").write_text("filename,module_name\n0.parquet,bm25\n")
    told = r"skipped summary\.csv \(not a run\) and best_0\.parquet \(AutoRAG's copy of the best\)$"
    with pytest.warns(groupgt.GroupgtWarning, match=told):
        paths = run_paths(tmp_path)
    assert [path.name for path in paths] == ["0.parquet", "10.parquet"]
    with pytest.warns(groupgt.GroupgtWarning, match=r"skipped best_0\.parquet"):
        assert run_paths(tmp_path / "*.parquet") == paths
    results = groupgt.evaluate_runs(TRUTH, paths, ["recall"])
    assert [evaluation.means["recall"] for evaluation in results.values()] == [1, 1]


def test_an_ending_in_upper_case_at_a_url(tmp_path: Path) -> None:
    (tmp_path / "RUN.TSV").write_text("qid\tdoc_id\tscore\nq\ta\t1\nq\tb\t2\n")
    assert groupgt.evaluate({"q": [["a"]]}, (tmp_path / "RUN.TSV").as_uri(), ["mrr"])["mrr"] == 0.5


def test_the_name_of_a_run_in_many_files() -> None:
    assert name_of("runs/bm25/part-*.parquet") == "bm25"
    assert name_of("s3://bucket/dense.parquet") == "dense"
