"""Experiments whose stored results lie in many files, and that name an engine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.report.run import run_experiment

FILE = """\
version: 1
name: stored
{engine}
datasets:
  one: {{ground_truth: qa.jsonl}}
systems:
  whole: {{use: results, with: {{path: "{{dataset}}.trec"}}}}
  parts: {{use: results, with: {{path: "{{dataset}}-parts/*.trec"}}}}
  folder: {{use: results, with: {{path: "{{dataset}}-parts"}}}}
evaluate: {{metrics: [recall, mrr, ndcg], k: [1, 3], convention: trec}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [f"q{query} Q0 d{(query * 7 + rank) % 11} 1 {10 - rank} t\n" for query in range(20) for rank in range(6)]
    (tmp_path / "one.trec").write_text("".join(lines))
    parts = tmp_path / "one-parts"
    parts.mkdir()
    for number in range(3):
        (parts / f"part-{number}.trec").write_text("".join(lines[number::3]))
    rows = ({"qid": f"q{query}", "retrieval_gt": [[f"d{query % 11}", "d3"], ["d5"]]} for query in range(21))
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def as_parquet(folder: Path) -> str:
    """Write the runs again as files that Spark reads, and return their ending."""
    for path in (folder / "one.trec", *(folder / "one-parts").iterdir()):
        cells = map(str.split, path.read_text().splitlines())
        rows = [(qid, doc, float(score)) for qid, _, doc, _, score, _ in cells]
        pl.DataFrame(rows, ["qid", "doc_id", "score"], orient="row").write_parquet(path.with_suffix(".parquet"))
        path.unlink()
    return "parquet"


def run(folder: Path, engine: str = "", ending: str = "trec") -> dict[str, groupgt.Evaluation]:
    path = folder / "experiment.yaml"
    text = FILE.format(engine=engine).replace(", convention: trec", "")
    path.write_text(text.replace(".trec", f".{ending}"))
    return run_experiment(path, output=folder / "out").evaluations["one"]


STREAMING = "engine: {use: streaming, with: {memory: 20GB}}"
SPARK = "engine: {use: spark, with: {}}"


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support")
@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", ["", STREAMING, SPARK, pytest.param("engine: streaming", marks=pytest.mark.property)]
)
def test_one_run_in_one_file_or_many_by_every_engine(folder: Path, engine: str) -> None:
    expected, ending = run(folder)["whole"], "trec"
    if "spark" in engine:
        pytest.importorskip("pyspark", reason="the extra groupgt[spark] is not installed")
        if shutil.which("java") is None:
            pytest.skip("there is no Java")
        local = '{master: "local[2]", config: {spark.ui.enabled: "false", spark.sql.shuffle.partitions: "3"}}'
        engine = engine.replace("{}", local)
        ending = as_parquet(folder)
    found = run(folder, engine, ending)
    assert set(found) == {"whole", "parts", "folder"}
    for each in found.values():
        assert each.means == expected.means
        assert each.counts == expected.counts
    manifests = [path.read_text() for path in (folder / "out" / "stored").glob("*/manifest.json")]
    assert any(f"part-1.{ending}" in text for text in manifests)


def test_engines_at_fault_are_told_with_their_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "experiment.yaml"
    for engine, told in (
        ("engine: sparc", "engine: expected"),
        ("engine: {use: streaming, with: {memory: lots}}", "expected a size such as 2GB"),
        ("engine: {use: streaming, with: {memry: 1GB}}", "did you mean 'memory'"),
    ):
        path.write_text(FILE.format(engine=engine).replace(", convention: trec", ""))
        with pytest.raises(SystemExit) as end:
            main(["run", str(path), "--dry-run"])
        assert end.value.code == 2
        told_here = capsys.readouterr().err
        assert f"{path}:3:" in told_here
        assert told.split(":")[-1].strip() in told_here


def test_runs_of_a_cluster_are_refused_before_the_work(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "experiment.yaml"
    text = FILE.format(engine="engine: spark").replace(", convention: trec", "")
    path.write_text(text + "output: {formats: [json, runs]}\n")
    with pytest.raises(SystemExit) as end:
        main(["run", str(path), "--dry-run"])
    assert end.value.code == 2
    assert "whole, parts, folder stay on a cluster and cannot be written as runs" in capsys.readouterr().err
