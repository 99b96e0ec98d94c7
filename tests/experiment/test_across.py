"""Data sets that ask the same queries, one tested against another: in an experiment, and from its result folder."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.comparison.across import Across
from groupgt.experiment.outcome import Outcome
from groupgt.experiment.plan import plan
from groupgt.report.experiment import summary
from groupgt.report.run import run_experiment
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

QIDS = [f"q{number:02}" for number in range(12)]
# At rank 1, and at rank 2.
HIT, MISS = ["d", "x"], ["x", "d"]


def folder_of(
    tmp_path: Path,
    found: Mapping[str, Mapping[str, Sequence[str]]],
    texts: Mapping[str, Mapping[str, str]],
    compare: str = "{across: datasets, baseline: small}",
    metrics: str = "recall@1, recall@2",
) -> Path:
    """An experiment file over data sets whose results and query texts these are; each query wants d."""
    datasets = []
    for name, runs in found.items():
        rows = [{"qid": qid, "query": text, "retrieval_gt": [["d"]]} for qid, text in texts[name].items()]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        lines = [
            {"qid": qid, "retrieved_ids": list(ids), "retrieve_scores": [2.0, 1.0]}
            for qid, ids in runs.items()
            if qid in texts[name]
        ]
        (tmp_path / f"{name}.run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        datasets.append(f"  {name}: {{ground_truth: {name}.jsonl}}")
    file = tmp_path / "file.yaml"
    file.write_text(
        "version: 1\nname: sizes\nconvention: coverage\ndatasets:\n"
        + "\n".join(datasets)
        + "\nsystems: {mine: {use: results, with: {path: '{dataset}.run.jsonl'}}}\n"
        + f"evaluate: {{metrics: [{metrics}]}}\ncompare: {compare}\ncache: null\n"
    )
    return file


def asked(changes: Mapping[str, str] | None = None, qids: Sequence[str] = QIDS) -> dict[str, str]:
    return {qid: f"What of {qid}?" for qid in qids} | dict(changes or {})


def across_of(outcome: Outcome) -> Across:
    assert outcome.across is not None
    return outcome.across


def test_a_data_set_stands_beside_the_baseline(tmp_path: Path, snapshot: Snapshot) -> None:
    """All 12 queries hit on large and 4 on small: +8/12, of 8 that differ p is at least 2/2^8."""
    small = {qid: HIT if place < 4 else MISS for place, qid in enumerate(QIDS)}
    file = folder_of(
        tmp_path, {"small": small, "large": dict.fromkeys(QIDS, HIT)}, {"small": asked(), "large": asked()}
    )
    outcome = run_experiment(file)
    across = across_of(outcome)
    contrast = across.contrasts()["mine on large"]
    assert contrast.delta == pytest.approx(8 / 12)
    assert (contrast.wins, contrast.ties, contrast.losses) == (8, 4, 0)
    assert contrast.raw_p_value == pytest.approx(2 / 2**8)
    assert across.means("mine on large", across.primary) == (pytest.approx(4 / 12), 1.0)
    assert across.to_polars().height == 2
    assert "<table>" in across._repr_html_()
    text = outcome.text()
    snapshot(text)
    assert "does best on data set" not in text
    snapshot(summary(outcome))
    assert outcome.comparison == {}
    assert outcome.folder is not None
    results = json.loads((outcome.folder / "results.json").read_text(encoding="utf-8"))
    row = results["across"]["rows"][0]
    assert (row["system"], row["dataset"], row["metric"]) == ("mine", "large", "recall.coverage@1")
    assert (row["baseline_mean"], row["mean"], row["significant"]) == (pytest.approx(4 / 12), 1.0, True)
    assert results["across"]["queries"]["large"] == {"qids": 12, "alone": 0, "absent": 0, "reworded": []}


def test_queries_are_paired_by_id_and_text(tmp_path: Path, snapshot: Snapshot) -> None:
    """q00 has another text, q01 is asked of small alone, and two new ones of large alone: 10 of 12 are paired."""
    large = {**asked({"q00": "Something else?"}), "n1": "New?", "n2": "New?"}
    del large["q01"]
    found = {"small": dict.fromkeys([*QIDS], HIT), "large": dict.fromkeys(large, MISS)}
    outcome = run_experiment(folder_of(tmp_path, found, {"small": asked(), "large": large}))
    shared = across_of(outcome).shared["large"]
    assert (len(shared.qids), shared.alone, shared.absent, shared.reworded) == (10, 2, 1, ["q00"])
    contrast = across_of(outcome).contrasts()["mine on large"]
    assert (contrast.pairs, contrast.delta) == (10, -1.0)
    text = outcome.text()
    snapshot(text)


def test_fewer_than_two_common_queries_are_an_error(tmp_path: Path) -> None:
    large = asked(dict.fromkeys(QIDS[1:], "Another?"))
    found = {"small": dict.fromkeys(QIDS, HIT), "large": dict.fromkeys(QIDS, HIT)}
    file = folder_of(tmp_path, found, {"small": asked(), "large": large})
    expected = (
        r"file.yaml:\d+:\d+.*'large': expected at least two queries with the same id and text as in small, found 1"
    )
    for call in (lambda: run_experiment(file), lambda: plan(file)):
        with pytest.raises(groupgt.GroupgtError, match=expected):
            call()


def test_the_baseline_is_a_data_set(tmp_path: Path, snapshot: Snapshot) -> None:
    found = {"small": dict.fromkeys(QIDS, HIT), "large": dict.fromkeys(QIDS, HIT)}
    texts = {"small": asked(), "large": asked()}
    file = folder_of(tmp_path, found, texts, "{across: datasets, baseline: mine}")
    with snapshot.raises(groupgt.ConfigError):
        run_experiment(file)


def test_each_metric_is_a_family_of_its_own(tmp_path: Path) -> None:
    small = {qid: HIT if place < 4 else MISS for place, qid in enumerate(QIDS)}
    found = {"small": small, "large": dict.fromkeys(QIDS, HIT), "huge": dict.fromkeys(QIDS, HIT)}
    texts = dict.fromkeys(found, asked())
    (tmp_path / "one").mkdir()
    one, two = (
        across_of(run_experiment(folder_of(folder, found, texts, metrics=metrics))).contrasts()["mine on large"]
        for folder, metrics in ((tmp_path / "one", "recall@1"), (tmp_path, "recall@1, recall@2, mrr@2, ndcg@2"))
    )
    assert one == two
    assert one.p_value == pytest.approx(2 * one.raw_p_value)


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A result folder of three data sets, none of which was compared."""
    small = {qid: HIT if place < 4 else MISS for place, qid in enumerate(QIDS)}
    found = {"small": small, "large": dict.fromkeys(QIDS, HIT), "same": small}
    file = folder_of(tmp_path, found, dict.fromkeys(found, asked()), "{baseline: mine}")
    outcome = run_experiment(file, output=tmp_path / "results")
    assert outcome.across is None
    capsys.readouterr()
    return tmp_path / "results" / "sizes" / "latest"


def test_a_result_folder_is_compared_across_its_data_sets(
    folder: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    main(["compare", str(folder), "--across", "datasets"])
    out = capsys.readouterr().out
    snapshot(out)
    main(["compare", str(folder), "--across", "datasets", "--baseline", "large", "-m", "recall@1", "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["dataset"], row["baseline"], row["metric"]) for row in rows] == [
        ("small", "large", "recall.coverage@1"),
        ("same", "large", "recall.coverage@1"),
    ]
    assert [float(row["delta"]) for row in rows] == [pytest.approx(-8 / 12)] * 2
    main(["compare", str(folder), "--across", "datasets", "--format", "json", "--alpha", "0.001"])
    found = json.loads(capsys.readouterr().out)
    assert found["settings"]["alpha"] == 0.001
    assert not any(row["significant"] for row in found["rows"])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--baseline", "huge"], "expected one of the data sets small, large, same, found 'huge'"),
        (["-m", "ndcg"], "metric: expected one of recall.coverage@1, recall.coverage@2, found 'ndcg'"),
        (["--policy", "trec"], "--policy: cannot be combined with --across"),
        (["--html", "page.html"], "--html: cannot be combined with --across"),
        (["--pairs"], "--pairs: cannot be combined with --across"),
        (["--system", "yours"], "system: expected one of mine, found 'yours'"),
    ],
)
def test_what_cannot_be_compared(
    folder: Path, options: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as error:
        main(["compare", str(folder), "--across", "datasets", *options])
    assert error.value.code == 2
    assert expected in " ".join(capsys.readouterr().err.split())


def test_cutoffs_are_doubted_where_chunks_are_longer(tmp_path: Path, snapshot: Snapshot) -> None:
    """The chunks of long are ten times those of short: @2 gives 24 characters of one and 204 of the other."""
    for name, text in (("short", "word " * 2), ("long", "word " * 20)):
        rows = [{"doc_id": f"d{number:02}", "contents": f"{text}{number:02}"} for number in range(12)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = [{"qid": qid, "query": qid[1:], "retrieval_gt": [[f"d{qid[1:]}"]]} for qid in QIDS]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = tmp_path / "file.yaml"
    file.write_text(
        "version: 1\nname: chunks\ndatasets:\n  short: {corpus: short.jsonl, ground_truth: questions.jsonl}\n"
        "  long: {corpus: long.jsonl, ground_truth: questions.jsonl}\nsystems: {plain: bm25}\n"
        "evaluate: {metrics: [recall@2, recall@50chars]}\ncompare: {across: datasets, baseline: short}\ncache: null\n"
    )
    text = run_experiment(file, output=tmp_path / "results").text()
    snapshot(text)
    file.write_text(file.read_text().replace("metrics: [recall@2,", "metrics: [R@2,"))
    snapshot(run_experiment(file, output=tmp_path / "results").text())
    fair = run_experiment(file, output=tmp_path / "results", changes=["evaluate.primary=recall@50chars"])
    assert "gives longer chunks more text" not in fair.text()
