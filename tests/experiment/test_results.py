"""Result folders: every file that was asked for, and readable by what it is meant for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.engines.carriers import all_rankings
from groupgt.model.policy import Policy
from groupgt.render.exports import json_text
from groupgt.report.results import results_of
from groupgt.report.run import run_experiment
from groupgt.results.folder import ResultFolder
from tests.experiment.conftest import MEMBERS
from tests.experiment.faulty_files import GATES, STORED, changed, written
from tests.experiment.folders import file_of
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow


def test_what_is_written(sweep: Path) -> None:
    formats = "[report, table, markdown, latex, json, csv, runs]"
    outcome = run_experiment(sweep, changes=[f"output.formats={formats}", "evaluate.timed=30"])
    assert outcome.folder is not None
    names = {path.name for path in outcome.folder.iterdir()}
    files = {"table.txt", "table.md", "table.tex", "report.html", "results.json", "means.csv", "per_query.csv", "runs"}
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
    assert "\\toprule" in (outcome.folder / "table.tex").read_text(encoding="utf-8")


def keys_in(value: Any, path: str = "") -> set[str]:
    """The path of every key; names of data sets, systems, metrics and counts are written `*`."""
    if isinstance(value, list):
        return {key for item in value for key in keys_in(item, f"{path}[]")}
    if not isinstance(value, dict):
        return {path}
    named = {"*" if path.rpartition(".")[2] in NAMED else key: item for key, item in value.items()}
    return {key for name, item in named.items() for key in keys_in(item, f"{path}.{name}")}


NAMED = {
    "datasets",
    "metrics",
    "counts",
    "means",
    "solved",
    "only",
    "ranks",
    "corrected",
    "trials",
    "stages",
    "outcomes",
}


def test_keys_of_results(sweep: Path, snapshot: Snapshot) -> None:
    """Programs read these keys: one that goes or changes is in this snapshot's diff."""
    outcome = run_experiment(sweep)
    snapshot("\n".join(sorted(keys_in(json.loads(json_text(results_of(outcome)))))))


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


ODD = ["a b", " c", "d ", "\u3000e\u3000f", "#g", "h\u00a0i"]


@pytest.mark.parametrize("way", ["retrieved", "stored", "streamed"])
@pytest.mark.parametrize("odd", ["ids", "queries"])
def test_what_no_trec_file_can_hold_is_written_as_json_lines_and_qrels_are_left_out(
    tmp_path: Path, way: str, odd: str
) -> None:
    """Such a run must not fail at the end of its work; what is written is what was evaluated."""
    names = {f"d{number}": name if odd == "ids" else f"d{number}" for number, name in enumerate(ODD)}
    qids = [name if odd == "queries" else f"q{number}" for number, name in enumerate(ODD)]
    corpus = [{"doc_id": name, "contents": f"ferry {'times ' * number}"} for number, name in enumerate(names.values())]
    truth = [{"qid": qid, "query": "ferry times", "retrieval_gt": [[name]]} for qid, name in zip(qids, names.values())]
    stored = [{"qid": qid, "retrieved_ids": [*names.values()]} for qid in qids]
    for file, rows in (("corpus", corpus), ("truth", truth), ("run", stored)):
        (tmp_path / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    system = "bm25" if way == "retrieved" else "{use: results, with: {path: run.jsonl}}"
    (tmp_path / "odd.yaml").write_text(
        "version: 1\nname: odd\ndatasets: {own: {corpus: corpus.jsonl, ground_truth: truth.jsonl}}\n"
        f"systems: {{one: {system}}}\nevaluate: {{metrics: [mrr, recall], k: [3], depth: 6}}\n"
        f"output: {{folder: out, formats: [runs, csv]}}\n{'engine: streaming' if way == 'streamed' else ''}\n"
    )
    outcome = run_experiment(tmp_path / "odd.yaml")
    assert outcome.folder is not None
    (written,) = (outcome.folder / "runs" / "own").iterdir()
    assert written.name == "one.jsonl"
    assert [path.name for path in (outcome.folder / "truth").iterdir()] == ["own.jsonl"]  # qrels cannot hold it
    evaluation = outcome.evaluations["own"]["one"]
    again = groupgt.evaluate(tmp_path / "truth.jsonl", written, list(evaluation.metrics.values()))
    for text, values in evaluation.values.items():
        assert values.tolist() == again.values[text].tolist()
    assert list(outcome.folder.rglob("*.trec")) == []


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


def test_written_runs_keep_order_and_scores_and_are_read_back_the_same(tmp_path: Path, snapshot: Snapshot) -> None:
    """A list without scores is a TREC run with scores from ranks; distances and ties are JSON Lines."""
    rows = [{"qid": "q", "query": "x", "retrieval_gt": [["a"]]}]
    (tmp_path / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    given: dict[str, list[float] | None] = {
        "falling": [0.9, 0.3], "rising": [0.1, 0.7], "tied": [0.5, 0.5], "plain": None
    }  # fmt: skip
    for name, scores in given.items():
        row = {"qid": "q", "retrieved_ids": ["a", "b"], **({} if scores is None else {"retrieve_scores": scores})}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    systems = ", ".join(f"{name}: {{use: results, with: {{path: {name}.jsonl}}}}" for name in given)
    systems += ", distances: {use: results, scores: ascending, with: {path: rising.jsonl}}"
    (tmp_path / "e.yaml").write_text(
        "version: 1\nname: e\ndatasets: {d: {ground_truth: truth.jsonl}}\n"
        f"systems: {{{systems}}}\nevaluate: {{metrics: [mrr]}}\n"
    )
    outcome = run_experiment(tmp_path / "e.yaml")
    assert outcome.folder is not None
    written = {path.name for path in (outcome.folder / "runs" / "d").iterdir()}
    assert written == {"falling.trec", "plain.trec", "rising.jsonl", "tied.jsonl", "distances.jsonl"}
    for name, scores in {**given, "distances": given["rising"], "plain": [1.0, 0.5]}.items():
        (path,) = (outcome.folder / "runs" / "d").glob(f"{name}.*")
        assert dict(all_rankings(groupgt.read_run(path), Policy())) == {"q": (["a", "b"], scores)}
    told = outcome.text()
    snapshot(" ".join(told.split()))
    folder = ResultFolder.opened(outcome.folder)
    assert folder.scores == {"distances": "ascending"}


def test_trec_eval_reads_the_order_that_was_evaluated(sweep: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="the extra groupgt[peers] is not installed")
    changes = ["convention=trec", "evaluate.metrics=[ndcg, map]", "evaluate.primary=ndcg@10", "compare=null"]
    outcome = run_experiment(sweep, changes=changes)
    assert outcome.folder is not None
    tied = 0
    for name, evaluation in outcome.evaluations["handbook"].items():
        scores = outcome.answers["handbook", name].scores
        truth = evaluation.truth
        qrels = {qid: {each: 1 for group in groups for each in group} for qid, groups in truth.items() if groups}
        file = outcome.folder / "runs" / "handbook" / f"{file_of(outcome.folder, name)}.trec"
        if file.is_file():
            rows = [line.split() for line in file.read_text().splitlines()]
            run = {qid: {row[2]: float(row[4]) for row in rows if row[0] == qid} for qid in truth.qids}
        else:  # equal scores in another order than trec_eval's
            again = dict(all_rankings(groupgt.read_run(file.with_suffix(".jsonl")), evaluation.policy))
            assert {qid: row for qid, (_, row) in again.items()} == scores
            run = {qid: {name: 1 / rank for rank, name in enumerate(ids, 1)} for qid, (ids, _) in again.items()}
            tied += 1
        found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(run)
        for qid, value in zip(truth.qids, evaluation.values["ndcg.trec@10"].tolist()):
            if qid in found:
                assert value == pytest.approx(found[qid]["ndcg_cut_10"], abs=1e-12), (name, qid)
    assert tied  # the fusions have equal scores


def test_long_values_make_no_long_names_of_files(folder: Path) -> None:
    text = changed(
        ("table, json", "table, runs"), ("  plain: bm25", f"  plain: bm25\n  {'y' * 100}: bm25"), (GATES, "")
    )
    (folder / "own_ranking.py").write_text("def search(queries, k):\n    return [['d0'] for each in queries]\n")
    long = f"use: python\n    with: {{target: 'own_ranking:search'}}\n    matrix: {{id_field: [{'z' * 300}]}}"
    file = written(folder, changed((STORED, long), text=text))
    outcome = groupgt.run_experiment(file, allow_code=True, only=["stored*", "yyy*"])
    assert outcome.folder is not None
    files = list(outcome.folder.rglob("*.trec"))
    assert len(files) == sum(map(len, outcome.evaluations.values()))
    assert max(len(file.name) for file in files) < 110
