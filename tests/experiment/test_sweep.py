"""Sweeps: names, what is retrieved and what is kept, what --set and --only change, what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.experiment.experiment import load
from groupgt.experiment.plan import plan
from groupgt.experiment.retrieval import Task, needed
from groupgt.experiment.runner import run_experiment
from groupgt.experiment.sweeps import SystemConfig, matching, variants
from groupgt.retrievers.bm25 import BM25

MEMBERS = ["bm25[k1=0.9,b=0.4]", "bm25[k1=0.9,b=0.75]", "bm25[k1=1.2,b=0.4]", "bm25[k1=1.2,b=0.75]"]


def contents(folder: Path | None) -> dict[str, bytes]:
    assert folder is not None
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "timings.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_names_in_order(sweep: Path) -> None:
    assert list(load(sweep).systems) == [*MEMBERS, "fused[k=10]", "fused[k=60]"]


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([0.4, 1.0, 1e-3, 2], ["x[a=0.4]", "x[a=1]", "x[a=0.001]", "x[a=2]"]),
        ([1e20, 1e-7, True, None], ["x[a=1e+20]", "x[a=1e-07]", "x[a=true]", "x[a=null]"]),
        (["english", "two words", "a,b"], ["x[a=english]", 'x[a="two words"]', 'x[a="a,b"]']),
        ([[0.5, 0.5], {"k": 1}], ["x[a=[0.5,0.5]]", 'x[a={"k":1}]']),
    ],
)
def test_values_print_one_way(values: list[Any], names: list[str]) -> None:
    config = SystemConfig.model_validate({"use": "bm25", "matrix": {"a": values}})
    assert [each.name for each in variants("x", config)] == names


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("bm25[k1=0.9,b=0.4]", ["bm25[k1=0.9,b=0.4]"]),  # a name, though [ … ] would be a set of letters
        ("bm25[*", ["bm25[k1=0.9,b=0.4]", "bm25[k1=1.2,b=0.4]"]),
        ("?sa", ["lsa"]),
        ("*", ["bm25[k1=0.9,b=0.4]", "bm25[k1=1.2,b=0.4]", "lsa", "a*"]),
        ("a*", ["a*"]),
        ("BM25*", []),
        ("l.a", []),
    ],
)
def test_patterns(pattern: str, found: list[str]) -> None:
    assert matching(pattern, ["bm25[k1=0.9,b=0.4]", "bm25[k1=1.2,b=0.4]", "lsa", "a*"]) == found


def test_nothing_is_retrieved_twice(sweep: Path) -> None:
    first = run_experiment(sweep)
    second = run_experiment(sweep)
    assert (first.retrieved, first.cached) == (4, 0)
    assert (second.retrieved, second.cached) == (0, 4)
    assert contents(first.folder) == contents(second.folder)


@pytest.mark.parametrize(
    ("change", "retrieved"),
    [
        ("evaluate.metrics=[complete, ndcg]", 0),
        ("evaluate.k=[10, 1]", 0),
        ("convention=autorag", 0),
        ("systems.fused.matrix.k=[1, 2, 3]", 0),
        ("name=other", 0),
        ("systems.bm25.matrix.b.1=0.8", 2),
        ("systems.bm25.matrix.k1=[0.9, 1.2, 2]", 2),
        ("systems.bm25.with={stopwords: english}", 4),
        ("evaluate.depth=21", 4),
        ("datasets.handbook.where.split=test", 4),
        ("systems.fused.with={depth: 10}", 2),
        ("seed=1", 4),
    ],
)
def test_a_change_retrieves_what_it_determines(sweep: Path, change: str, retrieved: int) -> None:
    run_experiment(sweep)
    changes = [change, 'systems.fused.inputs.1="bm25[k1=1.2,b=0.4]"'] if ".b.1" in change else [change]
    if change == "evaluate.k=[10, 1]":
        changes.append("evaluate.primary=ndcg@1")
    assert run_experiment(sweep, changes=changes).retrieved == retrieved


def test_a_changed_corpus_is_retrieved_from_anew(sweep: Path, tmp_path: Path) -> None:
    text = sweep.read_text(encoding="utf-8")
    corpus = Path(next(line for line in text.splitlines() if "corpus:" in line).split(": ")[1])
    (tmp_path / "own.jsonl").write_bytes(corpus.read_bytes())
    sweep.write_text(text.replace(corpus.as_posix(), "own.jsonl"), encoding="utf-8")
    assert run_experiment(sweep).retrieved == 4
    (tmp_path / "own.jsonl").write_bytes(corpus.read_bytes() + b'{"doc_id": "new", "contents": "new"}\n')
    assert run_experiment(sweep).retrieved == 4


def test_refresh_retrieves_everything(sweep: Path) -> None:
    run_experiment(sweep)
    assert run_experiment(sweep, refresh=True).retrieved == 4


def test_without_a_cache_nothing_is_kept(sweep: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert run_experiment(sweep, changes=["cache=null"]).retrieved == 4
    assert not (tmp_path / "cache").exists()


def test_the_plan_says_what_is_kept(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row[-1] for row in plan(sweep)[1]] == ["retrieve"] * 4 + ["combine"] * 2
    run_experiment(sweep, only=["bm25[k1=0.9*"])
    monkeypatch.setattr(BM25, "retrieve", None)
    assert [row[-1] for row in plan(sweep)[1]] == ["cached"] * 2 + ["retrieve"] * 2 + ["combine"] * 2


def test_only_reports_what_is_asked_and_the_baseline(sweep: Path) -> None:
    outcome = run_experiment(sweep, only=["fused[k=60]"])
    assert set(outcome.evaluations["handbook"]) == {"fused[k=60]", "bm25[k1=0.9,b=0.4]"}
    assert outcome.retrieved == 2  # the inputs
    with pytest.raises(groupgt.ConfigError, match="no system has this name"):
        run_experiment(sweep, only=["lsa"])


def test_a_fusion_deeper_than_the_file_asks_its_inputs_again(sweep: Path) -> None:
    tasks = needed(load(sweep, changes=["systems.fused.with={depth: 50}"]))
    assert tasks[:4] == [Task("handbook", name, 20) for name in MEMBERS]
    assert tasks[4:] == [Task("handbook", MEMBERS[0], 50), Task("handbook", MEMBERS[3], 50)]


def test_jobs_change_no_byte(sweep: Path, tmp_path: Path) -> None:
    one = run_experiment(sweep, output=tmp_path / "one", changes=["cache=one"])
    two = run_experiment(sweep, output=tmp_path / "two", changes=["cache=one"], jobs=2, refresh=True)
    assert two.retrieved == 4
    assert contents(one.folder) == contents(two.folder)


def test_what_is_written(sweep: Path) -> None:
    outcome = run_experiment(sweep)
    assert outcome.folder is not None
    names = {path.name for path in outcome.folder.iterdir()}
    files = {"table.txt", "table.md", "table.tex", "table.html", "results.json", "means.csv", "per_query.csv", "runs"}
    assert names == files | {"comparison.csv", "truth", "timings.json", "manifest.json"}
    results = json.loads((outcome.folder / "results.json").read_text(encoding="utf-8"))
    comparison = results["datasets"]["handbook"]["comparison"]
    assert comparison["baseline"] == MEMBERS[0]
    systems = {each["run"]: each["metrics"] for each in results["datasets"]["handbook"]["systems"]}
    rows = [row for row in comparison["rows"] if row["system"] != MEMBERS[0]]
    assert len(rows) == (len(systems) - 1) * len(systems[MEMBERS[0]])
    for row in rows:
        mean = systems[row["system"]][row["metric"]]["mean"]
        difference = mean - systems[MEMBERS[0]][row["metric"]]["mean"]
        assert row["against_baseline"]["delta"] == pytest.approx(difference, abs=1e-12)
    timings = json.loads((outcome.folder / "timings.json").read_text(encoding="utf-8"))
    for each in timings["systems"]:
        assert 0 < each["latency_p50_ms"] <= each["latency_p95_ms"]
        assert each["build_s"] > 0
        assert len(each["single_ms"]) == 30
    html = (outcome.folder / "table.html").read_text(encoding="utf-8")
    assert html.count("<table>") == html.count("</table>") == 7
    assert "\\toprule" in (outcome.folder / "table.tex").read_text(encoding="utf-8")


def test_no_value_of_the_environment_is_written(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPGT_SECRET", "english")
    text = sweep.read_text(encoding="utf-8").replace(
        "    matrix: {k1: [0.9", '    with: {stopwords: "${env:GROUPGT_SECRET}"}\n    matrix: {k1: [0.9'
    )
    sweep.write_text(text, encoding="utf-8")
    outcome = run_experiment(sweep)
    assert outcome.folder is not None
    manifest = (outcome.folder / "manifest.json").read_text(encoding="utf-8")
    assert "${env:GROUPGT_SECRET}" in manifest
    assert '"english"' not in manifest


def test_several_data_sets_and_the_best_of_all(sweep: Path) -> None:
    text = sweep.read_text(encoding="utf-8")
    own = text[text.index("  handbook:") : text.index("systems:")]
    text = text.replace("systems:", own.replace("handbook:", "other:", 1).replace("dev", "test") + "systems:", 1)
    sweep.write_text(text, encoding="utf-8")
    outcome = run_experiment(sweep)
    assert set(outcome.best) == {"handbook", "other"}
    means = {
        name: sum(outcome.evaluations[dataset][name]["ndcg@10"] for dataset in outcome.evaluations) / 2
        for name in outcome.evaluations["handbook"]
    }
    assert outcome.overall == max(means, key=lambda name: means[name])


def test_the_command_line(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", str(sweep), "--check"])
    assert "retrieve" in capsys.readouterr().out
    main(["run", str(sweep), "--format", "json", "--jobs", "2"])
    printed = json.loads(capsys.readouterr().out)
    assert printed["datasets"]["handbook"]["best"] in [*MEMBERS, "fused[k=10]", "fused[k=60]"]
    assert printed["times"]["systems"]
    main(["run", str(sweep), "--only", "bm25*", "--set", "evaluate.k=3", "--set", "evaluate.primary=ndcg@3"])
    shown = capsys.readouterr()
    assert "ndcg@3" in shown.out
    assert "4 of 4 retrievals were kept" in shown.err
    main(["cache", str(sweep), "--format", "json"])
    listed = json.loads(capsys.readouterr().out)
    assert sorted(each["system"] for each in listed) == MEMBERS
    main(["cache", str(sweep), "--clear", "--only", "bm25[k1=0.9,*"])
    assert "removed 2 runs" in capsys.readouterr().err
    assert run_experiment(sweep).retrieved == 2


def test_ids_with_blanks_are_written_as_json_lines(sweep: Path, tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "a b", "contents": "ferry"}\n', encoding="utf-8")
    (tmp_path / "qa.jsonl").write_text('{"qid": "1", "query": "ferry", "retrieval_gt": [["a b"]]}\n', encoding="utf-8")
    data = "datasets={own: {corpus: corpus.jsonl, ground_truth: qa.jsonl}}"
    outcome = run_experiment(sweep, changes=[data, "evaluate.by=n_groups"], only=["bm25[k1=0.9,b=0.4]"])
    assert outcome.folder is not None
    (written,) = (outcome.folder / "runs" / "own").iterdir()
    again = groupgt.evaluate(tmp_path / "qa.jsonl", written, ["recall"])
    assert written.suffix == ".jsonl"
    assert again["recall"] == 1
