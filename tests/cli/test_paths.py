"""Paths, sizes, languages and numbers as they are typed, and what cannot be read or written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.bad_input import METRICS, TREC, TRUTH, YAML, Cli, fails, put, swap, write

pytestmark = pytest.mark.slow


def test_many_results_and_a_high_k(cli: Cli, tmp_path: Path, size: str) -> None:
    truth = put(tmp_path / "truth.jsonl", '{"qid": "q1", "retrieval_gt": [["d0"], ["d49999"]]}\n')
    run = put(tmp_path / "run.trec", "".join(f"q1 Q0 d{i} {i + 1} {-i} t\n" for i in range(50_000)))
    metrics = "recall,mrr,map,precision.trec,ndcg.coverage,alpha_dcg,err_ia,p_ia,rbp"
    found = cli("evaluate", truth, run, "-m", metrics, "-k", "1000000000000,1", "--format", "json")
    assert found.status == 0
    rows = json.loads(found.out)["runs"][0]["metrics"]
    means = {name: row["mean"] for name, row in rows.items()}
    assert means["recall@1000000000000"] == 1
    assert means["mrr@1000000000000"] == pytest.approx((1 + 1 / 50_000) / 2)
    assert means["precision.trec@1000000000000"] == pytest.approx(2e-12)
    assert means["recall@1"] == 0.5


@pytest.mark.parametrize("k", ["0", "-1", "x", "1.0", "1e3", "", "٣", "9" * 30, "9" * 5_000, str(1 << 63)])
def test_impossible_k(k: str, cli: Cli, truth: Path) -> None:
    run = put(truth.parent / "run.trec", TREC)
    fails(cli("evaluate", truth, run, "-m", "recall", "-k", k), "-k", k[:20])


@pytest.mark.parametrize("metric", ["recall@0", "recall@-1", "recall@5@10", "recall@x", "recall@" + "9" * 5_000])
def test_impossible_cutoff(metric: str, cli: Cli, truth: Path) -> None:
    fails(cli("evaluate", truth, put(truth.parent / "run.trec", TREC), "-m", metric), metric[:20], "cutoff")


LANGUAGES = [
    "文档", "مستند", "документ", "दस्तावेज़", "เอกสาร", "😀👩‍👩‍👧", "é", "e\u0301x", "\u202eabc", "ﬁ", "İ",
    "=1+1", "#1", "'\"",
]  # fmt: skip


def test_ids_of_every_language(cli: Cli, tmp_path: Path, size: str) -> None:
    truth = put(tmp_path / "t.jsonl", json.dumps({"qid": "питання", "retrieval_gt": [[each] for each in LANGUAGES]}))
    rows = list(enumerate(LANGUAGES, 1))
    files = [
        put(tmp_path / "one.trec", "".join(f"питання Q0 {each} {rank} {-rank} t\n" for rank, each in rows)),
        put(tmp_path / "two.tsv", "qid\tdoc_id\trank\n" + "".join(f'питання\t"{e}"\t{r}\n' for r, e in rows[:-1])),
        put(tmp_path / "three.jsonl", json.dumps({"qid": "питання", "retrieved_ids": LANGUAGES})),
        write(tmp_path / "four.parquet", {"qid": ["питання"], "retrieved_ids": [LANGUAGES]}),
    ]
    found = cli("evaluate", truth, *files, "-m", "hits", "--format", "csv")
    assert found.out == "run,hits\none,14.0\ntwo,13.0\nthree,14.0\nfour,14.0\n"


def test_paths_with_blanks_and_letters(cli: Cli, tmp_path: Path, size: str) -> None:
    folder = tmp_path / "with blank" / "ünï 日本"
    folder.mkdir(parents=True)
    truth, run = put(folder / "t [1].jsonl", TRUTH), put(folder / "r *.trec", TREC)
    assert cli("evaluate", truth, run, *METRICS).status == 0
    fails(cli("evaluate", truth, put(run, swap(TREC, b"2.0 t", b"2.0")), *METRICS), f"{run}:2", "6 columns")


def test_runs_are_named_by_their_stem(cli: Cli, truth: Path) -> None:
    stems = ["bm25[k1=0.9,b=0.4]", "bm25[k1=0.9,b=0.75]", "bm25.v1", "bm25.v2"]
    runs = [put(truth.parent / f"{stem}.trec", TREC) for stem in stems]
    found = cli("evaluate", truth, *runs, "-m", "recall", "--format", "json")
    assert [each["run"] for each in json.loads(found.out)["runs"]] == stems


@pytest.mark.parametrize("name", ["nope.trec", "nope/x.trec", "truth.jsonl/x", "*.nope", "x" * 300, "x/" * 3_000])
def test_no_such_file(name: str, cli: Cli, truth: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A message shows the beginning of a long path.
    monkeypatch.chdir(truth.parent)
    fails(cli("evaluate", truth, name, *METRICS), name[:20])
    fails(cli("evaluate", name, truth, *METRICS), name[:20])


def test_an_empty_name_is_no_file(cli: Cli, truth: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(truth.parent / "run.trec", TREC)
    truth.rename(truth.parent / ".truth.jsonl")
    monkeypatch.chdir(truth.parent)
    fails(cli("evaluate", ".truth.jsonl", "", *METRICS))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read anything")
def test_no_permission(cli: Cli, truth: Path) -> None:
    locked = truth.parent / "locked"
    locked.mkdir()
    run = put(locked / "run.trec", TREC)
    run.chmod(0)
    fails(cli("evaluate", truth, run, *METRICS), run, "ermission")
    locked.chmod(0)
    try:
        fails(cli("evaluate", truth, run, *METRICS), run, "ermission")
        fails(cli("evaluate", truth, locked, *METRICS), locked, "ermission")
        fails(cli("evaluate", truth, truth, "--per-query", locked / "x.csv", *METRICS))
    finally:
        locked.chmod(0o700)


@pytest.mark.parametrize("target", ["truth.jsonl/x.csv", "folder.csv", "x" * 300 + ".csv", "x.txt", "x"])
def test_unwritable_target(target: str, cli: Cli, truth: Path) -> None:
    (truth.parent / "folder.csv").mkdir()
    run, path = put(truth.parent / "run.trec", TREC), truth.parent / target
    before = sorted(truth.parent.iterdir())
    fails(cli("evaluate", truth, run, "--per-query", path, *METRICS), path)
    assert sorted(truth.parent.iterdir()) == before


@pytest.mark.parametrize("target", ["truth.jsonl", "truth.jsonl/x"])
@pytest.mark.parametrize("command", ["convert", "init", "run"])
def test_a_file_where_a_folder_should_be(command: str, target: str, cli: Cli, truth: Path) -> None:
    path = truth.parent / target
    config = put(truth.parent / "experiment.yaml", YAML)
    put(truth.parent / "run.trec", TREC)
    arguments: dict[str, tuple[object, ...]] = {
        "convert": ("convert", truth, path, "--to", "beir"),
        "init": ("init", path),
        "run": ("run", config, "--output", path),
    }
    fails(cli(*arguments[command]), truth)
    assert truth.read_text(encoding="utf-8") == TRUTH


def test_unknown_table_format_before_anything_is_written(cli: Cli, truth: Path) -> None:
    run, path = put(truth.parent / "run.trec", TREC), truth.parent / "values.csv"
    fails(cli("evaluate", truth, run, "-m", "recall", "--format", "nope", "--per-query", path), "'nope'", "github")
    assert not path.exists()
    fails(cli("check", truth, run, "--format", "nope"), "'nope'")
    fails(cli("list", "metrics", "ndcg", "--format", "nope"), "'nope'")


@pytest.mark.parametrize("command", ["evaluate", "misses", "check"])
def test_every_table_as_csv(command: str, cli: Cli, truth: Path) -> None:
    assert cli(command, truth, put(truth.parent / "run.trec", TREC), "--format", "csv").status == 0
